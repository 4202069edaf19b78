"""One clock for everything that waits or stamps: queues, back-off, leases, conditions, the embedded cluster.

Code that needs the time takes a `Clock`; programs give it a `RealClock`, tests a `ManualClock` that they turn by hand.
`flyball up` has a `TurnableClock`: it goes by itself, and can be turned forward.

What happens again and again and may as well happen late (a look, a heartbeat, a bookmark) waits by `doze`, so that
nobody who turns a clock by a month has to pass a million of such moments.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Protocol

__all__ = ["Clock", "ManualClock", "RealClock", "TurnableClock", "doze"]


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
        self._dozers: list[tuple[float, int, asyncio.Future[None]]] = []

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
        await self._wait(seconds, self._sleepers)

    async def doze(self, seconds: float) -> None:
        """Wait until the clock has been turned that far, and has come to a halt: nobody stops it for who dozes."""
        await self._wait(seconds, self._dozers)

    async def _wait(self, seconds: float, among: list[tuple[float, int, asyncio.Future[None]]]) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(among, (self._elapsed + seconds, next(self._order), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Turn the clock; every sleeper on the way wakes at its own moment and runs before the clock goes on.

        Who dozes wakes at the end of the turn.
        """
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
        self._wake(self._dozers)
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
        self._wake(self._sleepers)
        self._wake(self._dozers)

    def _wake(self, among: list[tuple[float, int, asyncio.Future[None]]]) -> None:
        while among and among[0][0] <= self._elapsed:
            _, _, future = heapq.heappop(among)
            if not future.done():
                future.set_result(None)

    async def settle(self) -> None:
        """Let everybody run who can run without the clock."""
        for _ in range(self._rounds):
            await asyncio.sleep(0)


class TurnableClock:
    """The clock of the machine, and what somebody has turned it forward by.

    `await clock.advance(s)` turns it: sleepers on the way wake at their own moments, in order, and what they start in
    this event loop runs before the clock goes on, as with a `ManualClock`. Who is in another process sees the hands
    move quickly, and nothing waits for it.

    Belongs to one event loop; `now()` and `monotonic()` may be asked from any thread.
    """

    def __init__(self, *, rounds: int = 200) -> None:
        """Begin as the machine's clock; when it is turned, others get `rounds` turns of the event loop at each step."""
        self._offset = 0.0
        self._rounds = rounds
        self._order = count()
        self._sleepers: dict[int, tuple[float, asyncio.Future[None]]] = {}
        self._dozers: dict[int, tuple[float, asyncio.Future[None]]] = {}
        self._turning = asyncio.Lock()

    def now(self) -> datetime:
        """The time of day that the hands show, in UTC."""
        return datetime.now(UTC) + timedelta(seconds=self._offset)

    def monotonic(self) -> float:
        """Seconds of the machine's monotonic clock, and those by which this one was turned."""
        return time.monotonic() + self._offset

    @property
    def turned(self) -> float:
        """Seconds by which the clock was turned since it was made."""
        return self._offset

    async def sleep(self, seconds: float) -> None:
        """Wait until so much time has passed, or the clock has been turned that far."""
        await self._wait(seconds, self._sleepers)

    async def doze(self, seconds: float) -> None:
        """The same for what may happen late: while the clock is being turned, nobody stops it for who dozes."""
        await self._wait(seconds, self._dozers)

    async def _wait(self, seconds: float, among: dict[int, tuple[float, asyncio.Future[None]]]) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        number = next(self._order)
        among[number] = (self.monotonic() + seconds, future)
        timer = loop.call_later(seconds, _finish, future)
        try:
            await future
        finally:
            timer.cancel()
            del among[number]

    async def advance(self, seconds: float) -> None:
        """Turn the clock; who asks while it is being turned waits, and turns it further."""
        _forward(seconds)
        async with self._turning:
            target = self._offset + seconds
            await self._settle()
            while True:
                due = min(((moment, number) for number, (moment, _) in self._sleepers.items()), default=None)
                if due is None or due[0] > time.monotonic() + target:
                    break
                moment, number = due
                self._offset = min(max(self._offset, moment - time.monotonic()), target)
                _finish(self._sleepers[number][1])
                await self._settle()
            self._offset = target
            for moment, future in list(self._dozers.values()):
                if moment <= self.monotonic():
                    _finish(future)
            await self._settle()

    async def _settle(self) -> None:
        for _ in range(self._rounds):
            await asyncio.sleep(0)


async def doze(clock: Clock, seconds: float) -> None:
    """Wait for so long, or somewhat longer: a clock that is turned by hand goes past the moment without a halt."""
    if isinstance(clock, ManualClock | TurnableClock):
        await clock.doze(seconds)
    else:
        await clock.sleep(seconds)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _forward(seconds: float) -> None:
    if seconds < 0:
        raise ValueError(f"a clock goes only forward, not by {seconds:g} s")
