"""Long times pass quickly: a clock that is turned by hand takes the whole cluster along, the same way each time."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from flyball import Context, controller
from flyball.client import Client
from flyball.clock import ManualClock
from flyball.errors import NotFound
from flyball.k8s.batch.v1 import Job, JobSpec
from flyball.k8s.coordination.v1 import Lease
from flyball.k8s.core.v1 import ConfigMap, Container, Event, Pod, PodSpec, PodTemplateSpec
from flyball.k8s.meta.v1 import ObjectMeta
from flyball.manager import Election, LeaseLost, Manager, Options
from flyball.testing import Cluster

T = TypeVar("T")

_QUIET = Options(health_port=-1, metrics_port=-1, max_block=0.0, memory_growth=0.0)
HOUR = 3600.0
DAY = 24 * HOUR


@contextmanager
def quickly(seconds: float = 1.0) -> Generator[None]:
    """What happens inside costs less of the processor's time than this, whoever else wants it."""
    begun = time.thread_time()
    yield
    assert time.thread_time() - begun < seconds


@asynccontextmanager
async def turning(**wishes: Any) -> AsyncGenerator[tuple[Cluster, ManualClock]]:
    clock = ManualClock()
    async with Cluster(clock=clock, workloads=True, **wishes) as cluster:
        yield cluster, clock


async def until(clock: ManualClock, probe: Callable[[], Awaitable[T]], step: float = 1.0) -> T:
    for _ in range(500):
        if found := await probe():
            return found
        await clock.advance(step)
    raise AssertionError("it does not happen")


def job(name: str, **spec: Any) -> Job:
    pod = PodSpec(containers=[Container(name="c", image="i")], restart_policy="Never")
    marks = ObjectMeta(annotations={"simulate.flyball.dev/run-for": "30"})
    return Job.new(name, spec=JobSpec(template=PodTemplateSpec(metadata=marks, spec=pod), **spec))


@pytest.mark.capability("N3")
async def test_a_resync_of_ten_hours() -> None:
    async with turning() as (cluster, clock):
        seen: list[tuple[float, str]] = []

        @controller(ConfigMap, name="looker", labels={"looked": "at"}, resync=timedelta(hours=10))
        async def look(found: ConfigMap, ctx: Context) -> None:
            seen.append((clock.monotonic(), ctx.reason))

        async with Manager(cluster.client, controllers=[look], options=_QUIET, leader_election=False, clock=clock):
            await cluster.client.create(ConfigMap(metadata=ObjectMeta(name="a", labels={"looked": "at"})))
            await clock.advance(1)
            assert len(seen) == 1
            with quickly():
                await clock.advance(31 * HOUR)
            assert seen[1:] == [(10 * HOUR, "resync"), (20 * HOUR, "resync"), (30 * HOUR, "resync")]


@pytest.mark.capability("N3")
async def test_a_job_outlives_its_time_by_nothing() -> None:
    async with turning() as (cluster, clock):
        client = cluster.client

        async def ended() -> bool:
            return (await client.get(Job, "work")).status.completion_time is not None

        await client.create(job("work", ttl_seconds_after_finished=int(7 * DAY)))
        await until(clock, ended)
        finished = clock.monotonic()
        with quickly():
            await clock.advance(7 * DAY - 5)
            assert await client.list(Pod, namespace="default")
            await clock.advance(5)
            await clock.advance(1)
        assert clock.monotonic() - finished == 7 * DAY + 1
        with pytest.raises(NotFound):
            await client.get(Job, "work")
        assert not await client.list(Pod, namespace="default"), "they go with their owner"


async def test_events_are_forgotten_after_an_hour() -> None:
    async with turning() as (cluster, clock):
        await cluster.client.create(job("work"))
        await clock.advance(60)
        assert await cluster.client.list(Event, namespace="default")
        with quickly():
            await clock.advance(HOUR + 60)
        assert not await cluster.client.list(Event, namespace="default")


@pytest.mark.capability("N3")
async def test_a_lease_that_is_not_renewed_is_taken_over_when_it_expires() -> None:
    async with turning() as (cluster, clock):

        @controller(ConfigMap, name="idle")
        async def idle(found: ConfigMap, ctx: Context) -> None:
            """Nothing to do."""

        def manager(name: str) -> Manager:
            election = Election(name="demo", identity=name)
            client: Client = cluster.client_as(name)
            return Manager(client, controllers=[idle], options=_QUIET, leader_election=election, clock=clock)

        async def holder() -> str | None:
            return (await cluster.client.get(Lease, "demo")).spec.holder_identity

        first, second = manager("first"), manager("second")
        await first.start()
        await until(clock, lambda: _is(first.is_leader))
        await second.start()
        await clock.advance(60)
        assert (await holder(), second.is_leader) == ("first", False)
        cluster.faults.cut_before_commit(user="first")
        with quickly():
            lost = clock.monotonic()
            await until(clock, lambda: _is(second.is_leader), step=0.5)
            assert 13 <= clock.monotonic() - lost <= 20, "after 15 s, and the pause between two tries"
        assert not first.is_leader
        assert await holder() == "second"
        await second.stop()
        await first.stop()
        with pytest.raises(LeaseLost):
            await first.__aexit__(None, None, None)


async def _is(value: bool) -> bool:
    return value


async def test_the_same_happens_at_the_same_moments_each_time() -> None:
    """What a cluster does in a day, told twice."""

    async def story() -> list[tuple[float, str, str]]:
        told: list[tuple[float, str, str]] = []
        async with turning(nodes=3) as (cluster, clock):
            client = cluster.client
            for number in range(3):
                await client.create(job(f"job-{number}", ttl_seconds_after_finished=1800 * (number + 1)))
            known: set[str] = set()
            for _ in range(60):
                await clock.advance(120)
                present = {one.metadata.name for one in await client.list(Job, namespace="default")}
                told += [(clock.monotonic(), "gone", name) for name in sorted(known - present)]
                known = present
        return told

    first, second = await story(), await story()
    assert [name for _, _, name in first] == ["job-0", "job-1", "job-2"]
    assert first == second
