from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from flyball.framing import WebSocket, socket_pair
from flyball.framing.forwarding import Tunnel
from flyball.framing.spdy import SpdyConnection, SpdyError, SpdyStream
from flyball.framing.spdy.frames import Data, FrameReader, FrameWriter, GoAway, Ping, Reset, SynReply, SynStream


class Peers:
    """A client and a server that accepts every stream but those with the header `refuse`."""

    def __init__(self) -> None:
        here, there = socket_pair("")
        self.opened: asyncio.Queue[SpdyStream] = asyncio.Queue()
        self.client = SpdyConnection(Tunnel(here), server=False)
        self.server = SpdyConnection(Tunnel(there), server=True, on_stream=self._accept)
        self.tasks = [asyncio.create_task(self.client.serve()), asyncio.create_task(self.server.serve())]

    def _accept(self, stream: SpdyStream) -> bool:
        if "refuse" in stream.headers:
            return False
        self.opened.put_nowait(stream)
        return True

    async def stream(self, **headers: str) -> tuple[SpdyStream, SpdyStream]:
        """A stream of the client, from both sides."""
        return await self.client.open(headers), await self.opened.get()


@pytest.fixture
async def peers() -> AsyncIterator[Peers]:
    peers = Peers()
    yield peers
    await peers.client.close()
    await asyncio.gather(*peers.tasks)


async def test_a_stream_in_both_directions(peers: Peers) -> None:
    ours, theirs = await peers.stream(Port="80", streamType="data")
    assert theirs.headers == {"port": "80", "streamtype": "data"}
    await ours.write(b"x" * 100_000)
    came = b""
    while len(came) < 100_000:
        came += await theirs.read()
    assert came == b"x" * 100_000
    await ours.finish()
    assert await theirs.read() == b""
    await theirs.write(b"answer")
    await theirs.finish()
    assert await ours.incoming.read_all() == b"answer"
    with pytest.raises(ConnectionResetError, match="the stream has ended"):
        await ours.write(b"more")
    await ours.finish()
    await ours.reset()


async def test_many_streams_at_once(peers: Peers) -> None:
    async def talk(number: int) -> bytes:
        stream = await peers.client.open({"n": str(number)})
        await stream.write(str(number).encode())
        await stream.finish()
        return await stream.incoming.read_all()

    async def serve() -> None:
        while True:
            stream = await peers.opened.get()
            await stream.write(await stream.incoming.read_all() + b"!")
            await stream.finish()

    serving = asyncio.create_task(serve())
    assert await asyncio.gather(*(talk(number) for number in range(50))) == [b"%d!" % n for n in range(50)]
    serving.cancel()


async def test_a_stream_that_is_refused(peers: Peers) -> None:
    with pytest.raises(ConnectionResetError, match="the stream was refused"):
        await peers.client.open({"refuse": "yes"})
    await peers.stream()  # the connection goes on
    with pytest.raises(ConnectionResetError, match="the stream was refused"):
        await peers.server.open({})  # which the client does not accept


async def test_what_came_before_a_reset_can_be_read(peers: Peers) -> None:
    ours, theirs = await peers.stream()
    await theirs.write(b"last words")
    await theirs.reset()
    assert await ours.read() == b"last words"
    assert await ours.read() == b""
    with pytest.raises(ConnectionResetError):
        await ours.write(b"x")


async def test_who_resets_reads_no_more(peers: Peers) -> None:
    ours, theirs = await peers.stream()
    await theirs.write(b"x")
    await ours.reset()
    assert await ours.read() == b""
    assert await theirs.read() == b""


async def test_a_stream_that_nobody_reads_makes_its_writer_wait(peers: Peers) -> None:
    ours, theirs = await peers.stream()
    writing = asyncio.create_task(ours.write(b"x" * (4 << 20)))
    for _ in range(500):
        await asyncio.sleep(0)
    assert not writing.done()
    size = 0
    while size < 4 << 20:
        size += len(await theirs.read())
    await writing


async def test_the_end_of_the_connection_ends_all(peers: Peers) -> None:
    ours, theirs = await peers.stream()
    await ours.write(b"before the end")
    await peers.client.close()
    assert await theirs.incoming.read_all() == b"before the end"
    assert await ours.read() == b""
    for stream in (ours, theirs):
        with pytest.raises(ConnectionResetError):
            await stream.write(b"x")
    with pytest.raises(ConnectionResetError, match="the connection has ended"):
        await peers.client.open({})


class Raw:
    """One side that says what a test lets it say."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._reader, self._writer = FrameReader(), FrameWriter()

    async def say(self, *frames: SynStream | SynReply | Data | Reset | Ping | GoAway) -> None:
        for frame in frames:
            await self._socket.send(self._writer.write(frame))

    async def hear(self) -> object:
        while True:
            message = await self._socket.receive()
            assert message is not None
            for frame in self._reader.feed(message):
                return frame


async def test_a_server_frame_by_frame() -> None:
    here, there = socket_pair("")
    opened: list[SpdyStream] = []
    server = SpdyConnection(Tunnel(there), server=True, on_stream=lambda stream: not opened.append(stream))
    serving, raw = asyncio.create_task(server.serve()), Raw(here)
    await raw.say(Ping(1), Ping(2))
    assert await raw.hear() == Ping(1)  # the other one would be the answer to one of its own
    await raw.say(Data(7, b"of no stream"), Reset(7), SynReply(7), SynStream(1, {"a": "b"}, last=True))
    assert await raw.hear() == SynReply(1)
    assert await opened[0].read() == b""
    await opened[0].write(b"hello")
    assert await raw.hear() == Data(1, b"hello")
    await raw.say(GoAway())
    await serving
    with pytest.raises(ConnectionResetError):
        await opened[0].write(b"x")


@pytest.mark.parametrize("number", [2, 1])
async def test_a_number_that_is_not_the_other_sides_to_give(number: int) -> None:
    here, there = socket_pair("")
    server = SpdyConnection(Tunnel(there), server=True, on_stream=lambda _: True)
    serving, raw = asyncio.create_task(server.serve()), Raw(here)
    await raw.say(SynStream(1), SynStream(number))
    with pytest.raises(SpdyError, match=f"a stream of the number {number}"):
        await serving
