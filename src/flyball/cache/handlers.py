"""One handler with its own buffer, so that it can be slow or fail without anybody else noticing."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from flyball.cache.events import CacheEvent, EventHandler
from flyball.cache.metrics import NO_METRICS, Metrics

__all__ = ["Registration"]

log = logging.getLogger(__name__)

_TURN: Final = 0.005
"""Seconds of one handler's work after which others get their turn."""


class _Synced:
    """Stands in a buffer behind the last event of the first list."""


_SYNCED: Final = _Synced()


class Registration:
    """A handler that was added to an informer; `remove()` takes it off again.

    The handler gets every event in order, one at a time. When it raises, the error is logged with its name and the next
    event follows: nothing is repeated.
    """

    def __init__(
        self,
        handler: EventHandler,
        *,
        name: str,
        kind: str,
        on_synced: Callable[[], None],
        on_remove: Callable[[Registration], None],
        resync: float | None = None,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        """Made by `Informer.add_handler`."""
        self.name = name
        self.resync = resync
        """Seconds after which it gets everything once more; None: never."""
        self._handler = handler
        self._kind = kind
        self._on_synced = on_synced
        self._on_remove = on_remove
        self._metrics = metrics
        self._buffer: deque[CacheEvent | _Synced] = deque()
        self._wake = asyncio.Event()
        self._synced = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._removed = False

    @property
    def has_synced(self) -> bool:
        """Whether everything that was there when it was added, or when the informer began, was given to it."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Wait until `has_synced`."""
        await self._synced.wait()

    @property
    def waiting(self) -> int:
        """How many events it has not been given yet."""
        return len(self._buffer)

    def remove(self) -> None:
        """Give it no more events, also none that wait already."""
        self._removed = True
        self._on_remove(self)
        self.stop()
        self._buffer.clear()

    # -- for the informer ----------------------------------------------------------------------------------------------

    def put(self, event: CacheEvent) -> None:
        """One more event."""
        self._buffer.append(event)
        self._wake.set()

    def put_all(self, events: Iterable[CacheEvent]) -> None:
        """More events."""
        self._buffer.extend(events)
        self._wake.set()

    def put_synced(self) -> None:
        """The first list ends here."""
        self._buffer.append(_SYNCED)
        self._wake.set()

    def start(self, *others: asyncio.Task[None]) -> None:
        """Begin to call the handler; `others` are ended together with it."""
        self._tasks += [asyncio.create_task(self._run(), name=f"handler {self.name}"), *others]

    def stop(self) -> list[asyncio.Task[None]]:
        """End; returns what has to be awaited."""
        tasks, self._tasks = self._tasks, []
        current = asyncio.current_task() if tasks else None
        for task in tasks:
            if task is not current:
                task.cancel()
        return [task for task in tasks if task is not current]

    async def _run(self) -> None:
        while not self._removed:
            await self._wake.wait()
            self._wake.clear()
            turn_ends = time.perf_counter() + _TURN
            while self._buffer:
                event = self._buffer.popleft()
                if isinstance(event, _Synced):
                    self._synced.set()
                    self._on_synced()
                    continue
                await self._call(event)
                if time.perf_counter() > turn_ends:
                    await asyncio.sleep(0)
                    turn_ends = time.perf_counter() + _TURN

    async def _call(self, event: CacheEvent) -> None:
        try:
            answer = self._handler(event)
            if answer is not None:
                await answer
        except Exception:
            self._metrics.counter("flyball_cache_handler_errors_total", name=self._kind, handler=self.name)
            log.exception(
                "handler %s failed on %s %r; it goes on with the next event", self.name, event.type, event.object
            )
