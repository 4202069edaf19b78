"""Machines for tests: actions write down their calls, guards answer from a set of names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from flyball.fsm import model
from flyball.fsm.compile import compile_text
from flyball.fsm.run import AppContext, AppState, Machine, Table, machine_type
from flyball.fsm.run.words import machine as level


@dataclass(slots=True)
class Log(AppState):
    """What happened, in order; fails and answers as told."""

    calls: list[str] = field(default_factory=list[str])
    fail: dict[str, BaseException] = field(default_factory=dict[str, BaseException])
    true: set[str] = field(default_factory=set[str])


LogMachine = Machine[AppContext, Log]


def logged(name: str) -> Callable[..., None]:
    """An action that writes its call down and fails if told to, by name or by use."""

    def act(m: LogMachine, *params: str) -> None:
        key = model.Call(name, params).key
        m.state.calls.append(key)
        problem = m.state.fail.get(key) or m.state.fail.get(name)
        if problem is not None:
            raise problem

    return act


def answered(name: str) -> Callable[..., bool]:
    """A guard that is true if told so, and fails if told so."""

    def ask(m: LogMachine, *params: str) -> bool:
        key = model.Call(name, params).key
        problem = m.state.fail.get(key)
        if problem is not None:
            raise problem
        return m.has_error(*params) if name == "IsError" else key in m.state.true

    return ask


def make(
    *states: model.State,
    initial: Iterable[model.Transition] | None = None,
    initial_do: Iterable[model.Call] = (),
    actions: Mapping[str, Callable[..., Any]] | None = None,
    guards: Mapping[str, Callable[..., Any]] | None = None,
    **options: Any,
) -> type[LogMachine]:
    """A machine class; it starts in the first state unless told otherwise, and logs what functions are not given."""
    begin = [model.Transition("[*]", states[0].name)] if initial is None else initial
    tree = level(begin, states, initial_do)
    names = {call.name for call in action_calls(tree)}
    asked = {call.name for call in guard_calls(tree)}
    table = Table.of(
        "Tested",
        tree,
        actions={name: (actions or {}).get(name) or logged(name) for name in names},
        guards={name: (guards or {}).get(name) or answered(name) for name in asked},
    )
    return machine_type(table, AppContext, Log, **options)


def action_calls(machine: model.Machine) -> Iterator[model.Call]:
    """Every use of an action."""
    for _, one in machine.levels():
        yield from one.initial_do
        for transition in transitions_of(one):
            yield from transition.actions
        for state in one.states.values():
            yield from (*state.entry, *state.do, *state.exit)


def guard_calls(machine: model.Machine) -> Iterator[model.Call]:
    """Every use of a guard."""
    for _, one in machine.levels():
        for transition in transitions_of(one):
            yield from model.guard_calls(transition.guard)


def transitions_of(machine: model.Machine) -> Iterator[model.Transition]:
    """Every transition of one level."""
    yield from machine.initial
    for state in machine.states.values():
        yield from state.transitions


def path_of(machine: LogMachine) -> list[str]:
    """The states of the last run."""
    return list(machine.trace.states)


def diagram(text: str) -> model.Diagram:
    """The diagram of a text that has no errors."""
    found, findings = compile_text(text)
    assert found is not None
    assert [one for one in findings if one.severity == "error"] == []
    return found
