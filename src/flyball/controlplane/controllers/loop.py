"""A control loop: keys that wait for one worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from typing import Final, Generic, TypeVar

from flyball.clock import Clock

__all__ = ["Loop"]

T = TypeVar("T", bound=Hashable)

_log = logging.getLogger("flyball.controllers")

_FIRST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 10.0


class Loop(Generic[T]):
    """Works on one key after the other.

    A key waits at most once; one that comes while it is worked on is worked on again. A key whose work fails is worked
    on again after a pause that doubles from 10 ms to 10 s.
    """

    def __init__(self, name: str, work: Callable[[T], Awaitable[None]], clock: Clock) -> None:
        """Nothing runs yet; keys may come already."""
        self.name = name
        self._work = work
        self._clock = clock
        self._waiting: dict[T, None] = {}
        self._failures: dict[T, int] = {}
        self._bell = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._worker: asyncio.Task[None] | None = None
        self._pauses: set[asyncio.Task[None]] = set()

    def add(self, key: T) -> None:
        """Let a key be worked on soon."""
        self._waiting[key] = None
        self._idle.clear()
        self._bell.set()

    def start(self) -> None:
        """Begin to work."""
        self._worker = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        """End, also in the middle of a key."""
        tasks = [task for task in (self._worker, *self._pauses) if task is not None]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task

    async def settled(self) -> None:
        """Wait until no key waits; those that pause after a failure do not count."""
        await self._idle.wait()

    async def _run(self) -> None:
        while True:
            while self._waiting:
                key = next(iter(self._waiting))
                del self._waiting[key]
                await self._try(key)
            self._bell.clear()
            self._idle.set()
            await self._bell.wait()

    async def _try(self, key: T) -> None:
        try:
            await self._work(key)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # a loop goes on whatever happens to one key
            count = self._failures[key] = self._failures.get(key, 0) + 1
            _log.warning("%s: %s failed for the %d. time: %s", self.name, key, count, error)
            pause = asyncio.ensure_future(self._later(key, min(_FIRST_PAUSE * 2 ** (count - 1), _LONGEST_PAUSE)))
            self._pauses.add(pause)
            pause.add_done_callback(self._pauses.discard)
        else:
            self._failures.pop(key, None)

    async def _later(self, key: T, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self.add(key)
