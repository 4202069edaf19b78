"""Texts that are no expressions, or are meant to hurt: refused with a place, and quickly."""

from __future__ import annotations

import time

import pytest

from flyball.api.cel import CompileError, Environment
from flyball.api.cel.types import DYN

ENVIRONMENT = Environment()


def refusal(text: str) -> CompileError:
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.compile(text, {"a": DYN})
    return caught.value


def test_a_refusal_shows_the_line_and_the_place() -> None:
    error = refusal("a &&\n  bc > 1")
    assert [(issue.line, issue.column) for issue in error.issues] == [(2, 3)]
    assert str(error) == "ERROR: <input>:2:3: undeclared reference to 'bc' (in container '')\n |   bc > 1\n | ..^"


def test_wide_characters_and_tabs_keep_the_mark_below_the_place() -> None:
    assert str(refusal("'é' ==\tzz")).endswith("\n | 'é' == zz\n | .\uff0e.....^")


def test_all_places_are_shown_in_the_order_of_the_text() -> None:
    assert [issue.column for issue in refusal("x + y + z").issues] == [1, 5, 9]


DEEP = [
    "(" * 300 + "1" + ")" * 300,
    "[" * 300 + "]" * 300,
    "!(" * 300 + "true" + ")" * 300,
    "{1: " * 300 + "1" + "}" * 300,
    "a" + ".b" * 5000,
    "a" + "[0]" * 5000,
    "1" + " + 1" * 5000,
    "size(" * 300 + "a" + ")" * 300,
    "true ? 1 : " * 300 + "2",
    "[1].map(x, " * 300 + "1" + ")" * 300,
    "a" + ".size()" * 5000,
    "1" + " < 1" * 5000,
]


@pytest.mark.parametrize("text", DEEP, ids=[text[:6] for text in DEEP])
def test_what_is_nested_too_deeply_is_refused(text: str) -> None:
    assert str(refusal(text)) == "ERROR: <input>:-1:0: expression recursion limit exceeded: 250"


HOSTILE = [
    '"' * 99_999,
    '"""' * 33_333,
    "'" + "a" * 99_000,
    "`" * 99_999,
    "\\" * 99_999,
    "." * 99_999,
    "-" * 99_999,
    "!" * 99_999,
    "1" * 99_999,
    "0x" + "f" * 99_000,
    "1e" + "9" * 99_000,
    "a" * 99_999,
    "//" * 49_999,
    "@" * 99_999,
    "b'" + "\\x" * 49_000,
    "{" * 99_999,
    "a?" * 49_999,
]


@pytest.mark.parametrize("text", HOSTILE, ids=[text[:4] for text in HOSTILE])
def test_hostile_texts_are_refused_quickly(text: str) -> None:
    started = time.perf_counter()
    assert refusal(text).issues
    assert time.perf_counter() - started < 5


def test_a_text_has_an_end() -> None:
    assert "expression code point size exceeds limit: size: 100001, limit 100000" in str(refusal("a" * 100_001))


def test_long_chains_of_logic_are_no_nesting() -> None:
    assert ENVIRONMENT.compile(" && ".join(["a"] * 2000), {"a": DYN})(a=True) is True
    assert ENVIRONMENT.compile(" || ".join(["a"] * 2000), {"a": DYN})(a=False) is False


def test_what_may_be_nested_can_be_evaluated() -> None:
    assert ENVIRONMENT.compile("(" * 150 + "1" + ")" * 150 + " + 1" * 100)() == 101
    assert ENVIRONMENT.compile("[" * 100 + "1" + "]" * 100 + "[0]" * 100)() == 1
