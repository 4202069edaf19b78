"""Bring an object into the shape that its schema gives it: unknown fields out, nulls out, defaults in.

All of it works in place on plain JSON values and follows the order of an API server: prune, drop nulls, default.
"""

from __future__ import annotations

from typing import Any

from flyball.api.structural.schema import ABSENT, META_FIELDS, Schema

__all__ = ["default", "drop_nulls", "prune"]


def prune(value: Any, schema: Schema, *, root: bool = True) -> list[str]:
    """Remove what the schema does not know; return the paths of what was removed, sorted.

    At the root, and in embedded resources, `apiVersion`, `kind` and `metadata` stay whatever the schema says.
    """
    unknown: list[str] = []
    _prune(value, schema, "", unknown, root)
    unknown.sort()
    return unknown


def _prune(value: Any, schema: Schema | None, path: str, unknown: list[str], embedded: bool) -> None:
    if schema is not None and schema.preserve:
        _prune_known(value, schema, path, unknown, embedded)
    elif isinstance(value, dict):
        _prune_object(value, schema, path, unknown, embedded)
    elif isinstance(value, list):
        items = None if schema is None else schema.items
        for place, item in enumerate(value):
            if isinstance(item, (dict, list)):
                _prune(item, items, f"{path}[{place}]", unknown, items is not None and items.embedded)


def _prune_object(value: dict[str, Any], schema: Schema | None, path: str, unknown: list[str], embedded: bool) -> None:
    for field in list(value):
        if embedded and field in META_FIELDS:
            continue
        child = None if schema is None else schema.child(field)
        if child is None:
            del value[field]
            unknown.append(_join(path, field))
        else:
            inner = value[field]
            if isinstance(inner, (dict, list)):
                _prune(inner, child, _join(path, field), unknown, child.embedded)


def _prune_known(value: Any, schema: Schema, path: str, unknown: list[str], embedded: bool) -> None:
    """Keep what the schema does not name, and prune inside of what it names."""
    if isinstance(value, dict):
        fields: dict[str, Any] = value
        for field, inner in fields.items():
            child = schema.child(field)
            if child is None or (embedded and field in META_FIELDS) or not isinstance(inner, (dict, list)):
                continue
            _prune(inner, child, _join(path, field), unknown, child.embedded)
    elif isinstance(value, list) and schema.items is not None:
        for place, item in enumerate(value):
            _prune_known(item, schema.items, f"{path}[{place}]", unknown, schema.items.embedded)


def drop_nulls(value: Any, schema: Schema | None) -> None:
    """Remove the nulls of fields that are neither nullable nor have a default."""
    if isinstance(value, dict):
        fields: dict[str, Any] = value
        for field in list(fields):
            inner = fields[field]
            child = None if schema is None else schema.child(field)
            if inner is None and child is not None and not child.nullable and child.default is ABSENT:
                del fields[field]
            elif isinstance(inner, (dict, list)):
                drop_nulls(inner, child)
    elif isinstance(value, list):
        items = None if schema is None else schema.items
        for item in value:
            if isinstance(item, (dict, list)):
                drop_nulls(item, items)


def default(value: Any, schema: Schema | None) -> None:
    """Fill in the defaults of fields that are absent, or null where null cannot stand."""
    if schema is None:
        return
    if isinstance(value, dict):
        _default_object(value, schema)
    elif isinstance(value, list) and schema.items is not None:
        items: list[Any] = value
        for place, item in enumerate(items):
            if item is None and not schema.items.nullable and schema.items.default is not ABSENT:
                items[place] = _copied(schema.items.default)
            default(items[place], schema.items)


def _default_object(value: dict[str, Any], schema: Schema) -> None:
    for field, child in schema.properties.items():
        if child.default is ABSENT:
            continue
        if field not in value or (value[field] is None and not child.nullable):
            value[field] = _copied(child.default)
    for field, inner in value.items():
        known = schema.child(field)
        if known is None:
            continue
        if inner is None and field not in schema.properties and not known.nullable and known.default is not ABSENT:
            value[field] = inner = _copied(known.default)
        if isinstance(inner, (dict, list)):
            default(inner, known)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        fields: dict[str, Any] = value
        return {field: _copied(inner) for field, inner in fields.items()}
    if isinstance(value, list):
        items: list[Any] = value
        return [_copied(item) for item in items]
    return value


def _join(path: str, field: str) -> str:
    return f"{path}.{field}" if path else field
