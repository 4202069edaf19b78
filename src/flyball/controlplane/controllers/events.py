"""Events are news: they go an hour after their last change."""

from __future__ import annotations

import asyncio
import heapq
from contextlib import suppress
from typing import Final

from flyball.clock import Clock
from flyball.controlplane.apiserver.store import Key
from flyball.controlplane.controllers.view import View
from flyball.controlplane.controllers.writer import Conflict, NotFound, Writer

__all__ = ["TTL_SECONDS", "EventExpiry"]

TTL_SECONDS: Final = 3600.0
_EVENTS: Final = "events"


class EventExpiry:
    """Deletes each event that nobody has changed for an hour."""

    def __init__(self, view: View, writer: Writer, clock: Clock) -> None:
        """Know of no events yet."""
        self._view = view
        self._writer = writer
        self._clock = clock
        self._due: list[tuple[float, int, Key]] = []
        self._bell = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None

    def seen(self, key: Key) -> None:
        """Take note of an object that was written or deleted."""
        if key.resource != _EVENTS:
            return
        entry = self._view.store.get(key)
        if entry is not None:
            heapq.heappush(self._due, (self._clock.monotonic() + TTL_SECONDS, entry.revision, key))
            self._bell.set()

    def relist(self) -> None:
        """Give all events an hour from now."""
        self._due.clear()
        for entry in self._view.store.listing(_EVENTS).entries:
            self.seen(entry.key)

    def start(self) -> None:
        """Begin to delete."""
        self._worker = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        """End."""
        if self._worker is not None:
            self._worker.cancel()
            with suppress(asyncio.CancelledError):
                await self._worker

    async def _run(self) -> None:
        while True:
            while not self._due:
                self._bell.clear()
                await self._bell.wait()
            pause = self._due[0][0] - self._clock.monotonic()
            if pause > 0:
                await self._clock.sleep(pause)
                continue
            _, revision, key = heapq.heappop(self._due)
            await self._expire(key, revision)

    async def _expire(self, key: Key, revision: int) -> None:
        entry = self._view.store.get(key)
        if entry is None or entry.revision != revision:
            return
        with suppress(NotFound, Conflict):
            preconditions = {"resourceVersion": str(revision)}
            await self._writer.delete(self._view.path(key), {"preconditions": preconditions})
