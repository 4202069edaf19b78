"""What all readers of one collection share: reflectors, delta queue, store, handlers, own writes."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from flyball.api import ResourceType
from flyball.api.rawlist import RawReader
from flyball.cache.changes import only_within
from flyball.cache.deltas import Delta, DeltaQueue
from flyball.cache.events import CacheEvent, EventHandler
from flyball.cache.handlers import Registration
from flyball.cache.health import Health
from flyball.cache.matching import label_match
from flyball.cache.metrics import NO_METRICS, Metrics
from flyball.cache.objects import CachedObject, Key, is_newer, key_of
from flyball.cache.options import CacheOptions
from flyball.cache.overlay import Overlay
from flyball.cache.reflector import Reflector
from flyball.cache.shaping import keep_fields
from flyball.cache.store import Store
from flyball.client import Client, Kind, metadata_of
from flyball.clock import Clock, RealClock

__all__ = ["Engine"]

log = logging.getLogger(__name__)

_SLICE: Final = 500
_REMEMBERED: Final = 10_000


class Engine:
    """One collection, kept; see `Informer` for what it promises."""

    def __init__(
        self,
        client: Client,
        kind: Kind[Any],
        options: CacheOptions,
        *,
        clock: Clock | None = None,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        self.kind: Kind[Any] = metadata_of(kind) if options.metadata_only else kind
        self.options = options
        self.store = Store()
        self.overlay = Overlay(self.store)
        self.queue = DeltaQueue(self.store, namespaces=options.scopes)
        self.handlers: list[Registration] = []
        self._clock: Clock = clock if clock is not None else RealClock()
        self._metrics = metrics
        shape = options.shape
        self.reflectors: dict[str | None, Reflector] = {
            scope: Reflector(
                client,
                self.kind,
                self.queue,
                namespace=scope,
                labels=options.label_selector or None,
                fields=options.field_selector or None,
                page_size=options.page_size,
                streaming=options.streaming,
                keep_managed_fields=options.keep_managed_fields,
                shape=shape,
                clock=self._clock,
                metrics=metrics,
            )
            for scope in options.scopes
        }
        self._selected = label_match(options.label_selector)
        self._reader = RawReader(keep_managed_fields=options.keep_managed_fields)
        self._shape = keep_fields(()) if options.metadata_only else shape
        self._gone: OrderedDict[Key, str] = OrderedDict()
        self._held: dict[Key, list[tuple[CacheEvent, bool]]] = {}
        self._writers: dict[Key, int] = {}
        self._awaited: list[Registration] | None = None
        self._synced = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._named: tuple[ResourceType | None, str] = (None, "")

    # -- life ----------------------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether it was started and not stopped."""
        return bool(self._tasks)

    def start(self) -> None:
        """Begin to list and watch; a second call does nothing."""
        if self._tasks:
            return
        self._tasks = [asyncio.create_task(self._pump(), name=f"informer {self.name}")]
        for reflector in self.reflectors.values():
            words = reflector.target.words()
            self._tasks.append(asyncio.create_task(reflector.run(), name=f"reflector {words}"))
        for registration in self.handlers:
            self._start_handler(registration)

    async def stop(self) -> None:
        """End watching and calling handlers. What is in the store can still be read."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for registration in self.handlers:
            tasks += registration.stop()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Stop for good, and forget all objects and handlers."""
        await self.stop()
        self.store.clear()
        self.overlay.clear()
        self.queue = DeltaQueue(self.store)
        self.handlers.clear()
        self._gone.clear()
        self._held.clear()

    @property
    def only_namespace(self) -> str | None:
        """The namespace, if the collection is that of one."""
        return next(iter(self.reflectors)) if len(self.reflectors) == 1 else None

    @property
    def namespaced(self) -> bool:
        """Whether the kind lives in namespaces."""
        return self._any.resource.namespaced

    @property
    def name(self) -> str:
        """The kind as people call it: `widgets.example.org`."""
        resource = self._any.resource
        if resource is not self._named[0]:
            self._named = (resource, resource.group_resource if resource.plural else resource.kind)
        return self._named[1]

    @property
    def _any(self) -> Reflector:
        return next(iter(self.reflectors.values()))

    @property
    def has_synced(self) -> bool:
        """Whether the first list is in the store and was given to the handlers that were there."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Wait until `has_synced`."""
        await self._synced.wait()

    @property
    def healths(self) -> list[Health]:
        """The state of each stream."""
        return [reflector.health for reflector in self.reflectors.values()]

    @property
    def health(self) -> Health:
        """The worst of the streams."""
        found = self.healths
        return min(found, key=lambda health: (health.ok, health.since))

    # -- handlers ------------------------------------------------------------------------------------------------------

    def add_handler(self, handler: EventHandler, *, resync: float | None, name: str | None) -> Registration:
        """See `Informer.add_handler`."""
        words = name or getattr(handler, "__qualname__", None) or type(handler).__name__
        registration = Registration(
            handler,
            name=words,
            kind=self.name,
            on_synced=self._check_synced,
            on_remove=self._forget_handler,
            resync=resync,
            metrics=self._metrics,
        )
        registration.put_all([CacheEvent("added", None, obj, initial=True) for obj in self.store.list()])
        if self._awaited is not None:
            registration.put_synced()
        self.handlers.append(registration)
        if self.running:
            self._start_handler(registration)
        return registration

    def _start_handler(self, registration: Registration) -> None:
        if registration.resync is None:
            registration.start()
        else:
            work = self._resync(registration, registration.resync)
            registration.start(asyncio.create_task(work, name=f"resync {registration.name}"))

    async def _resync(self, registration: Registration, seconds: float) -> None:
        while True:
            await self._clock.sleep(seconds)
            registration.put_all([CacheEvent("updated", obj, obj) for obj in self.store.list()])

    def _forget_handler(self, registration: Registration) -> None:
        if registration in self.handlers:
            self.handlers.remove(registration)
        self._check_synced()

    # -- the deltas come -----------------------------------------------------------------------------------------------

    async def _pump(self) -> None:
        while True:
            await self.queue.wait()
            count = 0
            while len(self.queue):
                _, deltas = self.queue.pop()
                for delta in deltas:
                    self._apply(delta)
                count += 1
                if count % _SLICE == 0:
                    await asyncio.sleep(0)
            self._worked_off()

    def _worked_off(self) -> None:
        self._settle()
        self._metrics.gauge("flyball_cache_objects", len(self.store), name=self.name)
        if self._awaited is None and self.queue.has_synced:
            self._awaited = list(self.handlers)
            for registration in self.handlers:
                registration.put_synced()
            self._check_synced()

    def _check_synced(self) -> None:
        if self._awaited is None or self._synced.is_set():
            return
        if all(one.has_synced for one in self._awaited if one in self.handlers):
            self._awaited = []
            self._synced.set()

    def _settle(self) -> None:
        if not len(self.queue):
            self.overlay.settle(self._position, self._writers.__contains__)

    def _position(self, key: Key) -> str:
        """Up to which version the store is complete, where this key lives; only true while the queue is empty."""
        reflector = self.reflectors.get(key[0]) or self.reflectors.get(None)
        return reflector.resource_version if reflector else ""

    def _apply(self, delta: Delta) -> None:
        obj = delta.object
        before = self.store.get(obj.key)
        if delta.type == "deleted":
            self._remove(before, delta)
        elif delta.type == "sync":
            self._emit(CacheEvent("updated", before, obj), exact=False)
        elif before is None:
            if delta.type == "replaced" or not self._is_past(obj):
                self._gone.pop(obj.key, None)
                self._put(CacheEvent("added", None, obj, delta.initial), exact=delta.type != "replaced")
        elif before.uid != obj.uid:
            self._remove(before, Delta("deleted", before, final=False))
            self._put(CacheEvent("added", None, obj), exact=False)
        elif before.resource_version != obj.resource_version:
            exact = delta.type != "replaced"
            if not exact or is_newer(before.resource_version, obj.resource_version) is not True:
                self._put(CacheEvent("updated", before, obj), exact=exact)

    def _is_past(self, obj: CachedObject) -> bool:
        """Whether this version came late: the object was removed at a later one."""
        gone = self._gone.get(obj.key)
        return gone is not None and is_newer(obj.resource_version, gone) is False

    def _put(self, event: CacheEvent, *, exact: bool) -> None:
        obj = event.object
        self.store.put(obj)
        self.overlay.seen(obj, gone=False)
        self._emit(event, exact=exact)

    def _remove(self, before: CachedObject | None, delta: Delta) -> None:
        obj = delta.object
        if before is None:
            return
        if delta.final and is_newer(before.resource_version, obj.resource_version) is True:
            return
        self.store.remove(obj.key)
        self._gone[obj.key] = obj.resource_version
        if len(self._gone) > _REMEMBERED:
            self._gone.popitem(last=False)
        self.overlay.seen(obj, gone=True)
        self._emit(CacheEvent("deleted", obj, None), exact=delta.final)

    def _emit(self, event: CacheEvent, *, exact: bool) -> None:
        """Tell the handlers; while a write of this key is under way, wait for its answer to know whose change it is."""
        held = self._held.get(event.key)
        if held is not None:
            held.append((event, exact))
        else:
            self._tell(event, exact)

    def _tell(self, event: CacheEvent, exact: bool) -> None:
        obj = event.object
        if event.new is None:
            own = self.overlay.claim_delete(obj.key, obj.uid)
        else:
            own = self.overlay.claim(obj.key, obj.resource_version)
        if own and exact:
            event = event._replace(own=True)
        for registration in self.handlers:
            registration.put(event)
        self._metrics.counter("flyball_cache_events_total", name=self.name, type=event.type)

    # -- own writes ----------------------------------------------------------------------------------------------------

    def cached(self, raw: bytes) -> CachedObject:
        """An object that came from elsewhere, as it would be stored here."""
        record = self._reader.object(raw)
        if self._shape is not None:
            record = msgspec.structs.replace(record, data=self._shape(record.data))
        return CachedObject(key_of(record), record, self._any.resource, self._shape is None)

    def note_write(
        self, raw: bytes, *, base: str | None, sent: Mapping[str, Any] | None, before: CachedObject | None
    ) -> None:
        """See `InformerCache.note_write`; `before` is what was known when the write began."""
        obj = self.cached(raw)
        key, version = obj.key, obj.resource_version
        known = self.overlay.get(key)
        if before is None or before.key != key:
            before = known
        passed = not len(self.queue) and is_newer(version, self._position(key)) is False
        news = known is None or (
            version != known.resource_version and is_newer(version, known.resource_version) is not False
        )
        if news and not passed and not self._is_past(obj):
            shown = self._selected(obj.record.labels)
            if known is not None or key in self.queue or (shown and not self.options.fields):
                self.overlay.written(obj, shown=shown)
        if (not passed or key in self._held) and _is_ours(before, obj, base, sent):
            self.overlay.is_own(key, version)

    def note_delete(self, key: Key, uid: str) -> None:
        """See `InformerCache.note_delete`."""
        known = self.overlay.get(key)
        if known is not None and (not uid or known.uid == uid):
            self.overlay.deleted(key, known.uid, known.resource_version)
        elif key in self._held:
            self.overlay.deletes(key, uid)

    def hold(self, key: Key) -> CachedObject | None:
        """A write of this object begins: handlers hear of it when it has ended. Returns what is known now."""
        self._writers[key] = self._writers.get(key, 0) + 1
        self._held.setdefault(key, [])
        return self.overlay.get(key)

    def release(self, key: Key) -> None:
        """The write has ended, well or not."""
        self._writers[key] -= 1
        if self._writers[key]:
            return
        del self._writers[key]
        for event, exact in self._held.pop(key, ()):
            self._tell(event, exact)
        self._settle()


def _is_ours(
    before: CachedObject | None, after: CachedObject, base: str | None, sent: Mapping[str, Any] | None
) -> bool:
    """Whether the step to `after` was made by our write, and by nothing else."""
    if base is not None:
        return after.resource_version != base
    if sent is None:
        return False
    if before is None:
        return True
    if before.uid != after.uid or before.resource_version == after.resource_version:
        return False
    return only_within(before.plain(), after.plain(), sent)
