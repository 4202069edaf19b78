"""Connections of the network that become WebSockets."""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import WSMsgType, web

from flyball.controlplane.apiserver.request import Upgrade
from flyball.controlplane.apiserver.streaming import Sessions
from flyball.framing.sockets import GOING_AWAY, NORMAL

__all__ = ["upgrade_connection"]

_FAREWELL_SECONDS: Final = 2.0
"""So long a client is waited for to say goodbye too."""
_MAX_MESSAGE: Final = 16 << 20


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


class _Socket:
    """One end of a WebSocket over aiohttp."""

    def __init__(self, raw: web.WebSocketResponse, protocol: str) -> None:
        self._raw = raw
        self.protocol = protocol

    async def send(self, data: bytes) -> None:
        await self._raw.send_bytes(data)

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
