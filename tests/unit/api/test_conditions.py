"""Conditions keep their time as long as they keep their truth."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from flyball.api import Condition, Status, find_condition, is_false, is_true, set_condition

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, UTC)
LATER = NOW + timedelta(hours=1)


def test_a_new_condition_says_everything() -> None:
    status = Status(observed_generation=7)
    made = status.set_condition("Ready", False, reason="Starting", message="0 of 3", now=NOW)
    assert made == Condition(
        type="Ready",
        status="False",
        observed_generation=7,
        last_transition_time=NOW.replace(microsecond=0),
        reason="Starting",
        message="0 of 3",
    )
    assert status.conditions == [made]
    assert status.condition("Ready") is made
    assert status.condition("Other") is None


def test_the_time_changes_with_the_truth_only() -> None:
    status = Status()
    status.set_condition("Ready", None, reason="Unknown", now=NOW)
    status.set_condition("Ready", "Unknown", reason="StillUnknown", message="more", now=LATER)
    condition = status.condition("Ready")
    assert condition is not None
    assert (condition.reason, condition.message) == ("StillUnknown", "more")
    assert condition.last_transition_time == NOW.replace(microsecond=0)
    status.set_condition("Ready", True, reason="AllThere", now=LATER)
    assert condition.last_transition_time == LATER.replace(microsecond=0)


def test_true_false_and_unknown_are_three_things() -> None:
    status = Status()
    for name, truth in (("A", True), ("B", False), ("C", None)):
        status.set_condition(name, truth, reason="X", now=NOW)
    assert [status.is_true(name) for name in "ABCD"] == [True, False, False, False]
    assert [status.is_false(name) for name in "ABCD"] == [False, True, False, False]


def test_order_stays_and_conditions_can_be_forgotten() -> None:
    status = Status()
    for name in "ABA":
        status.set_condition(name, True, reason="X", now=NOW)
    assert [condition.type for condition in status.conditions] == ["A", "B"]
    status.remove_condition("A")
    assert [condition.type for condition in status.conditions] == ["B"]


def test_the_functions_take_any_list() -> None:
    conditions: list[Condition] = []
    set_condition(conditions, "Ready", True, reason="X", observed_generation=3)
    assert is_true(conditions, "Ready")
    assert not is_false(None, "Ready")
    assert find_condition(None, "Ready") is None
    assert conditions[0].observed_generation == 3
    assert abs(conditions[0].last_transition_time - datetime.now(UTC)) < timedelta(minutes=1)
