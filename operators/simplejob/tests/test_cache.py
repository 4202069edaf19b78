"""Scenarios 7, 10 and 11: a cache that is behind, Jobs that vanish, and Jobs that are somebody else's."""

from __future__ import annotations

import pytest
from flyball.clock import ManualClock
from flyball.k8s.batch.v1 import Job, JobSpec
from flyball.k8s.core.v1 import Container, PodSpec, PodTemplateSpec
from flyball.testing import eventually

from simplejob.controller.attempts import new_attempt

from .playing import PATIENCE, World, was_kept

pytestmark = pytest.mark.capability("S4")


@pytest.mark.scenario("simplejob-7")
async def test_7_a_cache_that_does_not_show_the_first_attempt(box: World) -> None:
    assert box.box is not None
    box.box.faults.stall_watch(resource="jobs")
    async with box.operator():
        await box.create()
        await box.job(1)
        for _ in range(2):
            passes = box.passes()
            await box.touch()
            await eventually(lambda passes=passes: box.passes() > passes)
            await box.quiet()
        assert await box.numbers() == [1]
        assert (await box.get()).status.attempts == 1
        assert await box.warnings() == []


@pytest.mark.scenario("simplejob-7")
async def test_7_a_cache_that_does_not_show_the_failure(box: World) -> None:
    assert box.box is not None
    async with box.operator():
        await box.create()
        await box.begin(await box.job(1))
        await box.phase("Running")
    frozen = box.box.faults.stall_watch(resource="jobs")
    async with box.operator():
        await box.quiet()
        await box.fail(await box.job(1))
        await box.touch()
        await box.quiet()
        assert await box.numbers() == [1]
        frozen.remove()
        await box.later(1)
        await box.job(2)
        await box.nothing_happens(0)
        assert await box.numbers() == [1, 2]


@pytest.mark.scenario("simplejob-10")
async def test_10_a_running_job_that_is_deleted_is_made_again(world: World) -> None:
    async with world.operator():
        await world.create()
        first = await world.job(1)
        await world.begin(first)
        await world.phase("Running", attempts=1)
        held = await world.hold(first)
        await world.client.delete(held, propagation="Background")
        await world.until(lambda status: "is being deleted" in (status.message or ""))
        await world.nothing_happens(60)
        assert await world.numbers() == [1]
        await world.let_go(held)
        again = await world.job(1, but=[first.metadata.uid])
        assert again.metadata.name == first.metadata.name
        await world.phase("Pending", attempts=1)
        assert await world.numbers() == [1]


@pytest.mark.scenario("simplejob-10")
async def test_10_older_attempts_may_be_deleted(world: World) -> None:
    async with world.operator():
        await world.create()
        await world.fail(await world.job(1))
        second = await world.job(2)
        await world.begin(second)
        await world.phase("Running", attempts=2)
        await world.remove(await world.job(1))
        await world.nothing_happens(60)
        assert await world.numbers() == [2]
        assert (await world.get()).status.attempts == 2


@pytest.mark.scenario("simplejob-11")
async def test_11_a_job_of_somebody_else_is_left_alone(world: World) -> None:
    # The name is known when the object is: it is made before the operator is at work.
    from flyball.testing import install

    from simplejob.api import SimpleJob

    await install(world.client, SimpleJob)
    made = await world.create()
    name = new_attempt(made, 1).metadata.name
    pod = PodSpec(restart_policy="Never", containers=[Container(name="c", image="i")])
    foreign = Job.new(name, namespace=world.namespace, spec=JobSpec(template=PodTemplateSpec(spec=pod)))
    stranger = await world.client.create(foreign)
    async with world.operator():
        status = await world.until(lambda status: status.is_false("Progressing"))
        assert await world.condition("Progressing") == ("False", "NameConflict")
        assert f"Job {world.namespace}/{name} is there already" in (status.message or "")
        for _ in range(2):
            passes = world.passes()
            await world.touch()
            await eventually(lambda passes=passes: world.passes() > passes, timeout=PATIENCE)
        await world.quiet()
        (found,) = await world.jobs()
        assert was_kept(found) == was_kept(stranger)
        assert found.metadata.resource_version == stranger.metadata.resource_version
        assert await world.warnings() == ["NameConflict"]
        if isinstance(world.clock, ManualClock):
            await world.client.delete(stranger, propagation="Background")
            await world.later(60)
            ours = await world.job(1)
            assert ours.metadata.uid != stranger.metadata.uid
            assert await world.condition("Progressing") == ("True", "AttemptPending")
