"""A process that dies at a chosen point: before something is done to the world, or before its answer comes.

    cut = Cut(cluster.transport, point=3, when="after")
    async with running(Client(transport=cut, retry=None), reconcile):
        await cut.dead.wait()                 # nothing reaches the server any more

An uncut run (`point=0`) tells by `cut.acts` which points there are. What a new process makes of each is the crash
matrix: the same end, nothing twice, nothing left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

from flyball.client import HttpRequest, HttpResponse, Transport
from flyball.errors import ConnectionLost

__all__ = ["Cut", "When"]

T = TypeVar("T")
When = Literal["before", "after"]


class Cut:
    """One process: everything that it does to the world passes here, and at one point the process dies."""

    host = "cut"

    def __init__(self, transport: Transport, point: int = 0, when: When = "before") -> None:
        """`point` counts from 1; 0: never."""
        self._transport = transport
        self._point = point
        self._when = when
        self.acts: list[str] = []
        self.dead = asyncio.Event()

    async def act(self, words: str, do: Callable[[], Awaitable[T]]) -> T:
        """Do something to the world, or die."""
        if self.dead.is_set():
            raise ConnectionLost("the process is dead")
        self.acts.append(words)
        dies = len(self.acts) == self._point
        if dies and self._when == "before":
            self.dead.set()
            raise ConnectionLost("the process died before it was sent")
        answer = await do()
        if dies:
            self.dead.set()
            raise ConnectionLost("the process died before the answer came")
        return answer

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Reads pass while the process lives; events for people are no part of the matrix."""
        if request.method == "GET" or "events.k8s.io" in request.path:
            if self.dead.is_set():
                raise ConnectionLost("the process is dead")
            return await self._transport.send(request)
        return await self.act(f"{request.method} {request.path}", lambda: self._transport.send(request))

    async def close(self) -> None:
        """Nothing to close."""
