"""Runs a machine class on a case: guards answer what the case says, actions are recorders."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any

from flyball.fsm.model import Call
from flyball.fsm.run import AppContext, AppState, Machine, StepLimitError, StuckError, machine_type
from flyball.fsm.testing.events import INJECTED, Case, Record

__all__ = ["InjectedError", "random_run", "rehearse"]


_QUIET = logging.getLogger("flyball.fsm.rehearsal")
_QUIET.setLevel(logging.CRITICAL + 1)


class InjectedError(Exception):
    """What an action raises that a case lets fail."""


class _OutOfScript(BaseException):
    """A guard was asked for which the case has no answer; no machine may store this."""


class _Script:
    """The answers and failures of one case, in the order in which the run asks for them."""

    def __init__(self, case: Case) -> None:
        self.checks = iter(case.expected.checks)
        self.failures = dict(case.failures)
        self.calls = 0

    def action(self, name: str) -> Callable[..., None]:
        """A recorder: the trace of the machine holds the calls, this only fails where it must."""

        def recorder(machine: Any, *params: str) -> None:
            number, self.calls = self.calls, self.calls + 1
            error = self.failures.get(number)
            if error is not None:
                raise type(error, (InjectedError,), {})(f"{name} fails")

        return recorder

    def guard(self, name: str) -> Callable[..., bool]:
        """A forced guard: the next answer of the case, if it is one of this guard."""

        def forced(machine: Any, *params: str) -> bool:
            key = Call(name, params).key
            expected, _, value = next(self.checks, "").rpartition("=")
            if expected != key:
                raise _OutOfScript(key)
            if value == "error":
                raise InjectedError(f"{key} fails")
            return value == "true"

        return forced


def rehearse(machine: type[Machine[Any, Any]], case: Case) -> Record:
    """Run a case; what comes back equals `case.expected` if the machine does what the diagram says.

    Of a run without an end only as much is given back as the case expects.
    """
    script = _Script(case)
    steps = len(case.expected.states) if case.open else None
    one = _with(machine, script.action, script.guard)(AppContext(_QUIET), max_steps=steps)
    error: BaseException | None = None
    try:
        one.run_sync()
    except (_OutOfScript, Exception) as problem:
        error = None if case.open else problem
    trace = one.trace
    found = Record(tuple(trace.states), tuple(trace.actions), tuple(trace.checks), _name(error))
    return _cut(found, case.expected) if case.open else found


def random_run(machine: type[Machine[Any, Any]], seed: int, max_steps: int = 200) -> str:
    """Run with recorders and guards that answer at random: how the run ended, `end`, `stuck` or `step-limit`."""
    answers = random.Random(seed)  # noqa: S311 - repeatable, not secret

    def guard(name: str) -> Callable[..., bool]:
        return lambda one, *params: answers.random() < 0.5

    def action(name: str) -> Callable[..., None]:
        return lambda one, *params: None

    one = _with(machine, action, guard)(AppContext(_QUIET), max_steps=max_steps)
    try:
        one.run_sync()
    except StuckError:
        return "stuck"
    except StepLimitError:
        return "step-limit"
    return "end"


def _with(
    machine: type[Machine[Any, Any]], actions: Callable[[str], Any], guards: Callable[[str], Any]
) -> type[Machine[AppContext, AppState]]:
    return machine_type(machine.table.rebound(actions=actions, guards=guards), AppContext, AppState, debug=False)


def _name(error: BaseException | None) -> str | None:
    return None if error is None else type(error).__name__


def _cut(found: Record, expected: Record) -> Record:
    return Record(
        found.states[: len(expected.states)],
        found.actions[: len(expected.actions)],
        found.checks[: len(expected.checks)],
        expected.error,
    )


assert InjectedError.__name__ == INJECTED
