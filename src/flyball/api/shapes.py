"""What a type annotation says, taken apart: the bare type, the markers around it, and whether it may be absent."""

from __future__ import annotations

import copy
import enum
import types
import typing
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from flyball.api.duration import Duration
from flyball.api.markers import Marker
from flyball.api.quantity import Quantity
from flyball.api.refusal import SchemaError

__all__ = ["Shape", "scalar_schema", "shape_of"]

_QUANTITY = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
_INT_OR_STRING: dict[str, Any] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number", "format": "double"},
    bytes: {"type": "string", "format": "byte"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    UUID: {"type": "string", "format": "uuid"},
    Duration: {"type": "string", "format": "duration"},
    Quantity: {**_INT_OR_STRING, "pattern": _QUANTITY},
}
_NULLS = (type(None), msgspec.UnsetType)


@dataclass(frozen=True)
class Shape:
    """A type annotation taken apart."""

    bare: Any
    """Without `Annotated`, `None` and names for types; a `Union` only if several types remain."""
    markers: tuple[Marker, ...] = ()
    null: bool = False
    unset: bool = False

    @property
    def members(self) -> tuple[Any, ...]:
        """Of a union that remains."""
        return typing.get_args(self.bare) if typing.get_origin(self.bare) in _UNIONS else (self.bare,)


_UNIONS = (typing.Union, types.UnionType)


def shape_of(hint: Any, path: str) -> Shape:
    """Take an annotation apart; raises `SchemaError` for something in `Annotated` that is nearly a marker."""
    alias = getattr(hint, "__value__", None) if type(hint).__name__ == "TypeAliasType" else None
    alias = alias or getattr(hint, "__supertype__", None)
    if alias is not None:
        return shape_of(alias, path)
    if typing.get_origin(hint) is Annotated:
        inner, *given = typing.get_args(hint)
        shape = shape_of(inner, path)
        return Shape(shape.bare, (*shape.markers, *_markers(given, path)), shape.null, shape.unset)
    if typing.get_origin(hint) not in _UNIONS:
        return Shape(hint)
    members = typing.get_args(hint)
    rest = [member for member in members if member not in _NULLS]
    null, unset = type(None) in members, msgspec.UnsetType in members
    if len(rest) == 1:
        shape = shape_of(rest[0], path)
        return Shape(shape.bare, shape.markers, null or shape.null, unset or shape.unset)
    return Shape(typing.Union[tuple(rest)] if rest else type(None), (), null, unset)  # noqa: UP007


def _markers(given: list[Any], path: str) -> list[Marker]:
    found: list[Marker] = []
    for mark in given:
        if isinstance(mark, type) and issubclass(mark, Marker):
            try:
                found.append(mark())
            except TypeError:
                raise SchemaError(path, f"{mark.__name__} needs a value", f"write {mark.__name__}(...)") from None
        elif isinstance(mark, Marker):
            found.append(mark)
        elif isinstance(mark, msgspec.Meta):
            raise SchemaError(
                path,
                "msgspec.Meta would make objects unreadable that a server has stored",
                "write Flyball's markers instead, such as Ge(0) or Pattern(...)",
            )
    return found


def scalar_schema(shape: Shape, path: str) -> dict[str, Any] | None:
    """The schema of a type without parts; None if it has parts."""
    bare = shape.bare
    if isinstance(bare, type) and issubclass(bare, enum.Enum):
        return _enum_schema([member.value for member in bare], path)
    if typing.get_origin(bare) is Literal:
        return _enum_schema(list(typing.get_args(bare)), path)
    members = set(shape.members)
    if members == {int, str}:
        return copy.deepcopy(_INT_OR_STRING)
    if members == {int, str, float}:
        return copy.deepcopy(_SCALARS[Quantity])
    try:
        known = _SCALARS.get(bare)
    except TypeError:  # not hashable
        return None
    return copy.deepcopy(known) if known else None


def _enum_schema(values: list[Any], path: str) -> dict[str, Any]:
    kinds = {type(value) for value in values}
    if kinds == {str}:
        return {"type": "string", "enum": values}
    if kinds == {int}:
        return {"type": "integer", "enum": values}
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise SchemaError(path, f"an enumeration of {names} has no one type", "use texts only, or whole numbers only")
