r"""JSONPath as the columns of a Table use it: `.spec.a`, `[1]`, `[*]`, `[?(@.type=="Ready")]`, `.labels.a\.io/x`.

The dialect is kubectl's: a path starts with a dot, a dot in a name is escaped, a filter compares a path below the item
with a text, a number, or another path. A name that is not there ends the search with nothing; an index beyond the end
of a list is an error, as is asking a text for an item.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

__all__ = ["JsonPath", "JsonPathError", "as_text", "simple_path", "value_at"]

_Step = Callable[[list[Any]], list[Any]]
_SLICE: Final = re.compile(r"\s*(-?\d*)\s*(?::\s*(-?\d*)\s*)?(?::\s*(-?\d*)\s*)?")
_FILTER: Final = re.compile(r"(.*?)\s*(==|!=|<=|>=|<|>)\s*(.*)", re.DOTALL)


class JsonPathError(ValueError):
    """The text is no path, or the path does not fit the object."""


class JsonPath:
    """A compiled path."""

    def __init__(self, text: str) -> None:
        """Compile a path. Raises `JsonPathError`."""
        self._steps = list(_parse(text))

    def find(self, value: Any) -> list[Any]:
        """Return all that the path leads to."""
        values = [value]
        for step in self._steps:
            values = step(values)
        return values


def as_text(value: Any) -> str:
    """Write a value as kubectl prints it."""
    if isinstance(value, str):
        return value
    if isinstance(value, (dict, list)):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
    if value is None:
        return "<nil>"
    return json.dumps(value)


def simple_path(text: str) -> tuple[str, ...]:
    r"""Take apart a path that only names fields: `.spec.a\.b` is (`spec`, `a.b`)."""
    parts = re.split(r"(?<!\\)\.", text.removeprefix("."))
    return tuple(part.replace("\\.", ".") for part in parts)


def value_at(value: Any, path: tuple[str, ...]) -> Any:
    """Follow field names; None where one is missing."""
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _parse(text: str) -> Iterator[_Step]:
    text = text.removeprefix("$")
    if not text.startswith((".", "[")):
        raise JsonPathError(f"a path starts with a dot: {text}")
    place = 0
    while place < len(text):
        if text[place] == "[":
            end = _closing(text, place)
            yield _bracket(text[place + 1 : end].strip())
            place = end + 1
        elif text.startswith("..", place):
            yield _everything
            place += 2 if text[place + 2 : place + 3] == "[" else 1
            if place >= len(text) - 1:
                return
        elif text[place] == ".":
            name, place = _name(text, place + 1)
            if name == "*":
                yield _children
            elif name:
                yield _field(name)
        else:
            raise JsonPathError(f"unexpected {text[place]!r} at {place} of {text}")


def _name(text: str, place: int) -> tuple[str, int]:
    name = ""
    while place < len(text) and text[place] not in ".[":
        if text[place] == "\\" and place + 1 < len(text):
            place += 1
        name += text[place]
        place += 1
    return name, place


def _closing(text: str, place: int) -> int:
    depth, quote = 0, ""
    for at in range(place, len(text)):
        character = text[at]
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
            if depth == 0:
                return at
    raise JsonPathError(f"unterminated array: {text}")


def _bracket(inside: str) -> _Step:
    if inside.startswith("?(") and inside.endswith(")"):
        return _filter(inside[2:-1].strip())
    if inside in ("", "*"):
        return _children
    parts = [part.strip() for part in inside.split(",")]
    if all(part[:1] in "'\"" and part[-1:] == part[:1] for part in parts):
        return _union([_field(part[1:-1]) for part in parts])
    return _union([_slice(part) for part in parts])


def _union(steps: list[_Step]) -> _Step:
    return steps[0] if len(steps) == 1 else lambda values: [found for step in steps for found in step(values)]


def _field(name: str) -> _Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _children(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, dict):
            found.extend(value[name] for name in sorted(value))
        elif isinstance(value, list):
            found.extend(value)
    return found


def _everything(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, (dict, list)):
            found.append(value)
            found.extend(_everything(_children([value])))
    return found


def _slice(text: str) -> _Step:
    found = _SLICE.fullmatch(text)
    if found is None or not text:
        raise JsonPathError(f"invalid array index {text}")
    first, last, step = found.groups()
    if last is None:
        return lambda values: [_item(value, int(first)) for value in values]
    chosen = slice(int(first) if first else None, int(last) if last else None, int(step) if step else None)
    return lambda values: [item for value in values for item in _list(value)[chosen]]


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise JsonPathError("the value is not an array")
    return value


def _item(value: Any, place: int) -> Any:
    items = _list(value)
    if not -len(items) <= place < len(items):
        raise JsonPathError(f"array index out of bounds: {place}")
    return items[place]


def _filter(text: str) -> _Step:
    found = _FILTER.fullmatch(text)
    if found is None:
        present = _operand(text)
        return lambda values: [item for item in _items(values) if present(item)]
    left, operator, right = _operand(found[1]), found[2], _operand(found[3])
    return lambda values: [item for item in _items(values) if _holds(left(item), operator, right(item))]


def _items(values: list[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list):
            yield from value
        elif isinstance(value, dict):
            yield from value.values()


def _operand(text: str) -> Callable[[Any], list[Any]]:
    text = text.strip()
    if text.startswith("@"):
        rest = text[1:]
        return JsonPath(rest).find if rest else lambda item: [item]
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        words = text[1:-1]
        return lambda item: [words]
    try:
        value = json.loads(text)
    except ValueError:
        raise JsonPathError(f"unrecognized value in a filter: {text}") from None
    return lambda item: [value]


def _holds(left: list[Any], operator: str, right: list[Any]) -> bool:
    if len(left) != 1 or len(right) != 1:
        return False
    one, other = left[0], right[0]
    if operator == "==":
        return bool(one == other)
    if operator == "!=":
        return bool(one != other)
    if not (_is_number(one) and _is_number(other)) and not (isinstance(one, str) and isinstance(other, str)):
        return False
    return bool({"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}[operator])


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
