"""Scenarios 12 to 16: the spec is edited after the end, during an attempt, before it has begun; and suspended."""

from __future__ import annotations

import pytest
from flyball.testing import eventually

from simplejob.controller.attempts import HASH

from .playing import PATIENCE, World, was_kept

pytestmark = pytest.mark.capability("S4")


@pytest.mark.scenario("simplejob-12")
async def test_12_an_edit_after_the_end_is_another_run(world: World) -> None:
    async with world.operator():
        await world.create(command="first")
        first = await world.job(1)
        await world.succeed(first)
        await world.phase("Completed")

        await world.edit(command="second")
        second = await world.job(1, but=[first.metadata.uid])
        assert second.metadata.labels[HASH] != first.metadata.labels[HASH]
        status = await world.phase("Pending", attempts=1)
        assert status.is_false("Complete")
        assert status.completion_time is None
        await world.fail(second)
        await world.job(2)

        await world.fail_all(3, first=2)
        await world.phase("Failed", attempts=4)
        await world.edit(command="first")
        status = await world.phase("Completed", attempts=1)
        assert status.job_name == first.metadata.name
        await world.nothing_happens()
        assert len(await world.jobs()) == 5


@pytest.mark.scenario("simplejob-13")
@pytest.mark.parametrize("ends_well", [True, False])
async def test_13_an_edit_lets_the_attempt_that_runs_end(world: World, ends_well: bool) -> None:
    async with world.operator():
        await world.create(command="first")
        first = await world.job(1)
        await world.begin(first)
        await world.phase("Running")
        before = was_kept(await world.job(1))

        await world.edit(command="second")
        await world.until(lambda status: status.is_false("UpToDate"))
        await world.nothing_happens()
        assert was_kept(await world.job(1)) == before
        assert len(await world.jobs()) == 1
        status = await world.phase("Running", attempts=0)
        assert status.job_name == first.metadata.name

        await (world.succeed(first) if ends_well else world.fail(first))
        second = await world.job(1, but=[first.metadata.uid])
        assert second.metadata.labels[HASH] != first.metadata.labels[HASH]
        status = await world.phase("Pending", attempts=1)
        assert status.is_true("UpToDate")
        assert status.is_false("Complete")
        assert status.is_false("Failed")


@pytest.mark.scenario("simplejob-14")
async def test_14_an_attempt_that_has_not_begun_gives_way(world: World) -> None:
    async with world.operator():
        await world.create(image="no-such-image")
        first = await world.job(1)
        await world.stick(first, "ImagePullBackOff")
        status = await world.until(lambda status: "ImagePullBackOff" in (status.message or ""))
        assert status.phase == "Pending"
        assert status.message == "attempt 1 of 4: container job: ImagePullBackOff: no such thing"
        held = await world.hold(first)

        await world.edit(image="busybox")
        await eventually(lambda: world.is_going(held), timeout=PATIENCE)
        await world.quiet()
        assert len(await world.jobs()) == 1
        await world.let_go(held)
        await world.pods_go()
        second = await world.job(1, but=[first.metadata.uid])
        assert second.metadata.labels[HASH] != first.metadata.labels[HASH]
        started, replaced = sorted(await world.told(), key=lambda one: one.reason != "AttemptStarted")
        assert (started.reason, replaced.reason) == ("AttemptStarted", "AttemptReplaced")
        await world.begin(second)
        await world.phase("Running", attempts=1)


@pytest.mark.scenario("simplejob-14")
async def test_14_an_attempt_that_has_begun_meanwhile_is_left_alone(box: World) -> None:
    """The cache shows no pod, and the Job of before: the delete names the version that was seen."""
    assert box.box is not None
    async with box.operator():
        await box.create(command="first")
        await box.stick(await box.job(1), "ImagePullBackOff")
        await box.until(lambda status: "ImagePullBackOff" in (status.message or ""))
    jobs, pods = box.box.faults.stall_watch(resource="jobs"), box.box.faults.stall_watch(resource="pods")
    async with box.operator():
        await box.quiet()
        first = await box.job(1)
        await box.begin(first)
        box.box.requests.clear()
        await box.edit(command="second")
        requests = box.box.requests
        refused = await eventually(lambda: requests.of("delete", "jobs"))
        assert {one.status for one in refused} == {409}
        jobs.remove()
        pods.remove()
        await box.later(60)
        await box.phase("Running", attempts=0)
        assert [job.metadata.uid for job in await box.jobs()] == [first.metadata.uid]
        assert await box.warnings() == []
        await box.succeed(first)
        await box.job(1, but=[first.metadata.uid])


@pytest.mark.scenario("simplejob-15")
async def test_15_more_retries_continue_a_failed_run(world: World) -> None:
    async with world.operator():
        await world.create(max_retries=1)
        await world.fail_all(2)
        await world.phase("Failed", attempts=2)
        await world.edit(maxRetries=2)
        third = await world.job(3)
        assert len({job.metadata.labels[HASH] for job in await world.jobs()}) == 1
        status = await world.phase("Pending", attempts=3)
        assert status.is_false("Failed")
        await world.succeed(third)
        await world.phase("Completed", attempts=3)


@pytest.mark.scenario("simplejob-15")
async def test_15_a_time_to_live_is_no_other_run(world: World) -> None:
    async with world.operator():
        await world.create()
        await world.succeed(await world.job(1))
        await world.phase("Completed")
        made = await world.edit(ttlSecondsAfterFinished=3600)
        await world.until(lambda status: status.observed_generation == made.metadata.generation)
        await world.quiet()
        assert await world.numbers() == [1]
        assert await world.condition("Complete") == ("True", "Succeeded")


@pytest.mark.scenario("simplejob-16")
async def test_16_suspended_before_the_first_attempt(world: World) -> None:
    async with world.operator():
        await world.create(suspend=True)
        await world.phase("Suspended", attempts=0)
        await world.nothing_happens()
        assert await world.jobs() == []
        await world.edit(suspend=False)
        await world.job(1)


@pytest.mark.scenario("simplejob-16")
async def test_16_suspended_during_an_attempt(world: World) -> None:
    async with world.operator():
        await world.create()
        first = await world.job(1)
        await world.begin(first)
        await world.phase("Running")
        made = await world.edit(suspend=True)
        await world.until(lambda status: status.observed_generation == made.metadata.generation)
        await world.phase("Running", attempts=1)
        await world.fail(first)
        await world.phase("Suspended", attempts=1)
        assert await world.condition("Progressing") == ("False", "Suspended")
        await world.nothing_happens()
        assert await world.numbers() == [1]
        await world.edit(suspend=False)
        await world.job(2)


@pytest.mark.scenario("simplejob-16")
async def test_16_resumed_the_next_one_comes_when_it_is_due(box: World) -> None:
    async with box.operator():
        await box.create(suspend=False, retry_backoff_seconds=10)
        await box.fail(await box.job(1))
        await box.phase("Retrying")
        await box.edit(suspend=True)
        await box.phase("Suspended")
        await box.later(4)
        await box.edit(suspend=False)
        await box.phase("Retrying")
        await box.later(5)
        assert await box.numbers() == [1]
        await box.later(1)
        assert await box.numbers() == [1, 2]
