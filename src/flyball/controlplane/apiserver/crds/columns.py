"""The columns that a definition asks for, as columns of a Table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from flyball.controlplane.apiserver.printing.cells import NAME, Column, age, go_time
from flyball.controlplane.apiserver.printing.jsonpath import JsonPath, JsonPathError, as_text

__all__ = ["columns_of"]

Object = dict[str, Any]


def columns_of(definitions: Iterable[Mapping[str, Any]]) -> tuple[Column, ...]:
    """Make the columns of a version; without any, name and age are shown."""
    columns = tuple(_column(one) for one in definitions)
    return (NAME, *columns) if columns else ()


def _column(definition: Mapping[str, Any]) -> Column:
    type_, path = definition.get("type", ""), definition.get("jsonPath", "")
    words = definition.get("description") or f"Custom resource definition column (in JSONPath format): {path}"
    compiled = JsonPath(path)

    def cell(obj: Object, now: datetime) -> Any:
        try:
            found = compiled.find(obj)
        except JsonPathError:
            return None
        if not found:
            return None
        return as_text(found[0]) if type_ == "string" else _typed(type_, found[0], now)

    return Column(
        definition.get("name", ""), cell, type_, definition.get("format", ""), words, definition.get("priority", 0)
    )


def _typed(type_: str, value: Any, now: datetime) -> Any:
    if isinstance(value, bool):
        return value if type_ == "boolean" else None
    if isinstance(value, (int, float)):
        return int(value) if type_ == "integer" else value if type_ == "number" else None
    if type_ == "date" and isinstance(value, str):
        return age(value, now) if go_time(value) is not None else "<invalid>"
    return None
