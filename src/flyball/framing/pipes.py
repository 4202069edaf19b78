"""Bytes that wait for their reader, up to a limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

__all__ = ["Pipe"]


class Pipe:
    """A way for bytes from one task to another.

    Whoever feeds it waits while more than `room` bytes wait to be read; one task reads. `end` says that nothing more
    comes: what waits can still be read. `drop` throws it away too.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._data = bytearray()
        self._ended = False
        self._changed = asyncio.Event()

    def peek(self) -> bytes:
        """What waits; it still does."""
        return bytes(self._data)

    @property
    def ended(self) -> bool:
        """Whether nothing more will come; something may still wait."""
        return self._ended

    async def read(self) -> bytes:
        """Whatever has come, at least one byte; `b""` at the end."""
        while not self._data and not self._ended:
            await self._changed.wait()
        data = bytes(self._data)
        self._data.clear()
        self._change()
        return data

    async def feed(self, data: bytes) -> None:
        """Add what has come; returns when there is room for more. After the end it is thrown away."""
        if self._ended:
            return
        self._data += data
        self._change()
        while len(self._data) > self._room and not self._ended:
            await self._changed.wait()

    def end(self) -> None:
        """Nothing more will come."""
        self._ended = True
        self._change()

    def drop(self) -> None:
        """Nothing more will come, and nobody will read what waits."""
        self._data.clear()
        self.end()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self.read():
            yield data

    async def read_all(self) -> bytes:
        """All that comes until the end."""
        return b"".join([part async for part in self])

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
