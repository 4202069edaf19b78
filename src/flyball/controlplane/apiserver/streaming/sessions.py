"""What is open between clients and kubelets, so that it ends with the server."""

from __future__ import annotations

import asyncio

__all__ = ["Sessions"]


class Sessions:
    """The tasks that carry bytes for clients: each is cancelled when the server stops.

    A task that was cancelled so may tell its client before it ends; `close` waits for that.
    """

    def __init__(self) -> None:
        """Nothing is open."""
        self._tasks: set[asyncio.Task[object]] = set()
        self.closed = False
        """Whether the server has stopped: nothing opens any more."""

    def add(self, task: asyncio.Task[object]) -> None:
        """Let a task end with the server, at once if that has stopped."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self.closed:
            task.cancel()

    def __len__(self) -> int:
        """How many are open."""
        return len(self._tasks)

    async def close(self) -> None:
        """End them all. Closing twice is harmless."""
        self.closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
