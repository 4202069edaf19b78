"""JSON as values: nothing is copied; what a schema says of a value is applied when the value is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flyball.api.cel.errors import EvalError
from flyball.api.cel.operators import NO_OVERLOAD, equal
from flyball.api.cel.values import ABSENT, ListValue, MapView
from flyball.api.structural.validate import same

__all__ = ["Convert", "JsonList", "JsonMap", "JsonMapList", "JsonObject", "JsonSet", "Preserved", "Shape"]

Convert = Callable[[Any], Any]
"""Makes a value of JSON."""


class Shape:
    """The fields of an object: by the name an expression uses, the name in JSON and what makes the value of it."""

    __slots__ = ("fields", "names")

    def __init__(self) -> None:
        """Start with no field."""
        self.fields: dict[str, tuple[str, Convert | None]] = {}
        self.names: dict[str, str] = {}

    def add(self, escaped: str, name: str, convert: Convert | None) -> None:
        """Add a field."""
        self.fields[escaped] = (name, convert)
        self.names[name] = escaped


class JsonObject(MapView):
    """An object whose fields a schema names; a field that is null is not there, one that is not named is not seen."""

    __slots__ = ("raw", "shape")

    def __init__(self, raw: Mapping[str, Any], shape: Shape) -> None:
        """Look at a mapping."""
        self.raw = raw
        self.shape = shape

    def find(self, key: Any) -> Any:
        """Return the value of a field, or `ABSENT`."""
        field = self.shape.fields.get(key) if type(key) is str else None
        if field is None:
            return ABSENT
        value = self.raw.get(field[0])
        if value is None:
            return ABSENT
        return value if field[1] is None else field[1](value)

    def __iter__(self) -> Iterator[Any]:
        """Go through the names of the fields, as expressions write them."""
        names = self.shape.names
        return (names[name] for name in self.raw if name in names)

    def __len__(self) -> int:
        """Count all fields, seen or not."""
        return len(self.raw)

    def equals(self, other: Any) -> bool:
        """Compare field by field; what is not seen is compared as JSON."""
        if not isinstance(other, MapView):
            raise EvalError(NO_OVERLOAD)
        return len(self) == len(other) and all(self._equal_field(name, other) for name in self.raw)

    def _equal_field(self, name: str, other: MapView) -> bool:
        escaped = self.shape.names.get(name)
        if escaped is None:
            if not isinstance(other, JsonObject):
                raise EvalError(NO_OVERLOAD)
            return name not in other.raw or same(self.raw[name], other.raw[name])
        mine, others = self.find(escaped), other.find(escaped)
        if mine is ABSENT or others is ABSENT:
            return mine is others
        return equal(mine, others)


class JsonMap(MapView):
    """An object with any keys."""

    __slots__ = ("convert", "raw")

    def __init__(self, raw: Mapping[str, Any], convert: Convert | None) -> None:
        """Look at a mapping."""
        self.raw = raw
        self.convert = convert

    def find(self, key: Any) -> Any:
        """Return the value of a key, or `ABSENT`."""
        if type(key) is not str:
            raise EvalError(NO_OVERLOAD)
        value = self.raw.get(key, ABSENT)
        return value if self.convert is None or value is ABSENT else self.convert(value)

    def __iter__(self) -> Iterator[Any]:
        """Go through the keys."""
        return iter(self.raw)

    def __len__(self) -> int:
        """Count the entries."""
        return len(self.raw)


class JsonList(ListValue):
    """An array."""

    __slots__ = ("convert", "raw")

    def __init__(self, raw: list[Any], convert: Convert | None) -> None:
        """Look at a list."""
        self.raw = raw
        self.convert = convert

    def __len__(self) -> int:
        """Count the items."""
        return len(self.raw)

    def __iter__(self) -> Iterator[Any]:
        """Go through the items."""
        return iter(self.raw) if self.convert is None else map(self.convert, self.raw)

    def __getitem__(self, index: int) -> Any:
        """Return an item."""
        return self.raw[index] if self.convert is None else self.convert(self.raw[index])


def _raw(value: Any) -> Any:
    return getattr(value, "raw", value)


class JsonSet(JsonList):
    """An array whose order does not count, and that holds nothing twice."""

    __slots__ = ()

    def equals(self, other: Any) -> bool:
        """Compare without order."""
        if not isinstance(other, (list, ListValue)):
            raise EvalError(NO_OVERLOAD)
        mine = {_key(item) for item in self.raw}
        return len(self) == len(other) and all(_key(_raw(item)) in mine for item in other)

    def plus(self, other: Any) -> JsonSet:
        """Add what is not there yet."""
        found = {_key(item): item for item in self.raw}
        for item in other:
            found.setdefault(_key(_raw(item)), _raw(item))
        return JsonSet(list(found.values()), self.convert)


def _key(value: Any) -> Any:
    """Return what tells scalars apart; for Python, True and 1 would be one."""
    return (type(value), value) if isinstance(value, (str, int, float, bool)) else repr(value)


class JsonMapList(JsonList):
    """An array of objects that some of their fields tell apart, and whose order does not count."""

    __slots__ = ("names",)

    def __init__(self, raw: list[Any], convert: Convert | None, names: tuple[str, ...]) -> None:
        """Look at a list; `names` are the fields that are keys."""
        super().__init__(raw, convert)
        self.names = names

    def _key(self, item: Any) -> Any:
        return tuple(_key(item.get(name)) for name in self.names) if isinstance(item, Mapping) else None

    def equals(self, other: Any) -> bool:
        """Compare items with the same keys."""
        if not isinstance(other, (list, ListValue)):
            raise EvalError(NO_OVERLOAD)
        if len(self) != len(other):
            return False
        mine = {self._key(raw): item for raw, item in zip(self.raw, self, strict=True)}
        for item in other:
            known = mine.get(self._key(_raw(item)), ABSENT)
            if known is ABSENT or not equal(known, item):
                return False
        return True

    def plus(self, other: Any) -> JsonMapList:
        """Replace items by those with the same keys, and add the others."""
        found = {self._key(item): item for item in self.raw}
        for item in other:
            found[self._key(_raw(item))] = _raw(item)
        return JsonMapList(list(found.values()), self.convert, self.names)


class Preserved:
    """A value of which nothing is known; it can only be compared."""

    __slots__ = ("raw",)

    def __init__(self, raw: Any) -> None:
        """Keep it."""
        self.raw = raw

    def equals(self, other: Any) -> bool:
        """Compare as JSON."""
        return same(self.raw, _raw(other))
