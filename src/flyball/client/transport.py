"""What carries requests to an API server: over HTTP, or within the process.

`Transport` is the whole contract between the verbs above and whatever answers below. A transport knows nothing of
kinds, verbs or Status; it moves bytes. Interceptors stand between the two and see every request: retries, metrics,
traces, tests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, TypeAlias

from flyball.framing import WebSocket

__all__ = ["HttpRequest", "HttpResponse", "Interceptor", "Send", "Transport", "Upgraded"]

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request, not yet sent; `dataclasses.replace` makes a changed one."""

    method: str
    path: str
    """From the root of the API server (`/api/v1/pods`), percent-encoded where a segment needs it; without the query."""
    query: tuple[tuple[str, str], ...] = ()
    """Names and values, not encoded, in the order in which they are sent."""
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_HEADERS)
    body: bytes | None = field(default=None, repr=False)
    timeout: float | None = None
    """The longest silence of the server in seconds, before the answer begins and between its parts; None is the
    transport's own
    default, `math.inf` is no limit."""
    action: str = ""
    """What is being done, for messages: `apply Deployment default/demo`."""
    upgrade: tuple[str, ...] = ()
    """The subprotocols, best first, in which a WebSocket is wanted instead of an answer: that is `Upgraded` then, with
    status 101. Whatever else comes is the server's refusal."""


class HttpResponse(Protocol):
    """An answer whose head has come; the body is read by exactly one of `read` and `chunks`, or dropped by `close`."""

    @property
    def status(self) -> int:
        """The HTTP status code."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; look-ups do not care for upper and lower case."""
        ...

    async def read(self) -> bytes:
        """The whole body, of any size; raises `TransportError` when it breaks off."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body piece by piece as it comes; pieces have any size and end anywhere. Raises `TransportError` when it
        breaks off.
        """
        ...

    async def close(self) -> None:
        """Drop what has not been read; may be called at any time, and twice."""
        ...


class Upgraded(HttpResponse, Protocol):
    """The answer to a request for a WebSocket that was granted; `close` ends the WebSocket."""

    @property
    def socket(self) -> WebSocket:
        """Our end of it."""
        ...


class Transport(Protocol):
    """Carries requests to one API server.

    Guarantees: `send` returns as soon as the head of the answer is there, whatever its status code is; it raises
    `TransportError` (whose subclasses tell whether the server can have acted) and nothing else; it never sends a
    request twice unless the server cannot have acted on the first one; any number of requests run at once. It does
    not guarantee an order among them.
    """

    @property
    def host(self) -> str:
        """Where this leads, for messages: `127.0.0.1:6443`."""
        ...

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send it and wait for the head of the answer."""
        ...

    async def close(self) -> None:
        """Close all connections; requests under way fail. May be called twice."""
        ...


Send: TypeAlias = Callable[[HttpRequest], Awaitable[HttpResponse]]
"""Whatever takes a request on its way: a transport's `send`, or the rest of the interceptors."""

Interceptor: TypeAlias = Callable[[HttpRequest, Send], Awaitable[HttpResponse]]
"""Sees a request, calls `Send` (never, once or more often) and returns an answer."""
