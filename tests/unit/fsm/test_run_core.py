"""The loop of a run: actions, guards, defaults, limits, start and end."""

from __future__ import annotations

import pytest
from tests.support.machines import Log, make, path_of

from flyball.fsm.run import (
    FINAL,
    AppContext,
    Machine,
    Permanent,
    Requeue,
    StepLimitError,
    Stop,
    StuckError,
    call,
    state,
    to,
)

BROKEN = ValueError("broken")


def test_actions_run_before_guards_judge() -> None:
    seen: list[str] = []

    def act(m: Machine[AppContext, Log]) -> None:
        m.state.true.add("Done")
        seen.append("action")

    def ask(m: Machine[AppContext, Log]) -> bool:
        seen.append("guard")
        return "Done" in m.state.true

    machine = make(
        state("A", do=[call("Act")], transitions=[to(FINAL, call("IsDone")), to("A")]),
        actions={"Act": act},
        guards={"IsDone": ask},
    )()
    machine.run_sync()
    assert seen == ["action", "guard"]
    assert path_of(machine) == ["A", FINAL]


def test_actions_run_in_the_order_written_and_may_repeat() -> None:
    machine = make(
        state("A", do=[call("X", "1"), call("Y"), call("X", "2"), call("X", "1")], transitions=[to(FINAL)])
    )()
    machine.run_sync()
    assert machine.state.calls == ["X(1)", "Y", "X(2)", "X(1)"]
    assert list(machine.trace.actions) == machine.state.calls


def test_the_first_true_guard_decides_and_later_ones_are_not_asked() -> None:
    tested = make(
        state("A", transitions=[to("B", call("P")), to("C", call("Q")), to("B", call("R")), to("B")]),
        state("B", transitions=[to(FINAL)]),
        state("C", transitions=[to(FINAL)]),
    )
    machine = tested(state=Log(true={"Q", "R"}))
    machine.run_sync()
    assert path_of(machine) == ["A", "C", FINAL]
    assert list(machine.trace.checks) == ["P=false", "Q=true"]


def test_a_guard_used_twice_is_asked_twice() -> None:
    machine = make(state("A", transitions=[to("A", call("P")), to("A", call("P")), to(FINAL)]))()
    machine.run_sync()
    assert list(machine.trace.checks) == ["P=false", "P=false"]


def test_without_a_true_guard_the_default_is_taken_wherever_it_stands() -> None:
    tested = make(
        state("A", transitions=[to("C"), to("B", call("P"))]),
        state("B", transitions=[to(FINAL)]),
        state("C", transitions=[to(FINAL)]),
    )
    yes, no = tested(state=Log(true={"P"})), tested()
    yes.run_sync()
    no.run_sync()
    assert path_of(yes) == ["A", "B", FINAL]
    assert path_of(no) == ["A", "C", FINAL]


def test_of_two_defaults_the_first_counts() -> None:
    machine = make(
        state("A", transitions=[to("B"), to("C")]),
        state("B", transitions=[to(FINAL)]),
        state("C", transitions=[to(FINAL)]),
    )()
    machine.run_sync()
    assert path_of(machine) == ["A", "B", FINAL]


def test_a_failing_action_skips_the_rest_and_is_stored() -> None:
    machine = make(
        state("A", do=[call("X"), call("Y")], transitions=[to("B")]),
        state("B", do=[call("Z")], transitions=[to(FINAL)]),
    )(state=Log(fail={"X": BROKEN}))
    with pytest.raises(ValueError, match="broken"):
        machine.run_sync()
    assert machine.state.calls == ["X", "Z"]


def test_the_guards_are_asked_although_an_action_failed() -> None:
    tested = make(
        state("A", do=[call("X")], transitions=[to("H", call("IsError")), to(FINAL)]),
        state("H", transitions=[to(FINAL)]),
    )
    machine = tested(state=Log(fail={"X": BROKEN}))
    assert machine.settle_sync().error is BROKEN
    assert path_of(machine) == ["A", "H", FINAL]


def test_the_default_is_followed_although_an_action_failed() -> None:
    machine = make(state("A", do=[call("X")], transitions=[to("B")]), state("B", transitions=[to(FINAL)]))(
        state=Log(fail={"X": BROKEN})
    )
    assert machine.settle_sync().error is BROKEN
    assert path_of(machine) == ["A", "B", FINAL]


def test_an_error_set_by_hand_is_stored_and_the_rest_runs() -> None:
    def soft(m: Machine[AppContext, Log]) -> None:
        m.state.error = BROKEN

    machine = make(
        state("A", do=[call("Soft"), call("Y")], transitions=[to("H", call("IsError")), to(FINAL)]),
        state("H", transitions=[to(FINAL)]),
        actions={"Soft": soft},
    )()
    assert machine.settle_sync().error is BROKEN
    assert machine.state.calls == ["Y"]
    assert path_of(machine) == ["A", "H", FINAL]


def test_a_cleared_error_is_not_raised() -> None:
    def handle(m: Machine[AppContext, Log]) -> None:
        m.clear_error()

    machine = make(
        state("A", do=[call("X")], transitions=[to("H")]),
        state("H", do=[call("Handle")], transitions=[to(FINAL)]),
        actions={"Handle": handle},
    )(state=Log(fail={"X": BROKEN}))
    assert machine.run_sync() is machine.state


def test_a_self_transition_runs_the_actions_again() -> None:
    def count(m: Machine[AppContext, Log]) -> None:
        m.state.calls.append("x")
        if len(m.state.calls) == 3:
            m.state.true.add("Enough")

    machine = make(
        state("A", do=[call("Count")], transitions=[to(FINAL, call("Enough")), to("A")]), actions={"Count": count}
    )()
    machine.run_sync()
    assert path_of(machine) == ["A", "A", "A", FINAL]


def test_the_initial_state_may_have_guards_transition_actions_and_actions() -> None:
    tested = make(
        state("Cold", transitions=[to(FINAL)]),
        state("Warm", transitions=[to(FINAL)]),
        initial=[to("Warm", call("IsWarm"), do=[call("Note")]), to("Cold")],
        initial_do=[call("Boot")],
    )
    warm, cold = tested(state=Log(true={"IsWarm"})), tested()
    warm.run_sync()
    cold.run_sync()
    assert (path_of(warm), warm.state.calls) == (["Warm", FINAL], ["Boot", "Note"])
    assert (path_of(cold), cold.state.calls) == (["Cold", FINAL], ["Boot"])


def test_a_transition_action_runs_between_the_states() -> None:
    machine = make(
        state("A", do=[call("X")], transitions=[to("B", call("P"), do=[call("T", "1")])]),
        state("B", do=[call("Y")], transitions=[to(FINAL)]),
    )(state=Log(true={"P"}))
    machine.run_sync()
    assert machine.state.calls == ["X", "T(1)", "Y"]


@pytest.mark.parametrize("default", [(), (to("B"),)])
def test_a_failing_transition_action_leads_to_the_final_state(default: tuple[object, ...]) -> None:
    machine = make(
        state("A", transitions=[to("B", call("P"), do=[call("T")]), to("B", call("Q")), *default]),  # type: ignore[list-item]
        state("B", transitions=[to(FINAL)]),
    )(state=Log(true={"P", "Q"}, fail={"T": BROKEN}))
    assert machine.settle_sync().error is BROKEN
    assert path_of(machine) == ["A", FINAL]
    assert list(machine.trace.checks) == ["P=true"]


def test_stuck_names_the_state_and_the_guard_values() -> None:
    machine = make(state("A", do=[call("X")], transitions=[to(FINAL, call("P", "z")), to("A", call("Q"))]))()
    with pytest.raises(StuckError, match=r"stuck in state A.*P\(z\)=false, Q=false"):
        machine.run_sync()
    assert machine.current == "A"
    assert machine.state.calls == ["X"]
    assert isinstance(machine.state.error, StuckError)


def test_stay_repeats_the_do_actions_and_counts_steps() -> None:
    def count(m: Machine[AppContext, Log]) -> None:
        m.state.calls.append("x")
        if len(m.state.calls) == 3:
            m.state.true.add("P")

    tested = make(
        state("A", entry=[call("In")], do=[call("Count")], transitions=[to(FINAL, call("P"))]),
        actions={"Count": count},
        on_no_transition="stay",
    )
    machine = tested(state=Log(calls=[]))
    machine.run_sync()
    assert path_of(machine) == ["A", FINAL]
    assert list(machine.trace.actions) == ["In", "Count", "Count"]
    assert machine.trace.steps == 2


def test_poll_stays_in_its_state_only() -> None:
    tested = make(
        state("A", do=[call("X")], poll=True, transitions=[to("B", call("P"))]),
        state("B", transitions=[to(FINAL, call("Q"))]),
    )
    with pytest.raises(StepLimitError):
        tested(max_steps=5).run_sync()
    with pytest.raises(StuckError, match="state B"):
        tested(state=Log(true={"P"})).run_sync()


def test_staying_in_the_initial_state_ends_at_the_limit() -> None:
    machine = make(
        state("A", transitions=[to(FINAL)]),
        initial=[to("A", call("P"))],
        initial_do=[call("X")],
        on_no_transition="stay",
    )(max_steps=3)
    with pytest.raises(StepLimitError):
        machine.run_sync()
    assert machine.state.calls == ["X"] * 4
    assert path_of(machine) == []


def test_the_step_limit_names_the_last_ten_states() -> None:
    tested = make(*(state(f"S{n}", transitions=[to(f"S{(n + 1) % 12}")]) for n in range(12)), max_steps=30)
    machine = tested()
    with pytest.raises(StepLimitError) as caught:
        machine.run_sync()
    assert caught.value.last == tuple(f"S{n % 12}" for n in range(20, 30))
    assert len(path_of(machine)) == 30
    assert "S5" in str(caught.value)


def test_the_step_limit_is_settable_per_class_object_and_run() -> None:
    tested = make(state("A", transitions=[to("B")]), state("B", transitions=[to(FINAL)]), max_steps=1)
    with pytest.raises(StepLimitError, match="within 1 steps"):
        tested().run_sync()
    tested(max_steps=2).run_sync()
    tested().run_sync(max_steps=2)
    tested().run_sync(max_steps=None)
    with pytest.raises(StepLimitError):
        tested(max_steps=None).run_sync(max_steps=1)


def test_a_run_without_limit_keeps_a_bounded_trace() -> None:
    machine = make(
        state("A", transitions=[to(FINAL, call("Enough")), to("A")]), guards={"Enough": lambda m: m.trace.steps > 9000}
    )(max_steps=None)
    machine.run_sync()
    assert machine.trace.steps == 9001
    assert len(machine.trace.states) == 4096


def test_a_run_starts_clean_and_keeps_the_other_data() -> None:
    machine = make(state("A", do=[call("X")], transitions=[to(FINAL)]))(state=Log(fail={"X": BROKEN}))
    assert machine.settle_sync().error is BROKEN
    machine.state.fail.clear()
    assert machine.run_sync().calls == ["X", "X"]
    assert machine.state.error is None
    assert machine.current == "[*]"


def test_a_replaced_error_is_chained() -> None:
    first, second = ValueError("first"), KeyError("second")
    machine = make(
        state("A", do=[call("X")], transitions=[to("B")]),
        state("B", do=[call("Y")], transitions=[to(FINAL)]),
    )(state=Log(fail={"X": first, "Y": second}))
    assert machine.settle_sync().error is second
    assert second.__context__ is first


def test_an_error_set_by_hand_over_another_is_chained() -> None:
    first, second = ValueError("first"), KeyError("second")

    def soft(m: Machine[AppContext, Log]) -> None:
        m.state.error = second

    machine = make(
        state("A", do=[call("X")], transitions=[to("B")]),
        state("B", do=[call("Soft")], transitions=[to(FINAL)]),
        actions={"Soft": soft},
    )(state=Log(fail={"X": first}))
    assert machine.settle_sync().error is second
    assert second.__context__ is first


def test_an_action_that_sets_an_error_and_raises_another_loses_none() -> None:
    first, second, third = ValueError("first"), KeyError("second"), OSError("third")

    def soft_and_hard(m: Machine[AppContext, Log]) -> None:
        m.state.error = second
        raise third

    machine = make(
        state("A", do=[call("X")], transitions=[to("B")]),
        state("B", do=[call("Both")], transitions=[to(FINAL)]),
        actions={"Both": soft_and_hard},
    )(state=Log(fail={"X": first}))
    assert machine.settle_sync().error is third
    assert third.__context__ is second
    assert second.__context__ is first


def test_the_same_error_again_is_not_chained_to_itself() -> None:
    problem = ValueError("again")
    machine = make(
        state("A", do=[call("X")], transitions=[to("B")]), state("B", do=[call("X")], transitions=[to(FINAL)])
    )(state=Log(fail={"X": problem}))
    assert machine.settle_sync().error is problem
    assert problem.__context__ is None


def test_a_cause_of_its_own_stays_and_the_replaced_error_follows_it() -> None:
    first, cause, second = ValueError("first"), OSError("cause"), KeyError("second")
    second.__context__ = cause
    machine = make(
        state("A", do=[call("X")], transitions=[to("B")]), state("B", do=[call("Y")], transitions=[to(FINAL)])
    )(state=Log(fail={"X": first, "Y": second}))
    machine.settle_sync()
    assert second.__context__ is cause
    assert cause.__context__ is first


def test_requeue_ends_the_run_without_an_error() -> None:
    machine = make(
        state("A", do=[call("X")], transitions=[to("B")]),
        state("B", do=[call("Y"), call("Z")], exit=[call("Out")], transitions=[to("C")]),
        state("C", transitions=[to(FINAL)]),
    )(state=Log(fail={"X": BROKEN, "Y": Requeue(after=30)}))
    assert machine.run_sync() is machine.state
    assert machine.state.calls == ["X", "Y", "Out"]
    assert path_of(machine) == ["A", "B", FINAL]
    assert machine.requeue is not None
    assert machine.requeue.after.total_seconds() == 30


def test_stop_ends_the_run_without_an_error_or_result() -> None:
    machine = make(state("A", do=[call("X")], transitions=[to("A")]))(state=Log(fail={"X": Stop()}))
    assert machine.run_sync().error is None
    assert machine.requeue is None
    assert path_of(machine) == ["A", FINAL]


@pytest.mark.parametrize("where", ["T", "In", "Out"])
def test_requeue_works_in_transition_entry_and_exit_actions(where: str) -> None:
    machine = make(
        state("A", exit=[call("Out")], transitions=[to("B", do=[call("T")])]),
        state("B", entry=[call("In")], do=[call("Y")], transitions=[to(FINAL)]),
    )(state=Log(fail={where: Requeue(after=1)}))
    machine.run_sync()
    assert machine.requeue is not None
    assert machine.state.calls == {"T": ["Out", "T"], "In": ["Out", "T", "In"], "Out": ["Out"]}[where]
    assert path_of(machine)[-1] == FINAL


def test_permanent_is_an_ordinary_error_of_the_machine() -> None:
    problem = Permanent("never")
    machine = make(
        state("A", do=[call("X")], transitions=[to("H", call("IsError")), to(FINAL)]),
        state("H", transitions=[to(FINAL)]),
    )(state=Log(fail={"X": problem}))
    with pytest.raises(Permanent):
        machine.run_sync()
    assert path_of(machine) == ["A", "H", FINAL]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_is_no_exception_passes_and_leaves_the_machine_where_it_was(kind: type[BaseException]) -> None:
    machine = make(
        state("A", do=[call("X")], transitions=[to("B")]), state("B", do=[call("Y")], transitions=[to(FINAL)])
    )(state=Log(fail={"Y": kind()}))
    with pytest.raises(kind):
        machine.run_sync()
    assert machine.current == "B"
    assert machine.state.error is None
    machine.state.fail.clear()
    machine.run_sync()
    assert path_of(machine) == ["A", "B", FINAL]


def test_an_end_state_ends_its_machine() -> None:
    machine = make(state("A", transitions=[to("Done")]), state("Done", end=True))()
    machine.run_sync()
    assert path_of(machine) == ["A", "Done", FINAL]


def test_transitions_are_told_to_the_hook() -> None:
    seen: list[tuple[str, str, str, str]] = []
    tested = make(
        state("A", transitions=[to("B", call("P", "1"))]),
        state("B", do=[call("X")], transitions=[to("C", error=["ValueError"]), to(FINAL)]),
        state("C", transitions=[to(FINAL)]),
    )
    machine = tested(
        state=Log(true={"P(1)"}, fail={"X": BROKEN}),
        on_transition=lambda edge: seen.append((edge.machine, edge.source.path, edge.target.path, edge.guard)),
    )
    machine.settle_sync()
    assert seen == [
        ("Tested", "[*]", "A", ""),
        ("Tested", "A", "B", "P(1)"),
        ("Tested", "B", "C", "error(ValueError)"),
        ("Tested", "C", "[*]", ""),
    ]
