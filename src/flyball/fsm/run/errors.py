"""What can go wrong with a machine, and the exceptions that steer one from inside an action."""

from __future__ import annotations

from datetime import timedelta

from flyball.errors import FlyballError, TerminalError

__all__ = [
    "BusyError",
    "DeadlineError",
    "Ending",
    "GuardError",
    "MachineError",
    "Permanent",
    "Requeue",
    "StepLimitError",
    "Stop",
    "StuckError",
    "TableError",
    "error_is",
]


class MachineError(FlyballError):
    """The root of the engine's own errors."""


class TableError(MachineError):
    """A table cannot be built: a function is missing, or does not fit the diagram. Raised at import, before any run."""


class BusyError(MachineError):
    """A second run was started on an object while the first is under way."""


class GuardError(MachineError):
    """A guard raised an exception, which is `__cause__`."""

    def __init__(self, guard: str, state: str, cause: object) -> None:
        """Name the guard as the diagram writes it and the state that asked it."""
        self.guard = guard
        self.state = state
        super().__init__(f"guard {guard} failed in state {state}: {cause!r}; a guard must answer true or false")


class StuckError(MachineError):
    """No guard of a state was true and it has no default transition."""

    def __init__(self, machine: str, state: str, values: tuple[str, ...]) -> None:
        """Name the state and the values of the guards asked last (``IsReady=false``)."""
        self.state = state
        self.values = values
        asked = ", ".join(values) or "it has no guards"
        super().__init__(
            f"{machine} is stuck in state {state}: no transition applies ({asked}); "
            "add a transition without a guard, or mark the state <<poll>> to repeat it"
        )


class StepLimitError(MachineError):
    """A run executed more states than allowed."""

    def __init__(self, machine: str, limit: int, last: tuple[str, ...]) -> None:
        """Name the limit and the last states, the newest last."""
        self.limit = limit
        self.last = last
        super().__init__(
            f"{machine} did not end within {limit} steps; last states: {', '.join(last)}; "
            "look for a cycle that no guard leaves, or raise max_steps"
        )


class DeadlineError(MachineError, TimeoutError):
    """A run took longer than its `timeout`."""

    def __init__(self, machine: str, seconds: float, state: str) -> None:
        """Name the deadline and the state it struck in."""
        self.seconds = seconds
        self.state = state
        super().__init__(f"{machine} did not end within {seconds:g} s; it was in state {state}")


class Permanent(TerminalError):
    """Raised by an action: an ordinary error of the machine that must not be retried."""


class Ending(Exception):
    """Raised by an action to end the whole run without an error: `Requeue` or `Stop`. A stored error is cleared."""


class Requeue(Ending):
    """End the run without an error and come back: after a time, or at once."""

    def __init__(self, after: timedelta | float = 0.0) -> None:
        """`after` is a timedelta or a number of seconds."""
        self.after = after if isinstance(after, timedelta) else timedelta(seconds=after)
        super().__init__(f"again in {self.after.total_seconds():g} s")


class Stop(Ending):
    """End the run without an error and with an empty result."""


def error_is(error: BaseException | None, *names: str) -> bool:
    """Whether an error is there and, with names, whether one of them is its class (or a base class) or its API
    reason.
    """
    if error is None:
        return False
    if not names:
        return True
    reason = getattr(error, "reason", None)
    return any(name == reason for name in names) or any(kind.__name__ in names for kind in type(error).__mro__)
