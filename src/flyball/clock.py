"""One clock for everything that waits or stamps: queues, back-off, leases, conditions, the embedded cluster.

Code that needs the time takes a `Clock`; programs give it a `RealClock`, tests a `ManualClock` that they turn by hand.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Protocol

__all__ = ["Clock", "ManualClock", "RealClock"]


class Clock(Protocol):
    """What time it is, and how to wait.

    Guarantees: `now()` is in UTC and may jump (people set clocks); `monotonic()` never goes back; `sleep()` ends at
    or after the moment asked for, and sleepers wake in the order of their moments.
    """

    def now(self) -> datetime:
        """The time of day, in UTC, for stamps."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment, for measuring."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; zero or less only lets others run."""
        ...


class RealClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds of the machine's monotonic clock, the same that asyncio's timers use."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait that long."""
        await asyncio.sleep(max(0.0, seconds))


class ManualClock:
    """A clock that stands still until somebody turns it.

    `await clock.advance(s)` goes from one sleeper's moment to the next and lets everybody run in between, so a loop
    that sleeps a second at a time wakes ten times in `advance(10)`, each time at its own moment. `jump(s)` sets the
    hands at once, as after a suspended machine: who should have woken on the way wakes late, in order.

    Belongs to one event loop; not thread-safe.
    """

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC), *, rounds: int = 25) -> None:
        """Begin at `start`; after each wake-up others get `rounds` turns of the event loop."""
        self._start = start
        self._elapsed = 0.0
        self._rounds = rounds
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        """The time of day that the hands show."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Seconds by which the clock was turned since it was made."""
        return self._elapsed

    @property
    def sleepers(self) -> int:
        """How many are asleep now."""
        return sum(1 for _, _, future in self._sleepers if not future.done())

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has been turned that far."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Turn the clock; every sleeper on the way wakes at its own moment and runs before the clock goes on."""
        _forward(seconds)
        target = self._elapsed + seconds
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= target:
            moment, _, future = heapq.heappop(self._sleepers)
            if future.done():
                continue
            self._elapsed = max(self._elapsed, moment)
            future.set_result(None)
            await self.settle()
        self._elapsed = target
        await self.settle()

    async def advance_to_next(self) -> float:
        """Turn the clock to the next sleeper's moment and return by how much; 0.0 when nobody sleeps."""
        await self.settle()
        moments = [moment for moment, _, future in self._sleepers if not future.done()]
        if not moments:
            return 0.0
        step = max(0.0, min(moments) - self._elapsed)
        await self.advance(step)
        return step

    def jump(self, seconds: float) -> None:
        """Set the hands forward at once; sleepers whose moment has passed wake when the loop comes to them."""
        _forward(seconds)
        self._elapsed += seconds
        while self._sleepers and self._sleepers[0][0] <= self._elapsed:
            _, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)

    async def settle(self) -> None:
        """Let everybody run who can run without the clock."""
        for _ in range(self._rounds):
            await asyncio.sleep(0)


def _forward(seconds: float) -> None:
    if seconds < 0:
        raise ValueError(f"a clock goes only forward, not by {seconds:g} s")
