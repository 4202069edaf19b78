"""The words of a drawing: what stands in a state and beside a transition, the same in every notation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from flyball.fsm.model import And, Call, Diagram, GuardExpr, Not, Or, State, Transition

__all__ = ["Word", "call_text", "guard_words", "heading", "label_words", "state_words"]

Style = Literal["action", "error", "guard", "hits"]


class Word(NamedTuple):
    """A text and what it is."""

    text: str
    style: Style


def heading(diagram: Diagram) -> str:
    """The title as written, in one line."""
    return " ".join(diagram.heading.split()) or diagram.title or "Untitled"


def call_text(call: Call) -> str:
    """A call as people write it: `Load(a, b)`."""
    return f"{call.name}({', '.join(call.params)})" if call.params else call.name


def guard_words(guard: GuardExpr) -> str:
    """A guard as people write it."""
    match guard:
        case Call():
            return call_text(guard)
        case Not(operand):
            inner = guard_words(operand)
            return f"not ({inner})" if isinstance(operand, And | Or) else f"not {inner}"
        case And(operands):
            return " and ".join(
                f"({guard_words(one)})" if isinstance(one, Or) else guard_words(one) for one in operands
            )
        case Or(operands):
            return " or ".join(guard_words(one) for one in operands)


def label_words(transition: Transition) -> Iterator[Word]:
    """What stands beside a transition: the error it reacts to, its guard, its action."""
    if transition.error is not None:
        names = f"({', '.join(transition.error.names)})" if transition.error.names else ""
        yield Word(f"error{names}", "error")
    if transition.guard is not None:
        guard = guard_words(transition.guard)
        yield Word(f"[{guard}]" if transition.error is not None else guard, "guard")
    if transition.action is not None:
        yield Word(f"/ {call_text(transition.action)}", "action")


def state_words(state: State) -> Iterator[str]:
    """What stands in a state below its name."""
    for kind, calls in (("entry", state.entry), ("do", state.do), ("exit", state.exit)):
        for call in calls:
            yield f"{kind} / {call_text(call)}"
