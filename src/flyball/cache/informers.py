"""All the informers of a process: one per collection, shared by everybody who reads or watches it."""

from __future__ import annotations

import asyncio
import builtins
import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, TypeVar, overload

from flyball.api import DynamicObject, PartialObjectMetadata, Resource, ResourceType, encode, origin, to_dict
from flyball.cache import collector
from flyball.cache.engine import Engine
from flyball.cache.health import Health, MissingPermission
from flyball.cache.indexes import by_label
from flyball.cache.informer import Informer, narrowed
from flyball.cache.matching import demands, equalities, label_match
from flyball.cache.metrics import NO_METRICS, Metrics
from flyball.cache.objects import CachedObject, Key
from flyball.cache.options import AllExcept, CacheOptions
from flyball.cache.policy import ReadPolicy
from flyball.client import Client, Kind
from flyball.client.kinds import kind_from
from flyball.client.selectors import FieldQuery, LabelQuery, label_text
from flyball.clock import Clock, RealClock
from flyball.errors import FlyballError, NotFound

__all__ = ["InformerCache", "NotCached", "Write"]

log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R", bound=Resource)

_MANY: Final = 1000
"""From so many objects on it is worth taking them out of the collector's sight."""

_INDEXES: Final = 8
"""So many indexes an informer has before labels are looked for one object after the other."""

_Names = tuple[str, str]
_Place = tuple[_Names, bool, tuple[str | None, ...], str, str]


class NotCached(FlyballError, LookupError):
    """The cache was told not to hold what is asked for, so it cannot say whether it exists."""


class Write:
    """One write of one object while it is under way; see `InformerCache.writing`."""

    def __init__(
        self,
        begun: builtins.list[tuple[Engine, CachedObject | None]],
        key: Key,
        base: str | None,
        sent: Mapping[str, Any] | None,
    ) -> None:
        self._begun = begun
        self._key = key
        self._base = base
        self._sent = sent

    def done(self, obj: Resource | DynamicObject) -> None:
        """The server answered with this object."""
        raw = _raw(obj)
        for engine, before in self._begun:
            if _fits(obj, engine):
                engine.note_write(raw, base=self._base, sent=self._sent, before=before)

    def deleted(self, obj: Resource | DynamicObject | None = None, *, uid: str = "") -> None:
        """A delete was answered: the object is gone, or (with `obj`) was marked and waits for its finalizers."""
        if obj is not None:
            self.done(obj)
            return
        for engine, before in self._begun:
            engine.note_delete(self._key, uid or (before.uid if before else ""))


class InformerCache:
    """The informers of a process, reads from them, and what was written lately.

        cache = InformerCache(client)
        cache.configure(Pod, CacheOptions(labels={"app": "web"}))
        pods = cache.informer(Pod)
        await cache.start()
        await cache.wait_synced()
        pod = await cache.get(Pod, "web-0", namespace="shop")

    What it guarantees:

    - one informer per kind, namespaces and selectors, whoever asks and in whichever form (typed, dynamic, metadata):
      one list, one watch, one store;
    - every read decodes an object of the reader's own; it is never older than a write of that object that was made
      known by `note_write`, `note_delete` or `writing`;
    - a read of something that the cache was told not to hold raises `NotCached`, it does not say "not there";
    - a kind that nobody declared is read as the policy says: Secrets and ConfigMaps live, others from an informer that
      the first read starts;
    - `remove` ends the watch and frees the memory.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespaces: Sequence[str] | AllExcept | None = None,
        defaults: CacheOptions | None = None,
        policy: ReadPolicy | None = None,
        on_undeclared: Callable[[Kind[Any]], None] | None = None,
        clock: Clock | None = None,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        """`namespaces`: where to look unless a kind says otherwise (default: everywhere); `defaults`: other options of
        kinds without their own; `on_undeclared` is called when a read starts an informer.
        """
        self.client = client
        base = defaults or CacheOptions()
        self._defaults = replace(base, namespaces=namespaces) if namespaces is not None else base
        self._policy = policy or ReadPolicy()
        self._on_undeclared = on_undeclared
        self._clock: Clock = clock if clock is not None else RealClock()
        self._metrics = metrics
        self._options: dict[_Names, CacheOptions] = {}
        self._engines: dict[_Place, Engine] = {}
        self._views: dict[tuple[int, Kind[Any]], Informer[Any]] = {}
        self._started = False
        self._frozen = False

    # -- what is watched -----------------------------------------------------------------------------------------------

    def configure(self, kind: type[Resource] | Kind[Any] | ResourceType, options: CacheOptions) -> None:
        """Say how a kind is cached; before anybody watches or reads it."""
        names = _names(kind_from(kind))
        if self._options.get(names) == options:
            return
        if any(place[0] == names for place in self._engines):
            raise FlyballError(
                f"cache of {names[1]}: there is an informer already, so its options cannot change; "
                "configure the kind before the first informer, or remove() it first"
            )
        self._options[names] = options

    @overload
    def informer(
        self,
        kind: type[R],
        *,
        namespace: str | None = None,
        labels: LabelQuery | None = None,
        fields: FieldQuery | None = None,
    ) -> Informer[R]: ...
    @overload
    def informer(
        self,
        kind: Kind[T],
        *,
        namespace: str | None = None,
        labels: LabelQuery | None = None,
        fields: FieldQuery | None = None,
    ) -> Informer[T]: ...
    @overload
    def informer(
        self,
        kind: ResourceType,
        *,
        namespace: str | None = None,
        labels: LabelQuery | None = None,
        fields: FieldQuery | None = None,
    ) -> Informer[DynamicObject]: ...
    def informer(
        self,
        kind: Any,
        *,
        namespace: str | None = None,
        labels: LabelQuery | None = None,
        fields: FieldQuery | None = None,
    ) -> Informer[Any]:
        """The informer of a collection, the same one for everybody; it runs as soon as the cache is started."""
        wanted = kind_from(kind)
        options = narrowed(self._options_of(wanted), namespace, labels, fields)
        return self._view(wanted, self._engine(wanted, options))

    def _options_of(self, kind: Kind[Any]) -> CacheOptions:
        options = self._options.get(_names(kind), self._defaults)
        source = kind.source
        if isinstance(source, ResourceType) and not source.namespaced and options.namespaces is not None:
            return replace(options, namespaces=None)
        return options

    def _engine(self, kind: Kind[Any], options: CacheOptions) -> Engine:
        whole = _place(kind, options, metadata=False)
        if _is_partial(kind):
            found = self._engines.get(whole)
            if found is not None:
                return found
            options = replace(options, metadata_only=True)
        elif options.metadata_only:
            raise NotCached(
                f"cache of {kind.word}: it was configured to hold metadata only; read metadata_of({kind.word}), "
                "or ask the server through the client"
            )
        place = _place(kind, options, metadata=options.metadata_only)
        engine = self._engines.get(place)
        if engine is None:
            engine = Engine(self.client, kind, options, clock=self._clock, metrics=self._metrics)
            self._engines[place] = engine
            if self._started:
                engine.start()
        return engine

    def _view(self, kind: Kind[T], engine: Engine) -> Informer[T]:
        found = self._views.get((id(engine), kind))
        if found is None:
            found = self._views[id(engine), kind] = Informer.of(kind, engine)
        return found

    async def remove(self, kind: type[Resource] | Kind[Any] | ResourceType) -> None:
        """End all watches of a kind, forget its objects and its handlers, free the memory; options stay."""
        names = _names(kind_from(kind))
        for place, engine in list(self._engines.items()):
            if place[0] == names:
                del self._engines[place]
                self._views = {key: view for key, view in self._views.items() if key[0] != id(engine)}
                await engine.close()

    # -- life ----------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to list and watch what was asked for; what is asked for later begins at once."""
        self._started = True
        for engine in list(self._engines.values()):
            engine.start()

    async def stop(self) -> None:
        """End all watches; what is in the stores can still be read."""
        self._started = False
        await asyncio.gather(*(engine.stop() for engine in self._engines.values()))

    async def __aenter__(self) -> InformerCache:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def has_synced(self) -> bool:
        """Whether all informers have."""
        return all(engine.has_synced for engine in self._engines.values())

    async def wait_synced(self) -> None:
        """Wait for all informers. What is there after the first time is taken out of the collector's sight."""
        while not self.has_synced:
            await asyncio.gather(*(engine.wait_synced() for engine in self._engines.values()))
        if not self._frozen and sum(len(engine.store) for engine in self._engines.values()) >= _MANY:
            self._frozen = True
            collector.freeze()

    def health(self) -> dict[str, Health]:
        """The state of every stream, by what it is of: `pods in namespace shop`."""
        return {
            reflector.target.words(): reflector.health
            for engine in self._engines.values()
            for reflector in engine.reflectors.values()
        }

    def missing_permissions(self) -> builtins.list[MissingPermission]:
        """What the server does not allow, of all streams."""
        return [health.missing for health in self.health().values() if health.missing is not None]

    # -- reading -------------------------------------------------------------------------------------------------------

    @overload
    async def get(self, kind: type[R], name: str, namespace: str | None = None) -> R | None: ...
    @overload
    async def get(self, kind: Kind[T], name: str, namespace: str | None = None) -> T | None: ...
    @overload
    async def get(self, kind: ResourceType, name: str, namespace: str | None = None) -> DynamicObject | None: ...
    async def get(self, kind: Any, name: str, namespace: str | None = None) -> Any:
        """The object of this name, None when it is not there; `namespace` defaults to the client's."""
        wanted = kind_from(kind)
        source = wanted.source
        if isinstance(source, ResourceType) and not source.namespaced:
            namespace = None
        else:
            namespace = namespace or self.client.namespace
        informer = await self._readable(wanted, namespace)
        if informer is None:
            try:
                return await self.client.get(wanted, name, namespace=namespace)
            except NotFound:
                return None
        return informer.get(name, namespace if informer.engine.namespaced else None)

    @overload
    async def list(
        self, kind: type[R], *, namespace: str | None = None, labels: LabelQuery | None = None
    ) -> builtins.list[R]: ...
    @overload
    async def list(
        self, kind: Kind[T], *, namespace: str | None = None, labels: LabelQuery | None = None
    ) -> builtins.list[T]: ...
    @overload
    async def list(
        self, kind: ResourceType, *, namespace: str | None = None, labels: LabelQuery | None = None
    ) -> builtins.list[DynamicObject]: ...
    async def list(
        self, kind: Any, *, namespace: str | None = None, labels: LabelQuery | None = None
    ) -> builtins.list[Any]:
        """The objects of a kind, of all namespaces or of one, all or those with some labels."""
        wanted = kind_from(kind)
        selector = label_text(labels) or ""
        informer = await self._readable(wanted, namespace, selector)
        if informer is None:
            return await self.client.list(wanted, namespace=namespace or "*", labels=labels)
        if not selector:
            return informer.list(namespace)
        selected = label_match(selector)
        found = _candidates(informer, namespace, selector)
        return [obj.read_as(wanted) for obj in found if selected(obj.record.labels)]

    @overload
    async def by_index(self, kind: type[R], name: str, value: str) -> builtins.list[R]: ...
    @overload
    async def by_index(self, kind: Kind[T], name: str, value: str) -> builtins.list[T]: ...
    @overload
    async def by_index(self, kind: ResourceType, name: str, value: str) -> builtins.list[DynamicObject]: ...
    async def by_index(self, kind: Any, name: str, value: str) -> builtins.list[Any]:
        """The objects that an index of the kind's informer shows under a value; `UnknownIndex` when there is none."""
        wanted = kind_from(kind)
        informer = await self._readable(wanted, None)
        if informer is None:
            raise NotCached(f"cache of {wanted.word}: it is read live, so it has no indexes; use list with labels")
        return informer.by_index(name, value)

    async def _readable(self, kind: Kind[T], namespace: str | None, selector: str = "") -> Informer[T] | None:
        """The synced informer that answers reads of a kind; None when the server is to be asked."""
        engine = self._engine_for_reads(kind, namespace, selector)
        if engine is None:
            return None
        if not engine.running:
            engine.start()
        if not engine.has_synced:
            await engine.wait_synced()
        return self._view(kind, engine)

    def _engine_for_reads(self, kind: Kind[Any], namespace: str | None, selector: str) -> Engine | None:
        names = _names(kind)
        usual = self._options_of(kind)
        place = _place(kind, usual, metadata=usual.metadata_only)
        found = self._engines.get(place)
        if found is None:
            found = self._narrower(kind, usual, namespace) or self._labelled(kind, usual, selector)
        if found is None:
            if names not in self._options:
                if self._policy.of(kind) == "live":
                    return None
                if self._on_undeclared is not None:
                    self._on_undeclared(kind)
                log.info(
                    "%s is read, so it is watched from now on; declare it to have it ready at the start", kind.word
                )
            return self._engine(kind, usual)
        if namespace is not None and not found.options.covers(namespace):
            raise NotCached(
                f"cache of {kind.word}: namespace {namespace!r} is not among those that are watched; "
                "add it to the namespaces, or ask the server through the client"
            )
        if found.options.metadata_only and not _is_partial(kind):
            return self._engine(kind, usual)
        return found

    def _narrower(self, kind: Kind[Any], usual: CacheOptions, namespace: str | None) -> Engine | None:
        """An informer of one namespace answers reads of that namespace, if no selectors make it smaller."""
        if namespace is None:
            return None
        one = _place(kind, narrowed(usual, namespace, None, None), metadata=_is_partial(kind))
        return self._engines.get(one)

    def _labelled(self, kind: Kind[Any], usual: CacheOptions, selector: str) -> Engine | None:
        """An informer of some labels answers reads of those and further labels."""
        for place, engine in self._engines.items():
            labels = engine.options.label_selector
            if (
                labels
                and demands(selector, labels)
                and place == _place(kind, narrowed(usual, None, labels, None), metadata=_is_partial(kind))
            ):
                return engine
        return None

    # -- own writes ----------------------------------------------------------------------------------------------------

    def note_write(
        self,
        obj: Resource | DynamicObject,
        *,
        base: str | None = None,
        sent: Mapping[str, Any] | Resource | None = None,
    ) -> None:
        """The server answered a create, an update, a patch or an apply with this object.

        From now on reads serve at least this version. Its echo is marked as `own` only if it is sure that the step to
        it was our write and nothing else (the answer to a write that changes nothing is another writer's version):

        - `base` is the version that the write insisted on (`""` for a create): the step is ours if the answer has
          another version;
        - `sent` is what was applied or merged: the step is ours if nothing else differs from what was known before.

        Without either, nothing is marked. An echo that comes before this call is not marked; `writing` has no such gap.
        """
        raw, fields = _raw(obj), _plain(sent)
        for engine in self._engines_of(obj):
            engine.note_write(raw, base=base, sent=fields, before=engine.overlay.get(engine.cached(raw).key))

    def note_delete(
        self,
        kind: type[Resource] | Kind[Any] | ResourceType,
        name: str,
        namespace: str | None = None,
        *,
        uid: str = "",
    ) -> None:
        """The server answered that this object is gone: reads do not show it any more, its `deleted` event is `own`."""
        names = _names(kind_from(kind))
        for place, engine in self._engines.items():
            if place[0] == names:
                engine.note_delete((namespace or None, name), uid)

    @contextmanager
    def writing(
        self,
        kind: type[Resource] | Kind[Any] | ResourceType,
        name: str,
        namespace: str | None = None,
        *,
        base: str | None = None,
        sent: Mapping[str, Any] | Resource | None = None,
    ) -> Generator[Write]:
        """Around a write: events of this object reach handlers when it has been answered, so that none is misjudged.

            with cache.writing(Pod, "web-0", "shop", sent=pod) as write:
                write.done(await client.apply(pod))

        Stores and reads do not wait. `base` and `sent` are those of `note_write`.
        """
        key = (namespace or None, name)
        names = _names(kind_from(kind))
        engines = [engine for place, engine in self._engines.items() if place[0] == names]
        begun = [(engine, engine.hold(key)) for engine in engines]
        try:
            yield Write(begun, key, base, _plain(sent))
        finally:
            for engine in engines:
                engine.release(key)

    def _engines_of(self, obj: Any) -> Iterator[Engine]:
        names = (obj.api_version, obj.kind)
        namespace = obj.metadata.namespace or None
        for place, engine in self._engines.items():
            if place[0] == names and engine.options.covers(namespace) and _fits(obj, engine):
                yield engine


def _candidates(informer: Informer[Any], namespace: str | None, selector: str) -> list[CachedObject]:
    """What a selector may select: by an index of one of its labels, which is made when it is first asked for."""
    own = equalities(informer.engine.options.label_selector)
    key, value = next(((key, value) for key, value in equalities(selector).items() if key not in own), ("", ""))
    name, known = f"label {key}", informer.engine.store.indexes
    if not key or (name not in known and len(known) >= _INDEXES):
        return informer.peek_list(namespace)
    if name not in known:
        informer.add_index(name, by_label(key))
    return [one for one in informer.peek_index(name, value) if namespace is None or one.namespace == namespace]


def _names(kind: Kind[Any]) -> _Names:
    return (kind.source.api_version, kind.source.kind)


def _place(kind: Kind[Any], options: CacheOptions, *, metadata: bool) -> _Place:
    return (_names(kind), metadata, options.scopes, options.label_selector, options.field_selector)


def _is_partial(kind: Kind[Any]) -> bool:
    return "as=PartialObjectMetadata" in kind.accept


def _fits(obj: Any, engine: Engine) -> bool:
    """A whole object can stand for its metadata, not the other way round."""
    return engine.options.metadata_only or not isinstance(obj, PartialObjectMetadata)


def _raw(obj: Any) -> bytes:
    return origin(obj) or encode(obj)


def _plain(sent: Mapping[str, Any] | Resource | None) -> Mapping[str, Any] | None:
    return sent if sent is None or isinstance(sent, Mapping) else to_dict(sent)
