"""Connections of the network that become WebSockets, or something else that old clients ask for."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from aiohttp import WSMsgType, web

from flyball.controlplane.apiserver.request import Upgrade
from flyball.controlplane.apiserver.streaming import Sessions
from flyball.framing.sockets import GOING_AWAY, NORMAL, until_sent

__all__ = ["take_over", "upgrade_connection"]

_FAREWELL_SECONDS: Final = 2.0
"""So long a client is waited for to say goodbye too."""
_MAX_MESSAGE: Final = 16 << 20
_MAX_WAITING: Final = 1 << 18


async def upgrade_connection(incoming: web.BaseRequest, upgrade: Upgrade, sessions: Sessions) -> web.StreamResponse:
    """Make a connection a WebSocket and talk, until all is said, the client has gone or the server stops."""
    raw = web.WebSocketResponse(
        protocols=(upgrade.protocol,), timeout=_FAREWELL_SECONDS, compress=False, max_msg_size=_MAX_MESSAGE
    )
    await raw.prepare(incoming)
    socket = _Socket(raw, upgrade.protocol)
    talking = asyncio.ensure_future(upgrade.talk(socket))
    sessions.add(talking)
    try:
        await asyncio.wait({talking})
    except asyncio.CancelledError:  # the client has gone
        talking.cancel()
        await asyncio.gather(talking, return_exceptions=True)
        return raw
    if talking.cancelled():
        await socket.close(GOING_AWAY, "the server stops")
    elif isinstance(talking.exception(), ConnectionAbortedError):
        if incoming.transport is not None:
            incoming.transport.abort()
    else:
        await socket.close()
        talking.result()
    return raw


async def take_over(incoming: web.BaseRequest, upgrade: Upgrade, sessions: Sessions) -> None:
    """Talk over a connection whose client has been told that it is another one now; the caller closes it."""
    raw = _Raw(incoming)
    parser: Any = raw
    incoming.protocol.set_parser(parser)
    raw.protocol = upgrade.protocol
    talking = asyncio.ensure_future(upgrade.talk(raw))
    sessions.add(talking)
    try:
        await asyncio.wait({talking})
    except asyncio.CancelledError:  # the client has gone
        talking.cancel()
        await asyncio.gather(talking, return_exceptions=True)
        return
    if talking.cancelled():
        return
    if isinstance(talking.exception(), ConnectionAbortedError):
        if incoming.transport is not None:
            incoming.transport.abort()
    else:
        talking.result()


class _Raw:
    """A connection itself: pieces of bytes instead of messages. aiohttp feeds it what comes."""

    def __init__(self, incoming: web.BaseRequest) -> None:
        self.protocol = ""
        self._transport = incoming.transport
        self._writer = incoming.writer
        self._data = bytearray()
        self._ended = False
        self._paused = False
        self._changed = asyncio.Event()

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Take what has come."""
        self._data += data
        if len(self._data) > _MAX_WAITING and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._changed.set()
        return False, b""

    def feed_eof(self) -> None:
        """Nothing more will come."""
        self._ended = True
        self._changed.set()

    async def receive(self) -> bytes | None:
        while not self._data and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        data = bytes(self._data)
        self._data.clear()
        if self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()
        return data or None

    async def send(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError("the client has gone")
        self._transport.write(data)
        await until_sent(self._writer.drain())

    async def close(self, code: int = NORMAL, reason: str = "") -> None:
        if self._transport is not None:
            self._transport.close()


class _Socket:
    """One end of a WebSocket over aiohttp."""

    def __init__(self, raw: web.WebSocketResponse, protocol: str) -> None:
        self._raw = raw
        self.protocol = protocol

    async def send(self, data: bytes) -> None:
        await until_sent(self._raw.send_bytes(data))

    async def receive(self) -> bytes | None:
        if self._raw.closed:
            return None
        message = await self._raw.receive()
        if message.type is WSMsgType.BINARY:
            data: bytes = message.data
            return data
        if message.type is WSMsgType.TEXT:  # old clients send what is typed as text
            text: str = message.data
            return text.encode()
        return None

    async def close(self, code: int = NORMAL, reason: str = "") -> None:
        await self._raw.close(code=code, message=reason.encode())
