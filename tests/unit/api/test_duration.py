"""Durations as Go reads and writes them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flyball.api import Duration

S = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "nanoseconds", "canonical"),
    [
        ("0", 0, "0s"),
        ("0s", 0, "0s"),
        ("1ns", 1, "1ns"),
        ("1.5us", 1500, "1.5\u00b5s"),
        ("1\u03bcs", 1000, "1\u00b5s"),
        ("250ms", S // 4, "250ms"),
        ("1500ms", 3 * S // 2, "1.5s"),
        ("60s", 60 * S, "1m0s"),
        ("90m", 5400 * S, "1h30m0s"),
        ("1h30m1.5s", 5401 * S + S // 2, "1h30m1.5s"),
        ("-1h", -3600 * S, "-1h0m0s"),
        ("+5s", 5 * S, "5s"),
        (".5s", S // 2, "500ms"),
        ("1.s", S, "1s"),
        ("25h", 25 * 3600 * S, "25h0m0s"),
    ],
)
def test_both_ways(text: str, nanoseconds: int, canonical: str) -> None:
    duration = Duration(text)
    assert duration.nanoseconds == nanoseconds
    assert duration.canonical() == canonical
    assert str(duration) == text
    assert Duration(canonical) == duration


@pytest.mark.parametrize("text", ["", "1", "s", "1d", "1 s", "1h-5m", "--1s", "1.2.3s", "300000000h"])
def test_wrong_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        Duration(text)


def test_other_types() -> None:
    assert Duration(timedelta(minutes=1, microseconds=5)).nanoseconds == 60 * S + 5000
    assert str(Duration(90)) == "1m30s"
    assert str(Duration(0.25)) == "250ms"
    assert Duration("1.5s").to_timedelta() == timedelta(seconds=1.5)
    assert Duration("1.5s").seconds == 1.5
    with pytest.raises(TypeError, match="a duration is made from"):
        Duration(True)
    with pytest.raises(TypeError, match="a duration is made from"):
        Duration(None)  # type: ignore[arg-type] # pyright: ignore


def test_arithmetic_and_comparison() -> None:
    assert str(Duration("1h") + Duration("30m")) == "1h30m0s"
    assert str(Duration("1h") - timedelta(minutes=1)) == "59m0s"
    assert str(Duration("10s") * 1.5) == str(1.5 * Duration("10s")) == "15s"
    assert str(-Duration("10s")) == "-10s"
    assert Duration("60s") == Duration("1m") == timedelta(minutes=1)
    assert Duration("1s") != 1
    assert hash(Duration("60s")) == hash(Duration("1m"))
    assert Duration("1s") < Duration("2s") <= timedelta(seconds=2)
    assert not Duration()
    assert repr(Duration("60s")) == "Duration('60s')"


@settings(deadline=None)
@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_the_canonical_text_has_the_same_length(nanoseconds: int) -> None:
    assert Duration(Duration.of_nanoseconds(nanoseconds).canonical()).nanoseconds == nanoseconds
