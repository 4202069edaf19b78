"""Composite states, entry and exit actions, error transitions."""

from __future__ import annotations

import pytest
from tests.support.machines import Log, LogMachine, make, path_of

from flyball.fsm.run import (
    FINAL,
    GuardError,
    Requeue,
    StepLimitError,
    Stop,
    StuckError,
    all_of,
    any_of,
    call,
    not_,
    state,
    to,
)

BROKEN = ValueError("broken")


class Conflict(Exception):
    """An error that is known by its class name."""


class ServerSaid(Exception):
    """An error that is known by its API reason."""

    reason = "NotFound"


# -- composites ----------


def test_a_composite_runs_its_inside_and_then_its_guards() -> None:
    machine = make(
        state(
            "Box",
            initial=[to("In")],
            states=[state("In", do=[call("X")], transitions=[to("Next")]), state("Next", transitions=[to(FINAL)])],
            transitions=[to("B", call("P")), to(FINAL)],
        ),
        state("B", transitions=[to(FINAL)]),
    )(state=Log(true={"P"}))
    machine.run_sync()
    assert path_of(machine) == ["Box", "Box/In", "Box/Next", "Box/[*]", "B", FINAL]


def test_nesting_of_any_depth() -> None:
    one = state("S0", do=[call("X")], transitions=[to(FINAL)])
    for depth in range(1, 9):
        one = state(f"S{depth}", initial=[to(one.name)], states=[one], transitions=[to(FINAL)])
    machine = make(one)()
    machine.run_sync()
    deepest = "/".join(f"S{n}" for n in range(8, -1, -1))
    assert deepest in path_of(machine)
    assert len(path_of(machine)) == 18
    assert machine.state.calls == ["X"]


def test_a_composite_starts_afresh_each_time() -> None:
    machine = make(
        state(
            "Box",
            initial=[to("In")],
            initial_do=[call("Boot")],
            states=[state("In", do=[call("X")], transitions=[to(FINAL)])],
            transitions=[to("Again")],
        ),
        state("Again", transitions=[to(FINAL, call("P")), to("Box")]),
        max_steps=5,
    )()
    with pytest.raises(StepLimitError):
        machine.run_sync()
    assert path_of(machine) == ["Box", "Box/In", "Box/[*]", "Again", "Box", "Box/In", "Box/[*]"]
    assert machine.state.calls == ["Boot", "X", "Boot", "X"]


def test_do_actions_of_a_composite_are_not_run() -> None:
    machine = make(
        state(
            "Box",
            do=[call("Never")],
            initial=[to("In")],
            states=[state("In", transitions=[to(FINAL)])],
            transitions=[to(FINAL)],
        )
    )()
    machine.run_sync()
    assert machine.state.calls == []


def test_an_inner_error_is_the_composites_error() -> None:
    machine = make(
        state(
            "Box",
            initial=[to("In")],
            states=[
                state("In", do=[call("X")], transitions=[to("More")]),
                state("More", do=[call("Y")], transitions=[to(FINAL)]),
            ],
            transitions=[to("H", call("IsError")), to(FINAL)],
        ),
        state("H", transitions=[to(FINAL)]),
    )(state=Log(fail={"X": BROKEN}))
    assert machine.settle_sync().error is BROKEN
    assert path_of(machine) == ["Box", "Box/In", "Box/More", "Box/[*]", "H", FINAL]


def test_a_failing_inner_transition_action_ends_the_composite_only() -> None:
    machine = make(
        state(
            "Box",
            initial=[to("In")],
            states=[state("In", transitions=[to("In", do=[call("T")])])],
            transitions=[to("H", call("IsError")), to(FINAL)],
        ),
        state("H", transitions=[to(FINAL)]),
    )(state=Log(fail={"T": BROKEN}))
    assert machine.settle_sync().error is BROKEN
    assert path_of(machine) == ["Box", "Box/In", "Box/[*]", "H", FINAL]


def test_stuck_inside_ends_the_whole_run_and_names_the_full_path() -> None:
    machine = make(
        state(
            "Box", initial=[to("In")], states=[state("In", transitions=[to(FINAL, call("P"))])], transitions=[to(FINAL)]
        )
    )()
    with pytest.raises(StuckError, match="stuck in state Box/In"):
        machine.run_sync()
    assert machine.current == "Box/In"


def test_inner_steps_count() -> None:
    tested = make(
        state("Box", initial=[to("In")], states=[state("In", transitions=[to(FINAL)])], transitions=[to("B")]),
        state("B", transitions=[to(FINAL)]),
    )
    machine = tested(max_steps=3)
    machine.run_sync()
    assert machine.trace.steps == 3
    with pytest.raises(StepLimitError):
        machine.run_sync(max_steps=2)


def test_a_composite_that_stays_runs_its_inside_again() -> None:
    machine = make(
        state(
            "Box",
            poll=True,
            initial=[to("In")],
            states=[state("In", transitions=[to(FINAL)])],
            transitions=[to(FINAL, call("P"))],
        ),
        max_steps=4,
    )()
    with pytest.raises(StepLimitError):
        machine.run_sync()
    assert path_of(machine) == ["Box", "Box/In", "Box/[*]", "Box/In", "Box/[*]"]


def test_an_end_state_inside_ends_the_composite_only() -> None:
    machine = make(
        state(
            "Box",
            initial=[to("In")],
            states=[state("In", transitions=[to("Done")]), state("Done", end=True)],
            transitions=[to("B")],
        ),
        state("B", transitions=[to(FINAL)]),
    )()
    machine.run_sync()
    assert path_of(machine) == ["Box", "Box/In", "Box/Done", "Box/[*]", "B", FINAL]


def test_one_name_in_several_composites() -> None:
    def box(name: str, then: str, action: str) -> object:
        return state(
            name,
            initial=[to("In")],
            states=[state("In", do=[call(action)], transitions=[to(FINAL)])],
            transitions=[to(then)],
        )

    machine = make(box("One", "Two", "X"), box("Two", FINAL, "Y"))()  # type: ignore[arg-type]
    machine.run_sync()
    assert path_of(machine) == ["One", "One/In", "One/[*]", "Two", "Two/In", "Two/[*]", FINAL]
    assert machine.state.calls == ["X", "Y"]


# -- entry and exit ----------


def test_the_order_of_one_step() -> None:
    machine = make(
        state(
            "A",
            entry=[call("InA")],
            do=[call("A")],
            exit=[call("OutA")],
            transitions=[to("B", call("P"), do=[call("T")])],
        ),
        state("B", entry=[call("InB")], do=[call("B")], exit=[call("OutB")], transitions=[to(FINAL)]),
    )(state=Log(true={"P"}))
    machine.run_sync()
    assert machine.state.calls == ["InA", "A", "OutA", "T", "InB", "B", "OutB"]


def test_entry_and_exit_of_a_composite_enclose_its_inside() -> None:
    machine = make(
        state(
            "Box",
            entry=[call("InBox")],
            exit=[call("OutBox")],
            initial=[to("In")],
            states=[state("In", entry=[call("In")], exit=[call("Out")], transitions=[to(FINAL)])],
            transitions=[to(FINAL, call("P"), do=[call("T")])],
        )
    )(state=Log(true={"P"}))
    machine.run_sync()
    assert machine.state.calls == ["InBox", "In", "Out", "OutBox", "T"]


def test_a_self_transition_leaves_and_enters() -> None:
    machine = make(
        state("A", entry=[call("In")], exit=[call("Out")], transitions=[to(FINAL, call("IsError")), to("A")]),
        max_steps=2,
    )()
    with pytest.raises(StepLimitError):
        machine.run_sync()
    assert machine.state.calls == ["In", "Out", "In", "Out"]


def test_a_failing_entry_action_skips_entry_and_do_and_the_guards_decide() -> None:
    machine = make(
        state(
            "A",
            entry=[call("In"), call("In2")],
            do=[call("X")],
            exit=[call("Out")],
            transitions=[to("H", call("IsError")), to(FINAL)],
        ),
        state("H", transitions=[to(FINAL)]),
    )(state=Log(fail={"In": BROKEN}))
    assert machine.settle_sync().error is BROKEN
    assert machine.state.calls == ["In", "Out"]
    assert path_of(machine) == ["A", "H", FINAL]


def test_a_failing_entry_action_of_a_composite_skips_its_inside() -> None:
    machine = make(
        state(
            "Box",
            entry=[call("In")],
            initial=[to("A")],
            states=[state("A", do=[call("X")], transitions=[to(FINAL)])],
            transitions=[to(FINAL)],
        )
    )(state=Log(fail={"In": BROKEN}))
    machine.settle_sync()
    assert machine.state.calls == ["In"]
    assert path_of(machine) == ["Box", FINAL]


def test_a_failing_exit_action_is_recorded_and_the_transition_continues() -> None:
    machine = make(
        state("A", exit=[call("Out"), call("Out2")], transitions=[to("B", do=[call("T")]), to("H", error=True)]),
        state("B", do=[call("X")], transitions=[to(FINAL)]),
        state("H", transitions=[to(FINAL)]),
    )(state=Log(fail={"Out": BROKEN}))
    assert machine.settle_sync().error is BROKEN
    assert machine.state.calls == ["Out", "T", "X"]
    assert path_of(machine) == ["A", "B", FINAL]


# -- error transitions ----------


def test_an_error_transition_is_taken_at_once() -> None:
    machine = make(
        state(
            "A",
            do=[call("X"), call("Y")],
            exit=[call("Out")],
            transitions=[to("B", call("P")), to("H", error=True, do=[call("T")]), to("B")],
        ),
        state("B", transitions=[to(FINAL)]),
        state("H", do=[call("Help")], transitions=[to(FINAL)]),
    )(state=Log(fail={"X": BROKEN}, true={"P"}))
    assert machine.settle_sync().error is BROKEN
    assert machine.state.calls == ["X", "Out", "T", "Help"]
    assert path_of(machine) == ["A", "H", FINAL]
    assert list(machine.trace.checks) == []


def test_without_a_failure_an_error_transition_is_not_taken() -> None:
    machine = make(
        state("A", do=[call("X")], transitions=[to("H", error=True), to(FINAL)]), state("H", transitions=[to(FINAL)])
    )()
    machine.run_sync()
    assert path_of(machine) == ["A", FINAL]


def test_a_stored_error_alone_takes_no_error_transition() -> None:
    machine = make(
        state("A", do=[call("X")], transitions=[to("B")]),
        state("B", do=[call("Y")], transitions=[to("H", error=True), to(FINAL)]),
        state("H", transitions=[to(FINAL)]),
    )(state=Log(fail={"X": BROKEN}))
    machine.settle_sync()
    assert path_of(machine) == ["A", "B", FINAL]


def test_an_error_transition_of_a_composite_interrupts_it() -> None:
    machine = make(
        state(
            "Box",
            exit=[call("OutBox")],
            initial=[to("Inner")],
            states=[
                state(
                    "Inner",
                    exit=[call("OutInner")],
                    initial=[to("A")],
                    states=[state("A", do=[call("X")], exit=[call("OutA")], transitions=[to(FINAL)])],
                    transitions=[to(FINAL)],
                )
            ],
            transitions=[to("H", error=True, do=[call("T")]), to(FINAL)],
        ),
        state("H", transitions=[to(FINAL)]),
    )(state=Log(fail={"X": BROKEN}))
    assert machine.settle_sync().error is BROKEN
    assert machine.state.calls == ["X", "OutA", "OutInner", "OutBox", "T"]
    assert path_of(machine) == ["Box", "Box/Inner", "Box/Inner/A", "H", FINAL]


def nested(inner_error: object, outer_error: object) -> object:
    """A state in a composite, both with an error transition."""
    return make(
        state(
            "Box",
            initial=[to("A")],
            states=[
                state("A", do=[call("X")], transitions=[to("H", error=inner_error), to(FINAL)]),  # type: ignore[arg-type]
                state("H", transitions=[to(FINAL)]),
            ],
            transitions=[to("Help", error=outer_error), to(FINAL)],  # type: ignore[arg-type]
        ),
        state("Help", transitions=[to(FINAL)]),
    )


@pytest.mark.parametrize(
    ("inner", "outer", "path"),
    [
        (True, True, ["Box", "Box/A", "Box/H", "Box/[*]", FINAL]),
        (["Other"], True, ["Box", "Box/A", "Help", FINAL]),
        (["Other"], ["Another"], ["Box", "Box/A", "Box/[*]", FINAL]),
        (["ValueError"], True, ["Box", "Box/A", "Box/H", "Box/[*]", FINAL]),
    ],
)
def test_the_nearest_error_transition_wins(inner: object, outer: object, path: list[str]) -> None:
    machine = nested(inner, outer)(state=Log(fail={"X": BROKEN}))  # type: ignore[operator]
    assert machine.settle_sync().error is BROKEN
    assert path_of(machine) == path


@pytest.mark.parametrize(
    ("problem", "names", "taken"),
    [
        (Conflict(), ["Conflict"], True),
        (Conflict(), ["NotFound", "Conflict"], True),
        (Conflict(), ["NotFound"], False),
        (ServerSaid(), ["NotFound"], True),
        (ServerSaid(), ["ServerSaid"], True),
        (FileNotFoundError(), ["OSError"], True),
    ],
)
def test_errors_match_by_class_name_or_api_reason(problem: Exception, names: list[str], taken: bool) -> None:
    machine = make(
        state("A", do=[call("X")], transitions=[to("H", error=names), to(FINAL)]), state("H", transitions=[to(FINAL)])
    )(state=Log(fail={"X": problem}))
    machine.settle_sync()
    assert ("H" in path_of(machine)) is taken


def test_a_guard_restricts_an_error_transition() -> None:
    tested = make(
        state(
            "A",
            do=[call("X")],
            transitions=[to("H", call("IsError", "Conflict"), error=True), to("G", call("P"), error=True), to("B")],
        ),
        state("B", transitions=[to(FINAL)]),
        state("G", transitions=[to(FINAL)]),
        state("H", transitions=[to(FINAL)]),
    )
    conflict = tested(state=Log(fail={"X": Conflict()}))
    conflict.settle_sync()
    assert path_of(conflict) == ["A", "H", FINAL]
    other = tested(state=Log(fail={"X": BROKEN}, true={"P"}))
    other.settle_sync()
    assert path_of(other) == ["A", "G", FINAL]
    none = tested(state=Log(fail={"X": BROKEN}))
    none.settle_sync()
    assert path_of(none) == ["A", "B", FINAL]
    assert list(none.trace.checks) == ["IsError(Conflict)=false", "P=false"]


def test_a_failing_entry_action_takes_the_error_transition() -> None:
    machine = make(
        state("A", entry=[call("In")], do=[call("X")], transitions=[to("H", error=True), to(FINAL)]),
        state("H", transitions=[to(FINAL)]),
    )(state=Log(fail={"In": BROKEN}))
    machine.settle_sync()
    assert machine.state.calls == ["In"]
    assert path_of(machine) == ["A", "H", FINAL]


def test_a_failing_transition_action_takes_the_error_transition_and_leaves_once() -> None:
    machine = make(
        state("A", exit=[call("Out")], transitions=[to("H", error=True), to("B", do=[call("T")])]),
        state("B", transitions=[to(FINAL)]),
        state("H", transitions=[to(FINAL)]),
    )(state=Log(fail={"T": BROKEN}))
    assert machine.settle_sync().error is BROKEN
    assert machine.state.calls == ["Out", "T"]
    assert path_of(machine) == ["A", "H", FINAL]


def test_a_failing_action_of_an_error_transition_goes_outwards_and_ends() -> None:
    first, second = ValueError("first"), ValueError("second")
    machine = make(
        state(
            "Box",
            exit=[call("OutBox")],
            initial=[to("A")],
            states=[state("A", do=[call("X")], transitions=[to("A", error=True, do=[call("T")])])],
            transitions=[to("H", error=True), to(FINAL)],
        ),
        state("H", transitions=[to(FINAL)]),
    )(state=Log(fail={"X": first, "T": second}))
    assert machine.settle_sync().error is second
    assert second.__context__ is first
    assert machine.state.calls == ["X", "T", "OutBox"]
    assert path_of(machine) == ["Box", "Box/A", "H", FINAL]


def test_the_initial_state_may_have_an_error_transition() -> None:
    machine = make(
        state("A", transitions=[to(FINAL)]),
        state("H", transitions=[to(FINAL)]),
        initial=[to("H", error=True), to("A")],
        initial_do=[call("Boot")],
    )(state=Log(fail={"Boot": BROKEN}))
    machine.settle_sync()
    assert path_of(machine) == ["H", FINAL]


@pytest.mark.parametrize("ending", [Requeue(after=5), Stop()])
def test_requeue_inside_a_composite_ends_the_whole_run(ending: Exception) -> None:
    machine = make(
        state(
            "Box",
            exit=[call("OutBox")],
            initial=[to("A")],
            states=[state("A", do=[call("X")], exit=[call("OutA")], transitions=[to("A", error=True), to(FINAL)])],
            transitions=[to("Box", error=True), to("Box")],
        )
    )(state=Log(fail={"X": ending}))
    machine.run_sync()
    assert machine.state.calls == ["X", "OutA", "OutBox"]
    assert path_of(machine) == ["Box", "Box/A", FINAL]


# -- guards ----------


def test_a_failing_guard_is_an_error_and_no_further_guard_is_asked() -> None:
    machine = make(
        state("A", exit=[call("Out")], transitions=[to("B", call("P")), to("B", call("Q")), to("B")]),
        state("B", transitions=[to(FINAL)]),
    )(state=Log(fail={"P": BROKEN}, true={"Q"}))
    error = machine.settle_sync().error
    assert isinstance(error, GuardError)
    assert (error.guard, error.state, error.__cause__) == ("P", "A", BROKEN)
    assert list(machine.trace.checks) == ["P=error"]
    assert path_of(machine) == ["A", FINAL]
    assert machine.state.calls == ["Out"]


def test_a_failing_guard_takes_the_error_transition() -> None:
    machine = make(
        state("A", transitions=[to("B", call("P")), to("H", error=["GuardError"]), to("B")]),
        state("B", transitions=[to(FINAL)]),
        state("H", transitions=[to(FINAL)]),
    )(state=Log(fail={"P": BROKEN}))
    assert isinstance(machine.settle_sync().error, GuardError)
    assert path_of(machine) == ["A", "H", FINAL]


def test_a_failing_guard_inside_ends_the_composite_or_takes_its_error_transition() -> None:
    def box(*more: object) -> object:
        return make(
            state(
                "Box",
                initial=[to("A")],
                states=[state("A", transitions=[to("A", call("P")), to("A")])],
                transitions=[*more, to("B")],  # type: ignore[list-item]
            ),
            state("B", transitions=[to(FINAL)]),
            state("H", transitions=[to(FINAL)]),
        )(state=Log(fail={"P": BROKEN}))

    plain, guarded = box(), box(to("H", error=True))
    plain.settle_sync()  # type: ignore[attr-defined]
    guarded.settle_sync()  # type: ignore[attr-defined]
    assert path_of(plain) == ["Box", "Box/A", "Box/[*]", "B", FINAL]  # type: ignore[arg-type]
    assert path_of(guarded) == ["Box", "Box/A", "H", FINAL]  # type: ignore[arg-type]


def test_a_guard_of_an_error_transition_that_fails_passes_the_error_outwards() -> None:
    machine = make(
        state("A", do=[call("X")], transitions=[to("H", call("P"), error=True), to("B")]),
        state("B", transitions=[to(FINAL)]),
        state("H", transitions=[to(FINAL)]),
    )(state=Log(fail={"X": BROKEN, "P": OSError("guard")}))
    error = machine.settle_sync().error
    assert isinstance(error, GuardError)
    assert path_of(machine) == ["A", FINAL]


def test_the_failing_guard_is_what_composites_around_react_to() -> None:
    def box(*names: str) -> LogMachine:
        return make(
            state(
                "Box",
                initial=[to("A")],
                states=[state("A", do=[call("X")], transitions=[to("A", call("P"), error=True), to(FINAL)])],
                transitions=[to("H", error=names), to(FINAL)],
            ),
            state("H", transitions=[to(FINAL)]),
        )(state=Log(fail={"X": BROKEN, "P": OSError("guard")}))

    by_guard, by_action = box("GuardError"), box("ValueError")
    by_guard.settle_sync()
    by_action.settle_sync()
    assert path_of(by_guard) == ["Box", "Box/A", "H", FINAL]
    assert path_of(by_action) == ["Box", "Box/A", "Box/[*]", FINAL]


@pytest.mark.parametrize(
    ("true", "checks", "taken"),
    [
        ({"A", "B"}, ["A=true", "B=true"], True),
        ({"A"}, ["A=true", "B=false", "C=false", "D=false"], True),
        ({"A", "D"}, ["A=true", "B=false", "C=false", "D=true"], False),
        (set[str](), ["A=false", "C=false", "D=false"], True),
        ({"C", "D"}, ["A=false", "C=true"], True),
    ],
)
def test_combined_guards_short_circuit(true: set[str], checks: list[str], taken: bool) -> None:
    """(A and B) or C or not D."""
    guard = any_of(all_of(call("A"), call("B")), call("C"), not_(call("D")))
    machine = make(state("S", transitions=[to("Yes", guard), to(FINAL)]), state("Yes", transitions=[to(FINAL)]))(
        state=Log(true=true)
    )
    machine.run_sync()
    assert list(machine.trace.checks) == checks
    assert ("Yes" in path_of(machine)) is taken
