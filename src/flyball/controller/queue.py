"""The work queue: which key is looked at next.

What it guarantees:

- A key that waits is in the queue once, however often it was added.
- A key that is being worked on is never handed out a second time. Added meanwhile, it runs again, once, afterwards.
- A delayed key comes when its time has come, or earlier when it is added without delay. Of several delays the earliest
  counts. A delay is kept per key, so it can be taken back.
- Failures count per key: `fail` adds the key again after a time that doubles with each failure in a row, from
  `Backoff.first` to `Backoff.limit`. An event for a key in back-off runs it at once and leaves the count; `forget`
  resets it.
- Keys come in the order in which they were added. Priority moves a key forward or back by seconds of waiting, so a key
  of low priority is overtaken by others for that long, and never for ever.
- After `shut_down` nothing is handed out that was not already waiting, and `get` ends when nothing waits.

What it does not: it knows no objects, loses its content with the process, and belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import count
from typing import Final, Generic, Protocol, TypeVar

from flyball.clock import Clock, RealClock

__all__ = ["LOW", "NORMAL", "Backoff", "Item", "Queue", "QueueClosed", "QueueMetrics"]

K = TypeVar("K", bound=Hashable)

NORMAL: Final = 0
LOW: Final = -100
"""The priority of the first list, and of resyncs: what people change meanwhile comes first."""

SECONDS_PER_PRIORITY: Final = 0.05
"""What one step of priority is worth: a key of LOW is overtaken for five seconds."""


class QueueClosed(Exception):
    """Nothing will come any more."""


class QueueMetrics(Protocol):
    """Told what happens; the names of the metrics are the business of who listens."""

    def added(self, depth: int) -> None:
        """A key was added."""
        ...

    def taken(self, depth: int, waited: float) -> None:
        """A key was handed out after so many seconds."""
        ...

    def finished(self, worked: float) -> None:
        """A key was worked on for so many seconds."""
        ...

    def retried(self) -> None:
        """A key was put into back-off."""
        ...


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a failing key waits: doubling from `first` to `limit` seconds."""

    first: float = 0.005
    limit: float = 1000.0

    def delay(self, failures: int) -> float:
        """Return the wait after so many failures in a row (1 for the first)."""
        return min(self.first * 2.0 ** min(failures - 1, 62), self.limit)


@dataclass(slots=True)
class Item(Generic[K]):
    """A key that was handed out, and why it was added: for people, not for decisions."""

    key: K
    reasons: tuple[str, ...] = ()
    waited: float = 0.0


@dataclass(slots=True)
class _Waiting:
    order: float
    since: float
    reasons: dict[str, None] = field(default_factory=dict[str, None])


class Queue(Generic[K]):
    """Keys that wait for a worker; see the module for the contract."""

    def __init__(
        self, *, clock: Clock | None = None, backoff: Backoff | None = None, metrics: QueueMetrics | None = None
    ) -> None:
        """Start empty."""
        self._clock: Clock = clock if clock is not None else RealClock()
        self._backoff = backoff if backoff is not None else Backoff()
        self._metrics = metrics
        self._waiting: dict[K, _Waiting] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._working: dict[K, float] = {}
        self._again: dict[K, _Waiting] = {}
        self._delayed: dict[K, float] = {}
        self._delays: list[tuple[float, int, K]] = []
        self._why: dict[K, str] = {}
        self._failures: dict[K, int] = {}
        self._count = count()
        self._getters: list[asyncio.Future[None]] = []
        self._bell: asyncio.Task[None] | None = None
        self._closed = False

    def __len__(self) -> int:
        """Tell how many keys wait for a worker."""
        return len(self._waiting)

    @property
    def delayed(self) -> int:
        """How many keys wait for their time."""
        return len(self._delayed)

    def is_working(self, key: K) -> bool:
        """Tell whether a key is being worked on."""
        return key in self._working

    @property
    def working(self) -> list[K]:
        """The keys that are being worked on."""
        return list(self._working)

    def longest_running(self) -> float:
        """Return for how many seconds the oldest pass has been running."""
        now = self._clock.monotonic()
        return max((now - since for since in self._working.values()), default=0.0)

    def unfinished(self) -> float:
        """Return the seconds of all passes that are running now, added up."""
        now = self._clock.monotonic()
        return sum(now - since for since in self._working.values())

    # Adding

    def add(self, key: K, *, priority: int = NORMAL, reason: str = "") -> None:
        """Let a key be looked at as soon as a worker is free. A delay of it is over with that."""
        if self._closed:
            return
        now = self._clock.monotonic()
        self._delayed.pop(key, None)
        why = self._why.pop(key, "")
        place = self._again if key in self._working else self._waiting
        order = now - priority * SECONDS_PER_PRIORITY
        waiting = place.get(key)
        if waiting is None:
            waiting = place[key] = _Waiting(order, now)
            if place is self._waiting:
                self._push(key, order)
        elif order < waiting.order:
            waiting.order = order
            if place is self._waiting:
                self._push(key, order)
        for one in (why, reason):
            if one:
                waiting.reasons[one] = None

    def _push(self, key: K, order: float) -> None:
        heapq.heappush(self._heap, (order, next(self._count), key))
        if self._metrics is not None:
            self._metrics.added(len(self._waiting))
        self._wake()

    def add_after(self, key: K, seconds: float, *, reason: str = "") -> None:
        """Let a key be looked at after a time; at once when the time is zero or less."""
        if self._closed:
            return
        if seconds <= 0:
            self.add(key, reason=reason)
            return
        due = self._clock.monotonic() + seconds
        if key in self._waiting or key in self._again or self._delayed.get(key, due) < due:
            return  # it runs earlier anyway
        self._delayed[key] = due
        if reason:
            self._why[key] = reason
        heapq.heappush(self._delays, (due, next(self._count), key))
        self._set_bell()

    def cancel_delay(self, key: K) -> None:
        """Take back the delayed run of a key; one that waits already stays."""
        self._delayed.pop(key, None)
        self._why.pop(key, None)

    # Working

    async def get(self) -> Item[K]:
        """Wait for the next key and take it; it must be given back with `done`. Raises `QueueClosed` at the end."""
        while True:
            item = self._take()
            if item is not None:
                return item
            if self._closed:
                raise QueueClosed
            getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                if getter in self._getters:
                    self._getters.remove(getter)
                else:
                    self._wake()  # this one was woken and gives up: somebody else shall look
                raise

    def _take(self) -> Item[K] | None:
        while self._heap:
            order, _, key = heapq.heappop(self._heap)
            waiting = self._waiting.get(key)
            if waiting is None or waiting.order != order:
                continue  # it was taken by another entry of the same key
            del self._waiting[key]
            now = self._clock.monotonic()
            self._working[key] = now
            if self._metrics is not None:
                self._metrics.taken(len(self._waiting), now - waiting.since)
            return Item(key, tuple(waiting.reasons), now - waiting.since)
        return None

    def done(self, key: K) -> None:
        """Give a key back after a pass; what was added meanwhile waits from now on."""
        since = self._working.pop(key, None)
        if since is not None and self._metrics is not None:
            self._metrics.finished(self._clock.monotonic() - since)
        waiting = self._again.pop(key, None)
        if waiting is not None and not self._closed:
            self._waiting[key] = waiting
            self._push(key, waiting.order)

    def fail(self, key: K, *, reason: str = "", limit: float | None = None, exactly: float | None = None) -> float:
        """Count a failure of a key and add it again after its back-off; returns the wait.

        `limit` is the longest wait; `exactly` takes the place of the back-off.
        """
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = self._backoff.delay(failures) if exactly is None else exactly
        if limit is not None:
            delay = min(delay, limit)
        if self._metrics is not None:
            self._metrics.retried()
        self.add_after(key, delay, reason=reason or f"retry {failures}")
        return delay

    def failures(self, key: K) -> int:
        """Return how often a key failed in a row."""
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """Reset the failures of a key."""
        self._failures.pop(key, None)

    # The end

    @property
    def closed(self) -> bool:
        """Whether the queue was shut down."""
        return self._closed

    def shut_down(self) -> None:
        """Take nothing more; delayed keys are dropped, waiting ones are still handed out."""
        self._closed = True
        self._delayed.clear()
        self._again.clear()
        if self._bell is not None:
            self._bell.cancel()
            self._bell = None
        for getter in self._getters:
            if not getter.done():
                getter.set_result(None)
        self._getters.clear()

    # Waking

    def _wake(self) -> None:
        while self._getters:
            getter = self._getters.pop(0)
            if not getter.done():
                getter.set_result(None)
                return

    def _set_bell(self) -> None:
        """Let somebody look when the next delay is over."""
        if self._bell is not None and not self._bell.done():
            if self._bell_due <= self._delays[0][0]:
                return
            self._bell.cancel()
        self._bell_due = self._delays[0][0]
        self._bell = asyncio.get_running_loop().create_task(self._ring(self._bell_due), name="queue bell")

    _bell_due: float = 0.0

    async def _ring(self, due: float) -> None:
        await self._clock.sleep(due - self._clock.monotonic())
        self._bell = None
        now = self._clock.monotonic()
        while self._delays and self._delays[0][0] <= now:
            moment, _, key = heapq.heappop(self._delays)
            if self._delayed.get(key) == moment:
                self.add(key)
        while self._delays and self._delayed.get(self._delays[0][2]) != self._delays[0][0]:
            heapq.heappop(self._delays)
        if self._delays:
            self._set_bell()
