"""Arbitrary text never breaks the parser; the long run is `python -m tests.fuzz.fsm_parse`."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fuzz import fsm_parse

PIECE = st.one_of(st.sampled_from(fsm_parse.PIECES), st.sampled_from(fsm_parse.LINES), st.text(max_size=8))
TEXT = st.lists(st.lists(PIECE, max_size=6).map("".join), max_size=25).map("\n".join)


def test_a_thousand_made_up_diagrams() -> None:
    fsm_parse.run(1000, seed=1_000_000)


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(TEXT, st.sampled_from(["t.puml", "t.md"]))
def test_any_text_gives_findings_that_name_a_line(text: str, file: str) -> None:
    fsm_parse.hold(text, file)


@pytest.mark.parametrize(
    "text",
    [
        "A " + "-" * 100_000,
        "A <" + "-" * 100_000,
        "A --> B: " + "IsX::" * 20_000,
        "A --> B: " + "IsX/" * 20_000,
        "A --> B: " + "(" * 50_000,
        "A --> B: " + "not " * 20_000,
        "A --> B: " + "IsX(a\\n) and " * 10_000,
        "A: do / X(" + '","' * 30_000 + ")",
        "/''/" * 20_000,
        "/'" * 50_000 + "'/ x",
        "state A {\n" * 10_000,
        "note left of A\n" * 10_000,
        "legend x\n" * 10_000,
        "@startuml\n" * 5_000,
        "state A " + "<<a>>" * 20_000,
    ],
    ids=lambda text: text[:14],
)
def test_time_grows_with_the_length_of_the_text_only(text: str) -> None:
    fsm_parse.run_one(text)
