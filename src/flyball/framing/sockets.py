"""A connection on which both sides send messages whenever they like, and a pair of its ends inside of the process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import Any, Final, Protocol

__all__ = ["GOING_AWAY", "NORMAL", "WebSocket", "socket_pair", "until_sent"]

NORMAL: Final = 1000
GOING_AWAY: Final = 1001
_ROOM: Final = 64 << 10


class WebSocket(Protocol):
    """One end of a WebSocket.

    Guarantees: messages come whole and in order; several tasks may send, one receives; a sender waits where the other
    side does not keep up. It does not tell an orderly end from a broken connection: what is said over it must.
    """

    @property
    def protocol(self) -> str:
        """The subprotocol that both sides have agreed upon."""
        ...

    async def send(self, data: bytes) -> None:
        """Send a message; returns when there is room for another. Raises ConnectionError when nobody reads any more.

        Who sends without end holds no other task up.
        """
        ...

    async def receive(self) -> bytes | None:
        """Wait for a message; None when no more will come."""
        ...

    async def close(self, code: int = NORMAL, reason: str = "") -> None:
        """End the connection; may be called twice. What was sent before still arrives."""
        ...


async def until_sent(sending: Coroutine[Any, Any, object]) -> None:
    """Wait for something that an aiohttp connection sends, as `WebSocket.send` promises.

    All who wait for room in such a connection wait for one future: who is cancelled must leave it alone, or nobody
    could send any more. And a TLS connection that broke takes everything, at once, until the event loop gets to tell
    of it; so others have their turn in any case.
    """
    task = asyncio.ensure_future(sending)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_heard)
        raise


def _heard(task: asyncio.Future[object]) -> None:
    """Nobody waits for it any more: how it ended is nobody's business."""
    if not task.cancelled():
        task.exception()


def socket_pair(protocol: str) -> tuple[WebSocket, WebSocket]:
    """Make the two ends of a connection that never leaves the process and its event loop."""
    there, back = _Way(), _Way()
    return _End(protocol, there, back), _End(protocol, back, there)


class _Way:
    """Messages on their way from one end to the other."""

    def __init__(self) -> None:
        self.messages: deque[bytes] = deque()
        self.size = 0
        self.closed = False
        self._changed = asyncio.Event()

    def change(self) -> None:
        """Let everybody look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self) -> None:
        """Wait until there is something to look at."""
        await self._changed.wait()


class _End:
    def __init__(self, protocol: str, outward: _Way, inward: _Way) -> None:
        self.protocol = protocol
        self._out = outward
        self._in = inward

    async def send(self, data: bytes) -> None:
        way = self._out
        while way.size >= _ROOM and not way.closed:
            await way.changed()
        if way.closed:
            raise ConnectionResetError("the other side has closed the connection")
        way.messages.append(data)
        way.size += len(data) + 1  # an empty message takes room too
        way.change()

    async def receive(self) -> bytes | None:
        way = self._in
        while not way.messages:
            if way.closed:
                return None
            await way.changed()
        data = way.messages.popleft()
        way.size -= len(data) + 1
        way.change()
        return data

    async def close(self, code: int = NORMAL, reason: str = "") -> None:
        for way in (self._out, self._in):
            way.closed = True
            way.change()
