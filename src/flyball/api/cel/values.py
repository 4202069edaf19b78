"""Values at run time.

bool, int, float, str, bytes, None and list are Python's own. The rest is here: unsigned numbers, durations and
timestamps to the nanosecond, optionals, types, maps, and the views of JSON (`views.py`) that are maps and lists too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Final

__all__ = [
    "ABSENT",
    "NONE",
    "Duration",
    "ListValue",
    "MapValue",
    "MapView",
    "Opaque",
    "OptionalValue",
    "Timestamp",
    "TypeValue",
    "Uint",
    "type_name",
]

ABSENT: Final[Any] = object()
"""Stands for "there is no such key"."""


class Uint(int):
    """An unsigned number."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Show it as it is written."""
        return f"{int(self)}u"


class Duration:
    """A length of time, in nanoseconds."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        """Take the nanoseconds."""
        self.nanos = nanos

    def __eq__(self, other: object) -> bool:
        """Equal in length."""
        return isinstance(other, Duration) and self.nanos == other.nanos

    def __hash__(self) -> int:
        """Fit to equality."""
        return hash((Duration, self.nanos))

    def __repr__(self) -> str:
        """Show it as a call."""
        return f"duration({self.text()!r})"

    def text(self) -> str:
        """Return the seconds, as few digits as say it, and an `s`."""
        whole, rest = divmod(abs(self.nanos), 1_000_000_000)
        return f"{'-' if self.nanos < 0 else ''}{_shortest(float(whole) + rest / 1e9)}s"


def _shortest(value: float) -> str:
    """Write a number without an exponent, with as few digits as give the same number back."""
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


class Timestamp:
    """A moment: seconds since 1970 and nanoseconds; the zone it was written in only shows in its text."""

    __slots__ = ("nanos", "offset", "seconds")

    def __init__(self, seconds: int, nanos: int = 0, offset: int = 0) -> None:
        """Take the moment, and the seconds that its zone is east of Greenwich."""
        self.seconds = seconds
        self.nanos = nanos
        self.offset = offset

    def __eq__(self, other: object) -> bool:
        """Equal moments."""
        return isinstance(other, Timestamp) and self.total == other.total

    def __hash__(self) -> int:
        """Fit to equality."""
        return hash((Timestamp, self.seconds, self.nanos))

    def __repr__(self) -> str:
        """Show it as a call."""
        return f"timestamp({self.text()!r})"

    @property
    def total(self) -> int:
        """All nanoseconds since 1970."""
        return self.seconds * 1_000_000_000 + self.nanos

    def date(self, offset: int | None = None) -> datetime:
        """Return the calendar's view of it, to the second."""
        zone = timezone(timedelta(seconds=self.offset if offset is None else offset))
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)).astimezone(zone)

    def text(self) -> str:
        """Return RFC 3339 with as many digits of the second as there are."""
        day = self.date()
        fraction = f".{self.nanos:09}".rstrip("0") if self.nanos else ""
        sign, rest = ("-" if self.offset < 0 else "+"), abs(self.offset) // 60
        zone = f"{sign}{rest // 60:02}:{rest % 60:02}" if self.offset else "Z"
        return f"{day:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + fraction + zone


class OptionalValue:
    """A value that may be missing."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        """Take the value."""
        self.value = value

    def __repr__(self) -> str:
        """Show it as a call."""
        return "optional.none()" if self.value is ABSENT else f"optional.of({self.value!r})"


NONE: Final = OptionalValue(ABSENT)


class TypeValue:
    """A type as a value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        """Take the name."""
        self.name = name

    def __eq__(self, other: object) -> bool:
        """Equal names."""
        return isinstance(other, TypeValue) and self.name == other.name

    def __hash__(self) -> int:
        """Fit to equality."""
        return hash((TypeValue, self.name))

    def __repr__(self) -> str:
        """Show the name."""
        return self.name


class Opaque:
    """A value of a library, such as an address; `type_name` is the name of its type."""

    __slots__ = ()
    type_name: str = ""


class ListValue:
    """A list that is not Python's."""

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int:
        """Count the items."""

    @abstractmethod
    def __iter__(self) -> Iterator[Any]:
        """Go through the items."""

    @abstractmethod
    def __getitem__(self, index: int) -> Any:
        """Return an item."""


class MapView:
    """Any map."""

    __slots__ = ()

    @abstractmethod
    def find(self, key: Any) -> Any:
        """Return the value of a key, or `ABSENT`."""

    @abstractmethod
    def __iter__(self) -> Iterator[Any]:
        """Go through the keys."""

    @abstractmethod
    def __len__(self) -> int:
        """Count the entries."""


class _BoolKey:
    """Stands for a boolean as a key, which for Python would be a number."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value


_KEYS: Final = {True: _BoolKey(True), False: _BoolKey(False)}


class MapValue(MapView):
    """A map that an expression made; its keys are strings, numbers and booleans, and 1, 1u and 1.0 are one key."""

    __slots__ = ("entries",)

    def __init__(self, entries: dict[Any, Any] | None = None) -> None:
        """Take entries that have the keys of `insert`."""
        self.entries: dict[Any, Any] = {} if entries is None else entries

    def insert(self, key: Any, value: Any) -> None:
        """Set an entry."""
        self.entries[_KEYS[key] if type(key) is bool else key] = value

    def find(self, key: Any) -> Any:
        """Return the value of a key, or `ABSENT`."""
        try:
            return self.entries.get(_KEYS[key] if type(key) is bool else key, ABSENT)
        except TypeError:
            return ABSENT

    def __iter__(self) -> Iterator[Any]:
        """Go through the keys."""
        return (key.value if type(key) is _BoolKey else key for key in self.entries)

    def __len__(self) -> int:
        """Count the entries."""
        return len(self.entries)

    def __repr__(self) -> str:
        """Show the entries."""
        return "{" + ", ".join(f"{key!r}: {self.find(key)!r}" for key in self) + "}"


_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
    OptionalValue: "optional_type",
    MapValue: "map",
}


def type_name(value: Any) -> str:
    """Return the name of the type of a value."""
    name = _NAMES.get(type(value))
    if name is not None:
        return name
    if isinstance(value, Opaque):
        return value.type_name
    return "map" if isinstance(value, MapView) else "list"
