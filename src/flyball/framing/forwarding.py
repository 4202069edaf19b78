"""Port-forward: each connection to a port of a Pod has a stream for its bytes and one for what goes wrong with it.

In a tunnel (`SPDY/3.1+portforward.k8s.io`, from Kubernetes 1.31 on) both are streams of SPDY, opened by the client with
headers that say so. The older form (`v4.channel.k8s.io`) has two channels for each port that the request names; both
begin with the number of the port, and an end of one direction cannot be told.
"""

from __future__ import annotations

from typing import Final

from flyball.framing.channels import V4
from flyball.framing.sockets import WebSocket

__all__ = ["CHANNELS", "DATA", "ERROR", "PORT", "REQUEST", "STREAM_TYPE", "TUNNEL", "Tunnel"]

TUNNEL: Final = "SPDY/3.1+portforward.k8s.io"
CHANNELS: Final = V4

STREAM_TYPE: Final = "streamtype"
PORT: Final = "port"
REQUEST: Final = "requestid"
DATA: Final = "data"
ERROR: Final = "error"


class Tunnel:
    """Carries the bytes of SPDY in the messages of a WebSocket."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    async def read(self) -> bytes:
        """Wait for bytes; `b""` at the end."""
        while True:
            message = await self._socket.receive()
            if message is None:
                return b""
            if message:
                return message

    async def write(self, data: bytes) -> None:
        """Send bytes."""
        await self._socket.send(data)

    async def close(self) -> None:
        """End the WebSocket."""
        await self._socket.close()
