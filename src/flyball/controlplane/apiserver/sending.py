"""How answers go out: each as one piece, and the parts of a stream as they come.

aiohttp reads requests; it would also write answers, but with objects and copies in between that cost as much as the
answer itself. So head and body are written to the connection as one piece (one record of TLS), and aiohttp is told that
the answer is on its way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from email.utils import format_datetime
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from flyball.clock import Clock
from flyball.controlplane.apiserver.request import Answer

__all__ = ["Sending"]

_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}
_HIGH_WATER: Final = 64 << 10


class _OnItsWay(web.StreamResponse):
    """Tells aiohttp that an answer has been written, and whether the connection stays."""

    def __init__(self, *, stays: bool) -> None:
        super().__init__()
        self._stays = stays

    @property
    def keep_alive(self) -> bool:
        return self._stays

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        return None

    async def write_eof(self, data: bytes | bytearray | memoryview = b"") -> None:
        """Write nothing."""


_STAYS: Final = _OnItsWay(stays=True)
_CLOSES: Final = _OnItsWay(stays=False)


class _Dates:
    """The text of a Date header, made once a second."""

    def __init__(self) -> None:
        self._second = datetime.min
        self._text = ""

    def text(self, now: datetime) -> str:
        second = now.replace(microsecond=0)
        if second != self._second:
            self._second, self._text = second, format_datetime(second, usegmt=True)
        return self._text


_dates: Final = _Dates()


class Sending:
    """The answer to one request."""

    __slots__ = ("_clock", "_incoming", "_transport")

    def __init__(self, incoming: web.BaseRequest, clock: Clock) -> None:
        """Take the request that is answered."""
        self._incoming = incoming
        self._clock = clock
        self._transport: Any = incoming.transport

    def go_on(self) -> None:
        """Tell a client that waits for it to send the body."""
        self._write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def whole(self, answer: Answer, *, close: bool = False) -> web.StreamResponse:
        """Send an answer with its body."""
        stays = self._incoming.keep_alive and not close
        head = self._head(answer, f"Content-Length: {len(answer.body)}" if answer.status != 204 else "", stays=stays)
        self._write(head if self._incoming.method == "HEAD" else head + answer.body)
        return _STAYS if stays else _CLOSES

    def switch(self, answer: Answer) -> web.StreamResponse:
        """Tell a client that the connection is another one from now on; it closes in the end."""
        lines = ["HTTP/1.1 101 Switching Protocols", *(f"{name}: {value}" for name, value in answer.headers.items())]
        self._write("\r\n".join((*lines, "", "")).encode())
        return _CLOSES

    async def stream(self, answer: Answer, parts: AsyncIterator[bytes]) -> web.StreamResponse:
        """Send the head at once, and each part as it comes; wait where the client does not keep up."""
        chunked = self._incoming.version >= (1, 1)
        stays = self._incoming.keep_alive and chunked
        transport, writer = self._transport, self._incoming.writer
        try:
            self._write(self._head(answer, "Transfer-Encoding: chunked" if chunked else "", stays=stays))
            async for part in parts:
                if not part:
                    continue  # an empty chunk would be the end
                transport.write(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
                if transport.get_write_buffer_size() > _HIGH_WATER:
                    await writer.drain()
                elif transport.is_closing():
                    return _CLOSES
            if chunked:
                transport.write(b"0\r\n\r\n")
        except (ConnectionResetError, asyncio.CancelledError):
            return _CLOSES  # the client has gone: nobody is left to be told
        except ConnectionAbortedError:
            transport.abort()
            return _CLOSES
        finally:
            close: Any = getattr(parts, "aclose", None)
            if close is not None:
                await close()
        return _STAYS if stays else _CLOSES

    def cut(self, answer: Answer, after: int) -> web.StreamResponse:
        """Break the connection off after so many bytes of the answer."""
        if after:
            head = self._head(answer, f"Content-Length: {len(answer.body)}", stays=True)
            self._write(head + answer.body[:after])
            self._transport.close()
        else:
            self._transport.abort()
        return _CLOSES

    def _head(self, answer: Answer, framing: str, *, stays: bool) -> bytes:
        lines = [f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, '')}"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        lines += [f"Warning: {warning}" for warning in answer.warnings]
        if answer.content_type:
            lines.append(f"Content-Type: {answer.content_type}")
        lines.append(f"Date: {_dates.text(self._clock.now())}")
        if framing:
            lines.append(framing)
        if not stays:
            lines.append("Connection: close")
        return "\r\n".join((*lines, "", "")).encode()

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)
