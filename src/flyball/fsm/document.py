"""A diagram as plain data: what `flyball fsm model` prints.

::

    {"title": "TrafficLight",
     "initial": [{"to": "Red"}],
     "states": {"Red": {"do": ["SwitchIn(5)"], "transitions": [{"to": "[*]", "guard": "IsError"}, {"to": "Yellow"}]}},
     "errors": [], "warnings": []}
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flyball.fsm.model import And, Call, Diagram, Finding, GuardExpr, Machine, Not, Or, State, Transition

__all__ = ["guard_document", "model_document"]


def model_document(diagram: Diagram | None, findings: Iterable[Finding]) -> dict[str, Any]:
    """The whole document; without a diagram it has no title and no states."""
    told = list(findings)
    machine = diagram.machine if diagram else Machine({})
    return {
        "title": diagram.title if diagram else "",
        **_level(machine),
        "errors": [one.key for one in told if one.severity == "error"],
        "warnings": [one.key for one in told if one.severity == "warning"],
    }


def guard_document(guard: GuardExpr) -> Any:
    """A guard: its key, or `{"and": [...]}`, `{"or": [...]}`, `{"not": ...}`."""
    match guard:
        case Call():
            return guard.key
        case Not(operand):
            return {"not": guard_document(operand)}
        case And(operands):
            return {"and": [guard_document(one) for one in operands]}
        case Or(operands):
            return {"or": [guard_document(one) for one in operands]}


def _level(machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = {"initial": [_transition(one) for one in machine.initial]}
    if machine.initial_do:
        found["initial_do"] = _keys(machine.initial_do)
    found["states"] = {name: _state(state) for name, state in machine.states.items()}
    return found


def _state(state: State) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, calls in (("entry", state.entry), ("do", state.do), ("exit", state.exit)):
        if calls:
            found[kind] = _keys(calls)
    found["transitions"] = [_transition(one) for one in state.transitions]
    if state.inner is not None:
        found.update(_level(state.inner))
    return found


def _transition(transition: Transition) -> dict[str, Any]:
    found: dict[str, Any] = {"to": transition.target}
    if transition.guard is not None:
        found["guard"] = guard_document(transition.guard)
    if transition.action is not None:
        found["action"] = transition.action.key
    if transition.error is not None:
        found["event"] = "error"
    return found


def _keys(calls: tuple[Call, ...]) -> list[str]:
    return [call.key for call in calls]
