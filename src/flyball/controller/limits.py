"""Limits on how often one object is looked at, and a count of what happens to it too often."""

from __future__ import annotations

from collections import OrderedDict, deque
from datetime import datetime, timedelta
from typing import Final, Protocol

from flyball.controller.failures import seconds_of
from flyball.controller.request import Request

__all__ = ["RateLimit", "TooOften", "Window"]

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


class TooOften:
    """Whether something happened to an object `limit` times within `period`; it forgets what is older.

        repairs = TooOften(5, timedelta(minutes=5))
        repairs.note(shell.metadata.uid, ctx.now())
        if until := repairs.until(shell.metadata.uid, ctx.now()):
            ...                                             # and look again at that time

    It counts in this process: after a restart it begins anew. So it may tell people of trouble, and decide nothing.
    """

    def __init__(self, limit: int, period: timedelta | float) -> None:
        """`TooOften(5, 300)`: five times in five minutes."""
        if limit < 1:
            raise ValueError(f"TooOften({limit}, ...): it must happen once at least")
        self._limit = limit
        self._period = timedelta(seconds=seconds_of(period))
        self._moments: OrderedDict[str, deque[datetime]] = OrderedDict()

    def note(self, key: str, now: datetime) -> None:
        """It has happened again."""
        self._moments.setdefault(key, deque(maxlen=self._limit)).append(now)
        self._moments.move_to_end(key)
        if len(self._moments) > _REMEMBERED:
            self._moments.popitem(last=False)

    def until(self, key: str, now: datetime) -> datetime | None:
        """Until when it is too often, unless it happens again; None when it is not."""
        moments = self._moments.get(key)
        if moments is None:
            return None
        if moments[-1] + self._period <= now:
            del self._moments[key]
            return None
        end = moments[0] + self._period
        return end if len(moments) == self._limit and end > now else None
