"""What operators do with values whose types are only known at run time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from flyball.api.cel.errors import CostExceeded, EvalError
from flyball.api.cel.values import (
    ABSENT,
    Duration,
    ListValue,
    MapView,
    OptionalValue,
    Timestamp,
    Uint,
    type_name,
)

__all__ = [
    "INT_OVERFLOW",
    "LONGEST_LIST",
    "NO_OVERLOAD",
    "add",
    "checked_int",
    "checked_uint",
    "compare",
    "contains",
    "divide",
    "equal",
    "has",
    "index",
    "length",
    "less",
    "lookup",
    "modulo",
    "moment",
    "multiply",
    "negate",
    "select",
    "subtract",
    "told",
]

NO_OVERLOAD: Final = "no such overload"
INT_OVERFLOW: Final = "integer overflow"
_UINT_OVERFLOW: Final = "unsigned integer overflow"
_MAX: Final = 2**63 - 1
_MIN: Final = -(2**63)
_UMAX: Final = 2**64 - 1
_FIRST_SECOND: Final = -62135596800
_LAST_SECOND: Final = 253402300799
_SECOND: Final = 1_000_000_000
LONGEST_LIST: Final = 4_000_000
"""Items of a list that was put together; to go through more would exceed any limit of costs."""
_NUMBERS: Final = frozenset({int, Uint, float})


def checked_int(value: int) -> int:
    """Return a number that is no larger than it may be."""
    if _MIN <= value <= _MAX:
        return value
    raise EvalError(INT_OVERFLOW)


def checked_uint(value: int) -> Uint:
    """Return an unsigned number that is no larger than it may be, and not below zero."""
    if 0 <= value <= _UMAX:
        return Uint(value)
    raise EvalError(_UINT_OVERFLOW)


def moment(total: int, offset: int) -> Timestamp:
    """Return a moment between the years 1 and 9999."""
    seconds, nanos = divmod(total, _SECOND)
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        raise EvalError("timestamp overflow")
    return Timestamp(seconds, nanos, offset)


def length(nanos: int) -> Duration:
    """Return a length of time that is no longer than it may be."""
    return Duration(checked_int(nanos))


# --- arithmetic -------------------------------------------------------------------------------------------------------


def add(left: Any, right: Any) -> Any:
    """Return left + right."""
    kind, other = type(left), type(right)
    if kind is other:
        if kind is int:
            return checked_int(left + right)
        if kind in (str, float, bytes):
            return left + right
        if kind is Uint:
            return checked_uint(int(left) + int(right))
        if kind is Duration:
            return length(left.nanos + right.nanos)
    if kind is Timestamp and other is Duration:
        return moment(left.total + right.nanos, left.offset)
    if kind is Duration and other is Timestamp:
        return moment(left.nanos + right.total, right.offset)
    if isinstance(left, (list, ListValue)) and isinstance(right, (list, ListValue)):
        if len(left) + len(right) > LONGEST_LIST:
            raise CostExceeded
        joined: Callable[[Any], Any] | None = getattr(left, "plus", None)
        return [*left, *right] if joined is None else joined(right)
    raise EvalError(NO_OVERLOAD)


def subtract(left: Any, right: Any) -> Any:
    """Return left - right."""
    kind, other = type(left), type(right)
    if kind is other:
        if kind is int:
            return checked_int(left - right)
        if kind is float:
            return left - right
        if kind is Uint:
            return checked_uint(int(left) - int(right))
        if kind is Duration:
            return length(left.nanos - right.nanos)
        if kind is Timestamp:
            return length(left.total - right.total)
    if kind is Timestamp and other is Duration:
        return moment(left.total - right.nanos, left.offset)
    raise EvalError(NO_OVERLOAD)


def multiply(left: Any, right: Any) -> Any:
    """Return left * right."""
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return checked_int(left * right)
        if kind is float:
            return left * right
        if kind is Uint:
            return checked_uint(int(left) * int(right))
    raise EvalError(NO_OVERLOAD)


def divide(left: Any, right: Any) -> Any:
    """Return left / right, for whole numbers towards zero."""
    kind = type(left)
    if kind is type(right):
        if kind is float:
            return _divided(left, right)
        if kind in (int, Uint):
            if right == 0:
                raise EvalError("division by zero")
            return checked_uint(int(left) // int(right)) if kind is Uint else checked_int(_towards_zero(left, right))
    raise EvalError(NO_OVERLOAD)


def _towards_zero(left: int, right: int) -> int:
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def _divided(left: float, right: float) -> float:
    if right:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def modulo(left: Any, right: Any) -> Any:
    """Return what is left of a division of whole numbers; it has the sign of what was divided."""
    kind = type(left)
    if kind is type(right) and kind in (int, Uint):
        if right == 0:
            raise EvalError("modulus by zero")
        if left == _MIN and right == -1:
            raise EvalError(INT_OVERFLOW)
        return (
            checked_uint(int(left) % int(right))
            if kind is Uint
            else int(math.copysign(1, left)) * (abs(left) % abs(right))
        )
    raise EvalError(NO_OVERLOAD)


def negate(value: Any) -> Any:
    """Return -value."""
    if type(value) is int:
        return checked_int(-value)
    if type(value) is float:
        return -value
    if type(value) is Duration:
        return length(-value.nanos)
    raise EvalError(NO_OVERLOAD)


# --- comparison -------------------------------------------------------------------------------------------------------


def compare(left: Any, right: Any) -> Any:
    """Return -1, 0 or 1; numbers of all kinds are compared with each other."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS and other in _NUMBERS:
        if left != left or right != right:
            raise EvalError("NaN values cannot be ordered")
        if kind is float or other is float:
            return _compare_double(left, right)
        return (left > right) - (left < right)
    if kind is not other:
        raise EvalError(NO_OVERLOAD)
    if kind in (str, bytes, bool):
        return (left > right) - (left < right)
    if kind is Duration:
        return (left.nanos > right.nanos) - (left.nanos < right.nanos)
    if kind is Timestamp:
        return (left.total > right.total) - (left.total < right.total)
    raise EvalError(NO_OVERLOAD)


def _compare_double(left: Any, right: Any) -> Any:
    """Compare as doubles, but with whole numbers that a double cannot hold as the limits that they are."""
    if type(left) is not float and abs(right) < 2**64:
        left = float(left)
    elif type(right) is not float and abs(left) < 2**64:
        right = float(right)
    return (left > right) - (left < right)


def less(left: Any, right: Any) -> bool:
    """Tell whether left < right."""
    return bool(compare(left, right) < 0)


def equal(left: Any, right: Any) -> bool:
    """Tell whether two values are equal; values of different types are not, but numbers of all kinds may be."""
    kind, other = type(left), type(right)
    if kind is other:
        if kind in (str, int, bool, bytes):
            return bool(left == right)
        if kind is list:
            return len(left) == len(right) and all(map(equal, left, right))
    if kind in _NUMBERS and other in _NUMBERS:
        if kind is float or other is float:
            return bool(left == left and right == right and _compare_double(left, right) == 0)
        return bool(left == right)
    if kind is bool or other is bool or left is None or right is None:
        return left is right
    same: Callable[[Any], bool] | None = getattr(left, "equals", None)
    if same is not None:
        return same(right)
    if isinstance(left, (list, ListValue)):
        return isinstance(right, (list, ListValue)) and len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, MapView):
        return isinstance(right, MapView) and _equal_maps(left, right)
    if isinstance(left, OptionalValue):
        return isinstance(right, OptionalValue) and _equal_optionals(left, right)
    return bool(left == right)


def _equal_maps(left: MapView, right: MapView) -> bool:
    if len(left) != len(right):
        return False
    for key in left:
        other = right.find(key)
        if other is ABSENT or not equal(left.find(key), other):
            return False
    return True


def _equal_optionals(left: OptionalValue, right: OptionalValue) -> bool:
    if left.value is ABSENT or right.value is ABSENT:
        return left.value is right.value
    return equal(left.value, right.value)


def contains(value: Any, container: Any) -> bool:
    """Tell whether a value is in a list, or a key in a map."""
    if isinstance(container, (list, ListValue)):
        return any(equal(each, value) for each in container)
    if isinstance(container, MapView):
        return container.find(_as_key(value)) is not ABSENT
    raise EvalError(NO_OVERLOAD)


def _as_key(value: Any) -> Any:
    if type(value) is float and not value.is_integer():
        return ABSENT
    return value


# --- access -----------------------------------------------------------------------------------------------------------


def select(value: Any, field: str) -> Any:
    """Return a field of an object, or the value of a key of a map."""
    if isinstance(value, MapView):
        found = value.find(field)
        if found is ABSENT:
            raise EvalError(f"no such key: {field}")
        return found
    if isinstance(value, (list, ListValue)):
        raise EvalError("unsupported index type 'string' in list")
    raise EvalError(f"no such key: {field}")


def has(value: Any, field: str) -> bool:
    """Tell whether an object has a field, or a map a key."""
    return isinstance(value, MapView) and value.find(field) is not ABSENT


def index(value: Any, key: Any) -> Any:
    """Return an item of a list, or the value of a key of a map."""
    found = lookup(value, key)
    if found is not ABSENT:
        return found
    if isinstance(value, MapView):
        raise EvalError(f"no such key: {told(key)}")
    raise EvalError(f"index out of bounds: {told(key)}")


def lookup(value: Any, key: Any) -> Any:
    """Return an item of a list, or the value of a key of a map, or `ABSENT`."""
    if isinstance(value, MapView):
        return value.find(_as_key(key))
    if isinstance(value, (list, ListValue)):
        if type(key) is float:
            if not key.is_integer():
                raise EvalError(f"unsupported index value {key} in list")
            key = int(key)
        if type(key) not in (int, Uint):
            raise EvalError(f"unsupported index type '{type_name(key)}' in list")
        return value[key] if 0 <= key < len(value) else ABSENT
    raise EvalError(f"no such key: {told(key)}")


def told(value: Any) -> str:
    """Tell a value in a message."""
    if type(value) is bool:
        return "true" if value else "false"
    return str(int(value)) if type(value) is Uint else str(value)
