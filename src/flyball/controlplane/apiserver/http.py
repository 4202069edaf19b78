"""The front door on the network: HTTP/1.1, over TLS, or in the clear on loopback or a Unix socket as one fixed user."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import logging
import os
import socket
import ssl
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from flyball.controlplane.apiserver.authn import user_of_certificate
from flyball.controlplane.apiserver.body import MAX_BODY
from flyball.controlplane.apiserver.render import encode
from flyball.controlplane.apiserver.request import Answer, Request, User
from flyball.controlplane.apiserver.sending import Sending
from flyball.controlplane.apiserver.server import ApiServer
from flyball.controlplane.apiserver.status import StatusError, bad_request, too_large
from flyball.controlplane.apiserver.upgrading import take_over, upgrade_connection
from flyball.errors import ConfigError

__all__ = ["HttpDoor", "is_loopback"]

_MAX_PARAMETERS: Final = 1000
_MAX_USERS: Final = 1000
_MAX_LINE: Final = 64 << 10
_VERSIONS: Final = "x-stream-protocol-version"
_LINGER_SECONDS: Final = 0.5
"""So long what a client still sends is read after it has been refused, so that it sees the answer."""

_log: Final = logging.getLogger("flyball.apiserver.http")
_log.addFilter(lambda record: not _is_the_clients_fault(record))


def _is_the_clients_fault(record: logging.LogRecord) -> bool:
    """Tell whether a record says no more than that somebody sent what is no HTTP: they are told so themselves."""
    cause = record.exc_info[0] if record.exc_info else None
    return cause is not None and issubclass(cause, HttpProcessingError)


class HttpDoor:
    """Listens on an address and hands requests to an `ApiServer`.

    With `tls`, users show who they are. Without, everybody who reaches the door is `user`: so it is only opened on
    loopback or on a Unix socket, and it refuses what a web page of somebody else's could have sent.
    """

    def __init__(
        self,
        server: ApiServer,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        user: User | None = None,
        unix: Path | None = None,
        remote: bool = False,
        listening: socket.socket | None = None,
        body_seconds: float = 30.0,
    ) -> None:
        """Name where to listen, or give a socket that listens on `host` already; port 0 takes a free one.

        Anything but loopback is refused unless `remote` allows it.

        A body that has not come after `body_seconds` is given up, so that slow senders hold nothing.
        """
        if unix is None and not is_loopback(host):
            if not remote:
                told = f"listen on {host}: an embedded cluster is reached from this machine only"
                raise ConfigError(f"{told}; use 127.0.0.1, or allow it with --allow-remote")
            if tls is None:
                raise ConfigError(f"listen on {host}: plain HTTP is for loopback only; use TLS")
        self._server = server
        self._host = host
        self._port = port if listening is None else listening.getsockname()[1]
        self._tls = tls
        self._user = user
        self._unix = unix
        self._body_seconds = body_seconds
        self._users = _Users()
        self._socket = listening
        self._runner: web.ServerRunner | None = None

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._port

    @property
    def url(self) -> str:
        """Where clients find the server."""
        if self._unix is not None:
            return f"unix://{self._unix}"
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._tls else 'http'}://{host}:{self._port}"

    def bind(self) -> None:
        """Take the address: from now on clients may connect, and wait until the door is open. Raises ConfigError."""
        if self._socket is not None:
            return
        try:
            if self._unix is not None:
                self._socket = _unix_socket(self._unix)
                return
            family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
            self._socket = socket.create_server((self._host, self._port), family=family, backlog=4096)
            self._port = self._socket.getsockname()[1]
        except OSError as error:
            where = str(self._unix) if self._unix is not None else f"{self._host}:{self._port}"
            told = f"listen on {where}: {error.strerror or error}; choose another port, or 0 for a free one"
            raise ConfigError(told) from None

    async def open(self) -> None:
        """Begin to serve."""
        self.bind()
        assert self._socket is not None
        low = web.Server(
            self._serve,
            handler_cancellation=True,  # a watch ends when its reader has gone
            access_log=None,
            logger=_log,
            max_line_size=_MAX_LINE,
            max_field_size=_MAX_LINE,
            lingering_time=_LINGER_SECONDS,
        )
        self._runner = web.ServerRunner(low, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket, ssl_context=self._tls, backlog=4096).start()

    async def close(self) -> None:
        """Stop listening; streams end cleanly."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
        self.let_go()

    def let_go(self) -> None:
        """Give the address back."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            if self._unix is not None:
                self._unix.unlink(missing_ok=True)

    async def _serve(self, incoming: web.BaseRequest) -> web.StreamResponse:
        sending = Sending(incoming, self._server.core.clock)
        try:
            if self._tls is None and self._unix is None:
                _refuse_foreign_pages(incoming.headers)
            path, query = _target(incoming.raw_path)
            body = await _read(incoming, sending, self._body_seconds)
        except StatusError as error:
            return sending.whole(Answer(error.code, encode(error.body())))
        except TimeoutError:
            text = b"the body of the request did not come in time\n"
            return sending.whole(Answer(408, text, "text/plain; charset=utf-8"), close=True)
        headers = {name.lower(): value for name, value in incoming.headers.items()}
        if _VERSIONS in headers:  # each may come in a header of its own
            headers[_VERSIONS] = ", ".join(incoming.headers.getall(_VERSIONS))
        request = Request(incoming.method, path, query, headers, body)
        user = self._user if self._tls is None else self._users.of(incoming)
        answer = await self._server.handle(request, user)
        if answer.cut is not None:
            return sending.cut(answer, answer.cut)
        if answer.upgrade is not None and answer.upgrade.raw:
            switched = sending.switch(answer)
            await take_over(incoming, answer.upgrade, self._server.sessions)
            return switched
        if answer.upgrade is not None:
            return await upgrade_connection(incoming, answer.upgrade, self._server.sessions)
        if answer.stream is None:
            return sending.whole(answer)
        return await sending.stream(answer, answer.stream)


class _Users:
    """The users of client certificates; each certificate is read once."""

    def __init__(self) -> None:
        self._known: dict[bytes, User | None] = {}

    def of(self, incoming: web.BaseRequest) -> User | None:
        """Return who has shown a certificate on this connection."""
        tls = incoming.transport.get_extra_info("ssl_object") if incoming.transport is not None else None
        raw: bytes | None = tls.getpeercert(binary_form=True) if tls is not None else None
        if tls is None or not raw:
            return None
        if raw not in self._known:
            if len(self._known) >= _MAX_USERS:
                self._known.clear()
            self._known[raw] = user_of_certificate(tls.getpeercert(), hashlib.sha256(raw).hexdigest())
        return self._known[raw]


def is_loopback(host: str) -> bool:
    """Tell whether an address is reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _unix_socket(path: Path) -> socket.socket:
    if path.exists() and stat.S_ISSOCK(path.stat().st_mode):
        path.unlink()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listening.bind(str(path))
    except OSError:
        listening.close()
        raise
    finally:
        os.umask(before)
    listening.listen(4096)
    return listening


def _refuse_foreign_pages(headers: Mapping[str, str]) -> None:
    """Refuse what a browser sends for a page: the door in the clear asks nobody for a name."""
    host = urlsplit(f"//{headers.get('Host', '')}").hostname or ""
    if not is_loopback(host):
        told = f"the Host header names {host!r}; this door answers for 127.0.0.1 and localhost only"
        raise StatusError(403, "Forbidden", told, {})
    if "Origin" in headers:
        raise StatusError(403, "Forbidden", "requests of web pages are not answered by this door; use TLS", {})


def _target(raw: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Take the target of a request apart: the path as it came, and the parameters."""
    path, _, query = raw.partition("?")
    if path.startswith("http"):
        path = urlsplit(path).path
    if not query:
        return path, ()
    try:
        return path, tuple(parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS))
    except (UnicodeDecodeError, ValueError) as error:
        raise bad_request(f"the query of the request cannot be read: {error}") from None


async def _read(incoming: web.BaseRequest, sending: Sending, seconds: float) -> bytes:
    if not incoming.body_exists:
        return b""
    if (incoming.content_length or 0) > MAX_BODY:
        raise too_large(MAX_BODY)
    if incoming.headers.get("Expect", "").lower() == "100-continue":
        sending.go_on()
    if incoming.content.is_eof():
        return incoming.content.read_nowait()
    parts: list[bytes] = []
    size = 0
    async with asyncio.timeout(seconds):
        async for part in incoming.content.iter_any():
            size += len(part)
            if size > MAX_BODY:
                raise too_large(MAX_BODY)
            parts.append(part)
    return b"".join(parts)
