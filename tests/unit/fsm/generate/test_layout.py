"""Expressions as text that formatters leave alone."""

from __future__ import annotations

import ast

import pytest

from flyball.fsm.generate.layout import call, docstring, listing, quoted, render


@pytest.mark.parametrize(
    "text", ["", "plain", "it's", 'say "hi"', "both ' and \"", "\\n", "tab\t nl\n nul\0", "ü☃\u2028\ud800", '"""']
)
def test_literals_mean_what_they_say(text: str) -> None:
    assert ast.literal_eval(quoted(text)) == text


def test_what_fits_is_flat_and_what_does_not_is_opened() -> None:
    assert render(call("f", "a", listing(["b", "c"]))) == "f(a, [b, c])"
    long = [f"item_number_{number}" for number in range(8)]
    assert (
        render(call("f", listing(long))) == "f(\n    [\n" + "".join(f"        {one},\n" for one in long) + "    ],\n)"
    )


def test_docstrings_hold_any_text() -> None:
    assert docstring("Short.") == '"""Short."""'
    text = docstring('Quotes """ and \\ and', "more " * 40)
    assert all(len(line) <= 88 for line in text.split("\n"))
    ast.parse(f"def f():\n    {text}\n")
