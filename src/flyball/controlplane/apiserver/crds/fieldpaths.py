"""Paths to fields as definitions write them: `.spec.a`, `.spec['a.b']`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["FieldPathError", "field_at"]

_TOKEN: Final = re.compile(r"[.\[\]]|'(?:[^'\\]|\\.)*'|[^.\[\]]+")


class FieldPathError(ValueError):
    """A path leads nowhere, or is none."""


def field_at(
    schema: Mapping[str, Any], path: str, *, brackets: bool = True
) -> tuple[tuple[str, ...], Mapping[str, Any]]:
    """Return the names that a path consists of and the schema that it leads to. Raises `FieldPathError`."""
    names: list[str] = []
    parts = iter(_TOKEN.findall(path))
    for part in parts:
        if part == "[":
            if not brackets:
                raise FieldPathError("array notation is not allowed")
            name = _quoted(next(parts, None))
            schema = _step(schema, name)
            closing = next(parts, None)
            if closing != "]":
                raise FieldPathError(
                    "unexpected end of JSON path" if closing is None else f"expected ] but got {closing}"
                )
        elif part == ".":
            found = next(parts, None)
            if found is None:
                raise FieldPathError("unexpected end of JSON path")
            name = found
            schema = _step(schema, name)
        else:
            raise FieldPathError(f"expected [ or . but got: {part}")
        names.append(name)
    return tuple(names), schema


def _quoted(token: str | None) -> str:
    if token is None:
        raise FieldPathError("unexpected end of JSON path")
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {token}")
    return re.sub(r"\\(.)", r"\1", token[1:-1])


def _step(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    properties, additional = schema.get("properties"), schema.get("additionalProperties")
    if properties:
        if name not in properties:
            raise FieldPathError("does not refer to a valid field")
        found: Mapping[str, Any] = properties[name]
        return found
    if isinstance(additional, Mapping):
        return additional
    raise FieldPathError("does not refer to a valid field")
