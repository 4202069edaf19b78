"""The manager: one process with its controllers, from the first list to the last renewal of the lease.

In which order it starts, and why:

1. probes are answered (alive, not ready), so that whoever started the process sees what it waits for;
2. every controller declares what it watches, and the cache begins to list: on all replicas;
3. when everything is listed, the replica asks for the lease. A kind that is not served yet keeps nobody from leading
   for longer than `WARM_UP` seconds;
4. the leader starts its controllers, each as soon as the kinds that it watches are there.

How it stops: controllers take no new keys and finish what they are at, for at most `grace` seconds, while the lease is
still renewed; then events are sent off, the lease is given back, watches end, and last of all the probes. When the
lease is lost there is no such time: everything is cancelled at once, and `LeaseLost` is raised.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Self

from flyball.api import Resource, ResourceType
from flyball.cache import CacheOptions, InformerCache
from flyball.client import Client, Kind
from flyball.client.config import in_pod, load_config
from flyball.clock import Clock, RealClock, doze
from flyball.controller.definition import Controller
from flyball.controller.events import EventRecorder
from flyball.controller.running import RunningController
from flyball.controller.runtime import ControllerRuntime
from flyball.controller.strictness import report_undeclared_read
from flyball.errors import FlyballError
from flyball.manager.clients import ways_of
from flyball.manager.election import Election, Elector, own_identity
from flyball.manager.fence import Fence
from flyball.manager.health import Check, Checks
from flyball.manager.metrics import Registry
from flyball.manager.options import Options
from flyball.manager.permissions import Missing
from flyball.manager.serving import Serving
from flyball.manager.watchdog import GrowthWatch, LoopWatch
from flyball.manager.within import within

__all__ = ["WARM_UP", "Manager", "ManagerError"]

log = logging.getLogger(__name__)

WARM_UP: Final = 30.0
"""Seconds for which a replica whose caches are not warm lets others lead."""

_FROM_THE_START: Final = (
    "controller_runtime_reconcile_errors_total",
    "controller_runtime_terminal_reconcile_errors_total",
    "controller_runtime_reconcile_panics_total",
    "controller_runtime_reconcile_timeouts_total",
)
"""Numbers that are served although they are zero, so that alerts on them work."""

_FLUSH: Final = 5.0
_LOOK: Final = 1.0


class ManagerError(FlyballError):
    """The manager is not in a state in which this can be done."""


class Manager:
    """Runs controllers in this process.

        async with Manager(controllers=[reconcile]):      # in an event loop of your own, or a notebook
            ...
        await Manager(controllers=[reconcile]).run()       # until somebody calls stop(), or the lease is lost

    `client` is used and not closed; without one the manager makes its own, which goes where kubectl would go.
    `options` are taken as they are (`flyball.manager.resolve()` reads environment and pyproject.toml); the arguments
    beside it win. `leader_election` is True, False, an `Election`, or None: as the options say, which is in a pod only.
    A manager runs once.
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        controllers: Iterable[Controller[Any]] = (),
        leader_election: bool | Election | None = None,
        namespaces: Sequence[str] | None = None,
        health_port: int | None = None,
        metrics_port: int | None = None,
        grace: float | None = None,
        options: Options | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Nothing runs yet."""
        given = {"health_port": health_port, "metrics_port": metrics_port, "grace": grace}
        chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if namespaces is not None:
            chosen["namespaces"] = tuple(namespaces)
        self.options = replace(options or Options(), **chosen)
        self.clock: Clock = clock if clock is not None else RealClock()
        self.metrics = Registry()
        """The numbers of this process."""
        self.alive = Checks()
        """What `/healthz` asks."""
        self.ready = Checks()
        """What `/readyz` asks."""
        self._given = client
        self._wish = leader_election
        self._controllers: list[Controller[Any]] = []
        self._cached: list[tuple[type[Resource] | Kind[Any] | ResourceType, CacheOptions]] = []
        self._own: Client | None = None
        self._parts: _Parts | None = None
        self._stopping = asyncio.Event()
        self._ended = False
        self._failure: BaseException | None = None
        for one in controllers:
            self.add(one)

    # -- before it runs ------------------------------------------------------------------------------------------------

    def add(self, controller: Controller[Any]) -> None:
        """Run this one too; before the manager starts."""
        if not isinstance(controller, Controller):  # pyright: ignore[reportUnnecessaryIsInstance] # callers without types
            raise TypeError(f"{controller!r} is no controller; decorate it with @controller(Kind)")
        if self._parts is not None:
            raise ManagerError(f"add controller {controller.name}: the manager runs already; add it before it starts")
        self._controllers.append(controller)

    def configure(self, kind: type[Resource] | Kind[Any] | ResourceType, options: CacheOptions) -> None:
        """Say how objects of a kind are cached: which, and how much of them; before the manager starts."""
        if self._parts is not None:
            raise ManagerError("configure the cache: the manager runs already; say it before it starts")
        self._cached.append((kind, options))

    def add_check(self, name: str, check: Check, *, alive: bool = False) -> None:
        """Ask `check` for `/readyz`, or (`alive`) for `/healthz`: None when all is well, else why not."""
        (self.alive if alive else self.ready).add(name, check)

    # -- while it runs -------------------------------------------------------------------------------------------------

    @property
    def client(self) -> Client:
        """The client of the controllers; it sends only while this process leads."""
        return self._running.runtime.client

    @property
    def cache(self) -> InformerCache:
        """What is watched."""
        return self._running.runtime.cache

    @property
    def is_leader(self) -> bool:
        """Whether this process may act now; always, without an election."""
        return self._parts is not None and self._parts.fence.is_open

    @property
    def at_work(self) -> bool:
        """Whether the controllers were started: everything is listed, and this process leads."""
        return self._parts is not None and self._parts.leading.is_set()

    @property
    def epoch(self) -> int:
        """The number of the leadership, growing from leader to leader; 0 without an election."""
        elector = self._running.elector
        return elector.epoch if elector is not None else 0

    @property
    def health_url(self) -> str | None:
        """Where probes are answered."""
        return self._running.serving.health_url

    @property
    def metrics_url(self) -> str | None:
        """Where numbers are served; the path is `/metrics`."""
        return self._running.serving.metrics_url

    @property
    def _running(self) -> _Parts:
        if self._parts is None:
            raise ManagerError("the manager does not run: enter it by `async with`, or await `run()`")
        return self._parts

    # -- life ----------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until `stop_soon` is called, then end in order; raise what made it end otherwise: `LeaseLost`."""
        async with self:
            await self._stopping.wait()

    def stop_soon(self) -> None:
        """Let `run` end; from the event loop."""
        self._stopping.set()

    async def __aenter__(self) -> Self:
        """Start; returns before anything is listed or led."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop in order; raise what had ended it, unless something else is being raised."""
        await self.stop()
        if self._failure is not None and error is None:
            raise self._failure

    async def start(self) -> None:
        """Begin everything, in the order that the module tells."""
        if self._parts is not None or self._ended:
            raise ManagerError("this manager has run already; make another one")
        if not self._controllers:
            raise ManagerError("the manager has no controllers; give it some: Manager(controllers=[reconcile])")
        client = self._given
        if client is None:
            client = self._own = Client(load_config(self.options.kubeconfig, self.options.context))
        parts = self._parts = _Parts(self, client)
        try:
            for kind, options in self._cached:
                parts.runtime.cache.configure(kind, options)
            await parts.start(self._controllers)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop in order; a second call does nothing."""
        parts, self._parts, self._ended = self._parts, None, True
        if parts is not None:
            await parts.stop()
        if self._own is not None:
            await self._own.aclose()
            self._own = None

    async def wait_leading(self) -> None:
        """Wait until this process leads and its controllers were started."""
        await self._running.leading.wait()

    def fail(self, error: BaseException) -> None:
        """End, because of this; the first reason is the one that is raised."""
        if self._failure is None:
            self._failure = error
        self._stopping.set()

    def election(self) -> Election | None:
        """The election that the arguments and options ask for."""
        if isinstance(self._wish, Election):
            return self._wish
        options = self.options
        wanted = self._wish if self._wish is not None else {"on": True, "off": False}.get(options.leader_election)
        if not (wanted if wanted is not None else in_pod()):
            return None
        return Election(
            name=options.leader_election_name or f"{self._controllers[0].name}-leader",
            namespace=options.leader_election_namespace,
            lease_duration=options.lease_duration,
            renew_deadline=options.renew_deadline,
            retry_period=options.retry_period,
            identity=options.leader_election_identity or own_identity(),
        )


class _Parts:
    """What runs, once it runs."""

    def __init__(self, manager: Manager, client: Client) -> None:
        self.manager = manager
        self.clock = manager.clock
        self.options = manager.options
        election = manager.election()
        self.fence = Fence(self.clock, election=election is not None)
        ways = ways_of(client, self.fence, manager.metrics, qps=self.options.qps, clock=self.clock)
        cache = InformerCache(
            ways.caches,
            namespaces=self.options.namespaces or None,
            on_undeclared=report_undeclared_read,
            clock=self.clock,
            metrics=manager.metrics,
        )
        recorder = EventRecorder(ways.controllers, clock=self.clock, metrics=manager.metrics)
        self.runtime = ControllerRuntime(ways.controllers, cache, recorder, self.clock, manager.metrics)
        self.elector = (
            Elector(ways.election, election, self.fence, clock=self.clock, metrics=manager.metrics)
            if election is not None
            else None
        )
        self.serving = Serving(self.options, manager.alive, manager.ready, manager.metrics)
        self.missing = Missing(cache)
        self.loop_watch = LoopWatch(self.options.max_block, metrics=manager.metrics) if self.options.max_block else None
        self.growth = GrowthWatch(self.options.memory_growth, clock=self.clock, metrics=manager.metrics)
        self.controllers: list[RunningController[Any]] = []
        self.leading = asyncio.Event()
        self._tasks: list[asyncio.Task[Any]] = []
        self._lead: asyncio.Task[None] | None = None
        self._hold: asyncio.Task[None] | None = None

    # -- starting ------------------------------------------------------------------------------------------------------

    async def start(self, controllers: Iterable[Controller[Any]]) -> None:
        self._add_checks()
        self.controllers = [one.bind(self.runtime) for one in controllers]
        for one in self.controllers:
            one.prepare()
            for name in _FROM_THE_START:
                self.manager.metrics.counter(name, 0.0, controller=one.name)
        await self.serving.start()
        if self.loop_watch is not None:
            self.loop_watch.start()
        await self.runtime.cache.start()
        self._tasks.append(asyncio.create_task(self._name_what_is_missing(), name="permissions"))
        self._tasks.append(asyncio.create_task(self._look_after_memory(), name="memory"))
        self._lead = asyncio.create_task(self._guarded(self._become_leader), name="manager")

    async def _become_leader(self) -> None:
        if self.elector is not None:
            await self._warm_up()
            await self.elector.acquire()
            self._hold = asyncio.create_task(self._guarded(self.elector.hold), name="lease")
        await asyncio.gather(*(one.start() for one in self.controllers))
        self.leading.set()

    async def _warm_up(self) -> None:
        """Wait for the caches; not for ever, because one kind that is missing must not stop the others."""
        try:
            await within(self.clock, WARM_UP, self._all_synced())
        except TimeoutError:
            log.warning("not everything is listed after %g s: %s", WARM_UP, self._caches() or "it is a lot")

    async def _all_synced(self) -> None:
        for one in self.controllers:
            await one.wait_synced()

    async def _look_after_memory(self) -> None:
        """Once everything is there: what is not looked at any more, and what is compared with later."""
        await self.runtime.cache.wait_synced()
        if self.options.memory_growth:
            await self.growth.run()

    async def _guarded(self, work: Callable[[], Awaitable[object]]) -> None:
        """What fails here ends the process."""
        try:
            await work()
        except Exception as error:
            self.manager.fail(error)

    async def _name_what_is_missing(self) -> None:
        while True:
            self.missing.look()
            await doze(self.clock, _LOOK)

    # -- stopping ------------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        if self._lead is not None and not self._lead.done() and not self.leading.is_set():
            await _cancelled(self._lead)
        await self._stop_controllers()
        if self.fence.is_open:
            await self._within(_FLUSH, self.runtime.recorder.stop(), "sending events")
        if self._hold is not None:
            await _cancelled(self._hold)
        if self.elector is not None:
            await self.elector.release()
        await _cancelled(*self._tasks, *([self._lead] if self._lead is not None else []))
        await self.runtime.cache.stop()
        if self.loop_watch is not None:
            await self.loop_watch.stop()
        await self.serving.stop()

    async def _stop_controllers(self) -> None:
        """Let passes end, while the lease holds."""
        grace = self.options.grace if self.fence.is_open else 0.0
        draining = asyncio.gather(*(one.stop(grace) for one in self.controllers))
        awaited: list[asyncio.Future[Any]] = [draining]
        if self._hold is not None and not self._hold.done():
            awaited.append(self._hold)
        await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        if not draining.done():
            draining.cancel()
            await asyncio.gather(draining, return_exceptions=True)
            await asyncio.gather(*(one.stop(0.0) for one in self.controllers))
        else:
            draining.result()

    async def _within(self, seconds: float, work: Any, words: str) -> None:
        try:
            await within(self.clock, seconds, work)
        except TimeoutError:
            log.warning("%s took longer than %g s and was given up", words, seconds)

    # -- what probes and numbers show ----------------------------------------------------------------------------------

    def _add_checks(self) -> None:
        manager = self.manager
        manager.ready.add("caches", self._caches)
        manager.ready.add("permissions", lambda: "; ".join(map(str, self.missing.look())) or None)
        if self.elector is not None:
            manager.alive.add("leader-election", self._leadership)
            manager.ready.add("leader-election", self.elector.health)
        manager.metrics.add_source(self._refresh)

    def _caches(self) -> str | None:
        health = self.runtime.cache.health()
        bad = [one.reason or f"{name} is not listed yet" for name, one in health.items() if not one.ok]
        return "; ".join(bad) or None

    def _leadership(self) -> str | None:
        return "the lease is lost" if self.fence.was_won and not self.fence.is_open else None

    def _refresh(self) -> None:
        for name, health in self.runtime.cache.health().items():
            self.manager.metrics.gauge("flyball_informer_healthy", float(health.ok), name=name)
        for one in self.controllers:
            labels = {"name": one.name, "controller": one.name}
            self.manager.metrics.gauge("workqueue_depth", len(one.queue), **labels)
            self.manager.metrics.gauge("workqueue_unfinished_work_seconds", one.queue.unfinished(), **labels)
            self.manager.metrics.gauge(
                "workqueue_longest_running_processor_seconds", one.queue.longest_running(), **labels
            )


async def _cancelled(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
