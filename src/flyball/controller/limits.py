"""Limits on how often one object is looked at."""

from __future__ import annotations

from collections import OrderedDict, deque
from datetime import timedelta
from typing import Final, Protocol

from flyball.controller.failures import seconds_of
from flyball.controller.request import Request

__all__ = ["RateLimit", "Window"]

_REMEMBERED: Final = 50_000


class RateLimit(Protocol):
    """Asked once for each event that would run a key."""

    def delay(self, request: Request, now: float) -> float:
        """Return how many seconds the key has to wait; zero for none."""
        ...


class Window:
    """At most `limit` runs of one object within `period`; what comes earlier waits until it may."""

    def __init__(self, limit: int, period: timedelta | float) -> None:
        """`Window(3, 60)`: three times a minute."""
        if limit < 1:
            raise ValueError(f"Window({limit}, ...): at least one run must be possible")
        self._limit = limit
        self._period = seconds_of(period)
        self._runs: OrderedDict[Request, deque[float]] = OrderedDict()

    def delay(self, request: Request, now: float) -> float:
        """Take the next free moment of the object."""
        runs = self._runs.setdefault(request, deque(maxlen=self._limit))
        self._runs.move_to_end(request)
        if len(self._runs) > _REMEMBERED:
            self._runs.popitem(last=False)
        if runs and runs[-1] > now:
            return runs[-1] - now  # it waits already, and this event runs with it
        moment = now if len(runs) < self._limit else max(now, runs[0] + self._period)
        runs.append(moment)
        return moment - now
