"""Descriptors of processes in the event loop: what they write is taken in pieces, what they read is given to them."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import Final

__all__ = ["Feed", "Pump", "nothing", "set_size"]

_PIECE: Final = 64 * 1024


def nothing() -> int:
    """Open what gives nothing to read."""
    return os.open(os.devnull, os.O_RDONLY)


def set_size(terminal: int, columns: int, rows: int) -> None:
    """Tell a terminal its size."""
    with suppress(OSError):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Pump:
    """Gives what comes out of a descriptor to a sink, at most 64 KiB in each turn of the event loop."""

    def __init__(self, descriptor: int, sink: Callable[[bytes], None]) -> None:
        """Begin; the descriptor is closed at its end."""
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._sink = sink
        self.ended: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._ready)

    def _ready(self) -> None:
        try:
            data = os.read(self._descriptor, _PIECE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # a terminal whose other end is closed
            data = b""
        if data:
            self._sink(data)
        else:
            self.close()

    def pause(self) -> None:
        """Take no more for now."""
        if not self.ended.done():
            self._loop.remove_reader(self._descriptor)

    def resume(self) -> None:
        """Go on."""
        if not self.ended.done():
            self._loop.add_reader(self._descriptor, self._ready)

    def close(self) -> None:
        """Take no more."""
        if not self.ended.done():
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self.ended.set_result(None)


class Feed:
    """Gives a process what it reads."""

    def __init__(self, descriptor: int, *, owned: bool = True) -> None:
        """`owned`: closed here when there is no more."""
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._owned = owned
        self._open = True
        os.set_blocking(descriptor, False)

    async def write(self, data: bytes) -> None:
        """Give it this; return when it has room for more. What nobody reads any more is dropped."""
        rest = memoryview(data)
        while rest and self._open:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except (BlockingIOError, InterruptedError):
                await self._room()
            except OSError:
                self.close()

    async def _room(self) -> None:
        ready: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_writer(self._descriptor, _resolve, ready)
        try:
            await ready
        finally:
            self._loop.remove_writer(self._descriptor)

    def close(self) -> None:
        """There is no more."""
        if self._open:
            self._open = False
            if self._owned:
                os.close(self._descriptor)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
