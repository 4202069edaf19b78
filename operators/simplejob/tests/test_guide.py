"""Scenarios 1 and 20 on clusters that live: Jobs, pods and garbage are the business of others there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime

import pytest
from flyball.api import find_condition
from flyball.client import Client, MergePatch, ref
from flyball.client.arguments import Propagation
from flyball.clock import ManualClock, RealClock
from flyball.controlplane.kubelet.simulated import Match, SimulatedPod, stage
from flyball.errors import NotFound
from flyball.k8s.batch.v1 import Job
from flyball.k8s.core.v1 import Pod
from flyball.k8s.events.v1 import Event
from flyball.testing import Cluster, RealCluster, eventually
from flyball.testing.binaries import BinariesMissing, find_binaries
from flyball.testing.nodes import BESIDE_PLAYED_NODES, PlayedNodes

from simplejob.api import SimpleJob
from simplejob.controller.attempts import HASH

from .conftest import namespace
from .playing import World

pytestmark = pytest.mark.capability("S4")

RUNS = Match(".status.phase", "In", ["Running"])


@stage("exit 1", where=[RUNS, Match(".spec.containers[0].command[2]", "In", ["exit 1"])])
def fails(pod: SimulatedPod) -> None:
    """What a shell makes of it."""
    pod.end("job", exit_code=1)


@stage(
    "no such image",
    where=[Match(".spec.containers[0].image", "In", ["no-such/image"]), Match(".metadata.annotations", "DoesNotExist")],
)
def cannot_be_pulled(pod: SimulatedPod) -> None:
    """It waits, and goes on to wait."""
    pod.annotations["simulate.flyball.dev/waiting"] = "ImagePullBackOff"


STAGES = (fails, cannot_be_pulled)


@asynccontextmanager
async def time_flies(clock: ManualClock) -> AsyncGenerator[None]:
    """A clock that somebody turns all the time."""

    async def turn() -> None:
        while True:
            await clock.advance(0.2)
            await asyncio.sleep(0)

    turning = asyncio.ensure_future(turn())
    try:
        yield
    finally:
        turning.cancel()
        await asyncio.gather(turning, return_exceptions=True)


@pytest.fixture(scope="session")
def living_real() -> Iterator[RealCluster]:
    """A real control plane with nodes on which commands of these tests do what they do."""
    try:
        binaries = find_binaries()
        binaries.path("kube-controller-manager")
    except BinariesMissing as missing:
        pytest.skip(str(missing))
    with (
        RealCluster(binaries=binaries, controllers=BESIDE_PLAYED_NODES) as cluster,
        PlayedNodes(cluster.config, stages=STAGES),
    ):
        yield cluster


@pytest.fixture(params=["box", pytest.param("real", marks=pytest.mark.real)])
async def living(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """A world in which Jobs and pods progress."""
    if request.param == "box":
        clock = ManualClock()
        async with Cluster(clock=clock, workloads=True, stages=STAGES) as cluster, time_flies(clock):
            yield World(cluster.client, "default", clock, cluster)
        return
    real: RealCluster = request.getfixturevalue("living_real")
    async with Client(real.config) as client, namespace(client) as name:
        yield World(client, name, RealClock())


def moment(job: Job, type_: str) -> datetime:
    found = find_condition(job.status.conditions, type_)
    assert found is not None
    assert found.last_transition_time is not None
    return found.last_transition_time


async def all_gone(world: World) -> bool:
    return not (
        await world.client.list(SimpleJob, namespace=world.namespace)
        or await world.client.list(Job, namespace=world.namespace)
        or await world.client.list(Pod, namespace=world.namespace)
    )


@pytest.mark.scenario("simplejob-1")
async def test_1_the_guide_s_story(living: World) -> None:
    on_the_box = living.box is not None
    waits = (5, 10, 20) if on_the_box else (1, 2)
    async with living.operator():
        await living.create(
            "simplejob-sample",
            command="echo Hello from SimpleJob && sleep 10",
            image="busybox:latest",
            max_retries=len(waits),
            retry_backoff_seconds=waits[0],
        )
        status = await living.until(lambda status: status.phase == "Completed", "simplejob-sample")
        assert status.attempts == 1
        assert status.start_time is not None
        assert status.completion_time is not None
        (first,) = await living.jobs()

        place = ref(SimpleJob, "simplejob-sample", namespace=living.namespace)
        await living.client.patch(place, MergePatch({"spec": {"command": "exit 1"}}))
        status = await living.until(lambda status: status.phase == "Failed", "simplejob-sample")
        assert status.attempts == len(waits) + 1
        assert status.message is not None
        assert status.message.endswith("failed: exit code 1; no retries are left")
        jobs = sorted(
            (job for job in await living.jobs() if job.metadata.uid != first.metadata.uid),
            key=lambda job: int(job.metadata.labels["jobs.example.com/attempt"]),
        )
        assert len(jobs) == len(waits) + 1
        for job, after, wait in zip(jobs, jobs[1:], waits, strict=False):
            assert after.metadata.creation_timestamp is not None
            passed = (after.metadata.creation_timestamp - moment(job, "Failed")).total_seconds()
            assert wait <= passed
            assert passed <= wait + 2 or not on_the_box
        assert len({job.metadata.labels[HASH] for job in jobs}) == 1
        told = [one.reason for one in await told_of(living)]
        assert told.count("AttemptStarted") >= len(waits) + 1
        assert told.count("RetriesExhausted") == 1

        await living.client.delete(SimpleJob, "simplejob-sample", namespace=living.namespace)
        await eventually(lambda: all_gone(living), timeout=90)


async def told_of(world: World) -> list[Event]:
    """The Events about SimpleJobs, when the run is over."""

    async def events() -> list[Event]:
        found = await world.client.list(Event, namespace=world.namespace)
        return [one for one in found if one.regarding is not None and one.regarding.kind == "SimpleJob"]

    return await eventually(events, lambda found: any(one.reason == "RetriesExhausted" for one in found))


@pytest.mark.scenario("simplejob-1")
async def test_1_an_image_that_does_not_exist_and_its_correction(living: World) -> None:
    async with living.operator():
        await living.create(image="no-such/image")
        status = await living.until(lambda status: "ImagePullBackOff" in (status.message or ""))
        assert status.phase == "Pending"
        await living.edit(image="busybox:latest")
        status = await living.until(lambda status: status.phase == "Completed")
        assert status.attempts == 1
        assert len(await living.jobs()) == 1


@pytest.mark.scenario("simplejob-20")
@pytest.mark.parametrize("cascade", ["Background", "Foreground"])
async def test_20_everything_goes_with_it(living: World, cascade: Propagation) -> None:
    async with living.operator():
        await living.create(command="sleep 1000", max_retries=1)
        await living.until(lambda status: status.phase in ("Running", "Completed"))
        await living.client.delete(SimpleJob, "demo", namespace=living.namespace, propagation=cascade)
        await eventually(lambda: all_gone(living), timeout=90)
        with pytest.raises(NotFound):
            await living.get()
