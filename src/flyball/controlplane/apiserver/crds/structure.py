"""Whether a schema is structural: each value has one type, and what is said of it elsewhere only narrows it down.

`check_structure` finds where a schema breaks that. A schema that passes can be walked with an object side by side: that
is what pruning, defaulting and server-side apply rely on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from flyball.api.fielderrors import FieldError
from flyball.api.structural import PatternError, compile_pattern

__all__ = ["check_structure"]

Object = Mapping[str, Any]
_Errors = list[FieldError]

ROOT, ITEM, FIELD = "root", "item", "field"

_WITHOUT_TYPE: Final = {
    ROOT: "must not be empty at the root",
    ITEM: "must not be empty for specified array items",
    FIELD: "must not be empty for specified object fields",
}
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_EMPTY_IN_JUNCTORS: Final = ("title", "description")
_FALSE_IN_JUNCTORS: Final = (
    "nullable",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
)
_ABSENT_IN_JUNCTORS: Final = ("default", "x-kubernetes-list-type", "x-kubernetes-map-type")
_JUNCTORS: Final = ("allOf", "anyOf", "oneOf")


def check_structure(schema: Object, path: str) -> _Errors:
    """Return where a schema is not structural, in alphabetical order."""
    errors: _Errors = []
    _node(schema, ROOT, path, errors)
    _complete(schema, schema, path, path, errors)
    return sorted(errors, key=str)


def _node(schema: Object, level: str, path: str, errors: _Errors) -> None:
    type_: str = schema.get("type") or ""
    _children(schema, level, path, errors)
    _extensions(schema, path, errors)
    any_of = schema.get("anyOf") == _INT_OR_STRING
    first = (schema.get("allOf") or [{}])[0].get("anyOf") == _INT_OR_STRING
    _values(schema, level, path, errors, skip_any_of=any_of, skip_first=first)
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    preserves = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    if embedded and type_ != "object":
        _wrong_type(path, type_, "must be object if x-kubernetes-embedded-resource is true", errors)
    elif not type_ and not schema.get("x-kubernetes-int-or-string") and not preserves:
        errors.append(FieldError.required(f"{path}.type", _WITHOUT_TYPE[level]))
    if embedded and schema.get("additionalProperties"):
        words = "must not be used if x-kubernetes-embedded-resource is set"
        errors.append(FieldError.forbidden(f"{path}.additionalProperties", words))
    if level == ROOT and type_ and type_ != "object":
        errors.append(FieldError.invalid(f"{path}.type", type_, "must be object at the root"))
    _head(schema, level, path, errors, embedded=embedded)
    if embedded and not preserves and not schema.get("properties"):
        words = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        errors.append(FieldError.required(f"{path}.properties", words))


def _wrong_type(path: str, found: str, words: str, errors: _Errors) -> None:
    where = f"{path}.type"
    errors.append(FieldError.invalid(where, found, words) if found else FieldError.required(where, words))


def _children(schema: Object, level: str, path: str, errors: _Errors) -> None:
    items = schema.get("items")
    if schema.get("type") == "array" and items is None:
        errors.append(FieldError.required(f"{path}.items", "must be specified"))
    if isinstance(items, Mapping):
        _node(items, ITEM, f"{path}.items", errors)
    for name, child in (schema.get("properties") or {}).items():
        _node(child, FIELD, f"{path}.properties[{name}]", errors)
    additional = schema.get("additionalProperties")
    if additional is not None:
        if level == ROOT:
            errors.append(FieldError.forbidden(f"{path}.additionalProperties", "must not be used at the root"))
        if isinstance(additional, Mapping):
            _node(additional, FIELD, f"{path}.additionalProperties", errors)


def _extensions(schema: Object, path: str, errors: _Errors) -> None:
    if schema.get("x-kubernetes-int-or-string"):
        for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if schema.get(name):
                words = "must be false if x-kubernetes-int-or-string is true"
                errors.append(FieldError.invalid(f"{path}.{name}", True, words))


def _head(schema: Object, level: str, path: str, errors: _Errors, *, embedded: bool) -> None:
    """Check what a schema says of the fields that every object has."""
    properties: Object = schema.get("properties") or {}
    if level == ROOT or embedded:
        for name in ("kind", "apiVersion"):
            if name in properties and properties[name].get("type") != "string":
                where = f"{path}.properties[{name}].type"
                errors.append(FieldError.invalid(where, properties[name].get("type") or "", "must be string"))
    metadata = properties.get("metadata")
    if metadata is None:
        return
    where = f"{path}.properties[metadata]"
    if (level == ROOT or embedded) and metadata.get("type") != "object":
        errors.append(FieldError.invalid(f"{where}.type", metadata.get("type") or "", "must be object"))
    if level == ROOT and not _only_names(metadata):
        words = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        errors.append(FieldError.forbidden(where, words))


def _only_names(metadata: Object) -> bool:
    names = set(metadata.get("properties") or {})
    others = {name for name, value in metadata.items() if name not in ("type", "properties", "default") and value}
    return names <= {"name", "generateName"} and not others


def _values(
    schema: Object, level: str, path: str, errors: _Errors, *, skip_any_of: bool = False, skip_first: bool = False
) -> None:
    """Check what narrows a value down: it must say nothing of what the value is."""
    if not skip_any_of:
        for place, one in enumerate(schema.get("anyOf") or ()):
            _nested(one, level, f"{path}.anyOf[{place}]", errors)
    for place, one in enumerate(schema.get("allOf") or ()):
        _nested(one, level, f"{path}.allOf[{place}]", errors, skip_any_of=skip_first and place == 0)
    for place, one in enumerate(schema.get("oneOf") or ()):
        _nested(one, level, f"{path}.oneOf[{place}]", errors)
    if schema.get("not") is not None:
        _nested(schema["not"], level, f"{path}.not", errors)
    pattern = schema.get("pattern")
    if pattern:
        try:
            compile_pattern(pattern)
        except PatternError as wrong:
            words = f"must be a valid regular expression, but isn't: {wrong}"
            errors.append(FieldError.invalid(f"{path}.pattern", pattern, words))


def _nested(schema: Object, level: str, path: str, errors: _Errors, *, skip_any_of: bool = False) -> None:
    _values(schema, level, path, errors, skip_any_of=skip_any_of)
    if isinstance(schema.get("items"), Mapping):
        _nested(schema["items"], level, f"{path}.items", errors)
    for name, child in (schema.get("properties") or {}).items():
        _nested(child, FIELD, f"{path}.properties[{name}]", errors)

    def forbid(name: str, words: str) -> None:
        errors.append(FieldError.forbidden(f"{path}.{name}", f"must be {words} to be structural"))

    if schema.get("type"):
        forbid("type", "empty")
    if schema.get("additionalProperties") is not None:
        forbid("additionalProperties", "undefined")
    for name in _EMPTY_IN_JUNCTORS:
        if schema.get(name):
            forbid(name, "empty")
    for name in _FALSE_IN_JUNCTORS:
        if schema.get(name):
            forbid(name, "false")
    for name in _ABSENT_IN_JUNCTORS:
        if schema.get(name) is not None:
            forbid(name, "undefined")
    for name in ("x-kubernetes-list-map-keys", "x-kubernetes-validations"):
        if schema.get(name):
            forbid(name, "empty")
    if "metadata" in (schema.get("properties") or {}):
        words = "must not be specified in a nested context"
        errors.append(FieldError.forbidden(f"{path}.properties[metadata]", words))


# What a junctor of the root speaks of must be there outside of it as well.


def _complete(values: Object, schema: Object, path: str, where: str, errors: _Errors) -> None:
    """Check the junctors of the root: those of fields may speak of what is not there, as on a real server."""
    if values.get("not") is not None:
        _complete_nested(values["not"], schema, path, f"{where}.not", errors)
    for junctor in _JUNCTORS:
        for place, one in enumerate(values.get(junctor) or ()):
            _complete_nested(one, schema, path, f"{where}.{junctor}[{place}]", errors)


def _complete_nested(values: Object, schema: Object | None, path: str, where: str, errors: _Errors) -> None:
    if schema is None:
        errors.append(FieldError.required(path, f"because it is defined in {where}"))
        return
    _complete(values, schema, path, where, errors)
    if isinstance(values.get("items"), Mapping):
        items = schema.get("items")
        below = items if isinstance(items, Mapping) else None
        _complete_nested(values["items"], below, f"{path}.items", f"{where}.items", errors)
    for name, child in (values.get("properties") or {}).items():
        known = (schema.get("properties") or {}).get(name)
        _complete_nested(child, known, f"{path}.properties[{name}]", f"{where}.properties[{name}]", errors)
