"""What columns are made of: the column itself, and how values are told to people."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

__all__ = ["AGE", "NAME", "Cell", "Column", "age", "duration", "go_time"]

Object = dict[str, Any]
Cell = Callable[[Object, datetime], Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: what it is called, and how its cell is made."""

    name: str
    cell: Cell
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0

    def definition(self) -> Object:
        """Give the column as a Table has it."""
        described = {"name": self.name, "type": self.type, "format": self.format, "description": self.description}
        return {**described, "priority": self.priority}


_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)


def go_time(text: str) -> datetime | None:
    """Read a time as Go does; None when it is none."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    zone = "+00:00" if found[4] == "Z" else found[4]
    try:
        return datetime.fromisoformat(f"{found[1]}T{found[2]}.{(found[3] or '0')[:6]:0<6}{zone}").astimezone(UTC)
    except ValueError:
        return None


def age(text: str | None, now: datetime) -> str:
    """Tell how long ago a time was, as kubectl does."""
    then = go_time(text) if text else None
    return "<unknown>" if then is None else duration((now - then).total_seconds())


def duration(seconds: float) -> str:
    """Tell a duration to people: the larger, the coarser."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    if total < 0:
        return "0s"
    minutes, hours, days = total // 60, total // 3600, total // 86400
    if total < 120:
        return f"{total}s"
    if minutes < 10:
        return f"{minutes}m{total % 60}s" if total % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    years = days // 365
    if years < 8:
        return f"{years}y{days % 365}d" if days % 365 else f"{years}y"
    return f"{years}y"


def _name(obj: Object, now: datetime) -> Any:
    return obj["metadata"].get("name", "")


def _age(obj: Object, now: datetime) -> Any:
    return age(obj["metadata"].get("creationTimestamp"), now)


NAME: Final = Column("Name", _name, format="name", description="The name of the object.")
AGE: Final = Column("Age", _age, description="How long ago the object was created.")
"""As a built-in kind has it; the type of a custom kind's own column is date."""


NONE: Final = "<none>"
UNSET: Final = "<unset>"


def at(obj: Any, path: str, default: Any = None) -> Any:
    """Follow a dotted path of field names; the default where something is missing or null."""
    for part in path.split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
    return default if obj is None else obj


def from_field(path: str, default: Any = "") -> Cell:
    """Show a field as it is."""
    return lambda obj, now: at(obj, path, default)


def count(path: str) -> Cell:
    """Show how many items a list or map has."""
    return lambda obj, now: len(at(obj, path, ()))


def of_object(make: Callable[[Object], Any]) -> Cell:
    """Make a cell from the object alone."""
    return lambda obj, now: make(obj)


def column(name: str, cell: Cell, type_: str = "string", *, wide: bool = False, format_: str = "") -> Column:
    """Make a column of a built-in kind; a wide one is shown by `-o wide`."""
    words = f"What is printed under {name.upper()}."
    return Column(name, cell, type_, format_, words, 1 if wide else 0)


def number(name: str, cell: Cell) -> Column:
    """Make a column of whole numbers."""
    return column(name, cell, "integer")


def labels_text(labels: Any) -> str:
    """Write labels as `a=b,c=d`."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


_OPERATORS: Final[dict[str, Callable[[str, str], str]]] = {
    "In": lambda key, values: f"{key} in ({values})",
    "NotIn": lambda key, values: f"{key} notin ({values})",
    "Exists": lambda key, values: key,
    "DoesNotExist": lambda key, values: f"!{key}",
}


def selector_text(selector: Any) -> str:
    """Write a LabelSelector as it is written on a command line; empty when it selects everything."""
    terms = [(key, f"{key}={value}") for key, value in at(selector, "matchLabels", {}).items()]
    for one in at(selector, "matchExpressions", ()):
        values = ",".join(sorted(one.get("values") or ()))
        terms.append((one["key"], _OPERATORS[one["operator"]](one["key"], values)))
    return ",".join(text for _, text in sorted(terms))


def containers(path: str) -> tuple[Column, Column]:
    """Make the wide columns with the names and the images of a pod template's containers."""

    def joined(what: str) -> Cell:
        return lambda obj, now: ",".join(str(one.get(what) or "") for one in at(obj, path, ()))

    return column("Containers", joined("name"), wide=True), column("Images", joined("image"), wide=True)


def selector(path: str) -> Column:
    """Make the wide column with a LabelSelector."""
    return column("Selector", lambda obj, now: selector_text(at(obj, path)) or NONE, wide=True)


def some(texts: list[str], limit: int, total: int, empty: str, separator: str = ",") -> str:
    """Join the first texts, and tell how many more there are."""
    told = separator.join(texts[:limit])
    return f"{told} + {total - limit} more..." if total > limit else told or empty
