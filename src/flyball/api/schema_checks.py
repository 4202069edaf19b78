"""What a server would refuse in a schema, found when the class is made."""

from __future__ import annotations

import re
from typing import Any

from flyball.api.markers import Default, Marker
from flyball.api.refusal import SchemaError

__all__ = ["check_default", "check_fits", "check_list", "kind_word"]

Json = dict[str, Any]
_SCALARS = ("string", "integer", "number", "boolean", "int-or-string")


def kind_word(schema: Json) -> str:
    """The type as markers speak of it."""
    if schema.get("x-kubernetes-int-or-string"):
        return "int-or-string"
    return str(schema.get("type", "any"))


def check_fits(schema: Json, marker: Marker, path: str) -> None:
    """The marker makes sense at a value of this type."""
    word = kind_word(schema)
    if marker.fits and word not in marker.fits:
        fits = " or ".join(fit for fit in marker.fits if fit != "any")
        raise SchemaError(path, f"{type(marker).__name__} does not fit a value of type {word}", f"put it at a {fits}")


def check_list(schema: Json, path: str) -> None:
    """The list type of a list can be kept."""
    kind, items = schema.get("x-kubernetes-list-type"), schema.get("items", {})
    keys = schema.get("x-kubernetes-list-map-keys", [])
    if kind == "map":
        if not keys:
            raise SchemaError(path, "a list of type map does not say by which fields", 'add ListMapKeys("name")')
        for key in keys:
            _check_key(key, items, path)
    elif keys:
        raise SchemaError(path, f"a list of type {kind} has no keys", "remove ListType or ListMapKeys")
    elif kind == "set" and kind_word(items) not in _SCALARS and items.get("x-kubernetes-map-type") != "atomic":
        raise SchemaError(
            path,
            "a set can hold scalars only",
            'name the items: ListMapKeys("name"); or make them atomic: list[Annotated[..., StructType("atomic")]]',
        )


def _check_key(key: str, items: Json, path: str) -> None:
    properties = items.get("properties")
    if properties is None and items.get("type") == "object" and "additionalProperties" not in items:
        return  # a built-in kind that was not looked into
    found = (properties or {}).get(key)
    if found is None:
        raise SchemaError(path, f"its items have no field {key!r} to be found by", "name fields of the items")
    if kind_word(found) not in _SCALARS:
        raise SchemaError(path, f"the key {key!r} is not a scalar", "use a text, a number or a boolean as key")
    if key not in items.get("required", []) and "default" not in found:
        raise SchemaError(path, f"the key {key!r} may be missing", "give the field a default, or none and no `| None`")


def check_default(schema: Json, path: str) -> None:
    """The default is one of the values that the schema allows (as far as scalars go)."""
    value: Any = schema["default"]
    problem = _problem(value, schema)
    if problem:
        raise SchemaError(path, f"the default {value!r} {problem}", f"change it, or the {Default.__name__} marker")


def _problem(value: Any, schema: Json) -> str | None:
    if "enum" in schema and value not in schema["enum"]:
        return f"is none of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        low, high = schema.get("minimum"), schema.get("maximum")
        if low is not None and (value < low or (value == low and schema.get("exclusiveMinimum"))):
            return f"is below the minimum {low}"
        if high is not None and (value > high or (value == high and schema.get("exclusiveMaximum"))):
            return f"is above the maximum {high}"
    if isinstance(value, (str, list)):
        size, word = len(value), "Length" if isinstance(value, str) else "Items"
        least, most = f"min{word}", f"max{word}"
        if size < schema.get(least, 0) or size > schema.get(most, size):
            return f"has {size} parts, which {least} or {most} forbids"
    if isinstance(value, str) and "pattern" in schema and not _matches(schema["pattern"], value):
        return f"does not match {schema['pattern']}"
    return None


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:  # RE2 knows words that Python does not
        return True
