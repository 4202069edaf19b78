"""Events are news: they go an hour after their last change."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from flyball.client import Client
from flyball.clock import Clock
from flyball.controlplane.apiserver.store import Key
from flyball.controlplane.controllers.loop import Loop
from flyball.controlplane.controllers.view import View
from flyball.errors import Conflict, NotFound

__all__ = ["TTL_SECONDS", "EventExpiry"]

TTL_SECONDS: Final = 3600.0
_EVENTS: Final = "events"


class EventExpiry:
    """Deletes each event that nobody has changed for an hour."""

    def __init__(self, view: View, client: Client, clock: Clock) -> None:
        """Know of no events yet."""
        self._view = view
        self._client = client
        self.loop: Loop[Key] = Loop("event expiry", self._expire, clock)

    def seen(self, key: Key) -> None:
        """Take note of an object that was written or deleted."""
        if key.resource == _EVENTS and self._view.store.get(key) is not None:
            self.loop.add_after(key, TTL_SECONDS)

    def relist(self) -> None:
        """Give all events an hour from now."""
        for entry in self._view.store.listing(_EVENTS).entries:
            self.seen(entry.key)

    async def _expire(self, key: Key) -> None:
        meta = self._view.meta(key)
        if meta is not None:
            with suppress(NotFound, Conflict):
                await self._client.delete(self._view.ref(key, meta), guard=True)
