"""Step through a machine before any code exists: scripted guard values and failures, or a person who answers.

It is the real engine over the real table; only the functions behind the names are replaced. What a simulation shows
is what the machine does.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, cast

from flyball.fsm import model
from flyball.fsm.run.compiled import Edge
from flyball.fsm.run.errors import MachineError, StepLimitError, StuckError
from flyball.fsm.run.machine import Machine, OnNoTransition, machine_type
from flyball.fsm.run.state import AppContext, AppState
from flyball.fsm.run.table import Table

__all__ = [
    "Answers",
    "Scenario",
    "ScenarioError",
    "SimulatedFailure",
    "Simulation",
    "result_of",
    "simulate",
    "stage",
    "table_of",
]

IS_ERROR = "IsError"

Values = bool | Sequence[bool]


class ScenarioError(MachineError):
    """A scenario cannot be understood."""


class SimulatedFailure(MachineError):
    """The error of an action that the scenario lets fail."""

    def __init__(self, action: str, reason: str = "") -> None:
        """`reason` is what ``error(...)`` in the diagram may ask for."""
        super().__init__(f"the action {action} failed, as the scenario says")
        self.action = action
        self.reason = reason


class Answers(Protocol):
    """Who decides in a simulation."""

    def guard(self, name: str, params: tuple[str, ...], state: str) -> bool:
        """The value of a guard (never `IsError`, which always means that an error is stored)."""
        ...

    def action(self, name: str, params: tuple[str, ...], state: str) -> Exception | None:
        """The error that an action fails with, or None."""
        ...


@dataclass(frozen=True, slots=True)
class Scenario:
    """Guard values and failing actions for one run.

    A guard is looked up with its parameters first, then by name; a list gives one value per call, the last one
    repeats; what is not listed is false. The numbers of an action's calls start at 1 and count over all its uses
    and parameters.
    """

    guards: Mapping[str, Values] = field(default_factory=dict[str, Values])
    fail: Mapping[str, str | Sequence[int]] = field(default_factory=dict[str, "str | Sequence[int]"])
    policy: OnNoTransition = "error"
    step_limit: int = 1000
    errors: Mapping[str, str] = field(default_factory=dict[str, str])
    """By action: the reason its failure carries, for diagrams with ``error(NotFound)``."""

    @classmethod
    def from_json(cls, data: object) -> Scenario:
        """A scenario as decoded from JSON; `ScenarioError` says what is wrong with it."""
        if not isinstance(data, dict):
            raise ScenarioError("a scenario is an object with guards, fail, policy, step_limit")
        given = cast("dict[str, Any]", data)
        unknown = sorted(set(given) - set(_CHECKS))
        if unknown:
            raise ScenarioError(f"scenario: {', '.join(unknown)} is not known; there are {', '.join(_CHECKS)}")
        for key, (check, wanted) in _CHECKS.items():
            if key in given and not check(given[key]):
                raise ScenarioError(f"scenario: {key} must be {wanted}, not {given[key]!r}")
        return cls(**given)

    def strangers(self, table: Table) -> list[str]:
        """Names in the scenario that the diagram does not use."""
        guards = {call.name for call in _guard_calls(table.machine)} | {
            call.key for call in _guard_calls(table.machine)
        }
        strange = [f"guard {name}" for name in self.guards if name not in guards]
        return strange + [f"action {name}" for name in (*self.fail, *self.errors) if name not in table.actions]


@dataclass(frozen=True, slots=True)
class Simulation:
    """What a simulated run did."""

    path: list[str]
    """The states entered, in order: inner ones as ``Box/Inner``, ends as ``[*]`` and ``Box/[*]``."""
    actions: list[str]
    checks: list[str]
    error: str | None
    """The action whose failure is stored at the end."""
    stop: str | None
    """``stuck:STATE``, ``step-limit`` or None."""

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def simulate(machine: model.Diagram | Table, scenario: Scenario | None = None) -> Simulation:
    """Run a diagram, or the table of a machine class, by a scenario."""
    scenario = Scenario() if scenario is None else scenario
    player = stage(machine, _Script(scenario), policy=scenario.policy, step_limit=scenario.step_limit)
    player.settle_sync()
    return result_of(player)


def stage(
    machine: model.Diagram | Table,
    answers: Answers,
    *,
    policy: OnNoTransition = "error",
    step_limit: int | None = 1000,
    on_transition: Callable[[Edge], None] | None = None,
) -> Machine[AppContext, AppState]:
    """A machine whose guards and actions are decided by `answers`, ready for `run_sync()`."""
    table = machine if isinstance(machine, Table) else table_of(machine)
    played = table.rebound(
        actions=lambda name: _played_action(name, answers), guards=lambda name: _played_guard(name, answers)
    )
    return machine_type(played, AppContext, AppState)(
        AppContext(_SILENT), max_steps=step_limit, on_no_transition=policy, on_transition=on_transition, debug=False
    )


def result_of(player: Machine[AppContext, AppState]) -> Simulation:
    """What the last run of a staged machine did."""
    _, error, trace = player.outcome()
    failure: BaseException | None = error
    while failure is not None and not isinstance(failure, SimulatedFailure):
        failure = failure.__context__
    stop = None
    if isinstance(error, StuckError):
        stop = f"stuck:{error.state}"
    elif isinstance(error, StepLimitError):
        stop = "step-limit"
    return Simulation(
        list(trace.states),
        list(trace.actions),
        list(trace.checks),
        failure.action if failure is not None else None,
        stop,
    )


class _Script:
    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.asked: Counter[str] = Counter()
        self.called: Counter[str] = Counter()

    def guard(self, name: str, params: tuple[str, ...], state: str) -> bool:
        key = model.Call(name, params).key
        if key not in self.scenario.guards:
            key = name
        values = self.scenario.guards.get(key, False)
        if isinstance(values, bool):
            return values
        number = self.asked[key]
        self.asked[key] += 1
        return values[min(number, len(values) - 1)] if values else False

    def action(self, name: str, params: tuple[str, ...], state: str) -> Exception | None:
        self.called[name] += 1
        failing = self.scenario.fail.get(name, ())
        fails = failing == "always" if isinstance(failing, str) else self.called[name] in failing
        return SimulatedFailure(name, self.scenario.errors.get(name, "")) if fails else None


def _played_guard(name: str, answers: Answers) -> Callable[..., bool]:
    def ask(m: Machine[Any, Any], *params: str) -> bool:
        return m.has_error() if name == IS_ERROR else answers.guard(name, params, m.current)

    return ask


def _played_action(name: str, answers: Answers) -> Callable[..., None]:
    def act(m: Machine[Any, Any], *params: str) -> None:
        problem = answers.action(name, params, m.current)
        if problem is not None:
            raise problem

    return act


def table_of(diagram: model.Diagram) -> Table:
    """The table of a diagram without functions: to look at, or to be rebound."""
    actions = {call.name for call in _action_calls(diagram.machine)}
    guards = {call.name for call in _guard_calls(diagram.machine)}
    return Table.of(
        diagram.title,
        diagram.machine,
        actions=dict.fromkeys(sorted(actions), _unplayed),
        guards=dict.fromkeys(sorted(guards), _unplayed),
    )


def _unplayed(*_: object) -> bool:
    raise AssertionError("a simulated machine calls no real function")


def _action_calls(machine: model.Machine) -> Iterator[model.Call]:
    for _, level in machine.levels():
        yield from level.initial_do
        for transition in level.initial:
            yield from transition.actions
        for state in level.states.values():
            yield from (*state.entry, *state.do, *state.exit)
            for transition in state.transitions:
                yield from transition.actions


def _guard_calls(machine: model.Machine) -> Iterator[model.Call]:
    for _, level in machine.levels():
        for transition in level.initial:
            yield from model.guard_calls(transition.guard)
        for state in level.states.values():
            for transition in state.transitions:
                yield from model.guard_calls(transition.guard)


def _is_values(value: object) -> bool:
    return isinstance(value, bool) or (isinstance(value, list) and all(isinstance(one, bool) for one in _items(value)))


def _is_failing(value: object) -> bool:
    return value == "always" or (isinstance(value, list) and all(_is_whole(one) for one in _items(value)))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _items(value: object) -> list[Any]:
    return cast("list[Any]", value)


def _each(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, dict) and all(check(one) for one in cast("dict[str, Any]", value).values())


_CHECKS: dict[str, tuple[Callable[[object], bool], str]] = {
    "guards": (_each(_is_values), "an object of guard names with true, false or a list of them"),
    "fail": (_each(_is_failing), 'an object of action names with "always" or a list of call numbers'),
    "policy": (lambda value: value in ("error", "stay"), '"error" or "stay"'),
    "step_limit": (_is_whole, "a number of steps"),
    "errors": (_each(lambda value: isinstance(value, str)), "an object of action names with reasons"),
}

_SILENT = logging.Logger("flyball.fsm.simulation")
_SILENT.disabled = True
