"""What a run is expected to do, event by event, and the cases that are made of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from flyball.fsm.model import And, Call, GuardExpr, Not, Or

__all__ = ["INJECTED", "Case", "Event", "Events", "Record", "answers", "calls", "case_of", "fail", "matches", "state"]

INJECTED = "InjectedError"
"""The class name of the error that a failing action raises, unless an error transition asks for another."""


class Event(NamedTuple):
    """One thing that a run does: it enters a state, calls an action (which may fail), asks a guard."""

    kind: Literal["state", "action", "check"]
    text: str
    error: str = ""
    """The class name of the error that the action raises; empty when it succeeds."""


Events: TypeAlias = tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """What a run did, as its trace says it."""

    states: tuple[str, ...]
    actions: tuple[str, ...]
    checks: tuple[str, ...]
    error: str | None = None
    """The class name of the error that is stored at the end."""


@dataclass(frozen=True, slots=True)
class Case:
    """One rehearsal: the answers of the guards, the actions that fail, and what must come of it."""

    name: str
    expected: Record
    failures: tuple[tuple[int, str], ...] = field(default=())
    """Which calls of actions fail, counted from 0, and with which error."""
    open: bool = False
    """Whether the run has no end that the diagram leads to; only its beginning is compared."""

    def __str__(self) -> str:
        return self.name


def case_of(name: str, events: Events, *, open: bool = False) -> Case:
    """Gather events by kind."""
    actions = [event for event in events if event.kind == "action"]
    failures = tuple((number, event.error) for number, event in enumerate(actions) if event.error)
    checks = tuple(event.text for event in events if event.kind == "check")
    failed = [event.error or "GuardError" for event in events if event.error or _is_guard_error(event)]
    error = failed[-1] if failed else None
    states = tuple(event.text for event in events if event.kind == "state")
    record = Record(states, tuple(event.text for event in actions), checks, error)
    return Case(name, record, failures, open)


def _is_guard_error(event: Event) -> bool:
    return event.kind == "check" and event.text.endswith("=error")


def state(path: Iterable[str]) -> Event:
    """A state is entered."""
    return Event("state", "/".join(path))


def calls(actions: Iterable[Call]) -> Events:
    """Actions are called and succeed."""
    return tuple(Event("action", action.key) for action in actions)


def fail(action: Call, error: str = INJECTED) -> Event:
    """An action is called and fails."""
    return Event("action", action.key, error)


def answers(guard: GuardExpr | None, value: bool) -> Events:
    """The calls that a guard needs, with their answers, to be true or false: as few as possible."""
    match guard:
        case None:
            return ()
        case Call():
            return (Event("check", f"{guard.key}={'true' if value else 'false'}"),)
        case Not(operand):
            return answers(operand, not value)
        case And(operands):
            return sum((answers(one, True) for one in operands), ()) if value else answers(operands[0], False)
        case Or(operands):
            return answers(operands[0], True) if value else sum((answers(one, False) for one in operands), ())


def matches(names: tuple[str, ...], error: str) -> bool:
    """Whether an error transition with these names reacts to an injected error."""
    return not names or bool(set(names) & {error, INJECTED, "Exception", "BaseException", "object"})
