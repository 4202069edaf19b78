"""Drift: what of a child is not as its owner wants it, who has changed that, and its repair.

    done = await ensure(ctx, shell_deployment(shell))
    if done.made:
        ctx.record("Normal", "DeploymentCreated", "...")
    elif done.drifted:
        ctx.record("Warning", "DriftRepaired", f"{done}")

`ctx.apply` alone keeps a child right. `ensure` is for those who want to say what was done: it writes only when a field
differs, in a new process too, and tells which. It marks the child with a hash of what is wanted (the annotation
`flyball.dev/intent`): a child that carries the hash of today's wish and differs all the same was changed by somebody
else. So a wish that lost a field is noticed, too.
"""

from __future__ import annotations

import copy
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast, get_args

from flyball.api import UNSET, Model, Quantity, Resource, to_dict
from flyball.api.hints import hints_of, plain_type
from flyball.api.model import defaults_of, json_names
from flyball.controller.naming import spec_hash
from flyball.controller.ownership import describe, is_controlled_by

if TYPE_CHECKING:
    from flyball.controller.context import Context

__all__ = ["INTENT", "Ensured", "changed_fields", "ensure"]

W = TypeVar("W", bound=Resource)

INTENT: Final = "flyball.dev/intent"
"""The annotation of a child that tells for which wish it was written last."""

_KEYS: Final = (("name",), ("uid",), ("type",), ("container_port", "protocol"), ("port", "protocol"), ("ip",))
Same = Callable[[Any, Any], bool]

_SIMPLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Ensured(Generic[W]):
    """What a child is now, and what had to be done for it."""

    object: W
    """The child as the server has it."""
    before: W | None = None
    """As it was; None when it was not there."""
    fields: tuple[str, ...] = ()
    """Which fields were otherwise; empty when nothing was written, or the child was made."""
    drifted: bool = False
    """It had been written for this very wish, so somebody else has changed it since."""

    @property
    def made(self) -> bool:
        """It was not there."""
        return self.before is None

    @property
    def changed(self) -> bool:
        """Something was written: its event brings the next pass."""
        return self.made or bool(self.fields)

    def __str__(self) -> str:
        """`Deployment default/demo: spec.replicas`."""
        return f"{describe(self.object)}: {', '.join(self.fields)}" if self.fields else describe(self.object)


async def ensure(ctx: Context, wanted: W) -> Ensured[W]:
    """Make a child be as said here if it is not, by `ctx.apply`, and tell what that took.

    What `ctx.apply` raises is raised: `NameConflict`, `ChildTerminating`, what the server answers.
    """
    child = _marked(wanted)
    name, namespace = child.metadata.name, child.metadata.namespace
    present: Any = await ctx.get(type(wanted), name, namespace)
    fields = changed_fields(child, present) if present is not None else ()
    if present is not None and not fields and _is_in_place(present, ctx.primary):
        return Ensured(present, present)
    applied = await ctx.apply(child)
    if present is not None and applied.metadata.resource_version == present.metadata.resource_version:
        return Ensured(applied, present)
    drifted = present is not None and present.metadata.annotations.get(INTENT) == child.metadata.annotations[INTENT]
    return Ensured(applied, present, fields, drifted)


def _marked(wanted: W) -> W:
    """A copy that carries the hash of everything it says."""
    child = copy.copy(wanted)
    child.metadata = copy.copy(wanted.metadata)
    child.metadata.annotations = {**wanted.metadata.annotations, INTENT: spec_hash({"intent": to_dict(wanted)})}
    return child


def _is_in_place(present: Any, owner: Any) -> bool:
    return is_controlled_by(present, owner) and present.metadata.deletion_timestamp is None


def changed_fields(wanted: Model, present: Model) -> tuple[str, ...]:
    """The fields that `wanted` states and that `present` has otherwise, by their JSON paths.

    What `wanted` leaves open does not matter, in lists of named items (`containers`, `env`) neither what is beside its
    items; any other list counts as a whole. Amounts are compared as amounts: `0.5` is `500m`.

    >>> from flyball.k8s.core.v1 import ConfigMap
    >>> changed_fields(ConfigMap.new("a", data={"x": "1"}), ConfigMap.new("a", data={"x": "2", "y": "3"}))
    ('data.x',)
    """
    return tuple(_model("", wanted, present))


def _value(path: str, wanted: Any, present: Any, same: Same = operator.eq) -> Iterator[str]:
    if wanted is None or wanted is UNSET:
        return
    if isinstance(wanted, Model) and type(wanted) is type(present):
        yield from _model(path, wanted, present)
    elif isinstance(wanted, dict) and isinstance(present, dict | None):
        for key, value in cast("dict[str, Any]", wanted).items():
            below = f"{path}.{key}" if _SIMPLE.fullmatch(key) else f"{path}[{key}]"
            yield from _value(below, value, cast("dict[str, Any]", present or {}).get(key, UNSET), same)
    elif isinstance(wanted, list) and isinstance(present, list | None):
        yield from _items(path, wanted, present or [])
    elif not same(wanted, present):
        yield path


def _model(path: str, wanted: Model, present: Model) -> Iterator[str]:
    for attribute, name, same, unsaid in _fields(type(wanted)):
        value = getattr(wanted, attribute)
        if value != unsaid:
            below = f"{path}.{name}" if path else name
            yield from _value(below, value, getattr(present, attribute), same)


@cache
def _fields(cls: type[Model]) -> Sequence[tuple[str, str, Same, Any]]:
    """Attribute, JSON name, how its values are compared, and the value that is not sent."""
    hints, defaults = hints_of(cls), defaults_of(cls)
    quiet = cls.__struct_config__.omit_defaults
    return tuple(
        (
            attribute,
            name,
            _same_amount if _holds_amounts(hints.get(attribute)) else operator.eq,
            defaults[attribute] if quiet else UNSET,
        )
        for attribute, name in json_names(cls).items()
    )


def _holds_amounts(hint: Any) -> bool:
    """Whether it is a `QuantityLike`, or a map of some."""
    members = set(get_args(plain_type(hint)))
    return {str, int, float} <= members or any(_holds_amounts(one) for one in members if get_args(one))


def _same_amount(wanted: Any, present: Any) -> bool:
    try:
        return Quantity(wanted) == Quantity(present)
    except (TypeError, ValueError):
        return bool(wanted == present)


def _items(path: str, wanted: list[Any], present: list[Any]) -> Iterator[str]:
    for key in _KEYS:
        mine, theirs = _by_key(wanted, key), _by_key(present, key)
        if mine is not None and theirs is not None:
            for name, item in mine.items():
                yield from _value(f"{path}[{name[0]}]", item, theirs.get(name, UNSET))
            return
    if len(wanted) != len(present) or any(
        True for mine, theirs in zip(wanted, present, strict=True) for _ in _value(path, mine, theirs)
    ):
        yield path


def _by_key(items: list[Any], key: tuple[str, ...]) -> dict[tuple[Any, ...], Any] | None:
    """Items by what names them; None when these attributes do not name each of them."""
    found: dict[tuple[Any, ...], Any] = {}
    for item in items:
        name = tuple(getattr(item, attribute, None) for attribute in key)
        if name[0] is None or name[0] is UNSET or name in found:
            return None
        found[name] = item
    return found
