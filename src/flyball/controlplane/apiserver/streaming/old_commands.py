"""Exec and attach over SPDY without a WebSocket around it, as kubectl spoke until 1.30: a stream for each channel."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from flyball.framing import WebSocket
from flyball.framing.channels import CLOSE, ERROR, RESIZE, STDERR, STDIN, STDOUT, V5
from flyball.framing.forwarding import STREAM_TYPE, Tunnel
from flyball.framing.sockets import NORMAL
from flyball.framing.spdy import SpdyConnection, SpdyStream

__all__ = ["as_channels"]

_CHANNELS: Final = {"stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "error": ERROR, "resize": RESIZE}
_PATIENCE_SECONDS: Final = 30.0
_FAREWELL_SECONDS: Final = 2.0


async def as_channels(
    socket: WebSocket, wanted: Collection[int], carry: Callable[[WebSocket], Awaitable[None]]
) -> None:
    """Wait for the streams of the wanted channels, and let `carry` talk as if they came over a WebSocket."""
    channels = _Streams(socket)
    serving = asyncio.ensure_future(channels.serve())
    try:
        if await _in_time(channels.opened(wanted)):
            await carry(channels)
            await channels.finish()
            await asyncio.wait({serving}, timeout=_FAREWELL_SECONDS)  # what is under way arrives before the end
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def _in_time(opened: Awaitable[bool]) -> bool:
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):  # `wait_for` of Python 3.11 can lose a cancellation
            return await opened
    except TimeoutError:
        return False


class _Streams:
    """Streams of SPDY in the shape of version 5 of the channel protocol."""

    protocol = V5

    def __init__(self, socket: WebSocket) -> None:
        self._connection = SpdyConnection(Tunnel(socket), server=True, on_stream=self._take)
        self._known: dict[int, SpdyStream] = {}
        self._messages: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self._changed = asyncio.Event()
        self._ended = False

    async def serve(self) -> None:
        """Read the connection to its end."""
        pumps = [asyncio.ensure_future(self._pump(channel)) for channel in (STDIN, RESIZE)]
        try:
            await self._connection.serve()
            self._end()
            await asyncio.gather(*pumps)
            await self._messages.put(None)
        finally:
            self._end()
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    def _end(self) -> None:
        self._ended = True
        self._changed.set()

    def _take(self, stream: SpdyStream) -> bool:
        channel = _CHANNELS.get(stream.headers.get(STREAM_TYPE, ""))
        if channel is None or channel in self._known:
            return False
        self._known[channel] = stream
        self._changed.set()
        return True

    async def opened(self, wanted: Collection[int]) -> bool:
        """Wait until the client has opened all of them; False when it has gone instead."""
        while not self._ended and not all(channel in self._known for channel in wanted):
            self._changed.clear()
            await self._changed.wait()
        return not self._ended

    async def _pump(self, channel: int) -> None:
        while channel not in self._known:
            if self._ended or self._connection.closed:
                return
            await self.opened((channel,))
        async for part in self._known[channel].incoming:
            for message in part.splitlines() if channel == RESIZE else (part,):
                await self._messages.put(bytes([channel]) + message)
        if channel == STDIN and not self._connection.closed:
            await self._messages.put(bytes([CLOSE, STDIN]))

    async def receive(self) -> bytes | None:
        return await self._messages.get()

    async def send(self, data: bytes) -> None:
        stream = self._known.get(data[0])
        if stream is not None and len(data) > 1:
            await stream.write(data[1:])

    async def finish(self) -> None:
        """Say on all streams that nothing more comes."""
        for stream in self._known.values():
            try:
                await stream.finish()
            except ConnectionError:
                return  # the client has gone before

    async def close(self, code: int = NORMAL, reason: str = "") -> None:
        await self._connection.close()
