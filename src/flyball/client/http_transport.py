"""Requests over HTTP: the `Transport` to every server that is not in this process."""

from __future__ import annotations

import io
import math
import re
from collections.abc import AsyncIterator, Mapping
from urllib.parse import quote, urlsplit

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from flyball.client.cluster_config import ClusterConfig, split_server
from flyball.client.credentials import Identity, credentials_of
from flyball.client.failures import CONNECT_SECONDS, expired_certificate, refused_by_tls, transport_error
from flyball.client.proxies import proxy_of
from flyball.client.tls import Tls
from flyball.client.transport import HttpRequest, HttpResponse
from flyball.client.websockets import OpenSocket, open_socket
from flyball.clock import Clock, RealClock
from flyball.errors import TlsError, TransportError

__all__ = ["HttpTransport"]

_PLAIN_PATH = re.compile(r"[A-Za-z0-9/_.~!$&'()*+,;=:@%-]*").fullmatch
_PATH_CHARACTERS = "/_.~!$&'()*+,;=:@%-"
_FAILURES = (aiohttp.ClientError, OSError, TimeoutError, ValueError)
_LARGE_BODY = 1 << 20
_READ_BUFFER = 1 << 18
_HEADER_LIMIT = 1 << 18


class HttpTransport:
    """A `Transport` over HTTP/1.1, with connections kept and shared by all requests.

    Beyond the protocol it guarantees:

    - credentials and certificates are those of the moment: files are read again, plugins asked again; a 401 that newer
      credentials may heal is repeated once with them (the server has not acted on a request it does not know the
      sender of);
    - no limit on the size of an answer or of its parts, and none on the number of connections;
    - a redirection is handed back, never followed, so credentials go to no other host;
    - `timeout` of a request counts silence, not length: a large answer that flows may take as long as it likes.

    It opens nothing before the first request. It belongs to the event loop of that request.
    """

    def __init__(
        self,
        config: ClusterConfig,
        *,
        timeout: float = 30.0,
        clock: Clock | None = None,
        user_agent: str = "flyball",
    ) -> None:
        """Prepare to talk to the server of a configuration; `timeout` is for requests that give none."""
        server = split_server(config.server, config.source)
        self.host = server.netloc
        self.config = config
        self._root = f"{server.scheme}://{server.netloc}{server.path.rstrip('/')}"
        self._clock = clock or RealClock()
        self._credentials = credentials_of(config, self._clock)
        self._tls = Tls(config, self._clock) if server.scheme == "https" else None
        self._proxy = proxy_of(config)
        self._proxy_name = urlsplit(self._proxy).netloc.rpartition("@")[2] if self._proxy else ""
        self._timeout = timeout
        self._timeouts: dict[float, aiohttp.ClientTimeout] = {}
        self._headers: tuple[Identity, CIMultiDict[str]] | None = None
        self._common = {
            "User-Agent": user_agent,
            "Accept": "application/json",
            "Accept-Encoding": "identity" if config.disable_compression else "gzip",
        }
        self._session: aiohttp.ClientSession | None = None
        self._sockets: list[OpenSocket] = []
        self._closed = False

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request and wait for the head of its answer."""
        identity = await self._credentials.current()
        answer = await self._send_as(identity, request)
        if answer.status != 401:
            return answer
        return await self._refused(identity, request, answer)

    async def close(self) -> None:
        """Close all connections."""
        self._closed = True
        for socket in self._sockets:
            await socket.close()
        self._sockets.clear()
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _refused(self, identity: Identity, request: HttpRequest, answer: HttpResponse) -> HttpResponse:
        """The server does not know us: come back once with something newer, if there is something."""
        newer = await self._credentials.renew(identity)
        if newer is None and not self._certificate_changed(identity):
            expired = self._expired(request.action)
            if expired is None:
                return answer
            await answer.close()
            raise expired
        await answer.close()
        return await self._send_as(newer or identity, request)

    def _expired(self, action: str) -> TlsError | None:
        """The likeliest reason why a server refuses us: our certificate is out of date."""
        if self._tls is None or self._tls.expires is None or self._tls.expires > self._clock.now():
            return None
        return expired_certificate(self._tls.certificate_name, self._tls.expires, host=self.host, action=action)

    def _certificate_changed(self, identity: Identity) -> bool:
        if self._tls is None:
            return False
        before = self._tls.context(identity.certificate)
        return self._tls.context(identity.certificate, insist=True) is not before

    async def _send_as(self, identity: Identity, request: HttpRequest) -> HttpResponse:
        silence = self._timeout if request.timeout is None else request.timeout
        if request.upgrade:
            return await self._upgrade_as(identity, request, silence)
        session = self._session or self._open()
        body = request.body
        try:
            raw = await session.request(
                request.method,
                self._url(request),
                headers=self._headers_of(identity, request.headers),
                data=io.BytesIO(body) if body is not None and len(body) >= _LARGE_BODY else body,
                timeout=self._timeouts.get(silence) or self._timeout_of(silence),
                ssl=self._tls.context(identity.certificate) if self._tls is not None else True,
                server_hostname=self.config.tls_server_name,
                proxy=self._proxy,
                allow_redirects=False,
            )
        except _FAILURES as error:
            raise self._failure(error, request.action, silence) from error
        return _Answer(raw, self, request.action, silence)

    async def _upgrade_as(self, identity: Identity, request: HttpRequest, silence: float) -> HttpResponse:
        self._expect_open()
        self._sockets = [one for one in self._sockets if not one.closed]
        try:
            answer = await open_socket(
                self._url(request),
                request.upgrade,
                headers=self._headers_of(identity, request.headers),
                timeout=self._timeouts.get(silence) or self._timeout_of(silence),
                tls=self._tls.context(identity.certificate) if self._tls is not None else True,
                server_hostname=self.config.tls_server_name,
                proxy=self._proxy,
                clock=self._clock,
            )
        except _FAILURES as error:
            raise self._failure(error, request.action, silence) from error
        if isinstance(answer, OpenSocket):
            self._sockets.append(answer)
        return answer

    def _expect_open(self) -> None:
        if self._closed:
            raise TransportError("the client is closed; make a new one", host=self.host)

    def _open(self) -> aiohttp.ClientSession:
        self._expect_open()
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60, resolver=aiohttp.ThreadedResolver())
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_READ_BUFFER,
            max_line_size=_HEADER_LIMIT,
            max_field_size=_HEADER_LIMIT,
            requote_redirect_url=False,
        )
        # A request must never go out twice behind our back: aiohttp would repeat a PUT or DELETE whose answer was lost.
        self._session._retry_connection = False  # pyright: ignore[reportPrivateUsage]
        return self._session

    def _url(self, request: HttpRequest) -> URL:
        path = request.path
        if _PLAIN_PATH(path) is None:
            path = quote(path, safe=_PATH_CHARACTERS)
        if request.query:
            pairs = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in request.query)
            return URL(f"{self._root}{path}?{pairs}", encoded=True)
        return URL(self._root + path, encoded=True)

    def _headers_of(self, identity: Identity, more: Mapping[str, str]) -> CIMultiDict[str]:
        made = self._headers
        if made is None or made[0] is not identity:
            made = (identity, CIMultiDict([*self._common.items(), *identity.headers]))
            self._headers = made
        if not more:
            return made[1]
        headers = made[1].copy()
        headers.update(more)
        return headers

    def _timeout_of(self, silence: float) -> aiohttp.ClientTimeout:
        limit = None if math.isinf(silence) else silence
        found = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=limit)
        if len(self._timeouts) < 100:
            self._timeouts[silence] = found
        return found

    def _failure(self, error: BaseException, action: str, silence: float) -> TransportError:
        expired = self._expired(action) if refused_by_tls(error) else None
        return expired or transport_error(error, host=self.host, action=action, silence=silence, proxy=self._proxy_name)


class _Answer:
    """An `HttpResponse` of aiohttp whose failures are ours."""

    __slots__ = ("_action", "_owner", "_raw", "_silence", "headers", "status")

    def __init__(self, raw: aiohttp.ClientResponse, owner: HttpTransport, action: str, silence: float) -> None:
        self._raw = raw
        self._owner = owner
        self._action = action
        self._silence = silence
        self.status: int = raw.status
        self.headers: Mapping[str, str] = raw.headers

    async def read(self) -> bytes:
        try:
            return await self._raw.read()
        except _FAILURES as error:
            raise self._failure(error) from error

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._raw.content.iter_any():
                yield chunk
        except _FAILURES as error:
            raise self._failure(error) from error
        finally:
            self._drop()

    async def close(self) -> None:
        self._drop()

    def _drop(self) -> None:
        """Cut the connection of an answer that was not read to its end: a TLS farewell would outlive the event loop."""
        connection = self._raw.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._raw.close()

    def _failure(self, error: BaseException) -> TransportError:
        return self._owner._failure(error, self._action, self._silence)  # pyright: ignore[reportPrivateUsage]
