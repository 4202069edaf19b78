"""HTTP/1.1 with as little between as possible: requests on a kept connection, and the lines of a watch."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from typing import Self

__all__ = ["Broken", "Connection", "watch_lines"]

_HEAD = "{method} {target} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: soak/1\r\nContent-Length: {size}\r\n\r\n"


class Broken(Exception):
    """The server is gone."""


class Connection:
    """One connection; one request at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, method: str, target: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send a request and read its answer. Raises Broken when the server has gone."""
        try:
            if self._reader is None or self._writer is None:
                self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 26)
            self._writer.write(_HEAD.format(method=method, target=target, size=len(body)).encode() + body)
            head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
            size = int(head.partition(b"content-length: ")[2].partition(b"\r")[0])
            return int(head[9:12]), await self._reader.readexactly(size)
        except (OSError, asyncio.IncompleteReadError) as error:
            self.close()
            raise Broken from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


async def watch_lines(port: int, target: str, *, buffer: int = 0) -> AsyncGenerator[list[bytes]]:
    """Open a watch and give its lines as they come, until the server ends it. Raises Broken when it breaks off."""
    plain = socket.socket()
    plain.setblocking(False)
    if buffer:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    writer: asyncio.StreamWriter | None = None
    try:
        await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(sock=plain, limit=buffer or 1 << 20)
        writer.write(_HEAD.format(method="GET", target=target, size=0).encode())
        await reader.readuntil(b"\r\n\r\n")
        rest = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            part = rest + await reader.readexactly(size)
            await reader.readexactly(2)
            *lines, rest = part.split(b"\n")
            yield lines
    except (OSError, asyncio.IncompleteReadError, ValueError) as error:
        raise Broken from error
    finally:
        if writer is not None:
            writer.close()
        else:
            plain.close()
