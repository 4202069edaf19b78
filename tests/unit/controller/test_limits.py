"""Limits per object, by any history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.controller.limits import TooOften, Window
from flyball.controller.request import Request

A, B = Request("default", "a"), Request("default", "b")


@pytest.mark.capability("C31")
@given(st.lists(st.floats(0, 30), max_size=40), st.integers(1, 4))
def test_never_more_than_the_limit_in_any_window(pauses: list[float], limit: int) -> None:
    window, now = Window(limit, 60), 0.0
    runs: set[float] = set()
    granted: list[float] = []
    for pause in pauses:
        now += pause
        delay = window.delay(A, now)
        assert delay >= 0
        moment = now + delay
        if not any(abs(moment - one) < 1e-6 and delay for one in runs):
            granted.append(moment)
        runs.add(moment)
    for moment in granted:
        assert sum(1 for one in granted if moment <= one < moment + 60 - 1e-6) <= limit


def test_objects_do_not_share_a_limit() -> None:
    window = Window(1, 60)
    assert window.delay(A, 0) == 0
    assert window.delay(B, 0) == 0
    assert window.delay(A, 10) == 50
    with pytest.raises(ValueError, match="at least one"):
        Window(0, 60)


def test_too_often_is_so_many_times_within_a_period_and_ends_with_it() -> None:
    often, start = TooOften(3, timedelta(minutes=5)), datetime(2026, 1, 1, tzinfo=UTC)

    def at(seconds: float) -> datetime:
        return start + timedelta(seconds=seconds)

    for moment in (0, 100):
        often.note("a", at(moment))
    assert often.until("a", at(100)) is None
    often.note("a", at(200))
    assert often.until("a", at(200)) == at(300)
    assert often.until("b", at(200)) is None
    often.note("a", at(250))
    assert often.until("a", at(299)) == at(400)
    assert often.until("a", at(400)) is None
    often.note("a", at(401))
    assert often.until("a", at(401)) == at(500)
    assert often.until("a", at(701)) is None
    often.note("a", at(702))
    assert often.until("a", at(702)) is None
    with pytest.raises(ValueError, match="once at least"):
        TooOften(0, 60)
