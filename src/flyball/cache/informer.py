"""The informer: a collection of the server, kept here, with handlers that hear of its changes.

    informer = Informer(client, Pod, namespace="shop")
    informer.add_handler(lambda event: print(event.type, event.object))
    informer.start()
    await informer.wait_synced()
    web = informer.by_index("by_namespace", "shop")

What it guarantees:

- The store and its indexes show a change before any handler hears of it.
- Each handler hears of every change in order, from a buffer of its own. A slow handler, or one that raises, delays and
  harms nobody else: neither the watch, nor the store, nor other handlers.
- `has_synced` is True only when the first list is in the store *and* was given to the handlers that were there.
- A handler that is added later is first told of everything that is there.
- Reads give objects of the reader's own, decoded now: changing them harms nobody. They never block and never ask the
  server. They may be out of date, but never older than a write that was made known by `note_write`.

What it does not: a handler does not hear of every version. What happened while the connection was lost is told as one
change. Between objects there is no order.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any, Generic, TypeVar, overload

from flyball.api import DynamicObject, Resource, ResourceType
from flyball.cache.engine import Engine
from flyball.cache.events import EventHandler
from flyball.cache.handlers import Registration
from flyball.cache.health import Health
from flyball.cache.indexes import IndexFunction
from flyball.cache.metrics import NO_METRICS, Metrics
from flyball.cache.objects import CachedObject
from flyball.cache.options import CacheOptions
from flyball.cache.store import Store
from flyball.client import Client, Kind
from flyball.client.kinds import kind_from
from flyball.client.selectors import FieldQuery, LabelQuery
from flyball.clock import Clock

__all__ = ["Informer"]

T = TypeVar("T")
R = TypeVar("R", bound=Resource)


class Informer(Generic[T]):
    """See the module's text. Made alone as here, or shared by `InformerCache.informer`."""

    @overload
    def __init__(
        self: Informer[R],
        client: Client,
        kind: type[R],
        *,
        namespace: str | None = None,
        labels: LabelQuery | None = None,
        fields: FieldQuery | None = None,
        options: CacheOptions | None = None,
        clock: Clock | None = None,
        metrics: Metrics = NO_METRICS,
    ) -> None: ...
    @overload
    def __init__(
        self,
        client: Client,
        kind: Kind[T],
        *,
        namespace: str | None = None,
        labels: LabelQuery | None = None,
        fields: FieldQuery | None = None,
        options: CacheOptions | None = None,
        clock: Clock | None = None,
        metrics: Metrics = NO_METRICS,
    ) -> None: ...
    @overload
    def __init__(
        self: Informer[DynamicObject],
        client: Client,
        kind: ResourceType,
        *,
        namespace: str | None = None,
        labels: LabelQuery | None = None,
        fields: FieldQuery | None = None,
        options: CacheOptions | None = None,
        clock: Clock | None = None,
        metrics: Metrics = NO_METRICS,
    ) -> None: ...
    def __init__(
        self,
        client: Client,
        kind: Any,
        *,
        namespace: str | None = None,
        labels: LabelQuery | None = None,
        fields: FieldQuery | None = None,
        options: CacheOptions | None = None,
        clock: Clock | None = None,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        """`namespace`, `labels` and `fields` say what is in the collection (default: all); `options` how it is kept."""
        chosen = narrowed(options or CacheOptions(), namespace, labels, fields)
        self._take(kind_from(kind), Engine(client, kind_from(kind), chosen, clock=clock, metrics=metrics))

    @classmethod
    def of(cls, kind: Kind[T], engine: Engine) -> Informer[T]:
        """One more way to read a collection that is kept already."""
        made = object.__new__(cls)
        made._take(kind, engine)
        return made

    def _take(self, kind: Kind[T], engine: Engine) -> None:
        self.kind = kind
        """In which form `get`, `list` and `by_index` give objects."""
        self.engine = engine

    @property
    def store(self) -> Store:
        """The objects as the watch has brought them, without own writes that have not come back yet."""
        return self.engine.store

    # -- life ----------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to list and watch; a second call does nothing."""
        self.engine.start()

    async def stop(self) -> None:
        """End watching and calling handlers; what is in the store can still be read."""
        await self.engine.stop()

    async def __aenter__(self) -> Informer[T]:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def has_synced(self) -> bool:
        """Whether the first list is in the store and was given to the handlers that were there; stays True."""
        return self.engine.has_synced

    async def wait_synced(self) -> None:
        """Wait until `has_synced`."""
        await self.engine.wait_synced()

    @property
    def health(self) -> Health:
        """Whether it is up to date; else since when it is not, and why. Of several streams: the worst."""
        return self.engine.health

    # -- handlers and indexes ------------------------------------------------------------------------------------------

    def add_handler(
        self, handler: EventHandler, *, resync: float | None = None, name: str | None = None
    ) -> Registration:
        """Call `handler` with every change, from what is there now on; `resync`: and with everything every so often.

        A resync event is an `updated` whose `old` and `new` are the same object. The result takes the handler off
        again, and has a `has_synced` of its own: of handlers that are added later only that one tells.
        """
        return self.engine.add_handler(handler, resync=resync, name=name)

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Let `by_index(name, value)` find the objects for which `function` gives `value`; at any time."""
        self.engine.store.add_index(name, function)

    # -- reading -------------------------------------------------------------------------------------------------------

    def get(self, name: str, namespace: str | None = None) -> T | None:
        """The object of this name, decoded now; None when it is not there."""
        found = self.peek(name, namespace)
        return found.read_as(self.kind) if found is not None else None

    def list(self, namespace: str | None = None) -> list[T]:
        """All objects, or those of one namespace, decoded now."""
        kind = self.kind
        return [obj.read_as(kind) for obj in self.engine.overlay.list(namespace)]

    def by_index(self, name: str, value: str) -> builtins.list[T]:
        """The objects that an index shows under a value, decoded now; `UnknownIndex` when there is no such index."""
        kind = self.kind
        return [obj.read_as(kind) for obj in self.engine.overlay.by_index(name, value)]

    def peek(self, name: str, namespace: str | None = None) -> CachedObject | None:
        """The same as `get` without decoding: bytes and metadata record.

        `namespace` may be left out when the collection is that of one namespace.
        """
        return self.engine.overlay.get((namespace or self.engine.only_namespace, name))

    def peek_list(self, namespace: str | None = None) -> builtins.list[CachedObject]:
        """The same as `list` without decoding."""
        return self.engine.overlay.list(namespace)

    def peek_index(self, name: str, value: str) -> builtins.list[CachedObject]:
        """The same as `by_index` without decoding."""
        return self.engine.overlay.by_index(name, value)

    # -- own writes ----------------------------------------------------------------------------------------------------

    def note_write(self, raw: bytes, *, base: str | None = None, sent: Mapping[str, Any] | None = None) -> None:
        """The server answered a write with this; see `InformerCache.note_write`."""
        engine = self.engine
        obj = engine.cached(raw)
        engine.note_write(raw, base=base, sent=sent, before=engine.overlay.get(obj.key))

    def note_delete(self, name: str, namespace: str | None = None, *, uid: str = "") -> None:
        """The server said that this object is gone; see `InformerCache.note_delete`."""
        self.engine.note_delete((namespace or None, name), uid)


def narrowed(
    options: CacheOptions, namespace: str | None, labels: LabelQuery | None, fields: FieldQuery | None
) -> CacheOptions:
    """The options with what a caller says about the collection in place of their own."""
    from dataclasses import replace

    given: dict[str, Any] = {}
    if namespace is not None:
        given["namespaces"] = (namespace,)
    if labels is not None:
        given["labels"] = labels
    if fields is not None:
        given["fields"] = fields
    return replace(options, **given) if given else options
