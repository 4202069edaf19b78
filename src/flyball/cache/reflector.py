"""The reflector: keeps a sink equal to a collection on the server.

    store = Store()
    reflector = Reflector(client, Pod, store, namespace="shop")
    task = asyncio.create_task(reflector.run())

What it guarantees, as long as it runs:

- The first list after a start is a consistent read (no resource version is asked for), so a restart never goes back in
  time; then every change is told in the server's order, none twice knowingly, none left out.
- When the server has forgotten the version to go on from (410), or the version is not to be trusted, everything is
  listed anew and handed over by `replace`: the sink finds out what vanished. No delete is missed.
- All other trouble (cuts, time-outs, 5xx, 429, refusals) leads to another try from the last version, after a pause that
  doubles, with jitter. A watch that the server ends at once counts as trouble as well. `health` says what is wrong.
- A kind that is not served (yet, or any more) is waited for. A 403 is kept in `health.missing`.

It lists in pages, or takes the first state from a streaming watch (watch-list) where it is told to and the server can.
What it cannot promise: that the sink sees each version. Changes between the last event and a new list are seen as one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Iterable
from typing import Any, Final, Protocol

import msgspec

from flyball.api import Resource, ResourceType
from flyball.api.rawlist import RawObject, RawReader
from flyball.cache.backoff import Backoff
from flyball.cache.collector import resting
from flyball.cache.health import Health, MissingPermission, Target
from flyball.cache.metrics import NO_METRICS, Metrics
from flyball.cache.objects import CachedObject, key_of
from flyball.cache.shaping import Shape
from flyball.client import ALL_NAMESPACES, Client, Kind, RefusedRequest, UnknownKind, WatchEvent, raw_of
from flyball.client.kinds import kind_from
from flyball.client.selectors import FieldQuery, LabelQuery, field_text, label_text
from flyball.clock import Clock, RealClock
from flyball.errors import (
    ApiError,
    Expired,
    FlyballError,
    Forbidden,
    Gone,
    MalformedAnswer,
    NotFound,
    TransportError,
    one_line,
)

__all__ = ["PAGE_SIZE", "Reflector", "Sink"]

log = logging.getLogger(__name__)

PAGE_SIZE: Final = 1000
"""Objects per page of a list: few round trips, and not much memory at a time."""

_NOT_SERVED_PAUSE: Final = 5.0
_AT_ONCE: Final = 1.0
_RECOVERED_AFTER: Final = 1.0
_SILENCE: Final = 180.0
_ODD: Final = 3


class Sink(Protocol):
    """Where a reflector puts what it hears: a `DeltaQueue`, or a `Store` directly."""

    def replace(
        self, objects: Iterable[CachedObject], resource_version: str = "", *, namespace: str | None = None
    ) -> None:
        """The whole collection (or its part of one namespace) is exactly this."""
        ...

    def add(self, obj: CachedObject) -> None:
        """An object was made, or has begun to be selected."""
        ...

    def update(self, obj: CachedObject) -> None:
        """An object was changed."""
        ...

    def delete(self, obj: CachedObject) -> None:
        """An object is gone, or is not selected any more; this is how it was last."""
        ...

    def bookmark(self, resource_version: str) -> None:
        """Everything up to this version has been told."""
        ...


class _Ended(FlyballError):
    """The server ended a watch at once."""


class _NoStreaming(FlyballError):
    """The server cannot begin a watch with what is there."""


class Reflector:
    """See the module's text."""

    def __init__(
        self,
        client: Client,
        kind: type[Resource] | Kind[Any] | ResourceType,
        sink: Sink,
        *,
        namespace: str | None = None,
        labels: LabelQuery | None = None,
        fields: FieldQuery | None = None,
        page_size: int | None = PAGE_SIZE,
        streaming: bool = False,
        keep_managed_fields: bool = False,
        shape: Shape | None = None,
        clock: Clock | None = None,
        backoff: Backoff | None = None,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        """`namespace` None means all of them. `streaming` asks for a watch-list, and falls back to pages."""
        self.kind: Kind[Any] = kind_from(kind)
        self.namespace = namespace
        self.resource_version = ""
        """From here the next watch goes on: everything before was handed to the sink."""
        self._client = client
        self._sink = sink
        self._selection = {
            name: text
            for name, text in (("fieldSelector", field_text(fields)), ("labelSelector", label_text(labels)))
            if text
        }
        self._page_size = page_size
        self._streaming = streaming
        self._reader = RawReader(keep_managed_fields=keep_managed_fields)
        self._shape = shape
        self._clock: Clock = clock if clock is not None else RealClock()
        self._backoff = backoff if backoff is not None else Backoff()
        self._metrics = metrics
        self._resource: ResourceType | None = None
        self._listed = False
        self._verb = "list"
        self._failed_verb = ""
        self._heard = 0.0
        self._bookmarked = False
        self._health = Health(False, self._clock.now(), f"the first list of {self.target.words()} has not come yet")

    @property
    def resource(self) -> ResourceType:
        """The kind with its address; before the first list the address may be missing."""
        source = self._resource or self.kind.source
        if isinstance(source, ResourceType):
            return source
        group, _, version = source.api_version.rpartition("/")
        return ResourceType(group, version, source.kind, "")

    @property
    def target(self) -> Target:
        """What is listed and watched."""
        resource = self.resource
        selector = ", ".join(f"{name} {text}" for name, text in self._selection.items())
        return Target(resource.group, resource.plural or resource.kind, resource.kind, self.namespace, selector)

    @property
    def health(self) -> Health:
        """Whether the sink is kept up to date; else since when it is not, and why."""
        if self._health.ok and self._bookmarked:
            silence = self._clock.monotonic() - self._heard
            if silence > _SILENCE:
                reason = f"watch {self.target.words()}: the server has been silent for {silence:.0f} s; it may be stale"
                return Health(False, self._health.since, reason)
        return self._health

    async def run(self) -> None:
        """List and watch until cancelled; whatever happens is in `health`."""
        while True:
            try:
                await self._round()
            except Exception as error:
                await self._clock.sleep(self._pause_after(error))

    async def _round(self) -> None:
        """One list, if one is due, and one watch."""
        resource = self._resource or await self._address()
        if not self._listed and not self._streaming:
            await self._list(resource)
        try:
            await self._watch(resource)
        except _NoStreaming:
            self._streaming = False

    async def _address(self) -> ResourceType:
        source = self.kind.source
        if not isinstance(source, ResourceType):
            source = await self._client.discovery.resource(source.api_version, source.kind)
        if self.namespace is not None and not source.namespaced:
            raise RefusedRequest(f"{source.kind} does not live in namespaces; watch it without one")
        self._resource = source
        return source

    # -- trouble -------------------------------------------------------------------------------------------------------

    def _pause_after(self, error: Exception) -> float:
        """Say what is wrong, find out how to go on, and how long to wait before."""
        self._failed_verb = self._verb
        self._metrics.counter("flyball_reflector_failures_total", name=self._name, verb=self._verb)
        if isinstance(error, Gone) or _is_too_large(error):
            self._listed = False
            relisted = self._backoff.failures
            pause = self._backoff.next()
            log.info("%s: %s; listing again", self.target.words(), one_line(str(error)))
            if relisted >= _ODD:
                self._fail(f"{one_line(str(error))}; {relisted + 1} times in a row")
            return pause if relisted else 0.0
        if isinstance(error, (NotFound, UnknownKind)):
            return self._not_served(error)
        if isinstance(error, Forbidden):
            target = self.target
            missing = MissingPermission(self._verb, target.group, target.plural, self.namespace, error.message)
            self._fail(one_line(str(error)), missing=missing)
        elif isinstance(error, (ApiError, TransportError, RefusedRequest, _Ended)):
            if isinstance(error, MalformedAnswer) or getattr(error, "code", 0) in (400, 422):
                self._listed = self._listed and self._backoff.failures < 2
            self._fail(one_line(str(error)))
        else:
            self._listed = False
            log.error("%s: unexpected failure; listing again", self.target.words(), exc_info=error)
            self._fail(f"{self._verb} {self.target.words()}: {type(error).__name__}: {one_line(str(error))}")
        asked = getattr(error, "retry_after", None)
        return max(self._backoff.next(), asked or 0.0)

    def _not_served(self, error: FlyballError) -> float:
        self._listed = False
        if not isinstance(self.kind.source, ResourceType):
            self._resource = None
        reason = f"{self.target.words()}: the server does not serve this kind; waiting for it ({one_line(str(error))})"
        self._fail(reason, not_served=True)
        return self._backoff.next(longest=_NOT_SERVED_PAUSE)

    def _fail(self, reason: str, *, missing: MissingPermission | None = None, not_served: bool = False) -> None:
        before = self._health
        news = before.ok or before.missing != missing or before.not_served != not_served or not self._backoff.failures
        log.log(logging.WARNING if news else logging.DEBUG, "%s", reason)
        since = self._clock.now() if before.ok else before.since
        self._set_health(Health(False, since, reason, missing, not_served))

    def _succeed(self) -> None:
        if not self._health.ok:
            if self._failed_verb:
                log.info("%s: listed and watched again", self.target.words())
            self._failed_verb = ""
            self._set_health(Health(True, self._clock.now()))

    def _set_health(self, health: Health) -> None:
        self._health = health
        self._metrics.gauge("flyball_reflector_healthy", float(health.ok), name=self._name)

    @property
    def _name(self) -> str:
        target = self.target
        return f"{target.plural}.{target.group}" if target.group else target.plural

    # -- list ----------------------------------------------------------------------------------------------------------

    async def _list(self, resource: ResourceType) -> None:
        self._verb = "list"
        begun = self._clock.monotonic()
        objects: list[CachedObject] = []
        size, token, version = self._page_size, "", ""
        while True:
            try:
                body = await self._page(resource, size, token)
            except Expired:
                if not token:
                    raise
                # The state of the first page is gone. Pages of another state would not fit, so: all in one answer.
                objects.clear()
                size, token = None, ""
                continue
            version, token = self._read_page(resource, body, objects)
            del body
            if not token:
                break
        self._hand_over(objects, version)
        self._metrics.counter("reflector_lists_total", name=self._name)
        self._metrics.histogram("reflector_list_duration_seconds", self._clock.monotonic() - begun, name=self._name)
        self._metrics.histogram("reflector_items_per_list", len(objects), name=self._name)

    async def _page(self, resource: ResourceType, size: int | None, token: str) -> bytes:
        query = dict(self._selection)
        if size:
            query["limit"] = str(size)
        if token:
            query["continue"] = token
        try:
            return await self._client.request(
                "GET", resource.path(self.namespace), query=query, accept=self.kind.list_accept
            )
        except (ApiError, TransportError) as error:
            error.action = f"list {self.target.words()}"
            raise

    def _read_page(self, resource: ResourceType, body: bytes, objects: list[CachedObject]) -> tuple[str, str]:
        try:
            with resting():
                page = self._reader.list(body)
                objects.extend([self._wrap(resource, record) for record in page.items])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._malformed(f"a list of {len(body)} bytes", error) from error
        return page.resource_version, page.continue_

    def _hand_over(self, objects: list[CachedObject], version: str) -> None:
        self._sink.replace(objects, version, namespace=self.namespace)
        self.resource_version = version
        self._listed = True
        if self._failed_verb in ("", "list"):
            self._backoff.reset()
            self._succeed()

    def _wrap(self, resource: ResourceType, record: RawObject) -> CachedObject:
        if self._shape is None:
            return CachedObject(key_of(record), record, resource)
        try:
            shaped = msgspec.structs.replace(record, data=self._shape(record.data))
        except Exception:
            log.exception("%s: %s: leaving out fields failed; it is kept whole", self._name, key_of(record))
            return CachedObject(key_of(record), record, resource)
        return CachedObject(key_of(record), shaped, resource, whole=False)

    def _malformed(self, what: str, error: Exception) -> MalformedAnswer:
        text = f"{what} cannot be read ({error}); look at proxies on the way"
        return MalformedAnswer(text, host=self._client.host, action=f"{self._verb} {self.target.words()}")

    # -- watch ---------------------------------------------------------------------------------------------------------

    async def _watch(self, resource: ResourceType) -> None:
        """Follow one stream to its end; with `_streaming` and no list yet it begins with what is there."""
        self._verb = "watch"
        initial: list[CachedObject] | None = None if self._listed else []
        begun = self._heard = self._clock.monotonic()
        self._bookmarked = False
        count = 0
        stream = self._client.watch(
            raw_of(self.kind),
            namespace=self.namespace or ALL_NAMESPACES,
            labels=self._selection.get("labelSelector"),
            fields=self._selection.get("fieldSelector"),
            resource_version=(self.resource_version or None) if initial is None else None,
            send_initial_events=initial is not None,
            bookmarks=True,
        )
        self._metrics.counter("reflector_watches_total", name=self._name)
        try:
            async with stream, self._recovering():
                async for event in stream:
                    count += 1
                    initial = self._take(resource, event, initial)
        except ApiError as error:
            if initial is not None and error.code in (400, 405, 406, 422):
                raise _NoStreaming(str(error)) from error
            raise
        finally:
            seconds = self._clock.monotonic() - begun
            self._metrics.histogram("reflector_watch_duration_seconds", seconds, name=self._name)
            self._metrics.histogram("reflector_items_per_watch", count, name=self._name)
        if initial is not None:
            raise _NoStreaming("the watch ended before the end of what was there")
        if not count and seconds < _AT_ONCE:
            self._metrics.counter("reflector_short_watches_total", name=self._name)
            raise _Ended(f"watch {self.target.words()}: the server ended it at once, without any event")

    def _take(
        self, resource: ResourceType, event: WatchEvent[bytes], initial: list[CachedObject] | None
    ) -> list[CachedObject] | None:
        """Hand one event on; returns what of the initial state has come so far, None when that is complete."""
        self._heard = self._clock.monotonic()
        if event.type == "BOOKMARK":
            return self._mark(event, initial)
        try:
            obj = self._wrap(resource, self._reader.object(event.raw))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._malformed(f"an event of {len(event.raw)} bytes", error) from error
        if initial is not None:
            initial.append(obj)
            return initial
        if event.type == "ADDED":
            self._sink.add(obj)
        elif event.type == "MODIFIED":
            self._sink.update(obj)
        else:
            self._sink.delete(obj)
        self._advance(obj.record.resource_version)
        return None

    def _mark(self, event: WatchEvent[bytes], initial: list[CachedObject] | None) -> list[CachedObject] | None:
        self._bookmarked = True
        version = event.resource_version
        if initial is not None:
            if not event.initial_events_end:
                raise _NoStreaming("the server sent a bookmark before the end of what was there")
            self._hand_over(initial, version)
        else:
            self._sink.bookmark(version)
        self._advance(version)
        return None

    def _advance(self, version: str) -> None:
        if version:
            self.resource_version = version
        if self._backoff.failures:
            self._backoff.reset()
        if not self._health.ok:
            self._succeed()

    @contextlib.asynccontextmanager
    async def _recovering(self) -> AsyncGenerator[None]:
        """A watch that lives for a moment without any failure shows that all is well again, also if nothing happens."""
        if self._health.ok:
            yield
            return
        task = asyncio.create_task(self._succeed_soon())
        try:
            yield
        finally:
            task.cancel()

    async def _succeed_soon(self) -> None:
        await self._clock.sleep(_RECOVERED_AFTER)
        if self._listed:
            self._succeed()


def _is_too_large(error: Exception) -> bool:
    """The server does not know our version yet: it was restored from a backup, or lags behind the one before."""
    if not isinstance(error, ApiError) or error.code != 504:
        return False
    return any(cause.get("reason") == "ResourceVersionTooLarge" for cause in error.causes)
