"""Streams over one connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from flyball.framing.pipes import Pipe
from flyball.framing.spdy.frames import (
    CANCEL,
    REFUSED,
    Data,
    Frame,
    FrameReader,
    FrameWriter,
    GoAway,
    Ping,
    Reset,
    SpdyError,
    SynReply,
    SynStream,
)

__all__ = ["Carrier", "SpdyConnection", "SpdyStream"]

_ROOM: Final = 1 << 20
_PIECE: Final = 32 << 10


class Carrier(Protocol):
    """Carries the bytes of a connection, in pieces that mean nothing."""

    async def read(self) -> bytes:
        """Wait for bytes; `b""` at the end."""
        ...

    async def write(self, data: bytes) -> None:
        """Send bytes; returns when there is room for more. Raises ConnectionError when nobody reads any more."""
        ...

    async def close(self) -> None:
        """End the connection; may be called twice."""
        ...


class SpdyStream:
    """One stream: headers, and bytes in two directions that end one by one."""

    def __init__(self, connection: SpdyConnection, number: int, headers: Mapping[str, str]) -> None:
        self.number = number
        self.headers = headers
        """Those that it was opened with; names in lower case."""
        self.incoming = Pipe(_ROOM)
        self.accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.finished = False
        """Whether we send nothing more."""
        self._connection = connection

    async def read(self) -> bytes:
        """Wait for bytes; `b""` when the other side sends no more."""
        return await self.incoming.read()

    async def write(self, data: bytes) -> None:
        """Send bytes; returns when there is room for more. Raises ConnectionError when they are of no use any more."""
        for start in range(0, len(data), _PIECE):
            if self.finished:
                raise ConnectionResetError("the stream has ended")
            await self._connection.send(Data(self.number, data[start : start + _PIECE]))

    async def finish(self) -> None:
        """Say that nothing more will be sent."""
        if not self.finished:
            self.finished = True
            await self._connection.send(Data(self.number, b"", last=True))
            self._connection.forget(self)

    async def reset(self) -> None:
        """End the stream in both directions; harmless when it has ended."""
        over = self.finished and self.incoming.ended
        self.end()
        self.incoming.drop()
        self._connection.forget(self)
        if not over:
            await self._connection.send(Reset(self.number, CANCEL))

    def end(self) -> None:
        """Take it as over: nobody sends any more. What has come can still be read."""
        self.finished = True
        self.incoming.end()
        if not self.accepted.done():
            self.accepted.set_exception(ConnectionResetError("the stream was refused"))
            self.accepted.exception()  # nobody has to ask


class SpdyConnection:
    """A connection that carries streams, from either side.

    `serve` reads it to its end and must run for anything to happen. A stream of which more than a megabyte waits holds
    the others up until it is read: there are no windows.
    """

    def __init__(
        self, carrier: Carrier, *, server: bool, on_stream: Callable[[SpdyStream], bool] | None = None
    ) -> None:
        """`on_stream` is told of each stream that the other side opens, and accepts it or not; without it none is."""
        self._carrier = carrier
        self._on_stream = on_stream
        self._next = 2 if server else 1
        self._streams: dict[int, SpdyStream] = {}
        self._writer = FrameWriter()
        self._sending = asyncio.Lock()
        self.closed = False

    async def serve(self) -> None:
        """Read until the connection ends. Raises SpdyError when what comes is no SPDY."""
        reader = FrameReader()
        try:
            while piece := await self._carrier.read():
                for frame in reader.feed(piece):
                    if isinstance(frame, GoAway):
                        return
                    await self._take(frame)
        finally:
            self.closed = True
            for stream in self._streams.values():
                stream.end()
            self._streams.clear()

    async def open(self, headers: Mapping[str, str], *, last: bool = False) -> SpdyStream:
        """Open a stream and wait until it is accepted; with `last`, only the other side sends. Raises ConnectionError.

        Only one task may open streams at a time where their order matters.
        """
        if self.closed:
            raise ConnectionResetError("the connection has ended")
        stream = SpdyStream(self, self._next, headers)
        self._next += 2
        stream.finished = last
        self._streams[stream.number] = stream
        try:
            await self.send(SynStream(stream.number, dict(headers), last))
            await stream.accepted
        except BaseException:
            self._streams.pop(stream.number, None)
            raise
        return stream

    async def send(self, frame: Frame) -> None:
        """Send a frame. Raises ConnectionError."""
        if self.closed and not isinstance(frame, GoAway):
            raise ConnectionResetError("the connection has ended")
        async with self._sending:  # headers are packed in the order in which they go out
            await self._carrier.write(self._writer.write(frame))

    def forget(self, stream: SpdyStream) -> None:
        """Let a stream go that has ended in both directions."""
        if stream.finished and stream.incoming.ended:
            self._streams.pop(stream.number, None)

    async def close(self) -> None:
        """End the connection and all its streams."""
        self.closed = True
        await self._carrier.close()

    async def _take(self, frame: Frame) -> None:
        match frame:
            case SynStream():
                await self._opened(frame)
            case SynReply(number, _, last):
                stream = self._streams.get(number)
                if stream is not None and not stream.accepted.done():
                    stream.accepted.set_result(None)
                    if last:
                        self._no_more(stream)
            case Data(number, data, last):
                stream = self._streams.get(number)
                if stream is not None:
                    await stream.incoming.feed(data)
                    if last:
                        self._no_more(stream)
            case Reset(number):
                stream = self._streams.pop(number, None)
                if stream is not None:
                    stream.end()
            case Ping(number):
                if number % 2 != self._next % 2:  # not one of ours that comes back
                    await self.send(frame)
            case _:
                pass

    async def _opened(self, frame: SynStream) -> None:
        if frame.stream in self._streams or frame.stream % 2 == self._next % 2:
            raise SpdyError(f"the other side opens a stream of the number {frame.stream}, which is not its to give")
        stream = SpdyStream(self, frame.stream, frame.headers)
        stream.accepted.set_result(None)
        if frame.last:
            stream.incoming.end()
        self._streams[frame.stream] = stream
        if self._on_stream is not None and self._on_stream(stream):
            await self.send(SynReply(frame.stream))
            return
        self._streams.pop(stream.number, None)
        stream.end()
        await self.send(Reset(stream.number, REFUSED))

    def _no_more(self, stream: SpdyStream) -> None:
        stream.incoming.end()
        self.forget(stream)
