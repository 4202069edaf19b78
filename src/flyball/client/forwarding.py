r"""Connections to ports of Pods.

    async with client.port_forward("db-0", 5432) as local:       # listens on loopback while the block runs
        connect(local.host, local.port)

    stream = await client.port_forward("web-0", 80)              # one connection, without a port of this machine
    await stream.write(b"GET / HTTP/1.0\r\n\r\n")
    await stream.finish()
    print(await stream.read_all())

All connections of one `async with` share a tunnel to the API server, which is made anew when it breaks. Servers before
1.31 know no tunnels: each connection has one of its own then, and cannot be told that one side sends no more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator
from types import TracebackType
from typing import Any, Final, Protocol, cast

from flyball.client.kinds import Ref
from flyball.client.refusals import RefusedRequest
from flyball.client.session import Session
from flyball.client.transport import Upgraded
from flyball.errors import ConfigError, ConnectionLost, FlyballError, ForwardFailed, MalformedAnswer
from flyball.framing import WebSocket
from flyball.framing.forwarding import CHANNELS, DATA, ERROR, PORT, REQUEST, STREAM_TYPE, TUNNEL, Tunnel
from flyball.framing.pipes import Pipe
from flyball.framing.spdy import SpdyConnection, SpdyStream

__all__ = ["ForwardedStream", "LocalPort", "PortForward"]

_log = logging.getLogger("flyball.client.forwarding")

_ROOM: Final = 1 << 20
_PIECE: Final = 32 << 10


class _Way(Protocol):
    """The bytes of one connection, over a tunnel or over channels."""

    async def read(self) -> bytes: ...
    async def write(self, data: bytes) -> None: ...
    async def finish(self) -> None: ...
    async def close(self) -> None: ...
    def problem(self) -> str: ...


class ForwardedStream:
    """One connection to a port of a Pod. Close it, or use it in `async with`."""

    def __init__(self, way: _Way, action: str, host: str, owner: _Tunnels | None = None) -> None:
        self._way = way
        self._action = action
        self._host = host
        self._owner = owner

    async def read(self) -> bytes:
        """Wait for bytes; `b""` when the Pod sends no more. Raises ForwardFailed when there is nobody to talk to."""
        data = await self._way.read()
        if not data:
            self._expect_no_problem()
        return data

    async def read_all(self) -> bytes:
        """All that comes until the Pod sends no more."""
        parts: list[bytes] = []
        while data := await self.read():
            parts.append(data)
        return b"".join(parts)

    async def write(self, data: bytes) -> None:
        """Send bytes; returns when there is room for more. Raises ConnectionLost when they are of no use."""
        try:
            for start in range(0, len(data), _PIECE):
                await self._way.write(data[start : start + _PIECE])
        except ConnectionError:
            self._expect_no_problem()
            why = "the Pod takes no more; look whether its process still listens, and connect again"
            raise ConnectionLost(why, host=self._host, action=self._action) from None

    async def finish(self) -> None:
        """Say that nothing more will be sent. Refused where the server is too old to be told (before 1.31)."""
        try:
            await self._way.finish()
        except ConnectionError:
            _log.debug("%s: it had ended already", self._action)

    async def close(self) -> None:
        """End the connection; may be called twice."""
        await self._way.close()
        owner, self._owner = self._owner, None
        if owner is not None:
            await owner.close()

    async def __aenter__(self) -> ForwardedStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _expect_no_problem(self) -> None:
        told = self._way.problem()
        if told:
            why = f"{told}; look whether the process in the Pod listens on that port"
            raise ForwardFailed(why, host=self._host, action=self._action)


class LocalPort:
    """A port of this machine, on loopback, behind which the port of a Pod lies."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port

    @property
    def address(self) -> str:
        """Host and port, as in a URL."""
        return f"{self.host}:{self.port}"


class PortForward:
    """What `client.port_forward` gives: `await` for one connection, `async with` for a port that listens here."""

    def __init__(
        self, session: Session, ref: Ref[Any], namespace: str | None, port: int, local: int, timeout: float | None
    ) -> None:
        if not 0 < port < 1 << 16:
            raise RefusedRequest(f"forward to {ref.kind.word} {ref.name}: {port} is no port; give one from 1 to 65535")
        self._tunnels = _Tunnels(session, ref, namespace, port, timeout)
        self._local = local
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def __await__(self) -> Generator[Any, None, ForwardedStream]:
        return self._connect().__await__()

    async def _connect(self) -> ForwardedStream:
        tunnels = self._tunnels.another()
        try:
            return await tunnels.connect(owned=True)
        except BaseException:
            await tunnels.close()
            raise

    async def __aenter__(self) -> LocalPort:
        if self._server is not None:
            raise RefusedRequest("this port-forward has been entered already; make another one")
        await self._tunnels.open()  # what the server refuses is told here, not to whoever connects first
        try:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._local)
        except OSError as error:
            await self._tunnels.close()
            told = f"listen on 127.0.0.1:{self._local}: {error.strerror or error}"
            raise ConfigError(f"{told}; choose another local port, or 0 for a free one") from None
        return LocalPort("127.0.0.1", self._server.sockets[0].getsockname()[1])

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._tunnels.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._carry(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one local connection; what goes wrong is logged, and the connection breaks off."""
        try:
            async with await self._tunnels.connect() as stream:
                await _join(stream, reader, writer)
            writer.close()
        except (FlyballError, OSError) as error:
            _log.warning("a forwarded connection broke off: %s", error)
        finally:
            if not writer.is_closing():
                writer.transport.abort()


async def _join(stream: ForwardedStream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry bytes until the Pod sends no more, or nobody is left here."""

    async def inward() -> None:
        while data := await stream.read():
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    async def outward() -> bool:
        """Return whether the Pod was told that there is no more; else it would wait for ever."""
        while data := await reader.read(_PIECE):
            await stream.write(data)
        try:
            await stream.finish()
        except RefusedRequest:
            return False
        return True

    receiving, sending = asyncio.create_task(inward()), asyncio.create_task(outward())
    try:
        await asyncio.wait({receiving, sending}, return_when=asyncio.FIRST_COMPLETED)
        if receiving.done() or sending.result():
            await receiving
    finally:
        for task in (receiving, sending):
            task.cancel()
        await asyncio.gather(receiving, sending, return_exceptions=True)


class _Tunnels:
    """The ways to one port of a Pod: streams of one tunnel, or a WebSocket for each where there are no tunnels."""

    def __init__(
        self, session: Session, ref: Ref[Any], namespace: str | None, port: int, timeout: float | None
    ) -> None:
        self._session = session
        self._ref = ref
        self._namespace = namespace
        self._port = port
        self._timeout = timeout
        self._opening = asyncio.Lock()
        self._answer: Upgraded | None = None
        self._tunnel: SpdyConnection | None = None
        self._serving: asyncio.Task[None] | None = None
        self._spare: Upgraded | None = None
        self._requests = 0
        self._action = ""

    def another(self) -> _Tunnels:
        """The same way, with connections of its own."""
        return _Tunnels(self._session, self._ref, self._namespace, self._port, self._timeout)

    async def open(self) -> None:
        """Make a tunnel, or a first WebSocket, unless there is one."""
        if self._tunnel is not None and not self._tunnel.closed:
            return
        answer = await self._ask()
        if answer.socket.protocol == CHANNELS:
            self._spare = answer
            return
        await self._end_tunnel()
        self._answer = answer
        self._tunnel = SpdyConnection(Tunnel(answer.socket), server=False)
        self._serving = asyncio.create_task(_served(self._tunnel, self._action))

    async def connect(self, *, owned: bool = False) -> ForwardedStream:
        """Connect to the port; `owned`: the stream ends the way with itself."""
        async with self._opening:  # a pair of streams must not be torn apart
            if self._spare is None:
                await self.open()
            spare, self._spare = self._spare, None
            way = _Channels(spare) if spare is not None else await self._pair()
        return ForwardedStream(way, self._action, self._session.transport.host, self if owned else None)

    async def _pair(self) -> _Pair:
        assert self._tunnel is not None
        self._requests += 1
        headers = {PORT: str(self._port), REQUEST: str(self._requests)}
        try:
            error = await self._tunnel.open({STREAM_TYPE: ERROR, **headers}, last=True)
            data = await self._tunnel.open({STREAM_TYPE: DATA, **headers})
        except ConnectionError as broken:
            why = f"the tunnel broke ({broken}); connect again"
            raise ConnectionLost(why, host=self._session.transport.host, action=self._action) from None
        return _Pair(data, error)

    async def _ask(self) -> Upgraded:
        target = await self._session.one(self._ref, self._namespace)
        self._action = f"forward to port {self._port} of {target.words}"
        if self._session.options.dry_run:
            raise RefusedRequest(f"{self._action}: a dry-run client connects to nothing; use one without dry_run")
        request = self._session.request(
            "GET",
            target.path("portforward"),
            action=self._action,
            query=(("ports", str(self._port)),),
            accept="application/json, */*",
            timeout=self._timeout,
            upgrade=(TUNNEL, CHANNELS),
        )
        answer = await self._session.open(request)
        socket: WebSocket | None = getattr(answer, "socket", None)
        if socket is None or socket.protocol not in (TUNNEL, CHANNELS):
            await answer.close()
            why = "the server made no websocket of the connection; look at the proxies on the way"
            raise MalformedAnswer(why, host=self._session.transport.host, action=self._action)
        return cast("Upgraded", answer)

    async def _end_tunnel(self) -> None:
        serving, self._serving = self._serving, None
        answer, self._answer = self._answer, None
        self._tunnel = None
        if serving is not None:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
        if answer is not None:
            await answer.close()

    async def close(self) -> None:
        """End all that is open."""
        spare, self._spare = self._spare, None
        if spare is not None:
            await spare.close()
        await self._end_tunnel()


async def _served(tunnel: SpdyConnection, action: str) -> None:
    try:
        await tunnel.serve()
    except ConnectionError as error:
        _log.warning("%s: the tunnel broke: %s", action, error)


class _Pair:
    """A connection in a tunnel: a stream for its bytes, one for what goes wrong, which is told before the bytes end."""

    def __init__(self, data: SpdyStream, error: SpdyStream) -> None:
        self._data = data
        self._error = error
        self.read = data.read
        self.write = data.write
        self.finish = data.finish

    def problem(self) -> str:
        return self._error.incoming.peek().decode("utf-8", "replace")

    async def close(self) -> None:
        try:
            await self._data.reset()
            await self._error.reset()
        except ConnectionError:
            _log.debug("the tunnel has ended before its stream")


class _Channels:
    """A connection over a WebSocket of its own."""

    def __init__(self, answer: Upgraded) -> None:
        self._answer = answer
        self._incoming = Pipe(_ROOM)
        self._told = b""
        self._seen = [0, 0]
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        try:
            while (message := await self._answer.socket.receive()) is not None:
                if len(message) > 1 and message[0] < 2:
                    await self._take(message[0], message[1:])
        finally:
            self._incoming.end()

    async def _take(self, channel: int, data: bytes) -> None:
        skip = min(2 - self._seen[channel], len(data))  # each channel begins with the number of the port
        self._seen[channel] += skip
        data = data[skip:]
        if channel == 1:
            self._told += data
        elif data:
            await self._incoming.feed(data)

    async def read(self) -> bytes:
        return await self._incoming.read()

    async def write(self, data: bytes) -> None:
        await self._answer.socket.send(b"\0" + data)

    async def finish(self) -> None:
        raise RefusedRequest(
            "the server knows no tunnels, so the Pod cannot be told that nothing more will be sent; "
            "close the connection, or use a server of 1.31 or newer"
        )

    def problem(self) -> str:
        return self._told.decode("utf-8", "replace")

    async def close(self) -> None:
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        await self._answer.close()
