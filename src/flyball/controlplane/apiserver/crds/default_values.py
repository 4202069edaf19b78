"""Whether the defaults of a schema could stand where they are put."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flyball.api.fielderrors import FieldError
from flyball.api.structural import Schema, compile_schema, prune, same, validate, validate_lists
from flyball.controlplane.apiserver.core import fresh
from flyball.controlplane.apiserver.crds.objects import embedded_errors

__all__ = ["check_defaults"]

_Errors = list[FieldError]


def check_defaults(source: Mapping[str, Any], path: str) -> _Errors:
    """Return what is wrong with the defaults of a structural schema: each must be valid, and known in all its parts."""
    errors: _Errors = []
    _walk(compile_schema(source), path, errors, whole=True)
    return errors


def _walk(schema: Schema, path: str, errors: _Errors, *, whole: bool = False) -> None:
    default = schema.source.get("default")
    if default is not None:
        errors.extend(_of(schema, default, f"{path}.default", embedded=whole or schema.embedded))
    if schema.items is not None:
        _walk(schema.items, f"{path}.items", errors)
    for name, child in schema.properties.items():
        _walk(child, f"{path}.properties[{name}]", errors)


def _of(schema: Schema, default: Any, path: str, *, embedded: bool) -> _Errors:
    errors: _Errors = []
    if isinstance(default, (dict, list)):
        pruned = fresh({"value": default})["value"]
        prune(pruned, schema, root=embedded)
        if not same(pruned, default):
            errors.append(FieldError.invalid(path, default, "must not have unknown fields"))
    if embedded and isinstance(default, dict):
        wrong = embedded_errors(default, path)
        if wrong:
            return errors + wrong
    for error in validate(default, schema) + validate_lists(default, schema):
        below = error.field.removeprefix(".")
        errors.append(replace(error, field=path if not below else f"{path}{'' if below[0] == '[' else '.'}{below}"))
    return errors
