"""The planner reads the diagram, the engine runs it: both must come to the same."""

from __future__ import annotations

import random
from typing import Any

import pytest

from flyball.fsm.model import And, Call, ErrorMatch, GuardExpr, Not, Or, State, Transition
from flyball.fsm.model import Machine as Model
from flyball.fsm.run import AppContext, AppState, Machine, Table, machine_type
from flyball.fsm.testing import diagram_of, plan, random_run, rehearsals, rehearse
from flyball.fsm.testing.plan import Plan


def machine_of(model: Model) -> type[Machine[AppContext, AppState]]:
    """A machine class over functions that do nothing."""
    names: dict[str, set[str]] = {"action": set(), "guard": set()}
    _collect(model, names)

    def nothing(m: Any, *params: str) -> bool:
        return False

    table = Table.of(
        "Random",
        model,
        actions=dict.fromkeys(sorted(names["action"]), nothing),
        guards=dict.fromkeys(sorted(names["guard"]), nothing),
    )
    return machine_type(table, AppContext, AppState)


def _collect(model: Model, names: dict[str, set[str]]) -> None:
    from flyball.fsm.generate.wanted import uses
    from flyball.fsm.model import Diagram

    for use in uses(Diagram("Random", model)):
        names[use.kind].add(use.call.name)


def hold(model: Model) -> Plan:
    """Every rehearsal comes out as planned."""
    machine = machine_of(model)
    found = plan(model)
    for case in (*found.transitions, *found.failures):
        assert rehearse(machine, case) == case.expected, case
    return found


TRAFFIC = """
title Traffic Light
[*] --> Red
Red: SwitchIn(5)
Red --> [*]: IsError
Red --> Yellow
Yellow: SwitchIn(1)
Yellow --> [*]: IsError
Yellow --> Red
"""


def test_every_transition_has_a_case_and_each_ends_as_planned() -> None:
    found = rehearsals(TRAFFIC)

    assert [case.name for case in found.transitions] == [
        "[*] to Red",
        "Red to [*]: IsError",
        "Red to Yellow",
        "Yellow to [*]: IsError",
        "Yellow to Red",
    ]
    case = found.transitions[4]
    assert case.expected.states == ("Red", "Yellow", "Red", "[*]")
    assert case.expected.actions == ("SwitchIn(5)", "SwitchIn(1)", "SwitchIn(5)")
    assert case.expected.checks == ("IsError=false", "IsError=false", "IsError=true")
    assert found.uncovered == []
    hold(diagram_of(TRAFFIC).machine)


def test_a_failing_action_goes_where_a_guard_on_errors_leads() -> None:
    failures = {case.name: case.expected for case in rehearsals(TRAFFIC).failures}

    assert failures["Yellow: do SwitchIn(1) fails"].states == ("Red", "Yellow", "[*]")
    assert failures["Yellow: do SwitchIn(1) fails"].error == "InjectedError"


NESTED = """
title Nested
[*] --> Box: IsWarm::Boot
[*] --> Help
Box: entry / Enter
Box: exit / Leave
Box --> Help: error(NotFound)
Box --> [*]: error [IsGrave]
Box --> [*]: IsDone and not IsError or IsLate
Box --> Box
state Box {
  [*] --> In
  In: do / Work(1)
  In: exit / Tidy
  In --> Deep: IsDeep::Dig
  In --> [*]
  state Deep {
    [*] --> Core
    Core: do / Core
    Core --> Help: error
    Core --> [*]
    Help --> [*]
  }
  Deep --> [*]
}
Help: do / Help
Help --> [*]
"""


def test_nesting_entries_exits_and_error_transitions() -> None:
    found = hold(diagram_of(NESTED).machine)

    names = {case.name: case.expected for case in found.transitions}
    assert "Box to Help: error(NotFound)" in names
    assert names["Box to Help: error(NotFound)"].error == "NotFound"
    assert names["Box/Deep/Core to Help: error"].states == (
        *("Box", "Box/In", "Box/Deep", "Box/Deep/Core", "Box/Deep/Help", "Box/Deep/[*]", "Box/[*]", "[*]"),
    )
    assert found.uncovered == []


def test_a_machine_without_a_way_out_is_rehearsed_as_far_as_it_goes() -> None:
    text = "title Loop\n[*] --> A\nA: Do\nA --> B\nB --> A\nB --> [*]: IsError\n"
    model = diagram_of(text).machine
    found = hold(model)
    assert [case.open for case in found.transitions] == [False, False, False, False]


def test_random_runs_end_in_one_of_three_ways() -> None:
    machine = machine_of(diagram_of(TRAFFIC).machine)
    assert {random_run(machine, seed) for seed in range(20)} == {"end"}
    loop = machine_of(diagram_of("title L\n[*] --> A\nA --> B\nB --> A\nB --> [*]: IsX").machine)
    assert {random_run(loop, seed, max_steps=3) for seed in range(20)} == {"end", "step-limit"}


def test_a_rehearsal_notices_a_machine_that_does_something_else() -> None:
    other = machine_of(diagram_of(TRAFFIC.replace("Yellow --> Red", "Yellow --> [*]")).machine)
    cases = rehearsals(TRAFFIC).transitions
    assert any(rehearse(other, case) != case.expected for case in cases)


# -- random machines ---------------------------------------------------------------------------------------------------


def random_level(rng: random.Random, depth: int, prefix: str) -> Model:
    names = [f"{prefix}{number}" for number in range(rng.randint(1, 4))]
    states: dict[str, State] = {}
    for place, name in enumerate(names):
        transitions: list[Transition] = []
        for _ in range(rng.randint(0, 3)):
            target = rng.choice([*names, "[*]"])
            kind = rng.random()
            guard = random_guard(rng) if kind < 0.8 else None
            error = None
            if kind > 0.6:
                error = ErrorMatch(tuple(rng.sample(["NotFound", "Conflict"], rng.randint(0, 2))))
            elif guard is None:
                continue
            actions = (random_call(rng, "T"),) if rng.random() < 0.4 else ()
            transitions.append(Transition(name, target, guard, actions, error))
        following = names[place + 1] if place + 1 < len(names) else "[*]"
        if rng.random() < 0.9:
            transitions.append(Transition(name, following))
        inner = random_level(rng, depth - 1, f"{prefix}{place}x") if depth and rng.random() < 0.4 else None
        states[name] = State(
            name,
            entry=random_calls(rng, "E"),
            do=random_calls(rng, "D"),
            exit=random_calls(rng, "X"),
            transitions=tuple(transitions),
            inner=inner,
            end=rng.random() < 0.05 and not transitions,
        )
    initial = [Transition("[*]", rng.choice(names), random_guard(rng)) for _ in range(rng.randint(0, 1))]
    return Model(states, (*initial, Transition("[*]", names[0])), random_calls(rng, "I"))


def random_calls(rng: random.Random, prefix: str) -> tuple[Call, ...]:
    return tuple(random_call(rng, prefix) for _ in range(rng.choice([0, 0, 1, 2])))


def random_call(rng: random.Random, prefix: str) -> Call:
    return Call(f"{prefix}{rng.randint(0, 3)}", rng.choice([(), (), ("a",), ("a", "=b")]))


def random_guard(rng: random.Random, depth: int = 2) -> GuardExpr:
    kind = rng.random()
    if depth == 0 or kind < 0.6:
        return Call(rng.choice(["IsError", "IsA", "IsB", "IsC"]), rng.choice([(), ("p",)]))
    if kind < 0.7:
        return Not(random_guard(rng, depth - 1))
    operands = tuple(random_guard(rng, depth - 1) for _ in range(rng.randint(2, 3)))
    return And(operands) if kind < 0.85 else Or(operands)


@pytest.mark.parametrize("start", range(0, 80, 20))
def test_random_machines_run_as_planned(start: int) -> None:
    for seed in range(start, start + 20):
        try:
            hold(random_level(random.Random(seed), 2, "S"))
        except AssertionError as problem:
            raise AssertionError(f"seed {seed}: {problem}") from problem
