"""Which keywords a schema may use, and what the Kubernetes extensions among them ask of their neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from flyball.api.fielderrors import FieldError, Shown

__all__ = ["check_keywords"]

Object = Mapping[str, Any]
_Errors = list[FieldError]

_TYPES: Final = ["array", "boolean", "integer", "number", "object", "string"]
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in an object a schema stands."""

    root: bool = False
    in_metadata: bool = False
    no_defaults: str | None = None
    """Why there can be no defaults here; None where there can."""


def check_keywords(schema: Object, path: str) -> _Errors:
    """Return what is wrong with the keywords of a schema, and of all schemas below it."""
    errors: _Errors = []
    _check(schema, path, _Place(root=True), errors)
    return errors


def _check(schema: Object, path: str, place: _Place, errors: _Errors) -> None:
    _allowed(schema, path, place, errors)
    if schema.get("uniqueItems"):
        words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(FieldError.forbidden(f"{path}.uniqueItems", words))
    _below(schema, path, place, errors)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        where = f"{path}.x-kubernetes-preserve-unknown-fields"
        errors.append(FieldError.invalid(where, False, "must be true or undefined"))
    _map_type(schema, path, errors)
    _list_type(schema, path, errors)
    _map_keys(schema, path, errors)
    _unambiguous_items(schema, path, errors)


def _allowed(schema: Object, path: str, place: _Place, errors: _Errors) -> None:
    type_ = schema.get("type") or ""
    if type_ and type_ not in _TYPES:
        errors.append(FieldError.not_supported(f"{path}.type", type_, _TYPES))
    if schema.get("default") is not None and place.no_defaults is not None:
        errors.append(FieldError.forbidden(f"{path}.default", f"must not be set {place.no_defaults}".rstrip()))
    for name in _UNSUPPORTED:
        if schema.get(name):
            errors.append(FieldError.forbidden(f"{path}.{name}", f"{name} is not supported"))
    if type_ == "null":
        words = "type cannot be set to null, use nullable as an alternative"
        errors.append(FieldError.forbidden(f"{path}.type", words))
    if isinstance(schema.get("items"), list):
        errors.append(FieldError.forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if schema.get("x-kubernetes-embedded-resource") and place.in_metadata:
        where = f"{path}.x-kubernetes-embedded-resource"
        errors.append(FieldError.forbidden(where, "must not be used inside of resource meta"))


def _below(schema: Object, path: str, place: _Place, errors: _Errors) -> None:
    inside = replace(place, root=False)
    additional = schema.get("additionalProperties")
    if additional is not None:
        if schema.get("properties") and additional is not True:
            words = "additionalProperties and properties are mutual exclusive"
            errors.append(FieldError.forbidden(f"{path}.additionalProperties", words))
        if isinstance(additional, Mapping):
            why = "inside additionalProperties applying to object metadata"
            there = replace(inside, no_defaults=why) if place.in_metadata else inside
            _check(additional, f"{path}.additionalProperties", there, errors)
    whole = place.root or bool(schema.get("x-kubernetes-embedded-resource"))
    for name, child in (schema.get("properties") or {}).items():
        there = inside
        if whole and name in _META_FIELDS:
            why_not = f"in top-level {name}" if place.root else inside.no_defaults
            there = replace(inside, in_metadata=True, no_defaults=why_not)
        _check(child, f"{path}.properties[{name}]", there, errors)
    if isinstance(schema.get("not"), Mapping):
        _check(schema["not"], f"{path}.not", inside, errors)
    for junctor in ("allOf", "oneOf", "anyOf"):
        for number, child in enumerate(schema.get(junctor) or ()):
            _check(child, f"{path}.{junctor}[{number}]", inside, errors)
    for name, child in (schema.get("definitions") or {}).items():
        _check(child, f"{path}.definitions[{name}]", inside, errors)
    items = schema.get("items")
    if isinstance(items, Mapping):
        _check(items, f"{path}.items", inside, errors)
    for number, child in enumerate(items if isinstance(items, list) else ()):
        _check(child, f"{path}.items[{number}]", inside, errors)


def _needs_type(schema: Object, path: str, type_: str, keyword: str, errors: _Errors) -> bool:
    found = schema.get("type") or ""
    if schema.get(keyword) is None or found == type_:
        return True
    words = f"must be {type_} if {keyword} is specified"
    where = f"{path}.type"
    errors.append(FieldError.invalid(where, found, words) if found else FieldError.required(where, words))
    return False


def _map_type(schema: Object, path: str, errors: _Errors) -> None:
    _needs_type(schema, path, "object", "x-kubernetes-map-type", errors)
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is not None and map_type not in ("atomic", "granular"):
        errors.append(FieldError.not_supported(f"{path}.x-kubernetes-map-type", map_type, ["atomic", "granular"]))


def _list_type(schema: Object, path: str, errors: _Errors) -> None:
    list_type, items = schema.get("x-kubernetes-list-type"), schema.get("items")
    fits = _needs_type(schema, path, "array", "x-kubernetes-list-type", errors)
    if fits and list_type == "set" and isinstance(items, Mapping):
        words = "must be atomic as item of a list with x-kubernetes-list-type=set"
        inner = items.get("x-kubernetes-list-type")
        if items.get("type") == "array" and inner not in (None, "atomic"):
            errors.append(FieldError.invalid(f"{path}.items.x-kubernetes-list-type", inner, words))
        if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
            shown = Shown("null") if inner is None else inner
            errors.append(FieldError.invalid(f"{path}.items.x-kubernetes-map-type", shown, words))
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        supported = ["atomic", "set", "map"]
        errors.append(FieldError.not_supported(f"{path}.x-kubernetes-list-type", list_type, supported))


def _map_keys(schema: Object, path: str, errors: _Errors) -> None:
    keys: list[str] = schema.get("x-kubernetes-list-map-keys") or []
    list_type, items = schema.get("x-kubernetes-list-type"), schema.get("items")
    if keys and list_type != "map":
        where, words = f"{path}.x-kubernetes-list-type", "must be map if x-kubernetes-list-map-keys is non-empty"
        errors.append(
            FieldError.required(where, words) if list_type is None else FieldError.invalid(where, list_type, words)
        )
    if list_type != "map":
        return
    if not keys:
        words = "must not be empty if x-kubernetes-list-type is map"
        errors.append(FieldError.required(f"{path}.x-kubernetes-list-map-keys", words))
    if items is None:
        words = "must have a schema if x-kubernetes-list-type is map"
        errors.append(FieldError.required(f"{path}.items", words))
    elif not isinstance(items, Mapping):
        words = "must only have a single schema if x-kubernetes-list-type is map"
        errors.append(FieldError.invalid(f"{path}.items", items, words))
    elif items.get("type") != "object":
        words = "must be object if parent array's x-kubernetes-list-type is map"
        errors.append(FieldError.invalid(f"{path}.items.type", items.get("type") or "", words))
    else:
        _keys_of(items, keys, path, errors)


def _keys_of(items: Object, keys: list[str], path: str, errors: _Errors) -> None:
    where = f"{path}.x-kubernetes-list-map-keys"
    properties: Object = items.get("properties") or {}
    for place, key in enumerate(keys):
        if key not in properties:
            errors.append(FieldError.invalid(where, keys, "entries must all be names of item properties"))
        elif properties[key].get("type") in ("array", "object"):
            words = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            errors.append(FieldError.invalid(f"{path}.items.properties[{key}].type", items.get("type"), words))
        if key in keys[:place]:
            errors.append(FieldError.invalid(where, keys, "must not contain duplicate entries"))


def _unambiguous_items(schema: Object, path: str, errors: _Errors) -> None:
    """Check that the items of sets and maps are there, and that their keys always are."""
    list_type, items = schema.get("x-kubernetes-list-type"), schema.get("items")
    if list_type not in ("set", "map") or not isinstance(items, Mapping):
        return
    if items.get("nullable"):
        words = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        errors.append(FieldError.forbidden(f"{path}.items.nullable", words))
    if list_type == "set":
        return
    told = "this property is in x-kubernetes-list-map-keys, so it"
    for key in schema.get("x-kubernetes-list-map-keys") or ():
        child = (items.get("properties") or {}).get(key)
        if child is None:
            continue
        where = f"{path}.items.properties[{key}]"
        if key not in (items.get("required") or ()) and child.get("default") is None:
            errors.append(
                FieldError.required(f"{where}.default", f"{told} must have a default or be a required property")
            )
        if child.get("nullable"):
            errors.append(FieldError.forbidden(f"{where}.nullable", f"{told} cannot be nullable"))
