"""All checks of a diagram, level by level."""

from __future__ import annotations

from collections.abc import Collection

from flyball.fsm.check.graph import judge_graph
from flyball.fsm.check.order import judge_order
from flyball.fsm.model import INITIAL, Call, Diagram, Finding, Machine, Position, State, Transition, guard_calls
from flyball.fsm.parse.codes import Report

__all__ = ["check"]


def check(diagram: Diagram, *, infallible: Collection[str] = ()) -> list[Finding]:
    """The findings about what a diagram means, in the order of its text.

    `infallible` names the actions that are declared to never fail. Where the text is not sound (`Diagram.sound`) its
    graph is not judged: what could not be read may be what is missing.
    """
    report = Report(diagram.file, diagram.source.split("\n"), max(diagram.position.line, 1))
    for path, level in diagram.machine.levels():
        at = _begin(diagram, path)
        name = path[-1] if path else INITIAL
        if diagram.sound:
            judge_graph(level, name, at, report)
        judge_order(level, name, report)
    _judge_errors(diagram.machine, infallible, report, handled=False)
    _judge_composites(diagram.machine, report)
    return report.result()


def _begin(diagram: Diagram, path: tuple[str, ...]) -> Position:
    """Where a level begins: its composite, or the diagram's first line."""
    machine, at = diagram.machine, diagram.position
    for name in path:
        state = machine.states[name]
        at = state.position
        if state.inner is not None:
            machine = state.inner
    return at


def _judge_errors(level: Machine, infallible: Collection[str], report: Report, *, handled: bool) -> None:
    """Warn of actions whose failure nobody looks at; `handled` says that a composite around has an error transition."""
    if level.initial_do:
        here = handled or any(one.error is not None for one in level.initial)
        _judge_error(INITIAL, level.initial_do, level.initial, infallible, report, here, ())
    for state in level.states.values():
        here = handled or any(one.error is not None for one in state.transitions)
        do = () if state.inner is not None else state.do
        _judge_error(
            state.name, (*state.entry, *do, *state.exit), state.transitions, infallible, report, here, state.lines
        )
        if state.inner is not None:
            _judge_errors(state.inner, infallible, report, handled=here)


def _judge_error(
    name: str,
    calls: tuple[Call, ...],
    transitions: tuple[Transition, ...],
    infallible: Collection[str],
    report: Report,
    handled: bool,
    lines: tuple[int, ...],
) -> None:
    if not calls or handled or any(call.name in infallible for call in calls):
        return
    if any(call.name == "IsError" for one in transitions for call in guard_calls(one.guard)):
        return
    failing = ", ".join(dict.fromkeys(call.name for call in calls))
    report.add(
        "W-unhandled-error",
        calls[0].position,
        f"nothing reacts when {failing} of {name} fails",
        subject=name,
        remedy=f"add `{name} --> X: IsError` or `{name} --> X: error`, or declare the action with fails=False",
        lines=lines,
    )


def _judge_composites(level: Machine, report: Report) -> None:
    for _, state in level.walk():
        if state.inner is not None and state.do:
            _composite_do(state, report)


def _composite_do(state: State, report: Report) -> None:
    report.add(
        "W-composite-do",
        state.do[0].position,
        f"the do actions of the composite {state.name} are never run",
        subject=state.name,
        remedy="make them entry actions, or give them a state inside",
        lines=state.lines,
    )
