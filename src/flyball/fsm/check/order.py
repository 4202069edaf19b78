"""The transitions of one state among each other: defaults, their place, and what can never be taken."""

from __future__ import annotations

from flyball.fsm.model import Machine, State, Transition, guard_text
from flyball.fsm.parse.codes import Report

__all__ = ["judge_order"]


def judge_order(level: Machine, name: str, report: Report) -> None:
    """Judge the transitions of the initial pseudo state, called `name` here, and of every state of a level."""
    _judge(name, level.initial, report, poll=False, lines=())
    for state in level.states.values():
        _judge(state.name, state.transitions, report, poll=state.poll, lines=_lines(state))


def _lines(state: State) -> tuple[int, ...]:
    return state.lines


def _judge(
    name: str, transitions: tuple[Transition, ...], report: Report, *, poll: bool, lines: tuple[int, ...]
) -> None:
    defaults = [one for one in transitions if one.is_default]
    if transitions and not defaults and not poll:
        report.add(
            "W-not-exhaustive",
            transitions[-1].position,
            f"{name} has no default transition: when no guard is true the run is stuck",
            subject=name,
            remedy=f"add `{name} --> X` without a guard, or declare `state {name} <<poll>>` to wait there",
            lines=lines,
        )
    if defaults:
        _judge_defaults(name, transitions, defaults, report)
    _judge_shadows(name, transitions, report)


def _judge_defaults(name: str, transitions: tuple[Transition, ...], defaults: list[Transition], report: Report) -> None:
    first = transitions.index(defaults[0])
    if any(one.is_guarded for one in transitions[first:]):
        report.add(
            "W-default-not-last",
            defaults[0].position,
            f"the default of {name} stands before guarded transitions; it is considered last all the same",
            subject=name,
            remedy="move it behind them",
        )
    for later in defaults[1:]:
        report.add(
            "W-second-default",
            later.position,
            f"{name} has a default already, in line {defaults[0].position.line}; this one is never taken",
            subject=name,
            remedy="delete it, or give it a guard",
        )


def _judge_shadows(name: str, transitions: tuple[Transition, ...], report: Report) -> None:
    seen: dict[tuple[object, object], Transition] = {}
    for one in transitions:
        if one.is_default:
            continue
        key = (one.guard, one.error)
        earlier = seen.setdefault(key, one)
        if earlier is not one:
            report.add(
                "W-shadowed",
                one.position,
                f"{_what(one)} of {name} stands in line {earlier.position.line} already; this one is never taken",
                subject=name,
                remedy="delete it, or change its guard",
            )


def _what(one: Transition) -> str:
    guard = guard_text(one.guard) if one.guard is not None else ""
    if one.error is None:
        return guard
    names = f"({', '.join(one.error.names)})" if one.error.names else ""
    return f"error{names} {guard}".strip()
