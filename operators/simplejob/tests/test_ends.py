"""Scenarios 8, 9 and 17: what is left after the end, and how little of it is needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from flyball.api import to_dict
from flyball.client import MergePatch, ref
from flyball.clock import ManualClock
from flyball.errors import NotFound
from flyball.testing import eventually

from simplejob.api import SimpleJob
from simplejob.controller.statemachine import SimpleJobReconciler

from .playing import PATIENCE, World

pytestmark = pytest.mark.capability("S4")


async def is_gone(world: World) -> bool:
    try:
        await world.get()
    except NotFound:
        return True
    return False


@pytest.mark.scenario("simplejob-9")
async def test_9_finished_and_its_jobs_deleted(world: World) -> None:
    async with world.operator():
        await world.create()
        job = await world.job(1)
        await world.succeed(job)
        await world.phase("Completed")
        before = (await world.get()).status
        await world.remove(job)
        await world.touch()
        await world.quiet()
        assert (await world.get()).status == before
        assert await world.jobs() == []
    async with world.operator():
        await world.quiet()
        assert (await world.get()).status == before
        assert await world.jobs() == []
        await world.wipe_status()
        await world.touch()
        await world.job(1)


@pytest.mark.scenario("simplejob-9")
async def test_9_failed_its_jobs_deleted_and_then_edited(world: World) -> None:
    async with world.operator():
        await world.create(max_retries=0)
        job = await world.job(1)
        await world.fail(job)
        await world.phase("Failed")
        await world.remove(job)
        await world.touch()
        await world.quiet()
        assert await world.jobs() == []
        await world.edit(maxRetries=1)
        await world.job(1)
        await world.phase("Pending", attempts=1)


@pytest.mark.scenario("simplejob-17")
async def test_17_deleted_when_its_time_is_over(box: World) -> None:
    async with box.operator():
        await box.create(ttl_seconds_after_finished=30)
        await box.succeed(await box.job(1))
        await box.phase("Completed")
        await box.nothing_happens(29)
        assert not await is_gone(box)
        await box.later(1)
        assert await is_gone(box)
        assert [one.reason for one in await box.told()] == ["AttemptStarted", "Completed", "Expired"]


@pytest.mark.scenario("simplejob-17")
async def test_17_on_a_real_clock(world: World) -> None:
    async with world.operator():
        await world.create(ttl_seconds_after_finished=1)
        await world.succeed(await world.job(1))
        await world.later(2)
        await eventually(lambda: is_gone(world), timeout=PATIENCE)


@pytest.mark.scenario("simplejob-17")
async def test_17_deleted_after_a_time_without_an_operator(box: World) -> None:
    async with box.operator():
        await box.create(ttl_seconds_after_finished=30)
        job = await box.job(1)
    await box.succeed(job)
    assert isinstance(box.clock, ManualClock)
    await box.clock.advance(600)
    async with box.operator():
        await eventually(lambda: is_gone(box), timeout=PATIENCE)


class Wiping(SimpleJobReconciler):
    """The machine, before whose every run the status is wiped."""

    async def run(self, *args: Any, **options: Any) -> Any:
        """Wipe it, as somebody else would."""
        place = ref(SimpleJob, self.state.resource_name, namespace=self.state.namespace)
        try:
            await self.context.ctx.patch(place, MergePatch({"status": None}), subresource="status")
        except NotFound:
            self.logger.info("it is gone")
        return await super().run(*args, **options)


async def happy(world: World) -> None:
    await world.create()
    await world.succeed(await world.job(1))
    await world.phase("Completed")


async def failing(world: World) -> None:
    await world.create(max_retries=3)
    await world.fail_all(4)
    await world.phase("Failed", attempts=4)


async def waiting(world: World) -> None:
    await world.create(max_retries=1, retry_backoff_seconds=5)
    await world.fail(await world.job(1))
    await world.phase("Retrying")
    await world.later(5)
    await world.succeed(await world.job(2))
    await world.phase("Completed")


def comparable(status: Any) -> dict[str, Any]:
    """A status without what follows from the uid or tells when a condition changed, which a wiped one has forgotten."""
    found = to_dict(status)
    found["jobName"] = found["jobName"].split("-")[-1]
    for condition in found["conditions"]:
        del condition["lastTransitionTime"]
    return found


@pytest.mark.scenario("simplejob-8")
@pytest.mark.parametrize("story", [happy, failing, waiting])
async def test_8_the_status_is_no_input(
    story: Callable[[World], Awaitable[None]], box_of: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[Any] = []
    told: list[int] = []
    for machine in (SimpleJobReconciler, Wiping):
        async with box_of() as world:
            # A write of its status by somebody else does not wake the operator, and the wiping is no write of the pass.
            monkeypatch.setattr("simplejob.controller.simplejob.target._machine", machine)
            assert world.box is not None
            async with world.operator(write_budget=None):
                await story(world)
                await world.quiet()
            writes = [
                (one.verb, one.resource, one.name.split("-")[-1])
                for one in world.box.requests
                if one.verb in ("create", "delete") and one.resource == "jobs"
            ]
            ends.append((writes, comparable((await world.get()).status), await world.numbers()))
            told.append(len([one for one in world.box.requests if (one.verb, one.subresource) == ("patch", "status")]))
    assert ends[0] == ends[1]
    assert told[1] > told[0], "nothing was wiped"
