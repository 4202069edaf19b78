"""WebSockets over HTTP: what `HttpTransport` gives when one is asked for.

aiohttp makes the connection. Two things it does not do by itself: it tells nothing of a refusal but its status, and it
follows redirections; a trace of the request sees both in time.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

import aiohttp
from yarl import URL

from flyball.client.transport import HttpResponse
from flyball.clock import Clock
from flyball.framing import WebSocket
from flyball.framing.sockets import NORMAL, until_sent

__all__ = ["OpenSocket", "open_socket"]

_FAREWELL_SECONDS: Final = 2.0
_PING_SECONDS: Final = 30.0
"""So often a sign of life goes out, so that nothing on the way takes a silent connection for a dead one."""


async def open_socket(
    url: URL,
    protocols: Sequence[str],
    *,
    headers: Mapping[str, str],
    timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - of aiohttp: silence, not length
    tls: ssl.SSLContext | bool,
    server_hostname: str | None,
    proxy: str | None,
    clock: Clock,
) -> HttpResponse:
    """Ask for a WebSocket; return it, or the server's refusal. Raises what aiohttp raises."""
    seen = _Seen()
    named: dict[str, Any] = {} if server_hostname is None else {"server_hostname": server_hostname}
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver()),
        cookie_jar=aiohttp.DummyCookieJar(),
        trace_configs=[seen.trace()],
        timeout=timeout,
        requote_redirect_url=False,
    )
    # As in HttpTransport: aiohttp would ask again by itself, and a command would run twice.
    session._retry_connection = False  # pyright: ignore[reportPrivateUsage]
    try:
        raw = await session.ws_connect(
            url,
            protocols=protocols,
            headers=headers,
            ssl=tls,
            proxy=proxy,
            timeout=aiohttp.ClientWSTimeout(ws_close=_FAREWELL_SECONDS),  # pyright: ignore[reportCallIssue]
            max_msg_size=0,
            **named,
        )
    except BaseException as error:
        await session.close()
        if seen.refusal is not None and isinstance(error, (aiohttp.WSServerHandshakeError, _Redirected)):
            return seen.refusal
        raise
    return OpenSocket(session, raw, seen, clock)


class _Redirected(Exception):
    """Ends a request that would go elsewhere."""


class _Seen:
    """What a trace saw of the answer."""

    def __init__(self) -> None:
        self.refusal: _Refusal | None = None
        self.headers: Mapping[str, str] = {}
        self.transport: asyncio.Transport | None = None

    def trace(self) -> aiohttp.TraceConfig:
        trace = aiohttp.TraceConfig()
        trace.on_request_end.append(self._ended)
        trace.on_request_redirect.append(self._redirected)
        return trace

    async def _ended(
        self, _session: aiohttp.ClientSession, _context: SimpleNamespace, found: aiohttp.TraceRequestEndParams
    ) -> None:
        answer = found.response
        self.headers = answer.headers
        if answer.status != 101:
            self.refusal = _Refusal(answer.status, answer.headers, await answer.read())
        elif answer.connection is not None:
            self.transport = answer.connection.transport

    async def _redirected(
        self, _session: aiohttp.ClientSession, _context: SimpleNamespace, found: aiohttp.TraceRequestRedirectParams
    ) -> None:
        self.refusal = _Refusal(found.response.status, found.response.headers, b"")
        raise _Redirected


class _Refusal:
    """An answer that is there as a whole."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self._body = body

    async def read(self) -> bytes:
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body

    async def close(self) -> None:
        """Hold nothing that could be let go."""


class OpenSocket:
    """The granted WebSocket as an answer; it has a connection of its own."""

    status = 101

    def __init__(
        self, session: aiohttp.ClientSession, raw: aiohttp.ClientWebSocketResponse, seen: _Seen, clock: Clock
    ) -> None:
        self._session = session
        self._raw = raw
        self._connection = seen.transport
        self.headers = seen.headers
        self.socket: WebSocket = _Socket(self, raw)
        self._alive = asyncio.ensure_future(self._stay_alive(clock))

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._raw.closed

    async def read(self) -> bytes:
        """There is no body."""
        return b""

    async def chunks(self) -> AsyncIterator[bytes]:
        """There is no body."""
        nothing: tuple[bytes, ...] = ()
        for part in nothing:
            yield part

    async def close(self) -> None:
        """End the WebSocket and its connection."""
        await self.end(NORMAL, "")

    async def end(self, code: int, reason: str) -> None:
        """Say goodbye, and cut the connection: a TLS farewell would outlive the event loop."""
        self._alive.cancel()
        try:
            await self._raw.close(code=code, message=reason.encode())
        finally:
            if self._connection is not None:
                self._connection.abort()
            await self._session.close()

    async def _stay_alive(self, clock: Clock) -> None:
        with contextlib.suppress(ConnectionError):
            while not self._raw.closed:
                await clock.sleep(_PING_SECONDS)
                await self._raw.ping()


class _Socket:
    """Our end of a WebSocket over aiohttp."""

    def __init__(self, owner: OpenSocket, raw: aiohttp.ClientWebSocketResponse) -> None:
        self._owner = owner
        self._raw = raw
        self.protocol = raw.protocol or ""

    async def send(self, data: bytes) -> None:
        await until_sent(self._raw.send_bytes(data))

    async def receive(self) -> bytes | None:
        if self._raw.closed:
            return None
        message = await self._raw.receive()
        if message.type is aiohttp.WSMsgType.BINARY:
            data: bytes = message.data
            return data
        if message.type is aiohttp.WSMsgType.TEXT:
            text: str = message.data
            return text.encode()
        return None

    async def close(self, code: int = NORMAL, reason: str = "") -> None:
        await self._owner.end(code, reason)
