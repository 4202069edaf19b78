"""Random expressions have the same value here and in another implementation (cel-cpp, by way of cel-expr-python)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cel_expr_python import cel  # pyright: ignore[reportMissingTypeStubs] # it has stubs for its module only
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.celexpressions import VALUES, Writer

from flyball.api.cel import BINDINGS_LIBRARY, STANDARD_LIBRARY, CompileError, Environment, EvalError, ProgramError
from flyball.api.cel.types import BOOL, INT, STRING, Type, list_of, map_of
from flyball.api.cel.values import Duration, MapValue, Timestamp

KINDS = ["bool", "int", "uint", "double", "string", "bytes", "duration", "timestamp", "list(int)", "list(string)"]
TYPES: dict[str, Type] = {
    "i": INT,
    "j": INT,
    "s": STRING,
    "t": STRING,
    "b": BOOL,
    "l": list_of(INT),
    "e": list_of(INT),
    "w": list_of(STRING),
    "m": map_of(STRING, INT),
}
OURS = Environment(STANDARD_LIBRARY, BINDINGS_LIBRARY)
FAILED = object()
REFUSED = object()
"""A constant without a value is refused here, even where it is never looked at."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def theirs() -> Any:
    kind = cel.Type
    numbers, texts = kind.List(kind.INT), kind.List(kind.STRING)
    variables = {"i": kind.INT, "j": kind.INT, "s": kind.STRING, "t": kind.STRING, "b": kind.BOOL}
    variables |= {"l": numbers, "e": numbers, "w": texts, "m": kind.Map(kind.STRING, kind.INT)}
    return cel.NewEnv(variables=variables)


THEIRS = theirs()


def our_value(expression: str) -> Any:
    try:
        program = OURS.compile(expression, TYPES)
        return plain(program(**{**VALUES, "m": MapValue(dict(VALUES["m"]))}))  # type: ignore[call-overload] # a dict
    except EvalError:
        return FAILED
    except ProgramError:
        return REFUSED
    except CompileError as error:
        if "invalid timestamp argument" not in str(error):
            raise
        return REFUSED


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, Duration):
        return timedelta(microseconds=value.nanos // 1000)
    if isinstance(value, Timestamp):
        return EPOCH + timedelta(microseconds=value.total // 1000)
    return value


def their_value(expression: str) -> Any:
    found = THEIRS.compile(expression).eval(data=VALUES)
    if found.type() == cel.Type.ERROR:
        return FAILED
    value = found.plain_value()
    return bytes(value) if isinstance(value, bytearray) else value


@settings(max_examples=300)
@given(st.data())
def test_random_expressions(data: st.DataObject) -> None:
    def pick(count: int) -> int:
        return data.draw(st.integers(0, count - 1))

    expression = Writer(pick).write(KINDS[pick(len(KINDS))], 3)
    ours, others = our_value(expression), their_value(expression)
    if ours is REFUSED:
        return
    if isinstance(ours, float) and isinstance(others, float) and ours != ours:
        assert others != others, expression
    else:
        assert ours == others, expression
        assert type(ours) is type(others) or FAILED in (ours, others) or isinstance(ours, int), expression


@pytest.mark.parametrize(
    "expression",
    [
        "1 + 2 * 3 - 4 / 2 % 3",
        "(1 < 2) == (2 > 1)",
        "[1, 2, 3].map(x, x * x).exists(y, y == 9)",
        "'abc'.matches('a.c') && !'abc'.matches('^b')",
        "timestamp('2026-01-02T03:04:05Z').getDayOfWeek('America/New_York')",
        "{'a': [1, 2]}['a'][1] == 2",
        "1 / 0 == 1 || true",
        "false && 1 / 0 == 1",
        "1 / 0",
        "[1][1]",
        "string(1.5) + string(true) + string(duration('90m'))",
        "int('12') + int(3.7) + int(4u)",
        "b'\\xff' == bytes('a')",
        "size('héllo') + size(b'h\\xc3\\xa9llo')",
        "cel.bind(x, 5, x + 1)",
    ],
)
def test_expressions_of_the_language(expression: str) -> None:
    if "cel.bind" in expression:
        assert our_value(expression) == 6
    else:
        assert our_value(expression) == their_value(expression)
