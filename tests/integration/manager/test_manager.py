"""A manager in the test's own event loop: order of the start, standby, stop, and what goes wrong."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.widgets import Widget, WidgetSpec

from flyball import Context, Manager, controller
from flyball.cache import CacheOptions
from flyball.clock import ManualClock
from flyball.controller import DuplicateName
from flyball.k8s.coordination.v1 import Lease
from flyball.k8s.core.v1 import ConfigMap
from flyball.manager import Election, LeaseLost, ManagerError, NotLeading, Options
from flyball.testing import Cluster, NeverHappened, eventually, install

QUIET = Options(health_port=-1, metrics_port=-1, max_block=0.0, memory_growth=0.0)


def counting(seen: list[str], name: str = "widget"):  # type: ignore[no-untyped-def]
    @controller(Widget, name=name)
    async def reconcile(widget: Widget, ctx: Context) -> None:
        seen.append(widget.metadata.name)

    return reconcile


def manager(cluster: Cluster, *controllers, **options) -> Manager:  # type: ignore[no-untyped-def]
    return Manager(cluster.client, controllers=controllers, options=QUIET, clock=cluster.clock, **options)


@pytest.mark.capability("C43")
async def test_two_controllers_of_one_name_are_refused(cluster: Cluster) -> None:
    with pytest.raises(DuplicateName, match="two controllers named 'widget' in this process"):
        async with manager(cluster, counting([]), counting([])):
            pass
    async with cluster.running(counting([]), counting([], "other")):
        pass


@pytest.mark.capability("C42")
async def test_a_standby_has_everything_listed_and_does_nothing(cluster: Cluster) -> None:
    await install(cluster.client, Widget)
    await cluster.client.create(Widget.new("a"))
    first: list[str] = []
    second: list[str] = []
    async with manager(cluster, counting(first), leader_election=True) as leader:
        await leader.wait_leading()
        await eventually(lambda: first, lambda seen: seen == ["a"])
        async with manager(cluster, counting(second), leader_election=True) as standby:
            await eventually(lambda: standby.cache.has_synced)
            asked = await eventually(standby.ready.ask, lambda found: not any(found.values()))
            assert list(asked) == ["ping", "caches", "permissions", "leader-election"]
            assert await standby.cache.get(Widget, "a") is not None
            assert (leader.is_leader, standby.is_leader, second) == (True, False, [])
            with pytest.raises(NotLeading, match="get Widget default/a: not sent"):
                await standby.client.get(Widget, "a")
            watches = len(cluster.requests.of("list", "widgets"))
            await leader.stop()
            await eventually(lambda: second, lambda seen: seen == ["a"])
            assert standby.epoch == 1
            assert len(cluster.requests.of("list", "widgets")) == watches


@pytest.mark.capability("C56")
async def test_a_pass_may_end_and_write_before_the_lease_is_given_back(cluster: Cluster) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    @controller(Widget)
    async def reconcile(widget: Widget, ctx: Context) -> None:
        begun.set()
        await go.wait()
        await ctx.apply(ConfigMap.new("late", data={"x": "1"}))

    async with cluster.running(reconcile, leader_election=True) as running:
        await cluster.client.create(Widget.new("a"))
        await begun.wait()
        stopping = asyncio.create_task(running.stop())
        for _ in range(50):
            await asyncio.sleep(0)
        assert not stopping.done()
        assert (await cluster.client.get(Lease, "widget-leader")).spec.holder_identity
        go.set()
        await stopping
    verbs = [(one.verb, one.resource) for one in cluster.requests if one.resource in {"configmaps", "leases"}]
    assert verbs[-2:] == [("patch", "configmaps"), ("update", "leases")]
    assert (await cluster.client.get(ConfigMap, "late")).data == {"x": "1"}
    assert (await cluster.client.get(Lease, "widget-leader")).spec.holder_identity == ""


@pytest.mark.capability("C51")
async def test_who_loses_the_lease_stops_at_once_and_says_so() -> None:
    clock = ManualClock()
    async with Cluster(clock=clock, controllers=False) as cluster:
        begun = asyncio.Event()
        cancelled: list[str] = []

        @controller(Widget)
        async def reconcile(widget: Widget, ctx: Context) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(widget.metadata.name)
                raise

        await install(cluster.client, Widget)
        await cluster.client.create(Widget.new("a"))
        one = manager(cluster, reconcile, leader_election=Election(name="demo"))
        running = asyncio.create_task(one.run())
        await begun.wait()
        cluster.faults.status(503, resource="leases")
        await clock.advance(12)
        with pytest.raises(LeaseLost, match="lease default/demo: not renewed for 10 s; last failure: "):
            await running
        assert cancelled == ["a"]
        assert clock.monotonic() < 30


async def test_a_kind_that_is_not_served_keeps_others_from_nothing(cluster: Cluster) -> None:
    seen: list[str] = []

    @controller(ConfigMap)
    async def configs(config: ConfigMap, ctx: Context) -> None:
        seen.append(config.metadata.name)

    widgets: list[str] = []
    async with manager(cluster, configs, counting(widgets)) as running:
        await cluster.client.create(ConfigMap.new("a"))
        await eventually(lambda: "a" in seen)
        said = (await running.ready.ask())["caches"]
        assert said is not None
        assert "widgets.example.org" in said
        await install(cluster.client, Widget)
        await cluster.client.create(Widget.new("w", spec=WidgetSpec(size=2)))
        await eventually(lambda: widgets == ["w"], timeout=40)


async def test_the_harness_says_what_it_waits_for(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flyball.testing.at_work._PATIENCE", 0.3)
    cluster.faults.status(403, message="no", verb="list", resource="widgets")
    with pytest.raises(NeverHappened, match=r"did not begin to work within 0.3 s: .*list widgets\.example\.org"):
        async with cluster.running(counting([])):
            pass


async def test_a_manager_runs_once_and_needs_something_to_run(cluster: Cluster) -> None:
    with pytest.raises(ManagerError, match="has no controllers; give it some"):
        await manager(cluster).start()
    one = manager(cluster, counting([]))
    with pytest.raises(ManagerError, match="does not run: enter it"):
        _ = one.cache
    async with one:
        with pytest.raises(ManagerError, match="add controller other: the manager runs already"):
            one.add(counting([], "other"))
    with pytest.raises(ManagerError, match="has run already; make another one"):
        await one.start()
    with pytest.raises(TypeError, match="is no controller; decorate it"):
        Manager(controllers=[len])  # type: ignore[list-item]


async def test_what_is_cached_of_a_kind_can_be_said_before_the_start(cluster: Cluster) -> None:
    await install(cluster.client, Widget)
    for name in ("a", "b"):
        await cluster.client.create(Widget.new(name, labels={"name": name}))
    seen: list[str] = []
    one = manager(cluster, counting(seen))
    one.configure(Widget, CacheOptions(labels={"name": "b"}))
    async with one:
        await one.wait_leading()
        await eventually(lambda: seen == ["b"])
        with pytest.raises(ManagerError, match="the manager runs already; say it before it starts"):
            one.configure(Widget, CacheOptions())


async def test_run_says_what_to_do_in_an_event_loop(cluster: Cluster) -> None:
    from flyball import run

    with pytest.raises(RuntimeError, match=r"use `await Manager\(controllers=\[\.\.\.\]\)\.run\(\)`"):
        run(counting([]))


async def test_requests_can_be_slowed_down() -> None:
    clock = ManualClock()
    async with Cluster(clock=clock, controllers=False) as cluster:
        await install(cluster.client, Widget)
        options = Options(health_port=-1, metrics_port=-1, max_block=0.0, memory_growth=0.0, qps=1.0)
        async with Manager(cluster.client, controllers=[counting([])], options=options, clock=clock) as running:
            await clock.settle()
            reads = asyncio.gather(*(running.client.list(ConfigMap) for _ in range(30)))
            await clock.advance(5)
            assert not reads.done()
            await clock.advance(30)
            assert reads.done()
