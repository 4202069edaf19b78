"""A control loop: keys that wait in the framework's work queue for one worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

from flyball.clock import Clock
from flyball.controller.queue import Backoff, Queue, QueueClosed

__all__ = ["Loop"]

T = TypeVar("T", bound=Hashable)

_log = logging.getLogger("flyball.controllers")

_BACKOFF: Final = Backoff(first=0.01, limit=10.0)


class Loop(Generic[T]):
    """Works on one key after the other, under the guarantees of `flyball.controller.queue`.

    It differs from a controller in what wakes it: the cluster tells it of each commit, so that it needs no watch. A
    cluster starts in milliseconds, and the garbage collector alone would need one watch for each kind that is served.
    """

    def __init__(self, name: str, work: Callable[[T], Awaitable[None]], clock: Clock) -> None:
        """Nothing runs yet; keys may come already."""
        self.name = name
        self._work = work
        self._clock = clock
        self._queue: Queue[T] = Queue(clock=clock, backoff=_BACKOFF)
        self._rests = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None

    def add(self, key: T) -> None:
        """Let a key be worked on soon."""
        self._queue.add(key)

    def add_after(self, key: T, seconds: float) -> None:
        """Let a key be worked on after a time, counted from now: an earlier wish of this kind is over."""
        self._queue.cancel_delay(key)
        self._queue.add_after(key, seconds)

    def start(self) -> None:
        """Begin to work."""
        self._worker = asyncio.create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        """End, also in the middle of a key."""
        self._queue.shut_down()
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)

    async def settled(self) -> None:
        """Wait until no key waits; those that pause after a failure do not count."""
        while len(self._queue) or self._queue.working:
            self._rests.clear()
            await self._rests.wait()

    async def _run(self) -> None:
        while True:
            try:
                item = await self._queue.get()
            except QueueClosed:
                return
            try:
                await self._try(item.key)
            finally:
                self._queue.done(item.key)
            if not len(self._queue):
                self._rests.set()

    async def _try(self, key: T) -> None:
        try:
            await self._work(key)
        except Exception as error:  # a loop goes on whatever happens to one key
            self._queue.fail(key)
            _log.warning("%s: %s failed for the %d. time: %s", self.name, key, self._queue.failures(key), error)
        else:
            self._queue.forget(key)
