"""Who belongs to whom: what a controller finds by its selector, takes over, and lets go.

An object belongs to the one owner that it names as its controller. Nobody's objects are taken over by an owner whose
selector finds them; those that the selector finds no more are let go, and live on as nobody's.

    @controller(ReplicaSet, owns=[Pod], watches=[Adopts(Pod)])
    async def replicasets(replica_set, ctx):
        pods = await claim(Pod, replica_set, replica_set.spec.selector, ctx)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from flyball.api import Resource, from_dict
from flyball.cache import CachedObject
from flyball.cache.matching import LabelMatch, label_match
from flyball.client.kinds import kind_from, kind_of
from flyball.client.selectors import label_text
from flyball.controller import Context, Request, Watches, set_controller
from flyball.controller.sources import Mapper
from flyball.errors import NotFound
from flyball.k8s.meta.v1 import LabelSelector

__all__ = ["Adopts", "claim", "matcher"]

R = TypeVar("R", bound=Resource)

_NOBODYS: Final = "nobodys_by_namespace"


class _Spec(msgspec.Struct):
    selector: dict[str, Any] | None = None


class _Selecting(msgspec.Struct):
    spec: _Spec


_selecting: Final = msgspec.json.Decoder(_Selecting).decode
_known: Final[dict[tuple[str, int], LabelMatch]] = {}
_REMEMBERED: Final = 4096


Selector = LabelSelector | Mapping[str, str] | None


def matcher(selector: Selector) -> LabelMatch:
    """Return the test for a selector; none finds nothing, and an empty one neither."""
    text = label_text(selector) if selector is not None else ""
    return label_match(text) if text else lambda _: False


def _nobodys(view: CachedObject) -> Iterable[str]:
    """Give the namespace of an object without a controller."""
    if any(owner.controller for owner in view.record.owners):
        return ()
    return (view.namespace or "",)


def _unused(obj: Any) -> None:
    del obj


@dataclass(frozen=True)
class Adopts(Watches):
    """Nobody's objects of this kind: those are woken whose selector finds them."""

    mapper: Mapper = _unused

    def ask(self, view: CachedObject, primaries: Any) -> Iterable[Request]:
        """Compare the labels of one state of the object with the selectors in its namespace."""
        if not view.record.labels or not _nobodys(view):
            return ()
        return [
            Request(one.namespace, one.name)
            for one in primaries.peek_list(view.namespace)
            if _finds(one)(view.record.labels)
        ]


def _finds(owner: CachedObject) -> LabelMatch:
    """Return the test for the selector of an owner; a selector is read once."""
    key = (owner.uid, owner.record.generation)
    found = _known.get(key)
    if found is None:
        found = _known[key] = matcher(_selector(_selecting(owner.raw).spec.selector or {}))
        if len(_known) > _REMEMBERED:
            del _known[next(iter(_known))]
    return found


def _selector(plain: dict[str, Any]) -> Selector:
    """Tell the labels that a ReplicationController names from the selectors of all others."""
    return plain if all(isinstance(one, str) for one in plain.values()) else from_dict(LabelSelector, plain)


async def claim(
    kind: type[R],
    owner: Resource,
    selector: Selector,
    ctx: Context,
    *,
    which: Callable[[R], bool] = lambda _: True,
    owned: Sequence[R] | None = None,
) -> list[R]:
    """Return the objects that belong to an owner, after taking over and letting go what is due.

    Only those that `which` chooses are looked at; who has read the `owned` ones already can give them along. An owner
    that is being deleted takes nothing and lets nothing go.
    """
    finds, deleting = matcher(selector), owner.metadata.deletion_timestamp is not None
    claimed: list[R] = []
    for one in filter(which, await ctx.owned(kind) if owned is None else owned):
        if finds(one.metadata.labels):
            claimed.append(one)
        elif not deleting:
            await _let_go(one, owner, ctx)
    if deleting:
        return claimed
    informer = ctx.running.runtime.cache.informer(kind_from(kind))
    informer.add_index(_NOBODYS, _nobodys)
    found = [
        view for view in informer.peek_index(_NOBODYS, owner.metadata.namespace or "") if finds(view.record.labels)
    ]
    strays = [one for one in (view.decode(kind) for view in found) if which(one) and _may_be_taken(one)]
    if strays and await _is_there(owner, ctx):
        for one in strays:
            taken = await _take(one, owner, ctx)
            claimed += [taken] if taken is not None else []
    return claimed


def _may_be_taken(obj: Resource) -> bool:
    return obj.metadata.deletion_timestamp is None


async def _is_there(owner: Resource, ctx: Context) -> bool:
    """Ask the server itself: nothing may be given to an owner that is gone already."""
    fresh = await ctx.live.get(kind_of(owner), owner.metadata.name, owner.metadata.namespace)
    return fresh is not None and fresh.metadata.uid == owner.metadata.uid and fresh.metadata.deletion_timestamp is None


async def _take(obj: R, owner: Resource, ctx: Context) -> R | None:
    set_controller(owner, obj)
    try:
        return await ctx.patch(obj)
    except NotFound:
        return None


async def _let_go(obj: Resource, owner: Resource, ctx: Context) -> None:
    metadata = obj.metadata
    metadata.owner_references = [one for one in metadata.owner_references if one.uid != owner.metadata.uid]
    try:
        await ctx.patch(obj)
    except NotFound:
        return  # it is gone, and belongs to nobody any more
