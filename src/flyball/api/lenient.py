"""Reading what does not fit: an object is readable whatever a server has stored.

The quick way (msgspec) stops at the first value that is not of its field's type: a null where a list was promised, an
enum value of a newer version, a number too large. Then the object is read here, field by field: what fits is typed,
null becomes the field's default (an empty list, an empty map), and any other misfit stays what JSON said.
"""

from __future__ import annotations

import logging
import types
import typing
from typing import Annotated, Any

import msgspec

from flyball.api.hints import hints_of, plain_type
from flyball.api.model import Model, defaults_of, json_names
from flyball.api.values import dec_hook

__all__ = ["fit"]

_log = logging.getLogger("flyball.api")


def fit(kind: Any, value: Any) -> Any:
    """`value` (as JSON gives it) as a `kind`, as far as it goes."""
    try:
        return msgspec.convert(value, kind, dec_hook=dec_hook)
    except (msgspec.ValidationError, ValueError, TypeError):
        return _piecewise(kind, value)


def _piecewise(kind: Any, value: Any) -> Any:
    kind = plain_type(kind)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, type) and issubclass(kind, Model) and isinstance(value, dict):
        return _model(kind, value)
    if origin is list and isinstance(value, list):
        return [fit(args[0], item) for item in value]
    if origin is dict and isinstance(value, dict):
        return {key: fit(args[1], item) for key, item in value.items()}
    if value is None and origin in (list, dict):
        return origin()
    if kind is msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(value))
    _log.debug("kept %r as it is: it is not a %s", value, kind)
    return value


def _model(kind: type[Model], value: dict[str, Any]) -> Model:
    hints, made = hints_of(kind), kind()
    for attribute, key in json_names(kind).items():
        if key not in value:
            continue
        found = fit(hints[attribute], value[key])
        if found is None and not _takes_null(hints[attribute]):
            found = defaults_of(kind)[attribute]
        setattr(made, attribute, found)
    return made


def _takes_null(kind: Any) -> bool:
    if typing.get_origin(kind) is Annotated:
        return _takes_null(typing.get_args(kind)[0])
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return type(None) in typing.get_args(kind)
    return kind is Any or kind is None
