"""Scenarios 2 to 5: attempts as they come, one after the other."""

from __future__ import annotations

from datetime import timedelta

import pytest
from flyball.api import to_dict
from flyball.client import MergePatch, ref
from flyball.k8s.batch.v1 import Job

from simplejob.controller.attempts import ended_at

from .playing import World, was_kept

pytestmark = pytest.mark.capability("S4")


@pytest.mark.scenario("simplejob-2")
async def test_2_the_happy_path(world: World) -> None:
    async with world.operator():
        made = await world.create("simplejob-sample", command="echo hello", max_retries=3)
        job = await world.job(1)
        hash_ = job.metadata.labels["jobs.example.com/hash"]
        assert job.metadata.name == f"simplejob-sample-{hash_}-1"
        owner = to_dict(job)["metadata"]["ownerReferences"]
        assert owner == [
            {
                "apiVersion": "jobs.example.com/v1alpha1",
                "kind": "SimpleJob",
                "name": "simplejob-sample",
                "uid": made.metadata.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        labels = {
            "app.kubernetes.io/name": "simplejob",
            "app.kubernetes.io/instance": "simplejob-sample",
            "app.kubernetes.io/managed-by": "simplejob",
            "app.kubernetes.io/component": "attempt",
            "jobs.example.com/hash": hash_,
            "jobs.example.com/attempt": "1",
        }
        assert labels.items() <= job.metadata.labels.items()
        spec = was_kept(job)["spec"]
        assert (spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (1, 1, 0)
        assert spec["podReplacementPolicy"] == "Failed"
        assert "ttlSecondsAfterFinished" not in spec
        assert labels.items() <= spec["template"]["metadata"]["labels"].items()
        pod = spec["template"]["spec"]
        assert (pod["restartPolicy"], pod["automountServiceAccountToken"]) == ("Never", False)
        assert pod["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
        (container,) = pod["containers"]
        assert (container["name"], container["image"]) == ("job", "busybox")
        assert container["command"] == ["/bin/sh", "-c", "echo hello"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }

        status = await world.until(lambda status: status.phase == "Pending", "simplejob-sample")
        assert (status.attempts, status.job_name) == (1, job.metadata.name)
        await world.begin(job)
        await world.until(lambda status: status.phase == "Running", "simplejob-sample")
        await world.succeed(await world.job(1))
        status = await world.until(lambda status: status.is_true("Complete"), "simplejob-sample")
        ended = await world.job(1)
        assert status.phase == "Completed"
        assert (status.start_time, status.completion_time) == (ended.status.start_time, ended.status.completion_time)
        assert [one.reason for one in await world.told()] == ["AttemptStarted", "Completed"]
        await world.nothing_happens()


@pytest.mark.scenario("simplejob-3")
async def test_3_the_number_of_retries_is_exact(world: World) -> None:
    async with world.operator():
        await world.create(max_retries=3)
        for number in (1, 2, 3):
            await world.fail(await world.job(number), exit_code=7)
            await world.job(number + 1)
            status = await world.until(lambda status, number=number: status.attempts == number + 1)
            assert status.phase != "Failed"
        await world.fail(await world.job(4), exit_code=7)
        status = await world.phase("Failed", attempts=4)
        assert status.message == "attempt 4 of 4 failed: exit code 7; no retries are left"
        await world.nothing_happens()
        assert await world.numbers() == [1, 2, 3, 4]
        assert await world.condition("Failed") == ("True", "RetriesExhausted")
        assert await world.condition("Complete") == ("False", "RetriesExhausted")
        started = [one.note for one in await world.told("AttemptStarted")]
        assert started[1] == "attempt 2 of 4, attempt 1 failed: exit code 7"


@pytest.mark.scenario("simplejob-3")
async def test_3_without_retries_there_is_one_job(world: World) -> None:
    async with world.operator():
        await world.create(max_retries=0)
        await world.fail(await world.job(1))
        await world.phase("Failed", attempts=1)
        await world.nothing_happens()
        assert await world.numbers() == [1]


@pytest.mark.scenario("simplejob-4")
@pytest.mark.parametrize("ends_well", [True, False])
async def test_4_the_last_attempt_counts(world: World, ends_well: bool) -> None:
    async with world.operator():
        await world.create(max_retries=1)
        await world.fail(await world.job(1))
        last = await world.job(2)
        await world.begin(last)
        status = await world.phase("Running", attempts=2)
        assert not status.is_true("Failed")
        if ends_well:
            await world.succeed(last)
            await world.phase("Completed", attempts=2)
        else:
            await world.fail(last)
            await world.phase("Failed", attempts=2)


@pytest.mark.scenario("simplejob-5")
@pytest.mark.parametrize(("base", "waits"), [(5, (5, 10, 20)), (200, (200, 300, 300))])
async def test_5_the_waits_between_attempts(box: World, base: int, waits: tuple[int, ...]) -> None:
    async with box.operator():
        await box.create(max_retries=3, retry_backoff_seconds=base)
        for number, wait in enumerate(waits, 1):
            await box.fail(await box.job(number))
            status = await box.phase("Retrying", attempts=number)
            assert status.next_retry_time == box.clock.now().replace(microsecond=0) + timedelta(seconds=wait)
            await box.nothing_happens(wait - 1)
            assert await box.numbers() == list(range(1, number + 1))
            await box.later(1)
            assert await box.numbers() == list(range(1, number + 2))
        status = await box.phase("Pending", attempts=4)
        assert status.next_retry_time is None
        assert [one.reason for one in await box.told() if one.type == "Warning"] == ["AttemptFailed"] * 3


@pytest.mark.scenario("simplejob-5")
async def test_5_no_attempt_comes_before_its_time(world: World) -> None:
    async with world.operator():
        await world.create(max_retries=1, retry_backoff_seconds=2)
        await world.fail(await world.job(1))
        ended = ended_at(await world.job(1))
        await world.later(2)
        second = await world.job(2)
        assert ended is not None
        assert second.metadata.creation_timestamp is not None
        assert second.metadata.creation_timestamp >= ended + timedelta(seconds=2)


@pytest.mark.scenario("simplejob-5")
async def test_5_a_restart_does_not_change_the_wait(box: World) -> None:
    async with box.operator():
        await box.create(retry_backoff_seconds=10)
        await box.fail(await box.job(1))
        await box.phase("Retrying")
        await box.later(6)
    async with box.operator():
        await box.later(3)
        assert await box.numbers() == [1]
        await box.later(1)
        assert await box.numbers() == [1, 2]


async def test_a_deadline_is_a_failure_with_its_cause(world: World) -> None:
    """The condition tells, not the counters: no pod of it need have been counted."""
    async with world.operator():
        await world.create(max_retries=0, active_deadline_seconds=60)
        job = await world.job(1)
        assert job.spec.active_deadline_seconds == 60
        await world.start(job, ready=0)
        reason = "DeadlineExceeded"
        await world.play_job(job, ("FailureTarget", reason), ("Failed", reason), active=0, ready=0)
        status = await world.phase("Failed", attempts=1)
        assert status.message == "attempt 1 of 1 failed: DeadlineExceeded: it is DeadlineExceeded; no retries are left"


async def test_labels_that_somebody_has_spoilt_do_no_harm(box: World) -> None:
    async with box.operator():
        await box.create()
        job = await box.job(1)
        place = ref(Job, job.metadata.name, namespace="default")
        await box.client.patch(place, MergePatch({"metadata": {"labels": {"jobs.example.com/attempt": "first"}}}))
        await box.quiet()
        await box.client.patch(place, MergePatch({"metadata": {"labels": {"jobs.example.com/hash": None}}}))
        await box.quiet()
        assert await box.warnings() == []
        assert len(await box.jobs()) == 1
