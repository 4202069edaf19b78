"""Shorter ways for the calls that rules are made of, when the types are known: comparison, equality, arithmetic."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from flyball.api.cel.code import SPENT, VARIES, Code, Evaluate, ProgramError, constant
from flyball.api.cel.errors import EvalError
from flyball.api.cel.kubernetes import SEARCHES
from flyball.api.cel.nodes import Call
from flyball.api.cel.operators import INT_OVERFLOW, NO_OVERLOAD, contains, equal
from flyball.api.cel.overloads import size_of, tenth
from flyball.api.cel.values import Opaque, Uint
from flyball.api.structural.patterns import PatternError, compile_pattern

__all__ = ["quick_call"]

_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}
_COMPUTE: Final[dict[str, Callable[[int, int], int]]] = {
    "_+_": operator.add,
    "_-_": operator.sub,
    "_*_": operator.mul,
}
_ENDS: Final[dict[str, Callable[[Any, Any], bool]]] = {"startsWith": str.startswith, "endsWith": str.endswith}
_MAX: Final = 2**63 - 1
_MIN: Final = -(2**63)


def quick_call(node: Call, codes: list[Code]) -> Code | None:
    """Return a shorter way of a call, if there is one."""
    name = node.name
    if name in ("_==_", "_!=_"):
        return _equality(node, codes, negated=name == "_!=_")
    if name == "@in":
        return _membership(codes)
    if name in SEARCHES and codes[1].value is not VARIES:
        _compiled(codes[1].value)
        return None
    if len(node.overloads) != 1 or len(codes) != 2:
        return None
    if name in _ENDS and node.target is not None and {node.target.type.kind, node.args[0].type.kind} == {"string"}:
        return _end(_ENDS[name], codes)
    id_ = node.overloads[0].id
    if name in _COMPARE and id_.endswith("_int64"):
        return _comparison(_COMPARE[name], codes)
    if name in _COMPUTE and id_.endswith("_int64"):
        return _computation(_COMPUTE[name], codes)
    return None


def _end(test: Callable[[Any, Any], bool], codes: list[Code]) -> Code:
    left, right = codes[0].call, codes[1].call

    def ask(frame: list[Any]) -> bool:
        try:
            value = left(frame)
            frame[SPENT] += (len(value) + 9) // 10
            return test(value, right(frame))
        except TypeError:
            raise EvalError(NO_OVERLOAD) from None

    return Code(ask, codes[0].cost + codes[1].cost)


def _comparison(compare: Callable[[Any, Any], bool], codes: list[Code]) -> Code:
    cost = codes[0].cost + codes[1].cost + 1
    left, right, fixed = codes[0].call, codes[1].call, codes[1].value
    if fixed is not VARIES:
        return Code(lambda frame: compare(left(frame), fixed), cost)
    return Code(lambda frame: compare(left(frame), right(frame)), cost)


def _computation(compute: Callable[[int, int], int], codes: list[Code]) -> Code:
    left, right = codes[0].call, codes[1].call

    def found(frame: list[Any]) -> int:
        value = compute(left(frame), right(frame))
        if _MIN <= value <= _MAX:
            return value
        raise EvalError(INT_OVERFLOW)

    return Code(found, codes[0].cost + codes[1].cost + 1)


def _equality(node: Call, codes: list[Code], *, negated: bool) -> Code:
    cost = codes[0].cost + codes[1].cost
    kinds = {arg.type.kind for arg in node.args}
    left, right = codes[0].call, codes[1].call
    same = operator.ne if negated else operator.eq
    if len(kinds) == 1 and kinds <= {"int", "bool"}:
        return Code(lambda frame: same(left(frame), right(frame)), cost + 1)
    if kinds == {"string"}:
        return Code(_equality_of_strings(left, right, same), cost)

    def compare(frame: list[Any]) -> bool:
        one, other = left(frame), right(frame)
        free = isinstance(one, Opaque) and not negated
        frame[SPENT] += 1 if free else tenth(min(size_of(one), size_of(other)))
        return equal(one, other) is not negated

    return Code(compare, cost)


def _equality_of_strings(left: Evaluate, right: Evaluate, same: Callable[[Any, Any], bool]) -> Evaluate:
    def compare(frame: list[Any]) -> bool:
        one, other = left(frame), right(frame)
        if one is None or other is None:
            frame[SPENT] += 1
        else:
            frame[SPENT] += (min(len(one), len(other)) + 9) // 10
        return same(one, other)

    return compare


def _membership(codes: list[Code]) -> Code | None:
    """Return a look into a set, for a list that is always the same."""
    fixed, call = codes[1].value, codes[0].call
    if not isinstance(fixed, list):
        return None
    if not fixed:
        return constant(False)
    if all(type(item) is str for item in fixed):
        strings = frozenset(fixed)

        def among(frame: list[Any]) -> bool:
            value = call(frame)
            return type(value) is str and value in strings

        return Code(among, codes[0].cost)
    if all(type(item) in (int, bool, float, Uint) for item in fixed):
        return Code(lambda frame: contains(call(frame), fixed), codes[0].cost)
    return None


def _compiled(pattern: Any) -> None:
    try:
        if type(pattern) is str:
            compile_pattern(pattern)
    except PatternError as error:
        raise ProgramError(str(error)) from None
