"""The Pods that wait for a node: the most important first, and of equal ones the oldest.

A Pod that was refused is parked: it is not looked at again before something has changed that could help.
"""

from __future__ import annotations

import asyncio
import heapq
from itertools import count

from flyball.cache import Key
from flyball.controlplane.scheduler.ledger import Wish

__all__ = ["Waiting"]


class Waiting:
    """See the module."""

    def __init__(self) -> None:
        """Nobody waits."""
        self._heap: list[tuple[int, str, int, Key]] = []
        self._ready: dict[Key, Wish] = {}
        self._parked: dict[Key, Wish] = {}
        self._order = count()
        self._bell = asyncio.Event()

    def __len__(self) -> int:
        """Tell how many wait, parked or not."""
        return len(self._ready) + len(self._parked)

    def add(self, wish: Wish) -> None:
        """Let a Pod be looked at; what was known of it before is forgotten."""
        key = wish.key
        self._parked.pop(key, None)
        known = key in self._ready
        self._ready[key] = wish
        if not known:
            created = wish.pod.metadata.creation_timestamp
            heapq.heappush(self._heap, (-wish.priority, created, next(self._order), key))
        self._bell.set()

    def park(self, wish: Wish) -> None:
        """Let a Pod wait until something has changed; unless it has come again meanwhile."""
        if wish.key not in self._ready:
            self._parked[wish.key] = wish

    def wake(self) -> None:
        """Something has changed: look at the parked ones again."""
        for wish in list(self._parked.values()):
            self.add(wish)

    def remove(self, key: Key) -> None:
        """A Pod waits no more."""
        self._ready.pop(key, None)
        self._parked.pop(key, None)

    async def next(self) -> Wish:
        """Wait for the next one, and take it."""
        while True:
            while self._heap:
                key = heapq.heappop(self._heap)[-1]
                wish = self._ready.pop(key, None)
                if wish is not None:
                    return wish
            self._bell.clear()
            await self._bell.wait()
