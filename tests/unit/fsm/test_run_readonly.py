"""Guards only read: the view they get in debug mode, and how a change is reported (FSM-02)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from flyball import strict
from flyball.fsm.run import FINAL, AppContext, AppState, Machine, Table, call, machine_type, state, to
from flyball.strict import StrictWarning


@dataclass(slots=True)
class Part:
    size: int = 1


@dataclass(slots=True)
class Data(AppState):
    number: int = 1
    items: list[Part] = field(default_factory=lambda: [Part()])
    words: dict[str, set[str]] = field(default_factory=lambda: {"a": {"b"}})
    other: object = None


M = Machine[AppContext, Data]


def asking(ask: Callable[..., Any], **options: Any) -> M:
    table = Table(
        "Tested",
        initial=[to("A")],
        states=[state("A", transitions=[to("B", call("Ask")), to(FINAL)]), state("B", transitions=[to(FINAL)])],
        actions={},
        guards={"Ask": ask},
    )
    return machine_type(table, AppContext, Data)(**options)


def sets_number(m: M) -> bool:
    m.state.number = 2
    return True


def appends(m: M) -> bool:
    m.state.items.append(Part())
    return True


def changes_deep(m: M) -> bool:
    m.state.items[0].size = 5
    return True


def changes_a_set(m: M) -> bool:
    m.state.words["a"].add("c")
    return True


def clears_the_error(m: M) -> bool:
    m.current = "elsewhere"
    return True


@pytest.mark.parametrize("ask", [sets_number, appends, changes_deep, changes_a_set, clears_the_error])
def test_a_guard_that_changes_something_is_reported(ask: Callable[..., Any]) -> None:
    machine = asking(ask)
    with pytest.warns(StrictWarning, match="^FSM-02: ") as caught:
        machine.run_sync()
    assert [warning.filename for warning in caught] == [__file__]
    first = ask.__code__.co_firstlineno
    assert caught[0].lineno in range(first, first + 3)
    assert list(machine.trace.states) == ["A", "B", FINAL]


def test_the_view_takes_no_writes() -> None:
    machine = asking(sets_number)
    with pytest.warns(StrictWarning, match="sets number"):
        machine.run_sync()
    assert machine.state.number == 1


def test_production_is_not_watched() -> None:
    machine = asking(sets_number, debug=False)
    machine.run_sync()
    assert machine.state.number == 2


def test_strict_mode_can_be_switched_for_the_process() -> None:
    strict.enable(False)
    try:
        machine = asking(sets_number)
        machine.run_sync()
        assert machine.state.number == 2
    finally:
        strict.enable(None)
    assert strict.enabled()


def test_single_rules_can_be_silenced() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "FSM-02", StrictWarning)
        asking(appends).run_sync()


def test_a_warning_turned_into_an_error_is_not_swallowed() -> None:
    with pytest.raises(StrictWarning, match="FSM-02"):
        asking(appends).run_sync()


def test_reading_is_free() -> None:
    def reads(m: M) -> bool:
        assert isinstance(m.state, Data)
        assert isinstance(m, Machine)
        assert m.state.items[0] == Part()
        assert not m.has_error()
        assert m.context.logger is not None
        assert m.state == m.state
        assert "number" in repr(m.state)
        return m.state.number == 1

    machine = asking(reads)
    machine.run_sync()
    assert list(machine.trace.checks) == ["Ask=true"]


def test_deleting_is_reported() -> None:
    def deletes(m: M) -> bool:
        del m.state.number
        return False

    with pytest.warns(StrictWarning, match="deletes number"):
        asking(deletes).run_sync()


def test_cycles_in_the_data_do_no_harm() -> None:
    machine = asking(lambda m: True)
    ring: list[object] = []
    ring.append(ring)
    machine.state.other = ring
    machine.run_sync()
