"""Lists: all at once, or page by page.

    pods = await client.list(Pod)                 # a ListResult[Pod]: a list that knows its version
    async for pod in client.list(Pod): ...        # one page in memory at a time

Both ask in pages (500 objects unless told otherwise), all of them of one state of the server: what changes meanwhile is
not seen. The server keeps that state for some minutes only. When it is gone in the middle (410 Expired),

- `await` begins again, once, and takes everything in one answer: nothing has been handed out yet;
- `async for` and `pages` raise `Expired`, which says how many objects had come: going on would mix two states.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Generator, Iterable
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec

from flyball.api import ResourceType
from flyball.client.kinds import Kind
from flyball.client.session import Session, Target
from flyball.errors import Expired, error_from_status, malformed

__all__ = ["ListResult", "Listing", "read_list"]

T = TypeVar("T")

_SLICE = 1000
"""How many objects are decoded before other tasks get their turn."""


class ListResult(list[T], Generic[T]):
    """A list of objects that knows of which state of the server it is."""

    def __init__(
        self, items: Iterable[T] = (), *, resource_version: str = "", token: str = "", remaining: int | None = None
    ) -> None:
        super().__init__(items)
        self.resource_version = resource_version
        """Where a watch goes on from."""
        self.token = token
        """The server's `continue`, empty on the last page."""
        self.remaining = remaining
        """How many objects follow, if the server says."""


class _ListMeta(msgspec.Struct):
    resource_version: str | None = msgspec.field(name="resourceVersion", default=None)
    token: str | None = msgspec.field(name="continue", default=None)
    remaining: int | None = msgspec.field(name="remainingItemCount", default=None)


class _Page(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


class _Head(msgspec.Struct):
    api_version: str | None = msgspec.field(name="apiVersion", default=None)
    kind: str | None = None


class Listing(Generic[T]):
    """A list that is asked for when it is awaited or iterated; each time anew."""

    def __init__(
        self,
        session: Session,
        kind: Kind[T],
        namespace: str | None,
        query: tuple[tuple[str, str], ...],
        page_size: int | None,
        timeout: float | None,
    ) -> None:
        self._session = session
        self._kind = kind
        self._namespace = namespace
        self._query = query
        self._page_size = page_size
        self._timeout = timeout

    def __await__(self) -> Generator[Any, None, ListResult[T]]:
        return self._all().__await__()

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page:
                yield item

    async def pages(self) -> AsyncIterator[ListResult[T]]:
        """Page by page; raises `Expired` when the state of the first page is gone before the last one."""
        target = await self._session.collection(self._kind, self._namespace)
        token, count = "", 0
        while True:
            try:
                page = await self._page(target, self._page_size, token)
            except Expired as error:
                raise (_expired_midway(error, count) if token else error) from error
            count += len(page)
            yield page
            token = page.token
            if not token:
                return

    async def _all(self) -> ListResult[T]:
        whole: ListResult[T] | None = None
        try:
            async for page in self.pages():
                whole = page if whole is None else _joined(whole, page)
        except Expired:
            if whole is None:
                raise
            whole = await self._page(await self._session.collection(self._kind, self._namespace), None, "")
        assert whole is not None, "a list has at least one page"
        whole.token, whole.remaining = "", None
        return whole

    async def _page(self, target: Target[T], size: int | None, token: str) -> ListResult[T]:
        # With a token the server refuses a resourceVersion: the token holds it.
        query = tuple(pair for pair in self._query if not (token and pair[0].startswith("resourceVersion")))
        if size:
            query += (("limit", str(size)),)
        if token:
            query += (("continue", token),)
        request = self._session.request(
            "GET",
            target.path(),
            action=f"list {target.words}",
            query=query,
            accept=target.kind.list_accept,
            timeout=self._timeout,
        )
        body = await self._session.call(request)
        return await read_list(self._session, body, target, request.action)


async def read_list(session: Session, body: bytes, target: Target[T], action: str) -> ListResult[T]:
    """Decode a list answer; the collector rests meanwhile, and other tasks get turns in between."""
    try:
        page = msgspec.json.decode(body, type=_Page)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise malformed({}, body, action=action, host=session.transport.host, cause=str(error)) from error
    raws = page.items or []
    result: ListResult[T] = ListResult(
        resource_version=page.metadata.resource_version or "",
        token=page.metadata.token or "",
        remaining=page.metadata.remaining,
    )
    for start in range(0, len(raws), _SLICE):
        if start:
            await asyncio.sleep(0)
        with _collector_resting():
            result.extend(
                session.read(target, with_names(raw, target.resource), action) for raw in raws[start : start + _SLICE]
            )
    return result


def with_names(raw: msgspec.Raw, resource: ResourceType) -> bytes:
    """An item's own bytes, with the `apiVersion` and `kind` that a server leaves out within lists of built-in kinds."""
    view = memoryview(raw)
    if bytes(view[:12]) != b'{"metadata":':
        head = msgspec.json.decode(view, type=_Head)
        if head.kind and head.api_version:
            return bytes(view)
        if len(view) == len("{}"):
            return _names(resource)[:-1] + b"}"
    return b"".join((_names(resource), view[1:]))  # one copy: an item is kilobytes, a list has thousands


@lru_cache(maxsize=256)
def _names(resource: ResourceType) -> bytes:
    return msgspec.json.encode({"apiVersion": resource.api_version, "kind": resource.kind})[:-1] + b","


def _joined(whole: ListResult[T], page: ListResult[T]) -> ListResult[T]:
    whole.extend(page)
    whole.resource_version = page.resource_version
    return whole


def _expired_midway(error: Expired, count: int) -> Exception:
    message = (
        f"the list's state was dropped by the server after {count} objects had come; "
        f"list again, with larger pages, or await the whole list ({error.message})"
    )
    return error_from_status({**error.status, "message": message}, action=error.action, host=error.host)


@contextmanager
def _collector_resting() -> Generator[None]:
    """Thousands of new objects make the collector look at all others again and again, for nothing."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
