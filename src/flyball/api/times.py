"""Times as Kubernetes writes them: whole seconds for `datetime`, six decimals for `MicroTime`, always UTC with a Z.

msgspec writes as many decimals as a datetime has. So before an object is encoded, its times are looked at (only those
fields are visited that lead to one); in the rare case that one would come out wrong, its text is replaced.
"""

from __future__ import annotations

import types
import typing
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from flyball.api.hints import hints_of
from flyball.api.model import Model, json_names
from flyball.api.values import Micro

__all__ = ["mend", "needs_mending", "time_text"]

Shape = Literal["time", "micro", "list", "dict", "model"]
Step = tuple[Shape, Any]
Plan = list[tuple[str, str, Step]]

_plans: dict[type[Any], Plan] = {}


def time_text(moment: datetime, *, micro: bool = False) -> str:
    """The text of a metav1.Time, or of a metav1.MicroTime."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone; write datetime.now(UTC) or moment.replace(tzinfo=UTC)")
    utc = moment.astimezone(UTC)
    return utc.strftime("%Y-%m-%dT%H:%M:%S") + (f".{utc.microsecond:06d}Z" if micro else "Z")


def needs_mending(obj: Model) -> bool:
    """Some time in the object would be written in a form that Kubernetes does not use."""
    plan = _plan_of(type(obj))
    return bool(plan) and _model_needs(plan, obj)


def mend(obj: Model, tree: dict[str, Any]) -> dict[str, Any]:
    """Put the right texts into the JSON form of the object."""
    _mend_model(_plan_of(type(obj)), obj, tree)
    return tree


def _model_needs(plan: Plan, obj: Any) -> bool:
    for attribute, _, step in plan:
        value = getattr(obj, attribute, None)
        if value and _needs(step, value):
            return True
    return False


def _needs(step: Step, value: Any) -> bool:
    shape, inner = step
    if shape == "model":
        return isinstance(value, Model) and _model_needs(inner, value)
    if shape == "list":
        return isinstance(value, list) and any(_needs(inner, item) for item in value)
    if shape == "dict":
        return isinstance(value, dict) and any(_needs(inner, item) for item in value.values())
    if not isinstance(value, datetime):
        return False
    return value.tzinfo is not UTC or (value.microsecond == 0) == (shape == "micro")


def _mend_model(plan: Plan, obj: Any, tree: dict[str, Any]) -> None:
    for attribute, key, step in plan:
        if key in tree:
            tree[key] = _mended(step, getattr(obj, attribute), tree[key])


def _mended(step: Step, value: Any, tree: Any) -> Any:
    shape, inner = step
    if shape == "model" and isinstance(value, Model):
        _mend_model(inner, value, tree)
    elif shape == "list" and isinstance(value, list):
        return [_mended(inner, item, part) for item, part in zip(value, tree, strict=True)]
    elif shape == "dict" and isinstance(value, dict):
        return {key: _mended(inner, item, tree[key]) for key, item in value.items()}
    elif isinstance(value, datetime):
        return time_text(value, micro=shape == "micro")
    return tree


def _plan_of(cls: type[Any]) -> Plan:
    plan = _plans.get(cls)
    if plan is None:
        plan = _plans[cls] = []  # known before it is complete, so that recursive types come to an end
        names = json_names(cls)
        for attribute, hint in hints_of(cls).items():
            step = _step(hint)
            if step is not None:
                plan.append((attribute, names[attribute], step))
    return plan


def _step(hint: Any) -> Step | None:
    origin = typing.get_origin(hint)
    if origin is Annotated:
        inner, *marks = typing.get_args(hint)
        return ("micro", None) if Micro in marks else _step(inner)
    if origin in (typing.Union, types.UnionType):
        return next((step for step in map(_step, typing.get_args(hint)) if step), None)
    if origin in (list, dict):
        step = _step(typing.get_args(hint)[-1])
        return (typing.cast("Shape", origin.__name__), step) if step else None
    if hint is datetime:
        return ("time", None)
    if isinstance(hint, type) and issubclass(hint, Model):
        under_way = hint in _plans
        plan = _plan_of(hint)
        return ("model", plan) if plan or under_way else None
    return None
