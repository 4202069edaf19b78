"""One watch: a stream of changes, from a version on, until the server ends it.

    async with client.watch(Pod, namespace="demo", resource_version=pods.resource_version) as changes:
        async for change in changes:
            print(change.type, change.object.metadata.name)

Guarantees.

- Events come in the server's order, none is left out, and lines have no size limit.
- The server is always told when to end the stream (a random time of 5 to 10 minutes unless a time is given), so that
  many watches do not come back at once. Such an end ends the iteration; `resource_version` is where to go on.
- A connection that died without saying so is noticed: when nothing at all comes for longer than the server's own time,
  `RequestTimeout` is raised. Bookmarks, which are always asked for, keep `resource_version` fresh meanwhile.
- An error that the server sends within the stream is raised before any attempt to read it as an object: `Expired` when
  the version is too old (list again), otherwise the `ApiError` of its reason.

It does not reconnect: what may be repeated, and when to list again, is for the cache to decide.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, AsyncIterator
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar, cast, get_args

import msgspec

from flyball.client.kinds import Kind
from flyball.client.lines import LineSplitter
from flyball.client.session import Session, Target
from flyball.client.transport import HttpRequest
from flyball.errors import MalformedAnswer, error_from_status, malformed

__all__ = ["EventType", "Watch", "WatchEvent"]

T = TypeVar("T")

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
_TYPES = frozenset(get_args(EventType))
_SHORTEST, _LONGEST = 300, 600
_MARGIN = 30.0
_INITIAL_END = "k8s.io/initial-events-end"


class _Line(msgspec.Struct):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")


class _Meta(msgspec.Struct):
    resource_version: str | None = msgspec.field(name="resourceVersion", default=None)
    annotations: dict[str, str] | None = None


class _Head(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class WatchEvent(Generic[T]):
    """One change: what happened, and the object after it (of DELETED: as it was last)."""

    __slots__ = ("_head", "object", "raw", "type")

    def __init__(self, type: EventType, object: T, raw: bytes) -> None:
        self.type = type
        self.object = object
        """Of a BOOKMARK: an object with nothing but a version."""
        self.raw = raw
        """The object as received."""
        self._head: _Head | None = None

    def __repr__(self) -> str:
        return f"WatchEvent({self.type!r}, {self.object!r})"

    @property
    def resource_version(self) -> str:
        """The version that this event brings."""
        return self._metadata.resource_version or ""

    @property
    def initial_events_end(self) -> bool:
        """Whether this is the bookmark after the last object that was there at the start (`send_initial_events`)."""
        return self.type == "BOOKMARK" and (self._metadata.annotations or {}).get(_INITIAL_END) == "true"

    @property
    def _metadata(self) -> _Meta:
        if self._head is None:
            self._head = msgspec.json.decode(self.raw, type=_Head)
        return self._head.metadata


class Watch(Generic[T]):
    """A watch that starts when it is iterated; see the module's text. Leaving `async with` closes its connection."""

    def __init__(
        self,
        session: Session,
        kind: Kind[T],
        *,
        namespace: str | None,
        query: tuple[tuple[str, str], ...],
        resource_version: str | None,
        bookmarks: bool,
        send_initial_events: bool,
        timeout: float | None,
        inactivity: float | None,
    ) -> None:
        self._session = session
        self._kind = kind
        self._namespace = namespace
        self._bookmarks = bookmarks or send_initial_events
        seconds = round(timeout) if timeout is not None else random.randint(_SHORTEST, _LONGEST)  # noqa: S311
        self._inactivity = inactivity if inactivity is not None else seconds + _MARGIN
        self._query = query + _watch_query(resource_version, send_initial_events, max(1, seconds))
        self._stream: AsyncGenerator[WatchEvent[T], None] | None = None
        self._last: WatchEvent[T] | None = None
        self._from = resource_version or ""

    @property
    def resource_version(self) -> str:
        """The version of the last event (bookmarks too), before any the one asked for: where another watch goes on."""
        return (self._last.resource_version if self._last else "") or self._from

    def __aiter__(self) -> AsyncIterator[WatchEvent[T]]:
        self._stream = self._events()
        return self._stream

    async def __aenter__(self) -> Watch[T]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the iteration and give the connection back; may be called twice."""
        if self._stream is not None:
            await self._stream.aclose()

    async def _events(self) -> AsyncGenerator[WatchEvent[T], None]:
        target = await self._session.collection(self._kind, self._namespace)
        request = self._session.request(
            "GET",
            target.path(),
            action=f"watch {target.words}",
            query=self._query,
            accept=target.kind.accept,
            timeout=self._inactivity,
        )
        response = await self._session.open(request)
        splitter = LineSplitter()
        try:
            async for chunk in response.chunks():
                for line in splitter.feed(chunk):
                    event = self._event(line, target, request)
                    if event is not None:
                        yield event
            event = self._event(splitter.rest(), target, request)
            if event is not None:
                yield event
        finally:
            await response.close()

    def _event(self, line: bytes, target: Target[T], request: HttpRequest) -> WatchEvent[T] | None:
        if not line.strip():
            return None
        found = self._decoded(line, request)
        if found.type not in _TYPES:
            raise self._failure(found, line, request)
        raw = bytes(found.object)
        obj = self._session.read(target, raw, request.action)
        event = WatchEvent(cast("EventType", found.type), obj, raw)
        self._last = event
        return event if self._bookmarks or event.type != "BOOKMARK" else None

    def _decoded(self, line: bytes, request: HttpRequest) -> _Line:
        try:
            return msgspec.json.decode(line, type=_Line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._malformed(line, request, f"an event of {len(line)} bytes cannot be read: {error}") from error

    def _failure(self, found: _Line, line: bytes, request: HttpRequest) -> Exception:
        """An ERROR event, a Status that a server sent bare, or something that no server sends."""
        status = _status(bytes(found.object) if found.type == "ERROR" else line)
        if status is not None:
            return error_from_status(status, action=request.action, host=self._session.transport.host)
        return self._malformed(line, request, f"unknown event type {found.type!r}")

    def _malformed(self, line: bytes, request: HttpRequest, cause: str) -> MalformedAnswer:
        return malformed({}, line, action=request.action, host=self._session.transport.host, cause=cause)


def _status(raw: bytes) -> dict[str, Any] | None:
    found = msgspec.json.decode(raw)
    if isinstance(found, dict) and cast("dict[str, Any]", found).get("kind") == "Status":
        return cast("dict[str, Any]", found)
    return None


def _watch_query(version: str | None, send_initial_events: bool, seconds: int) -> tuple[tuple[str, str], ...]:
    pairs = [("allowWatchBookmarks", "true")]
    if send_initial_events:
        pairs += [("resourceVersion", version or ""), ("resourceVersionMatch", "NotOlderThan")]
        pairs += [("sendInitialEvents", "true")]
    elif version is not None:
        pairs += [("resourceVersion", version)]
    return (*pairs, ("timeoutSeconds", str(seconds)), ("watch", "true"))
