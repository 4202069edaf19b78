"""Connections to the ports of a Pod (`portforward`), in a tunnel of SPDY or over channels of a WebSocket."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final, Protocol

from flyball.controlplane.apiserver.kubelets import Connection, Kubelet, KubeletRefusal, Pod
from flyball.controlplane.apiserver.request import Answer, Request
from flyball.controlplane.apiserver.status import bad_request, method_not_allowed
from flyball.controlplane.apiserver.streaming.handshake import upgraded
from flyball.controlplane.apiserver.streaming.parameters import ports
from flyball.controlplane.apiserver.streaming.places import expect_node, kubelet_of, pod_of
from flyball.controlplane.apiserver.writing import Target
from flyball.framing import WebSocket
from flyball.framing.forwarding import CHANNELS, DATA, ERROR, PORT, REQUEST, STREAM_TYPE, TUNNEL, Tunnel
from flyball.framing.pipes import Pipe
from flyball.framing.spdy import SpdyConnection, SpdyError, SpdyStream

if TYPE_CHECKING:
    from flyball.controlplane.apiserver.server import ApiServer

__all__ = ["forward"]

_log = logging.getLogger("flyball.apiserver.streaming")

_ROOM: Final = 1 << 20
_LAST_PORT: Final = 65_535


async def forward(server: ApiServer, request: Request, target: Target) -> Answer:
    """Let a client connect to ports of a Pod."""
    if request.method not in ("GET", "POST"):
        raise method_not_allowed()
    wanted = ports(request)
    pod = pod_of(server, target)
    expect_node(pod)
    place = _Place(pod, kubelet_of(server, pod))

    def talk(socket: WebSocket) -> Awaitable[None]:
        return _Tunnelled(place).carry(socket) if socket.protocol == TUNNEL else _channels(place, wanted, socket)

    answer = upgraded(
        request,
        (TUNNEL, CHANNELS),
        talk,
        unnamed=CHANNELS,
        old_protocol=TUNNEL.partition("+")[2],
        old_talk=_Tunnelled(place).carry,
    )
    if answer.upgrade is not None and answer.upgrade.protocol == CHANNELS:
        if not wanted:
            raise bad_request('query parameter "ports" is required: one value for each port')
        bad = next((port for port in wanted if not 0 < port <= _LAST_PORT), None)
        if bad is not None:
            raise bad_request(f"{bad} is no port: it must be between 1 and {_LAST_PORT}, inclusive")
    return answer


class _Place:
    """A Pod and who runs it."""

    def __init__(self, pod: Pod, kubelet: Kubelet) -> None:
        self.pod = pod
        self.kubelet = kubelet

    async def connect(self, port: int) -> Connection | str:
        """Connect to a port; a text says why that cannot be."""
        metadata = self.pod["metadata"]
        where = f"error forwarding port {port} to pod {metadata['name']}, uid {metadata['uid']}"
        try:
            return await self.kubelet.connect(self.pod, port)
        except KubeletRefusal as refusal:
            return f"{where}: {refusal}"
        except Exception:
            _log.exception("a kubelet failed at a connection to port %s of Pod %s", port, metadata["name"])
            return f"{where}: an error in the kubelet; the log of the server says where"


class _Stream(Protocol):
    """The client's end of one connection."""

    async def read(self) -> bytes: ...
    async def write(self, data: bytes) -> None: ...
    async def finish(self) -> None: ...


async def _join(connection: Connection, stream: _Stream) -> None:
    """Carry bytes in both directions until both have ended, or one of them broke."""

    async def outward() -> None:
        while data := await connection.read():
            await stream.write(data)
        await stream.finish()

    async def inward() -> None:
        while data := await stream.read():
            await connection.write(data)
        await connection.finish()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(outward())
            group.create_task(inward())
    except* OSError as broken:
        _log.debug("a forwarded connection broke: %s", broken.exceptions)
    finally:
        await connection.close()


class _Tunnelled:
    """The connections of one tunnel, each a pair of streams with the same number of request."""

    def __init__(self, place: _Place) -> None:
        self._place = place
        self._waiting: dict[str, dict[str, SpdyStream]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def carry(self, socket: WebSocket) -> None:
        """Serve until the client has gone."""
        connection = SpdyConnection(Tunnel(socket), server=True, on_stream=self._opened)
        try:
            await connection.serve()
        except SpdyError as error:
            _log.info("a port-forward ended: %s", error)
        except ConnectionError:
            _log.debug("the client of a port-forward has gone")
        finally:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _opened(self, stream: SpdyStream) -> bool:
        """Take a stream in, or not; a pair that is complete becomes a connection."""
        kind, port = stream.headers.get(STREAM_TYPE, ""), stream.headers.get(PORT, "")
        if kind not in (DATA, ERROR) or not (port.isdecimal() and port.isascii() and 0 < int(port[:6]) <= _LAST_PORT):
            _log.info("a port-forward was refused a stream: its type is %r, its port %r", kind, port)
            return False
        # Clients that do not number their requests open the stream of errors first, and that of the data next.
        request = stream.headers.get(REQUEST) or str(stream.number if kind == ERROR else stream.number - 2)
        pair = self._waiting.setdefault(request, {})
        if kind in pair:
            return False
        pair[kind] = stream
        if len(pair) == 2:
            del self._waiting[request]
            task = asyncio.create_task(self._connect(int(port), pair[DATA], pair[ERROR]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return True

    async def _connect(self, port: int, data: SpdyStream, error: SpdyStream) -> None:
        try:
            found = await self._place.connect(port)
            if isinstance(found, str):
                await error.write(found.encode())
                await error.finish()
                await data.finish()
                return
            await _join(found, data)
            await error.finish()
        except ConnectionError:
            _log.debug("the client of a forwarded connection has gone")
        finally:
            await _quietly(data.reset())  # the client may still be sending


async def _quietly(work: Awaitable[None]) -> None:
    try:
        await work
    except ConnectionError:
        _log.debug("the client of a port-forward has gone")


class _Channel:
    """One connection over a pair of channels; the client cannot say that it sends no more."""

    def __init__(self, number: int, port: int, socket: WebSocket) -> None:
        self._number = number
        self._socket = socket
        self.port = port
        self.incoming = Pipe(_ROOM)

    async def begin(self) -> None:
        """Tell the number of the port on both channels."""
        number = self.port.to_bytes(2, "little")
        await self._socket.send(bytes([self._number]) + number)
        await self._socket.send(bytes([self._number + 1]) + number)

    async def read(self) -> bytes:
        return await self.incoming.read()

    async def write(self, data: bytes) -> None:
        await self._socket.send(bytes([self._number]) + data)

    async def fail(self, why: str) -> None:
        await self._socket.send(bytes([self._number + 1]) + why.encode())

    async def finish(self) -> None:
        """End the connection for good: this is all that can be told."""
        self.incoming.end()

    async def carry(self, place: _Place) -> None:
        found = await place.connect(self.port)
        if isinstance(found, str):
            await self.fail(found)
        else:
            await _join(found, self)


async def _channels(place: _Place, wanted: list[int], socket: WebSocket) -> None:
    """Connect to each of the ports at once; the WebSocket ends with the last of the connections."""
    channels = [_Channel(2 * place_, port, socket) for place_, port in enumerate(wanted)]

    async def listen() -> None:
        while (message := await socket.receive()) is not None:
            if len(message) > 1 and message[0] % 2 == 0 and message[0] // 2 < len(channels):
                await channels[message[0] // 2].incoming.feed(message[1:])

    async def work() -> None:
        for channel in channels:
            await channel.begin()
        await asyncio.gather(*(channel.carry(place) for channel in channels))

    tasks: list[asyncio.Task[Any]] = [asyncio.create_task(work()), asyncio.create_task(listen())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        for problem in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(problem, Exception) and not isinstance(problem, ConnectionError):
                _log.error("a port-forward failed", exc_info=problem)
