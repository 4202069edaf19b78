"""Strict warnings in production."""

from __future__ import annotations

import warnings

import pytest

from flyball import StrictWarning
from flyball.manager.metrics import Registry
from flyball.manager.strictness import logged_strict_warnings
from flyball.strict import report_at


def test_each_place_is_logged_once_and_everything_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    numbers = Registry()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as a process may have inherited
        with logged_strict_warnings(numbers):
            for _ in range(3):
                report_at("M-06", "two changes in one pass", "operator.py", 12)
            report_at("M-06", "two changes in one pass", "operator.py", 30)
    assert [record.message for record in caplog.records] == [
        "M-06: two changes in one pass (operator.py:12)",
        "M-06: two changes in one pass (operator.py:30)",
    ]
    assert numbers.value("flyball_strict_warnings_total", item="M-06") == 4


def test_what_somebody_chose_to_ignore_stays_ignored(caplog: pytest.LogCaptureFixture) -> None:
    numbers = Registry()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "M-06", StrictWarning)
        with logged_strict_warnings(numbers):
            report_at("M-06", "two changes in one pass", "operator.py", 12)
            report_at("M-19", "a child of an object that goes", "operator.py", 13)
    assert [record.message[:4] for record in caplog.records] == ["M-19"]
    assert numbers.value("flyball_strict_warnings_total", item="M-06") == 0


def test_other_warnings_go_where_they_always_go() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with logged_strict_warnings(Registry()):
            warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert [str(one.message) for one in caught] == ["old"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with logged_strict_warnings(Registry()), pytest.raises(DeprecationWarning):
            warnings.warn("old", DeprecationWarning, stacklevel=1)
