"""A controller that runs: sources fill its queue, workers take keys from it, each key is one pass.

What it guarantees:

- No key is worked on twice at once; `max_concurrent` keys are.
- Workers begin when every source has told everything that is there: no pass sees half of the world.
- What one key does (raise, hang, answer nonsense) delays no other key beyond the worker that it holds.
- Its own writes of its own objects do not wake it; everybody else's do, if the predicates let them pass. What it writes
  to children does, once: so a pass may change one thing and return.
- `stop(grace)` takes no new key, lets running passes end, and cancels them after the grace.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from flyball.api import ResourceType
from flyball.cache import CacheEvent, Informer, Registration, by_controller_uid
from flyball.client.kinds import Kind
from flyball.controller.definition import Controller
from flyball.controller.failures import Streak, Verdict
from flyball.controller.logs import new_pass_id
from flyball.controller.measures import PassMetrics, Totals, measured_queue
from flyball.controller.passes import End, Pass
from flyball.controller.queue import LOW, NORMAL, Item, QueueClosed
from flyball.controller.request import Request
from flyball.controller.runtime import ControllerRuntime
from flyball.controller.settled import Settled
from flyball.controller.sources import For, Owns, Source, Watches, requests_of_owner

__all__ = ["RunningController"]

T = TypeVar("T")

_TURN: Final = 0.005
"""Seconds of work after which a worker lets others run, though nothing made it wait."""
_OWN_REMEMBERED: Final = 10_000
_INDEX: Final = "by_controller_uid"


class RunningController(Generic[T]):
    """A controller bound to the shared parts of a process; see the module for what it guarantees."""

    def __init__(self, definition: Controller[T], runtime: ControllerRuntime) -> None:
        """Take the name; nothing runs yet."""
        self.definition = definition
        self.runtime = runtime
        self.name = definition.name
        self.kind: Kind[T] = definition.kind
        self.options = definition.options
        self.raw = definition.options.raw
        self.code = definition.step.code
        source = definition.kind.source
        self.names = (source.api_version, source.kind)
        self.group, _, _ = source.api_version.rpartition("/")
        self.group_kind = f"{source.kind}.{self.group}" if self.group else source.kind
        self.field_manager = runtime.field_manager or definition.name
        own = "." in self.group  # the groups of Kubernetes itself have no dot, nor have its reporters a prefix
        self.reporter = f"{self.group}/{definition.name}" if own else definition.name
        self.metrics = PassMetrics(runtime.metrics, definition.name)
        self.totals = Totals(runtime.metrics)
        self.queue = measured_queue(runtime, definition.name, definition.options.backoff)
        self.settled = Settled()
        self._streaks: dict[Request, Streak] = {}
        self._own: OrderedDict[tuple[str, str], bool] = OrderedDict()
        self._declared = {(one.kind.source.api_version, one.kind.source.kind) for one in definition.sources}
        self._children: dict[tuple[str, str], Informer[Any]] = {}
        self._registrations: list[Registration] = []
        self._workers: list[asyncio.Task[None]] = []
        self._others: list[asyncio.Task[None]] = []
        self._stopping = False
        self._active = 0
        runtime.claim(self.name)

    # -- life ----------------------------------------------------------------------------------------------------------

    @cached_property
    def primary(self) -> Informer[T]:
        """The informer of the controller's own kind."""
        return self._informer(self.definition.sources[0])

    def _informer(self, source: Source) -> Informer[Any]:
        cache = self.runtime.cache
        return cache.informer(source.kind, namespace=source.namespace, labels=source.labels, fields=source.fields)

    def prepare(self) -> None:
        """Ask for what has to be watched, and fill the queue from it; no pass runs yet. A second call does nothing.

        So a replica that does not lead has everything ready.
        """
        if self._registrations:
            return
        for source in self.definition.sources:
            informer = self._informer(source)
            if isinstance(source, Owns):
                informer.add_index(_INDEX, by_controller_uid)
                if not (source.namespace or source.labels or source.fields):
                    self._children[source.kind.source.api_version, source.kind.source.kind] = informer
            handler = self._handler(source)
            self._registrations.append(informer.add_handler(handler, name=f"{self.name} {source.kind.word}"))
        for channel in self.definition.channels:
            channel.listen(self._from_channel)

    async def wait_synced(self) -> None:
        """Wait until every source has told everything that is there."""
        for registration in self._registrations:
            await registration.wait_synced()

    async def start(self) -> None:
        """Prepare, wait for the sources, start the workers."""
        self.prepare()
        await self.wait_synced()
        if self._workers or self._stopping:
            return
        count = self.options.max_concurrent
        self.metrics.workers(count)
        self._workers = [asyncio.create_task(self._work(), name=f"{self.name} worker {one}") for one in range(count)]
        if self.options.resync is not None:
            self._others.append(asyncio.create_task(self._resync(self.options.resync), name=f"{self.name} resync"))

    async def stop(self, grace: float = 30.0) -> None:
        """Take no new key, wait for the passes that run, cancel them after `grace` seconds."""
        self._stopping = True
        self.queue.shut_down()
        for channel in self.definition.channels:
            channel.leave(self._from_channel)
        for registration in self._registrations:
            registration.remove()
        for task in self._others:
            task.cancel()
        if self._workers and grace > 0:
            await self._drain(grace)
        for task in self._workers:
            task.cancel()
        await asyncio.gather(*self._workers, *self._others, return_exceptions=True)
        self.runtime.release(self.name)

    async def _drain(self, grace: float) -> None:
        bell = asyncio.create_task(self.runtime.clock.sleep(grace))
        while not bell.done() and (running := [one for one in self._workers if not one.done()]):
            await asyncio.wait([bell, *running], return_when=asyncio.FIRST_COMPLETED)
        bell.cancel()
        if not all(one.done() for one in self._workers):
            self.runtime.logger.warning(
                "%s: passes over %s did not end within %g s and are cancelled",
                self.name,
                ", ".join(map(str, self.queue.working)) or "nothing",
                grace,
            )

    @property
    def stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._stopping

    # -- sources -------------------------------------------------------------------------------------------------------

    def _handler(self, source: Source) -> Callable[[CacheEvent], None]:
        passes = source.passes()
        word = source.kind.word
        if isinstance(source, For):
            return lambda event: self._from_primary(event, word) if not self._is_own(event) and passes(event) else None
        if isinstance(source, Owns):
            return lambda event: self._from_child(event, word, source.any_owner) if passes(event) else None
        assert isinstance(source, Watches)
        return lambda event: self._from_other(event, word, source) if passes(event) else None

    def _is_own(self, event: CacheEvent) -> bool:
        """Whether it is the echo of a write of this very controller; asked once for each."""
        if not event.own:
            return False
        return self._own.pop((event.object.uid, event.object.resource_version), False)

    def _from_primary(self, event: CacheEvent, word: str) -> None:
        namespace, name = event.key
        self.enqueue(Request(namespace, name), f"{word} {event.type}", low=event.initial)

    def _from_child(self, event: CacheEvent, word: str, any_owner: bool) -> None:
        for request in requests_of_owner(event, self._resource(), any_owner=any_owner):
            self.enqueue(request, f"{word} {event.object.name} {event.type}", low=event.initial)

    def _from_other(self, event: CacheEvent, word: str, source: Watches) -> None:
        found: dict[Request, None] = {}
        for view in (event.old, event.new):
            if view is not None:
                found.update(dict.fromkeys(source.ask(view, self.primary)))
        for request in found:
            self.enqueue(request, f"{word} {event.object.name} {event.type}", low=event.initial)

    def _from_channel(self, request: Request, reason: str) -> None:
        self.enqueue(request, reason)

    def _resource(self) -> ResourceType:
        source = self.kind.source
        if isinstance(source, ResourceType):
            return source
        group, _, version = source.api_version.rpartition("/")
        return ResourceType(group, version, source.kind, "", self.primary.engine.namespaced)

    def enqueue(self, request: Request, reason: str, *, low: bool = False) -> None:
        """Have a key looked at, under the limits of the controller."""
        wait = self.options.debounce
        if self.options.rate_limiter is not None:
            wait = max(wait, self.options.rate_limiter.delay(request, self.runtime.clock.monotonic()))
        if wait > 0:
            self.queue.add_after(request, wait, reason=reason)
        else:
            self.queue.add(request, priority=LOW if low else NORMAL, reason=reason)

    async def _resync(self, seconds: float) -> None:
        while True:
            await self.runtime.clock.sleep(seconds)
            for namespace, name in self.primary.store.keys():  # noqa: SIM118 - not a dict
                self.enqueue(Request(namespace, name), "resync", low=True)

    # -- for passes ----------------------------------------------------------------------------------------------------

    def declares(self, kind: Kind[Any]) -> bool:
        """Whether the controller watches this kind, all of it."""
        names = (kind.source.api_version, kind.source.kind)
        return names in self._children or names == self.names

    def children_index(self, kind: Kind[Any]) -> Callable[[str], list[Any]] | None:
        """How children of a kind are found by the uid of their controller; None for a kind that is not owned."""
        informer = self._children.get((kind.source.api_version, kind.source.kind))
        if informer is None:
            return None
        return lambda uid: [one.read_as(kind) for one in informer.peek_index(_INDEX, uid)]

    def note_own(self, uid: str, version: str) -> None:
        """The controller has written this version of one of its own objects."""
        self._own[uid, version] = True
        if len(self._own) > _OWN_REMEMBERED:
            self._own.popitem(last=False)

    def streak(self, request: Request) -> Streak:
        """What the key has come through lately."""
        found = self._streaks.get(request)
        if found is None:
            found = self._streaks[request] = Streak()
        return found

    def went_well(self, request: Request) -> None:
        """A pass ended with a result: there is nothing to remember, but that an object is on its way out."""
        streak = self._streaks.get(request)
        if streak is not None:
            streak.went_well()
            if not streak.finalizing:
                del self._streaks[request]

    def forget(self, request: Request) -> None:
        """The object is gone."""
        self._streaks.pop(request, None)
        self.totals.forget(request)

    # -- workers -------------------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        turn_ends = time.perf_counter() + _TURN
        while not self._stopping:
            try:
                item = await self.queue.get()
            except QueueClosed:
                return
            try:
                await self._one(item)
            finally:
                self.queue.done(item.key)
            if time.perf_counter() > turn_ends:
                await asyncio.sleep(0)
                turn_ends = time.perf_counter() + _TURN

    async def _one(self, item: Item[Request]) -> None:
        started = self.runtime.clock.monotonic()
        self._active += 1
        self.metrics.active(self._active)
        end: End | None = None
        try:
            end = await Pass(self, item.key, item.reasons, new_pass_id()).run()
        except Exception:
            # The framework's own mistake: it must not cost the worker, and the key is tried again.
            self.runtime.logger.exception("%s: the pass over %s broke", self.name, item.key)
            end = End(verdict=Verdict("backoff", "ReconcileError"))
        finally:
            self._active -= 1
            self.metrics.active(self._active)
            if end is not None:
                self._settle(item.key, end)
                self.metrics.ended(end, self.runtime.clock.monotonic() - started)

    def _settle(self, request: Request, end: End) -> None:
        """Give the queue what follows from a pass; section by section as documented in results-and-errors."""
        verdict = end.verdict
        if verdict is None or verdict.answer == "ended":
            self.queue.forget(request)
            if end.wait == 0:
                self.queue.add(request, reason="asked to run again")
            elif end.wait is not None:
                self.queue.add_after(request, end.wait, reason="timer")
        elif verdict.answer == "after":
            self.queue.add_after(request, verdict.delay or 0.0, reason=verdict.message or "asked to wait")
        elif verdict.answer == "terminal":
            self.queue.forget(request)
        elif verdict.delay is not None:
            self.queue.fail(request, reason=verdict.reason, exactly=verdict.delay)
        else:
            self.queue.fail(request, reason=verdict.reason or verdict.answer, limit=verdict.limit)
