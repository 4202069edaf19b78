"""The libraries about lists: what Kubernetes adds, the list extension (version 3), sets, and optionals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cmp_to_key
from typing import Any, Final

from flyball.api.cel.errors import CostExceeded, EvalError
from flyball.api.cel.operators import LONGEST_LIST, NO_OVERLOAD, add, compare, contains, equal
from flyball.api.cel.overloads import Overload, function, member, size_of
from flyball.api.cel.strings import traversal
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
    optional_of,
    param,
)
from flyball.api.cel.values import ABSENT, NONE, Duration, ListValue, MapView, OptionalValue, Uint

__all__ = ["LIBRARY", "MAP_INSERT", "OPTIONALS"]

Items = Sequence[Any] | ListValue

_T: Final = param("T")
_LIST: Final = list_of(_T)
_SUMMABLE: Final[dict[str, tuple[Type, Any]]] = {
    "int": (INT, 0),
    "uint": (UINT, Uint(0)),
    "double": (DOUBLE, 0.0),
    "duration": (DURATION, Duration(0)),
}
_COMPARABLE: Final[dict[str, Type]] = {
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "bool": BOOL,
    "duration": DURATION,
    "timestamp": TIMESTAMP,
    "string": STRING,
    "bytes": BYTES,
}


# --- Kubernetes' ------------------------------------------------------------------------------------------------------


def _is_sorted(items: Items) -> bool:
    before: Any = ABSENT
    for item in items:
        if before is not ABSENT and compare(before, item) > 0:
            return False
        before = item
    return True


def _sum_from(zero: Any) -> Callable[[Items], Any]:
    def total(items: Items) -> Any:
        found = zero
        for item in items:
            found = add(found, item)
        return found

    return total


def _extreme(name: str, sign: int) -> Callable[[Items], Any]:
    def pick(items: Items) -> Any:
        found: Any = ABSENT
        for item in items:
            if found is ABSENT or compare(item, found) * sign > 0:
                found = item
        if found is ABSENT:
            raise EvalError(f"{name} called on empty list")
        return found

    return pick


def _index_of(items: Items, wanted: Any) -> int:
    return next((place for place, item in enumerate(items) if equal(item, wanted)), -1)


def _last_index_of(items: Items, wanted: Any) -> int:
    return max((place for place, item in enumerate(items) if equal(item, wanted)), default=-1)


def _declare_kubernetes() -> Iterable[Overload]:
    for kind, (type_, zero) in _SUMMABLE.items():
        yield member("sum", f"list_{kind}_sum_{kind}", [list_of(type_)], type_, _sum_from(zero), traversal)
    largest, smallest = _extreme("max", 1), _extreme("min", -1)
    for kind, type_ in _COMPARABLE.items():
        of = [list_of(type_)]
        yield member("isSorted", f"list_{kind}_is_sorted_bool", of, BOOL, _is_sorted, traversal)
        yield member("max", f"list_{kind}_max_{kind}", of, type_, largest, traversal)
        yield member("min", f"list_{kind}_min_{kind}", of, type_, smallest, traversal)
    yield member("indexOf", "list_a_index_of_int", [_LIST, _T], INT, _index_of, traversal)
    yield member("lastIndexOf", "list_a_last_index_of_int", [_LIST, _T], INT, _last_index_of, traversal)


# --- the list extension -----------------------------------------------------------------------------------------------


def _allocating(size: int, factor: float = 1.0) -> int:
    return int(size * factor) + 11


def _of_result(args: Sequence[Any], result: Any) -> int:
    return _allocating(size_of(result))


def _of_depth(args: Sequence[Any], result: Any) -> int:
    return _allocating(size_of(args[0]), float(args[1]) if len(args) == 2 else 1.0)


def _of_all_with_all(place: int) -> Callable[[Sequence[Any], Any], int]:
    def cost(args: Sequence[Any], result: Any) -> int:
        items = args[place]
        factor = 2.1 if len(items) and isinstance(items[0], (str, bytes)) else 2.0
        return _allocating(len(items) ** 2, factor)

    return cost


def _slice(items: Items, start: int, end: int) -> list[Any]:
    before = f"cannot slice({start}, {end}), "
    if start < 0 or end < 0:
        raise EvalError(f"{before}negative indexes not supported")
    if start > end:
        raise EvalError(f"{before}start index must be less than or equal to end index")
    if end > len(items):
        raise EvalError(f"{before}list is length {len(items)}")
    return list(items)[start:end]


def _flatten(items: Items, depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvalError("level must be non-negative")
    made: list[Any] = []
    for item in items:
        if depth and isinstance(item, (list, ListValue)):
            made.extend(_flatten(item, depth - 1))
        else:
            made.append(item)
        if len(made) > LONGEST_LIST:
            raise CostExceeded
    return made


def _sorted_by(items: Items, keys: Items) -> Any:
    if not len(keys):
        return items
    kinds = {type(key) for key in keys}
    if len(kinds) > 1:
        raise EvalError("list elements must have the same type")
    pairs: list[tuple[Any, Any]] = list(zip(keys, items, strict=True))
    pairs.sort(key=cmp_to_key(_first))
    return [item for _, item in pairs]


def _first(left: tuple[Any, Any], right: tuple[Any, Any]) -> int:
    return int(compare(left[0], right[0]))


def _sort(items: Items) -> Any:
    return _sorted_by(items, items)


def _distinct(items: Items) -> list[Any]:
    made: list[Any] = []
    for item in items:
        if not any(equal(item, other) for other in made):
            made.append(item)
    return made


def _range(count: int) -> list[int]:
    return list(range(count))


def _reversed(items: Items) -> list[Any]:
    return list(items)[::-1]


def _declare_extension() -> Iterable[Overload]:
    yield member("slice", "list_slice", [_LIST, INT, INT], _LIST, _slice, _of_result, paid_after=True)
    yield member("flatten", "list_flatten", [list_of(_LIST)], _LIST, _flatten, _of_depth)
    yield member("flatten", "list_flatten_int", [list_of(DYN), INT], list_of(DYN), _flatten, _of_depth)
    of_items, of_keys = _of_all_with_all(0), _of_all_with_all(1)
    for kind, type_ in _COMPARABLE.items():
        of = list_of(type_)
        yield member("sort", f"list_{kind}_sort", [of], of, _sort, of_items)
        id_ = f"list_{kind}_sortByAssociatedKeys"
        yield member("@sortByAssociatedKeys", id_, [_LIST, of], _LIST, _sorted_by, of_keys)
    yield function(
        "lists.range", "lists_range", [INT], list_of(INT), _range, lambda args, result: _allocating(max(args[0], 0))
    )
    yield member("reverse", "list_reverse", [_LIST], _LIST, _reversed, lambda args, result: _allocating(len(args[0])))
    yield member("distinct", "list_distinct", [_LIST], _LIST, _distinct, of_items)


# --- sets -------------------------------------------------------------------------------------------------------------


def _contains_all(items: Items, others: Items) -> bool:
    return all(contains(item, items) for item in others)


def _intersects(items: Items, others: Items) -> bool:
    return any(contains(item, others) for item in items)


def _equivalent(items: Items, others: Items) -> bool:
    return _contains_all(items, others) and _contains_all(others, items)


def _declare_sets() -> Iterable[Overload]:
    calls = {"contains": (_contains_all, 1), "equivalent": (_equivalent, 2), "intersects": (_intersects, 1)}
    for word, (call, factor) in calls.items():

        def cost(args: Sequence[Any], result: Any, factor: int = factor) -> int:
            return 1 + len(args[0]) * len(args[1]) * factor

        yield function(f"sets.{word}", f"list_sets_{word}_list", [_LIST, _LIST], BOOL, call, cost)


LIBRARY: Final[tuple[Overload, ...]] = (*_declare_kubernetes(), *_declare_extension(), *_declare_sets())


# --- optionals --------------------------------------------------------------------------------------------------------


def _value(optional: Any) -> Any:
    if not isinstance(optional, OptionalValue):
        raise EvalError(NO_OVERLOAD)
    if optional.value is ABSENT:
        raise EvalError("optional.none() dereference")
    return optional.value


def _has_value(optional: Any) -> bool:
    if not isinstance(optional, OptionalValue):
        raise EvalError(NO_OVERLOAD)
    return optional.value is not ABSENT


def _unless_zero(value: Any) -> OptionalValue:
    zero = value is None or (isinstance(value, (bool, int, float)) and not value)
    if isinstance(value, (str, bytes, list, ListValue, MapView)):
        zero = len(value) == 0
    elif isinstance(value, Duration):
        zero = value.nanos == 0
    elif isinstance(value, OptionalValue):
        zero = value.value is ABSENT
    return NONE if zero else OptionalValue(value)


def _end(place: int) -> Callable[[Items], OptionalValue]:
    return lambda items: OptionalValue(items[place % len(items)]) if len(items) else NONE


def _unwrapped(items: Items) -> list[Any]:
    made: list[Any] = []
    for item in items:
        if not isinstance(item, OptionalValue):
            raise EvalError(f"value {item} is not optional")
        if item.value is not ABSENT:
            made.append(item.value)
    return made


def _declare_optionals() -> Iterable[Overload]:
    value, key = param("V"), param("K")
    maybe = optional_of(value)
    yield function("optional.of", "optional_of", [value], maybe, OptionalValue)
    yield function("optional.ofNonZeroValue", "optional_ofNonZeroValue", [value], maybe, _unless_zero)
    yield function("optional.none", "optional_none", [], maybe, lambda: NONE)
    yield member("value", "optional_value", [maybe], value, _value)
    yield member("hasValue", "optional_hasValue", [maybe], BOOL, _has_value)
    yield member("or", "optional_or_optional", [maybe, maybe], maybe)
    yield member("orValue", "optional_orValue_value", [maybe, value], value)
    items, entries = list_of(value), map_of(key, value)
    for name, first in (("_[?_]", "optindex"), ("_[_]", "index")):
        if name == "_[?_]":
            yield function(name, "list_optindex_optional_int", [items, INT], maybe)
        yield function(name, f"optional_list_{first}_int", [optional_of(items), INT], maybe)
        if name == "_[?_]":
            yield function(name, "map_optindex_optional_value", [entries, key], maybe)
        yield function(name, f"optional_map_{first}_value", [optional_of(entries), key], maybe)
    yield member("last", "list_last", [items], maybe, _end(-1))
    yield member("first", "list_first", [items], maybe, _end(0))
    yield function("optional.unwrap", "optional_unwrap", [list_of(maybe)], items, _unwrapped)
    yield member("unwrapOpt", "optional_unwrapOpt", [list_of(maybe)], items, _unwrapped)


OPTIONALS: Final[tuple[Overload, ...]] = tuple(_declare_optionals())
MAP_INSERT: Final[tuple[Overload, ...]] = (
    function(
        "cel.@mapInsert",
        "@mapInsert_map_key_value",
        [map_of(param("K"), param("V")), param("K"), param("V")],
        map_of(param("K"), param("V")),
    ),
    function(
        "cel.@mapInsert", "@mapInsert_map_map", [map_of(param("K"), param("V"))] * 2, map_of(param("K"), param("V"))
    ),
)
