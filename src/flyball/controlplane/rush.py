"""Events in a rush: what is worth telling of one Pod is not worth telling of twenty thousand at once.

As a kubelet does (50 Events a second, and a few at once), whoever moves many Pods says what is normal of some of them
only. Warnings are always said, and what is dropped is dropped before it costs anything.
"""

from __future__ import annotations

from typing import Any, Final

from flyball.clock import Clock
from flyball.controller.events import EventRecorder, EventType

__all__ = ["Rush"]

_BURST: Final = 500.0
_PER_SECOND: Final = 50.0


class Rush:
    """Says things through a recorder, within the limits that the module tells."""

    def __init__(self, recorder: EventRecorder, clock: Clock, reporter: str) -> None:
        """`reporter` is who says them."""
        self._recorder = recorder
        self._clock = clock
        self._reporter = reporter
        self._tokens = _BURST
        self._filled = clock.monotonic()

    def allows(self, count: int = 1) -> bool:
        """Take so many normal Events from what may be said now; False: say none of them."""
        now = self._clock.monotonic()
        self._tokens = min(_BURST, self._tokens + (now - self._filled) * _PER_SECOND)
        self._filled = now
        if self._tokens < count:
            return False
        self._tokens -= count
        return True

    def say(self, about: Any, type_: EventType, reason: str, message: str, action: str = "") -> None:
        """Say it; `allows` was asked before, unless it is a warning."""
        self._recorder.record(about, type_, reason, message, action=action, reporter=self._reporter)
