"""Programs: what they cost, what they hold, what they see; and libraries that may be left out or added."""

from __future__ import annotations

import threading

import pytest

from flyball.api.cel import (
    BINDINGS_LIBRARY,
    KUBERNETES_LIBRARY,
    REVERSE_LIBRARY,
    STANDARD_LIBRARY,
    CompileError,
    CostExceeded,
    Environment,
    EvalError,
    ProgramError,
    declare,
    escape,
)
from flyball.api.cel.types import DYN, INT, STRING, list_of
from flyball.api.structural import compile_schema

NUMBERS = {"l": list_of(INT)}


def test_a_program_is_called_with_its_variables() -> None:
    program = Environment().compile("a + b", {"a": INT, "b": INT, "c": STRING})
    assert program(a=1, b=2) == 3
    assert program.uses == {"a", "b"}
    assert program.type == INT


def test_an_evaluation_stops_at_its_limit() -> None:
    program = Environment().compile("l.all(x, l.all(y, l.all(z, x + y + z >= 0)))", NUMBERS)
    assert program.evaluate([list(range(5))]) == (True, 2 + 5 * (3 + 2 + 5 * (3 + 2 + 5 * 9)))
    with pytest.raises(CostExceeded, match=r"^operation cancelled: actual cost limit exceeded$"):
        program.evaluate([list(range(100))])


def test_what_a_limit_stops_is_not_absorbed() -> None:
    program = Environment().compile("l.all(x, l.all(y, x + y >= 0)) || true", NUMBERS)
    with pytest.raises(CostExceeded):
        program.evaluate([list(range(100))], 1000)


def test_large_results_count_too() -> None:
    program = Environment().compile("lists.range(n).size() > 0", {"n": INT})
    with pytest.raises(CostExceeded):
        program.evaluate([999_999], 1000)
    with pytest.raises(CostExceeded):
        program.evaluate([2**62])


@pytest.mark.parametrize(
    ("start", "more"),
    [("[1]", "x + x"), ("'a'", "x + x"), ("'a'", "x.replace('', x)"), ("[1]", "[x, x].flatten()"), ("1", "x")],
)
def test_what_doubles_and_doubles_is_stopped(start: str, more: str) -> None:
    expression = f"optional.of(dyn({start}))" + f".optMap(x, {more})" * 60 + ".hasValue()"
    with pytest.raises(CostExceeded):
        Environment().compile(expression)()


def test_what_takes_the_square_of_the_time_is_paid_before() -> None:
    program = Environment().compile("l.distinct().size() > 0 && sets.contains(l, l)", NUMBERS)
    with pytest.raises(CostExceeded):
        program.evaluate([list(range(1_000_000))])


def test_an_error_knows_what_was_spent() -> None:
    program = Environment().compile("l.map(x, x / 0)", NUMBERS)
    with pytest.raises(EvalError) as caught:
        program.evaluate([[1, 2]])
    assert caught.value.cost > 0


def test_constants_without_a_value_are_found_before_any_evaluation() -> None:
    with pytest.raises(ProgramError, match=r"^type conversion error from 'string' to 'int'$"):
        Environment().compile("false && int('x') > 1")


def test_patterns_take_linear_time() -> None:
    program = Environment().compile("s.matches('^(a+)+$')", {"s": STRING})
    assert program(s="a" * 50_000 + "b") is False


def test_libraries_can_be_left_out_and_added() -> None:
    small = Environment(STANDARD_LIBRARY)
    with pytest.raises(CompileError):
        small.compile("'a'.upperAscii()")
    large = Environment(STANDARD_LIBRARY, KUBERNETES_LIBRARY, BINDINGS_LIBRARY, REVERSE_LIBRARY)
    assert large.compile("cel.bind(x, 'ab'.reverse(), x + x)")() == "baba"
    assert large.compile("cel.bind(x, 1 / 0, true)")() is True
    with pytest.raises(CompileError, match="variable names must be simple identifiers"):
        large.compile("cel.bind(1, 2, 3)")


def test_a_bound_variable_is_found_out_once() -> None:
    program = Environment(STANDARD_LIBRARY, BINDINGS_LIBRARY).compile("cel.bind(x, l.map(y, y + 1), x + x)", NUMBERS)
    assert program.evaluate([[1]]) == ([2, 2], 1 + (1 + 1 + 14) + 1 + 1)


def test_a_program_may_run_in_several_threads() -> None:
    program = Environment().compile("l.map(x, l.filter(y, y >= x).size()).sum()", NUMBERS)
    found: list[int] = []

    def work(count: int) -> None:
        found.extend(program(l=list(range(count))) for _ in range(50))

    threads = [threading.Thread(target=work, args=(count,)) for count in (3, 10, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [6] * 50 + [55] * 50 + [210] * 50


def test_deep_values_are_compared_or_refused() -> None:
    schema = compile_schema({"type": "object", "properties": {"a": {"x-kubernetes-preserve-unknown-fields": True}}})
    declared = declare(schema)
    deep: list[object] = []
    for _ in range(50_000):
        deep = [deep]
    assert declared.type is not None
    assert declared.convert is not None
    program = Environment().compile("self == oldSelf", {"self": declared.type, "oldSelf": declared.type})
    values = [declared.convert({"a": deep}), declared.convert({"a": [deep]})]
    with pytest.raises(EvalError, match="nested too deeply"):
        program.evaluate(values)


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("plain", "plain"),
        ("a-b.c/d", "a__dash__b__dot__c__slash__d"),
        ("a__b", "a__underscores__b"),
        ("namespace", "__namespace__"),
        ("true", "__true__"),
        ("_x", "_x"),
        ("1a", None),
        ("a b", None),
        ("é", None),
        ("", None),
    ],
)
def test_names_of_fields(name: str, escaped: str | None) -> None:
    assert escape(name) == escaped


def test_dynamic_values_are_told_apart_at_run_time() -> None:
    program = Environment().compile("type(d) == int ? d > 5 : d.startsWith('a')", {"d": DYN})
    assert [program(d=value) for value in (6, 5, "ab", "b")] == [True, False, True, False]
