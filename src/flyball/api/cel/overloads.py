"""Functions: each is a name with overloads, each overload a signature with what it does and what that costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from flyball.api.cel.types import Type
from flyball.api.cel.values import (
    Duration,
    ListValue,
    MapView,
    Opaque,
    OptionalValue,
    Timestamp,
    TypeValue,
    Uint,
)

__all__ = ["Cost", "Functions", "Overload", "accepts", "collect", "function", "member", "size_of", "tenth"]

Cost = Callable[[Sequence[Any], Any], int]
"""Tells what a call has cost, from its arguments and its result."""


@dataclass(frozen=True, slots=True, eq=False)
class Overload:
    """One signature. Without `call` the compiler knows what to do; without `cost` a call costs one."""

    name: str
    id: str
    args: tuple[Type, ...]
    result: Type
    call: Callable[..., Any] | None = None
    cost: Cost | None = None
    member: bool = False
    paid_after: bool = False
    """Whether the cost depends on the result."""


Functions = Mapping[str, tuple[Overload, ...]]


def function(
    name: str,
    id_: str,
    args: Iterable[Type],
    result: Type,
    call: Callable[..., Any] | None = None,
    cost: Cost | None = None,
    *,
    paid_after: bool = False,
) -> Overload:
    """Declare an overload that is called as `name(args)`."""
    return Overload(name, id_, tuple(args), result, call, cost, paid_after=paid_after)


def member(
    name: str,
    id_: str,
    args: Iterable[Type],
    result: Type,
    call: Callable[..., Any] | None = None,
    cost: Cost | None = None,
    *,
    paid_after: bool = False,
) -> Overload:
    """Declare an overload that is called as `args[0].name(args[1:])`."""
    return Overload(name, id_, tuple(args), result, call, cost, member=True, paid_after=paid_after)


def collect(*libraries: Iterable[Overload]) -> dict[str, tuple[Overload, ...]]:
    """Put the overloads of libraries together, by the names of the functions."""
    found: dict[str, list[Overload]] = {}
    for library in libraries:
        for overload in library:
            found.setdefault(overload.name, []).append(overload)
    return {name: tuple(overloads) for name, overloads in found.items()}


_PYTHON: Final[dict[str, type]] = {
    "bool": bool,
    "int": int,
    "uint": Uint,
    "double": float,
    "string": str,
    "bytes": bytes,
    "null": type(None),
    "duration": Duration,
    "timestamp": Timestamp,
    "type": TypeValue,
}


def accepts(type_: Type, value: Any) -> bool:
    """Tell whether a value is of a type, as far as that is looked at when functions are called."""
    kind = type_.kind
    if kind in ("dyn", "param"):
        return True
    python = _PYTHON.get(kind)
    if python is not None:
        return type(value) is python
    if kind == "list":
        if not isinstance(value, (list, ListValue)):
            return False
        return len(value) == 0 or accepts(type_.params[0], next(iter(value)))
    if kind == "map":
        return isinstance(value, MapView)
    if type_.name == "optional_type":
        return isinstance(value, OptionalValue)
    if isinstance(value, Opaque):
        return value.type_name == type_.name
    return kind == "object" and isinstance(value, MapView)


def size_of(value: Any) -> int:
    """Return the size of a value as costs count it: lengths of what has one, 1 for all else."""
    if isinstance(value, (str, bytes, list, ListValue, MapView)):
        return len(value)
    if isinstance(value, OptionalValue):
        return size_of(value.value)
    size: int | None = getattr(value, "size", None)
    return 1 if size is None else size


def tenth(size: float) -> int:
    """Return what it costs to go over so many characters: a tenth, rounded up."""
    return math.ceil(size * 0.1)
