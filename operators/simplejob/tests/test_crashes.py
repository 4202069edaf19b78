"""Scenario 6, and what goes with it: a process that dies at every write, passes over a world at rest, many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from flyball.api import to_dict
from flyball.client import Client
from flyball.k8s.batch.v1 import Job
from flyball.testing import Cluster, eventually, install, running
from flyball.testing.cutting import Cut, When

from simplejob.api import SimpleJob, SimpleJobSpec
from simplejob.controller import simplejob
from simplejob.controller.attempts import number_of

from .playing import World

pytestmark = pytest.mark.capability("S4")

Make = Callable[[], AbstractAsyncContextManager[World]]


async def played(world: World) -> None:
    """Let every attempt fail as soon as it is there, until the run is over."""
    while True:
        for job in await world.jobs():
            if not job.status.conditions:
                await world.fail(job)
        if (await world.get()).status.is_true("Failed"):
            return
        await asyncio.sleep(0)


async def end_of_it(world: World) -> dict[str, Any]:
    """What is there at the end, without what differs from run to run."""
    found = to_dict((await world.get()).status)
    del found["jobName"]
    return {"status": found, "numbers": await world.numbers()}


async def lived(make: Make, point: int, when: When) -> tuple[Cut, dict[str, Any], int]:
    """A run that fails four times, with a process that dies on the way and one that goes on."""
    async with make() as world:
        assert world.box is not None
        await install(world.client, SimpleJob)
        await world.create(max_retries=3)
        cut = Cut(world.box.transport, point, when)
        async with Client(transport=cut, retry=None) as client, world.operator(client=client, definitions=False):
            telling = asyncio.ensure_future(played(world))
            dying = asyncio.ensure_future(cut.dead.wait())
            await asyncio.wait([telling, dying], return_when=asyncio.FIRST_COMPLETED)
            for one in (telling, dying):
                one.cancel()
            await asyncio.gather(telling, dying, return_exceptions=True)
        async with world.operator():
            await played(world)
            await world.nothing_happens()
            made = [one for one in world.box.requests.of("create", "jobs") if one.status == 201]
            return cut, await end_of_it(world), len(made)


@pytest.mark.scenario("simplejob-6")
async def test_6_the_crash_matrix(box_of: Make) -> None:
    whole, end, made = await lived(box_of, 0, "before")
    assert (made, end["numbers"]) == (4, [1, 2, 3, 4])
    deaths = 0
    for point in range(1, len(whole.acts) + 1):
        for when in ("before", "after"):
            words = f"cut {when} act {point}: {whole.acts[point - 1]}"
            cut, found, made = await lived(box_of, point, when)
            deaths += cut.dead.is_set()
            assert found == end, words
            assert made == 4, words
    assert deaths >= 12  # the last points may not be reached: how often a status is written depends on the moment


@pytest.mark.scenario("simplejob-6")
async def test_a_second_pass_over_the_same_world_writes_nothing(box: World) -> None:
    assert box.box is not None

    async def idle() -> None:
        assert box.box is not None
        await box.quiet()
        passes, revision = box.passes(), box.box.embedded.store.revision
        await box.touch()
        await eventually(lambda: box.passes() > passes)
        await box.quiet()
        assert box.box.embedded.store.revision == revision + 1, "the pass wrote something"

    async with box.operator():
        await box.create(max_retries=1, retry_backoff_seconds=5)
        first = await box.job(1)
        await idle()
        await box.stick(first, "ImagePullBackOff")
        await idle()
        await box.begin(first)
        await idle()
        await box.fail(first)
        await box.phase("Retrying")
        await idle()
        await box.later(5)
        await idle()
        await box.succeed(await box.job(2))
        await idle()


async def test_a_thousand_at_once() -> None:
    async with Cluster() as cluster:
        client = cluster.client
        await install(client, SimpleJob)
        spec = SimpleJobSpec(command="true", image="busybox")
        for number in range(1000):
            await client.create(SimpleJob.new(f"demo-{number}", namespace="default", spec=spec))
        async with running(client, simplejob, clock=cluster.clock):
            requests = cluster.requests
            await eventually(lambda: len(requests.of("patch", "simplejobs")) >= 1000, timeout=120)
        made = await client.list(Job, namespace="default")
        assert {number_of(job) for job in made} == {1}
        assert len({job.metadata.owner_references[0].uid for job in made}) == len(made) == 1000
        assert len(cluster.requests.of("create", "jobs")) == 1000
        told = await client.list(SimpleJob, namespace="default")
        assert {one.status.phase for one in told} == {"Pending"}
