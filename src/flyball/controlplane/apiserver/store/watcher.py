"""A watcher: a bounded queue of events between the store and one reader."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from flyball.controlplane.apiserver.store.contract import ADDED, DELETED, Entry, Event

__all__ = ["Selection", "Watcher"]

Selection = Callable[[Entry], bool]


class Watcher:
    """Follows one resource, or one namespace of it, from a revision on.

    Events come in the order of their revisions. Where a selection is given, an object that enters it arrives as
    ADDED, one that leaves it as DELETED in the state before the change with the revision of the change, and what
    never matched does not arrive. A reader that lets more than `limit` events pile up is closed and `slow` is set:
    it gets what was in the queue, then the end. Nothing is dropped silently.
    """

    __slots__ = (
        "_closed",
        "_limit",
        "_namespace",
        "_on_close",
        "_queue",
        "_rung",
        "_selection",
        "_since",
        "_waiting",
        "slow",
    )

    def __init__(
        self,
        namespace: str | None,
        selection: Selection | None,
        limit: int,
        since: int,
        on_close: Callable[[Watcher], None],
    ) -> None:
        """Start with an empty queue; the store fills it."""
        self.slow = False
        self._namespace = namespace
        self._selection = selection
        self._limit = limit
        self._since = since
        self._on_close = on_close
        self._queue: deque[Event] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self._closed = False
        self._rung = False

    def offer(self, event: Event) -> None:
        """Take an event of the resource, if it is for this watcher. Called by the store only."""
        if self._closed or event.revision <= self._since:
            return
        if self._namespace is not None and event.entry.key.namespace != self._namespace:
            return
        seen = event if self._selection is None else self._seen(event, self._selection)
        if seen is None:
            return
        if len(self._queue) >= self._limit:
            self.slow = True
            self.close()
            return
        self._queue.append(seen)
        self._wake()

    def replay(self, events: list[Event]) -> None:
        """Take the history between the asked revision and now, however long it is. Called by the store only."""
        limit, self._limit = self._limit, len(events) + self._limit
        for event in events:
            self.offer(event)
        self._limit = max(limit, len(self._queue) + limit)

    @staticmethod
    def _seen(event: Event, selection: Selection) -> Event | None:
        before = event.previous is not None and selection(event.previous)
        after = event.type != DELETED and selection(event.entry)
        if after:
            return event if before or event.type == ADDED else Event(ADDED, event.entry, None)
        if not before:
            return None
        return event if event.type == DELETED else _left(event)

    def pending(self) -> int:
        """How many events wait to be read."""
        return len(self._queue)

    def take(self) -> list[Event]:
        """Take all that waits, without waiting."""
        events = list(self._queue)
        self._queue.clear()
        return events

    async def next(self) -> list[Event]:
        """Wait for events and take all that are there; an empty list means that it was closed, or rung."""
        while not self._queue:
            if self._closed or self._rung:
                self._rung = False
                return []
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        return self.take()

    def ring(self) -> None:
        """Let the reader look up although nothing has happened."""
        self._rung = True
        self._wake()

    @property
    def closed(self) -> bool:
        """Whether no further event will come."""
        return self._closed

    def close(self) -> None:
        """End the stream; what is in the queue can still be read. Closing twice is harmless."""
        if not self._closed:
            self._closed = True
            self._on_close(self)
            self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


def _left(event: Event) -> Event:
    """Show an object that left the selection: as it was before, at the revision of the change.

    The body still carries the revision it was committed at: who renders the event puts `entry.revision` in.
    """
    assert event.previous is not None
    before = event.previous
    entry = Entry(
        before.key,
        before.body,
        event.revision,
        before.created,
        before.uid,
        before.labels,
        before.fields,
        before.api_version,
    )
    return Event(DELETED, entry, before)
