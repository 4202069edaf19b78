"""The standard library: operators, conversions, and what strings can be asked. Times are in `times.py`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from flyball.api.cel import operators as op
from flyball.api.cel.errors import EvalError
from flyball.api.cel.operators import NO_OVERLOAD, checked_int, checked_uint
from flyball.api.cel.overloads import Overload, function, member, size_of, tenth
from flyball.api.cel.times import parse_duration, timestamp_of
from flyball.api.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    param,
    type_of,
)
from flyball.api.cel.values import Duration, Opaque, Timestamp, TypeValue, Uint, type_name
from flyball.api.structural.patterns import PatternError, compile_pattern

__all__ = ["CONVERSIONS", "LIBRARY", "matches", "pattern_cost", "text", "text_of_double"]

_A: Final = param("A")
_B: Final = param("B")
_LIST: Final = list_of(_A)
_MAP: Final = map_of(_A, _B)

CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
"""Functions whose calls with constants are constants."""


# --- costs ------------------------------------------------------------------------------------------------------------


def _smaller(args: Sequence[Any], result: Any) -> int:
    return tenth(min(size_of(args[0]), size_of(args[1])))


def _together(args: Sequence[Any], result: Any) -> int:
    return tenth(size_of(args[0]) + size_of(args[1]))


def _first(args: Sequence[Any], result: Any) -> int:
    return tenth(size_of(args[0]))


def _each_in_each(args: Sequence[Any], result: Any) -> int:
    return tenth(size_of(args[0])) * tenth(size_of(args[1]))


def pattern_cost(args: Sequence[Any], result: Any) -> int:
    """Tell what a search for a pattern costs."""
    return tenth(1 + size_of(args[0])) * math.ceil(size_of(args[1]) * 0.25)


def _equality(args: Sequence[Any], result: Any) -> int:
    return 1 if isinstance(args[0], Opaque) else _smaller(args, result)


# --- conversions ------------------------------------------------------------------------------------------------------


def _cannot(value: Any, kind: str) -> EvalError:
    return EvalError(f"type conversion error from '{type_name(value)}' to '{kind}'")


_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEX: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_NO_NUMBER: Final = re.compile(r"[+-]?(?:inf|infinity)|nan", re.IGNORECASE)
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def _int(value: Any) -> int:
    kind = type(value)
    if kind is str:
        if _INTEGER.fullmatch(value) is None or len(value) > 100 or not -(2**63) <= int(value) < 2**63:
            raise _cannot(value, "int")
        return int(value)
    if kind is float:
        if not -(2.0**63) < value < 2.0**63:
            raise EvalError("integer overflow")
        return int(value)
    if kind is Duration:
        return int(value.nanos)
    if kind is Timestamp:
        return int(value.seconds)
    return checked_int(int(value))


def _uint(value: Any) -> Uint:
    kind = type(value)
    if kind is str:
        if re.fullmatch(r"[0-9]+", value) is None or len(value) > 100 or int(value) >= 2**64:
            raise _cannot(value, "uint")
        return Uint(int(value))
    if kind is float:
        if not 0 <= value < 2.0**64:
            raise EvalError("unsigned integer overflow")
        return Uint(int(value))
    return checked_uint(int(value))


def _double(value: Any) -> float:
    if type(value) is not str:
        return float(value)
    if _NO_NUMBER.fullmatch(value):
        return float(value)
    if _HEX.fullmatch(value):
        return float.fromhex(value)
    if _DECIMAL.fullmatch(value) and not math.isinf(found := float(value)):
        return found
    raise _cannot(value, "double")


def _bool(value: Any) -> bool:
    if type(value) is bool:
        return value
    if value in _TRUE or value in _FALSE:
        return value in _TRUE
    raise _cannot(value, "bool")


def text_of_double(value: float) -> str:
    """Write a number with as few digits as say it, with an exponent where it is large or small."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign = "-" if math.copysign(1, value) < 0 else ""
    if value == 0:
        return f"{sign}0"
    whole, rest = _digits(repr(abs(value)))
    power = len(whole) - 1 if whole != "0" else -1 - (len(rest) - len(rest.lstrip("0")))
    if -4 <= power < 6:
        return sign + (f"{whole}.{rest}" if rest else whole)
    figures = (whole + rest).strip("0")
    tail = f".{figures[1:]}" if len(figures) > 1 else ""
    return f"{sign}{figures[0]}{tail}e{'-' if power < 0 else '+'}{abs(power):02}"


def _digits(text: str) -> tuple[str, str]:
    """Return the digits before and after the point, of what Python writes, without its exponent."""
    head, _, exponent = text.partition("e")
    whole, _, rest = head.partition(".")
    shift = int(exponent or 0)
    if shift >= 0:
        rest = rest.ljust(shift, "0")
        whole, rest = whole + rest[:shift], rest[shift:]
    else:
        whole = whole.rjust(-shift + 1, "0")
        whole, rest = whole[:shift], whole[shift:] + rest
    return whole.lstrip("0") or "0", rest.rstrip("0")


def text(value: Any) -> str:
    """Convert a value to a string, as `string()` does."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind in (int, Uint):
        return str(int(value))
    if kind is float:
        return text_of_double(value)
    if kind is bytes:
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            raise EvalError("invalid UTF-8 in bytes, cannot convert to string") from None
    if kind in (Duration, Timestamp):
        return str(value.text())
    if kind is TypeValue:
        return str(value.name)
    raise EvalError(NO_OVERLOAD)


def _duration(value: Any) -> Duration:
    if type(value) is int:
        raise _cannot(value, "google.protobuf.Duration")
    if type(value) is str:
        try:
            return parse_duration(value)
        except ValueError:
            raise _cannot(value, "google.protobuf.Duration") from None
    assert isinstance(value, Duration)
    return value


def _timestamp(value: Any) -> Timestamp:
    if type(value) is int:
        return op.moment(value * 1_000_000_000, 0)
    if type(value) is str:
        try:
            return timestamp_of(value)
        except ValueError:
            raise _cannot(value, "google.protobuf.Timestamp") from None
    assert isinstance(value, Timestamp)
    return value


def _same(value: Any) -> Any:
    return value


def _type(value: Any) -> TypeValue:
    return TypeValue(type_name(value))


# --- strings ----------------------------------------------------------------------------------------------------------


def matches(value: str, pattern: str) -> bool:
    """Tell whether a pattern is found in a string."""
    try:
        return compile_pattern(pattern).search(value) is not None
    except PatternError as error:
        raise EvalError(str(error)) from None


def _declare_text() -> Iterable[Overload]:
    two = [STRING, STRING]
    yield member("contains", "contains_string", two, BOOL, lambda value, part: part in value, _each_in_each)
    yield member("endsWith", "ends_with_string", two, BOOL, str.endswith, _first)
    yield member("startsWith", "starts_with_string", two, BOOL, str.startswith, _first)
    yield function("matches", "matches", two, BOOL, matches)
    yield member("matches", "matches_string", two, BOOL, matches, pattern_cost)
    for id_, kind in (("bytes", BYTES), ("list", _LIST), ("map", _MAP), ("string", STRING)):
        yield function("size", f"size_{id_}", [kind], INT, len)
        yield member("size", f"{id_}_size", [kind], INT, len)


# --- operators --------------------------------------------------------------------------------------------------------

_ORDERED: Final[list[tuple[str, Type, Type]]] = [
    ("bool", BOOL, BOOL),
    ("int64", INT, INT),
    ("int64_double", INT, DOUBLE),
    ("int64_uint64", INT, UINT),
    ("uint64", UINT, UINT),
    ("uint64_double", UINT, DOUBLE),
    ("uint64_int64", UINT, INT),
    ("double", DOUBLE, DOUBLE),
    ("double_int64", DOUBLE, INT),
    ("double_uint64", DOUBLE, UINT),
    ("string", STRING, STRING),
    ("bytes", BYTES, BYTES),
    ("timestamp", TIMESTAMP, TIMESTAMP),
    ("duration", DURATION, DURATION),
]
_RELATIONS: Final[dict[str, tuple[str, Callable[[Any, Any], bool]]]] = {
    "_<_": ("less", lambda left, right: op.compare(left, right) < 0),
    "_<=_": ("less_equals", lambda left, right: op.compare(left, right) <= 0),
    "_>_": ("greater", lambda left, right: op.compare(left, right) > 0),
    "_>=_": ("greater_equals", lambda left, right: op.compare(left, right) >= 0),
}


def _declare_relations() -> Iterable[Overload]:
    for name, (word, call) in _RELATIONS.items():
        for id_, left, right in _ORDERED:
            cost = _smaller if id_ in ("string", "bytes") else None
            yield function(name, f"{word}_{id_}", [left, right], BOOL, call, cost)


def _arithmetic(
    name: str, word: str, call: Callable[[Any, Any], Any], kinds: Iterable[tuple[str, Type, Type, Type]]
) -> Iterable[Overload]:
    for id_, left, right, result in kinds:
        cost = _together if word == "add" and id_ in ("string", "bytes") else None
        yield function(name, f"{word}_{id_}", [left, right], result, call, cost)


def _declare_arithmetic() -> Iterable[Overload]:
    numbers = [("double", DOUBLE, DOUBLE, DOUBLE), ("int64", INT, INT, INT), ("uint64", UINT, UINT, UINT)]
    spans = [("duration_duration", DURATION, DURATION, DURATION)]
    yield from _arithmetic(
        "_+_",
        "add",
        op.add,
        [
            ("bytes", BYTES, BYTES, BYTES),
            *numbers,
            *spans,
            ("duration_timestamp", DURATION, TIMESTAMP, TIMESTAMP),
            ("timestamp_duration", TIMESTAMP, DURATION, TIMESTAMP),
            ("list", _LIST, _LIST, _LIST),
            ("string", STRING, STRING, STRING),
        ],
    )
    yield from _arithmetic(
        "_-_",
        "subtract",
        op.subtract,
        [
            *numbers,
            *spans,
            ("timestamp_duration", TIMESTAMP, DURATION, TIMESTAMP),
            ("timestamp_timestamp", TIMESTAMP, TIMESTAMP, DURATION),
        ],
    )
    yield from _arithmetic("_*_", "multiply", op.multiply, numbers)
    yield from _arithmetic("_/_", "divide", op.divide, numbers)
    yield from _arithmetic("_%_", "modulo", op.modulo, numbers[1:])
    yield function("-_", "negate_double", [DOUBLE], DOUBLE, op.negate)
    yield function("-_", "negate_int64", [INT], INT, op.negate)


def _not(value: Any) -> bool:
    if type(value) is not bool:
        raise EvalError(NO_OVERLOAD)
    return not value


def _declare_logic() -> Iterable[Overload]:
    yield function("_?_:_", "conditional", [BOOL, _A, _A], _A)
    yield function("_&&_", "logical_and", [BOOL, BOOL], BOOL)
    yield function("_||_", "logical_or", [BOOL, BOOL], BOOL)
    yield function("!_", "logical_not", [BOOL], BOOL, _not)
    yield function("@not_strictly_false", "not_strictly_false", [BOOL], BOOL)
    yield function("_==_", "equals", [_A, _A], BOOL, op.equal, _equality)
    yield function("_!=_", "not_equals", [_A, _A], BOOL, lambda left, right: not op.equal(left, right), _smaller)
    yield function("@in", "in_list", [_A, _LIST], BOOL, op.contains, lambda args, result: size_of(args[1]))
    yield function("@in", "in_map", [_A, _MAP], BOOL, op.contains)
    yield function("_[_]", "index_list", [_LIST, INT], _A)
    yield function("_[_]", "index_map", [_MAP, _A], _B)


def _conversion(name: str, result: Type, call: Callable[[Any], Any], *sources: Type) -> Iterable[Overload]:
    for source in sources:
        cost = _first if (name, source) in (("bytes", STRING), ("string", BYTES)) else None
        yield function(name, f"{source.kind}_to_{name}", [source], result, _same if source is result else call, cost)


def _declare_conversions() -> Iterable[Overload]:
    yield function("type", "type", [_A], type_of(_A), _type)
    yield function("dyn", "to_dyn", [_A], DYN, _same)
    yield from _conversion("bool", BOOL, _bool, BOOL, STRING)
    yield from _conversion("bytes", BYTES, lambda value: value.encode("utf-8", "surrogatepass"), BYTES, STRING)
    yield from _conversion("double", DOUBLE, _double, DOUBLE, INT, STRING, UINT)
    yield from _conversion("duration", DURATION, _duration, DURATION, INT, STRING)
    yield from _conversion("int", INT, _int, INT, DOUBLE, DURATION, STRING, TIMESTAMP, UINT)
    strings = (STRING, BOOL, BYTES, DOUBLE, DURATION, INT, TIMESTAMP, UINT)
    yield from _conversion("string", STRING, text, *strings)
    yield from _conversion("timestamp", TIMESTAMP, _timestamp, TIMESTAMP, INT, STRING)
    yield from _conversion("uint", UINT, _uint, UINT, DOUBLE, INT, STRING)


LIBRARY: Final[tuple[Overload, ...]] = (
    *_declare_logic(),
    *_declare_relations(),
    *_declare_arithmetic(),
    *_declare_conversions(),
    *_declare_text(),
)
