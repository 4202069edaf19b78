"""Strict mode: when it is on, and where its warnings point."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from flyball import strict
from flyball.strict import StrictWarning


@pytest.fixture(autouse=True)
def as_found() -> Iterator[None]:
    yield
    strict.enable(None)


def test_on_under_pytest_and_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert strict.enabled()
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    monkeypatch.delenv("FLYBALL_DEBUG", raising=False)
    assert strict.enabled() is sys.flags.dev_mode
    monkeypatch.setenv("FLYBALL_DEBUG", "1")
    assert strict.enabled()


def test_switched_by_hand() -> None:
    strict.enable(False)
    assert not strict.enabled()
    strict.enable()
    assert strict.enabled()


def test_a_report_starts_with_the_rule_and_points_at_the_caller() -> None:
    def rule() -> None:
        strict.report("M-06", "two writes", stacklevel=2)

    with pytest.warns(StrictWarning, match="^M-06: two writes$") as caught:
        rule()
    assert caught[0].filename == __file__
    with pytest.warns(StrictWarning) as caught:
        strict.report_at("FSM-02", "a guard writes", "guards.py", 12)
    assert (caught[0].filename, caught[0].lineno) == ("guards.py", 12)
    assert issubclass(StrictWarning, UserWarning)
