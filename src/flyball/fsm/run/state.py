"""What a machine carries: the base classes of contexts and extended states.

A package's own classes derive from these and are dataclasses too; new fields of the bases reach them without an edit.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from flyball.clock import Clock, RealClock
from flyball.fsm.run.errors import Ending

__all__ = ["AppContext", "AppState", "ResultState"]

Answer = TypeVar("Answer")

_LOGGER = logging.getLogger("flyball.fsm")
_CLOCK = RealClock()


@dataclass(slots=True)
class AppContext:
    """The things actions need to work. A subclass adds clients and the like."""

    logger: logging.Logger | logging.LoggerAdapter[Any] = _LOGGER
    clock: Clock = field(default=_CLOCK, kw_only=True)


@dataclass(slots=True)
class AppState:
    """The data of a machine: written by actions, only read by guards. A subclass adds its own."""

    error: Exception | None = None
    """The stored error: a failed action's, or what an action put here. Empty at the start of each run."""

    def begin(self) -> None:
        """Empty what a run starts without; everything else stays."""
        self.error = None


@dataclass(slots=True)
class ResultState(AppState, Generic[Answer]):
    """An extended state whose run answers with a result instead of itself."""

    def answer(self) -> Answer:
        """What the run returns."""
        raise NotImplementedError

    def end(self, ending: Ending) -> None:
        """Take the result of a `Requeue` or `Stop`."""
        raise NotImplementedError
