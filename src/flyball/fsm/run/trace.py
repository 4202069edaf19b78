"""What a run did: states, actions, guard values, and durations if asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

__all__ = ["LIMIT", "Outcome", "Trace"]

Result = TypeVar("Result")

LIMIT = 4096
"""How many entries of each list a run without a step limit keeps."""


class Trace:
    """The record of one run, written as it goes; nothing but ready-made texts is appended.

    A run with a step limit keeps everything; one without keeps the last `LIMIT` entries of each list.
    """

    __slots__ = ("actions", "checks", "durations", "states", "steps")

    def __init__(self, limit: int | None = None, *, timed: bool = False) -> None:
        """Start empty; `limit` bounds each list, `timed` records durations."""
        self.states: deque[str] = deque(maxlen=limit)
        """The states entered, in order: inner ones as ``Box/Inner``, ends as ``[*]`` and ``Box/[*]``."""
        self.actions: deque[str] = deque(maxlen=limit)
        """The actions called, in order, with parameters: ``Load(a|b)``."""
        self.checks: deque[str] = deque(maxlen=limit)
        """The guards asked, in order: ``IsReady=true``; each operand of a combined guard that was evaluated."""
        self.durations: deque[tuple[str, float]] | None = deque(maxlen=limit) if timed else None
        """How long each state was the present one, in seconds, when asked for: the entry of a state that a run
        comes back to (a composite) is repeated.
        """
        self.steps = 0
        """How many states were executed, repeats included."""

    def as_dict(self) -> dict[str, Sequence[Any] | int]:
        """The record as plain lists."""
        record: dict[str, Sequence[Any] | int] = {
            "states": list(self.states),
            "actions": list(self.actions),
            "checks": list(self.checks),
            "steps": self.steps,
        }
        if self.durations is not None:
            record["durations"] = [list(entry) for entry in self.durations]
        return record


class Outcome(NamedTuple, Generic[Result]):
    """How a run ended: what it answered, which error is stored, and its record."""

    result: Result
    error: Exception | None
    trace: Trace
