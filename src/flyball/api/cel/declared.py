"""From a schema to the type that expressions see, and to what makes values of JSON."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any, Final

from flyball.api.cel.errors import EvalError
from flyball.api.cel.lexer import RESERVED
from flyball.api.cel.times import parse_date, parse_date_time, parse_word_duration
from flyball.api.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    object_of,
)
from flyball.api.cel.views import (
    Convert,
    JsonList,
    JsonMap,
    JsonMapList,
    JsonObject,
    JsonSet,
    Preserved,
    Shape,
)
from flyball.api.structural.schema import Schema

__all__ = ["Declared", "declare", "escape"]

_KEYWORDS: Final = RESERVED | {"true", "false", "null", "in"}
_ESCAPED: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_PLAIN: Final = re.compile(r"[A-Za-z_.\-/][A-Za-z0-9_.\-/]*")


def escape(name: str) -> str | None:
    """Return the name of a field as expressions write it, or None when they cannot."""
    if name in _KEYWORDS:
        return f"__{name}__"
    if _PLAIN.fullmatch(name) is None:
        return None
    return re.sub(r"__|[.\-/]", lambda found: _ESCAPED[found[0]], name)


class Declared:
    """What expressions know of a node of a schema: its type (None when it is not shown to them), and its values."""

    __slots__ = ("convert", "type")

    def __init__(self, type_: Type | None, convert: Convert | None) -> None:
        """Take both; no `convert` means that JSON is the value."""
        self.type = type_
        self.convert = convert


def declare(schema: Schema, *, root: bool = False, name: str = "selfType") -> Declared:
    """Declare a schema. At the `root` of a resource its name and kind are shown, whatever the schema says."""
    declared = _declare(schema, root, name)
    return _nullable(declared) if schema.nullable and not root else declared


def _nullable(declared: Declared) -> Declared:
    convert = declared.convert
    if convert is None:
        return declared
    return Declared(declared.type, lambda value: None if value is None else convert(value))


def _declare(schema: Schema, root: bool, name: str) -> Declared:
    if schema.int_or_string:
        return Declared(DYN, _int_or_string)
    match schema.types[0] if schema.types else "":
        case "array":
            return _array(schema, name)
        case "object":
            return _object(schema, root, name)
        case "string":
            return _STRINGS.get(schema.source.get("format") or "", _STRING)
        case "boolean":
            return Declared(BOOL, None)
        case "number":
            return Declared(DOUBLE, _number)
        case "integer":
            return Declared(INT, _integer)
        case _:
            return Declared(None, Preserved)


# --- scalars ----------------------------------------------------------------------------------------------------------


def _expected(kind: str, value: Any) -> EvalError:
    go = {str: "string", bool: "bool", float: "float64", int: "int64", type(None): "<nil>"}
    found = go.get(type(value), "map[string]interface {}" if isinstance(value, dict) else "[]interface {}")
    return EvalError(f"invalid data, expected {kind}, got {found}")


def _integer(value: Any) -> int:
    if type(value) is int:
        return value
    raise _expected("int", value)


def _number(value: Any) -> float:
    if type(value) is float:
        return value
    if type(value) is int:
        return float(value)
    raise _expected("float", value)


def _int_or_string(value: Any) -> Any:
    if type(value) in (int, str):
        return value
    raise EvalError("invalid data, expected XIntOrString value to be either a string or integer")


def _read(kind: str, parse: Callable[[str], Any]) -> Convert:
    def convert(value: Any) -> Any:
        try:
            return parse(value)
        except (ValueError, TypeError):
            raise EvalError(f"Invalid {kind} {value}") from None

    return convert


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except binascii.Error as error:
        raise ValueError from error


_STRING: Final = Declared(STRING, None)
_STRINGS: Final = {
    "byte": Declared(BYTES, _read("byte formatted string", _base64)),
    "duration": Declared(DURATION, _read("duration", parse_word_duration)),
    "date": Declared(TIMESTAMP, _read("date formatted string", parse_date)),
    "date-time": Declared(TIMESTAMP, _read("date-time formatted string", parse_date_time)),
}


# --- lists and objects ------------------------------------------------------------------------------------------------


def _array(schema: Schema, name: str) -> Declared:
    if schema.items is None:
        return Declared(None, Preserved)
    item = declare(schema.items, root=schema.items.embedded, name=f"{name}.@idx")
    type_ = None if item.type is None else list_of(item.type)
    convert = item.convert
    if schema.list_type == "set":
        return Declared(type_, lambda value: JsonSet(value, convert))
    if schema.list_type == "map":
        keys = schema.map_keys
        return Declared(type_, lambda value: JsonMapList(value, convert, keys))
    return Declared(type_, None if convert is None else lambda value: JsonList(value, convert))


def _object(schema: Schema, root: bool, name: str) -> Declared:
    if schema.additional is not None and schema.source.get("additionalProperties") is not True:
        item = declare(schema.additional, root=schema.additional.embedded, name=f"{name}.@elem")
        type_ = None if item.type is None else map_of(STRING, item.type)
        if not (schema.properties or root):
            return Declared(type_, lambda value: JsonMap(value, item.convert))
        shape = _fields(schema, root, name)[1]
        return Declared(type_, lambda value: JsonObject(value, shape))
    types, shape = _fields(schema, root, name)
    shown = object_of(name, types)
    shown.shape = shape
    return Declared(shown, lambda value: JsonObject(value, shape))


def _fields(schema: Schema, root: bool, name: str) -> tuple[dict[str, Type], Shape]:
    shape = Shape()
    types: dict[str, Type] = {}
    properties: dict[str, Declared] = {
        field: declare(child, root=child.embedded, name=f"{name}.{escape(field) or field}")
        for field, child in schema.properties.items()
    }
    if root and not _has_own_meta(schema):
        properties |= {"kind": _STRING, "apiVersion": _STRING, "metadata": _metadata(name)}
    for field, declared in properties.items():
        escaped = escape(field)
        if escaped is not None:
            shape.add(escaped, field, declared.convert)
            if declared.type is not None:
                types[escaped] = declared.type
    return types, shape


def _metadata(name: str) -> Declared:
    shape = Shape()
    shape.add("name", "name", None)
    shape.add("generateName", "generateName", None)
    type_ = object_of(f"{name}.metadata", {"name": STRING, "generateName": STRING})
    type_.shape = shape
    return Declared(type_, lambda value: JsonObject(value, shape))


def _has_own_meta(schema: Schema) -> bool:
    metadata = schema.properties.get("metadata")
    fields = {} if metadata is None else metadata.properties
    known = [schema.properties.get("kind"), schema.properties.get("apiVersion")]
    known += [fields.get("name"), fields.get("generateName")]
    return all(each is not None and each.types == ("string",) for each in known)
