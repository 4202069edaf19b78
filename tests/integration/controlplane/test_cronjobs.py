"""CronJobs make Jobs at the moments of their schedule, on a clock that is turned by hand."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support.boxes import Box, box

from flyball.api.cron import parse_schedule
from flyball.client import MergePatch, ref
from flyball.controlplane.controllers.cronjobs import missed
from flyball.controlplane.controllers.jobs.conditions import finished
from flyball.k8s.batch.v1 import CronJob, CronJobSpec, Job, JobSpec, JobTemplateSpec
from flyball.k8s.core.v1 import Container, PodSpec, PodTemplateSpec
from flyball.k8s.meta.v1 import ObjectMeta

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = 60.0


def cronjob(schedule: str, *, run_for: str = "1", exit_code: str = "0", **spec: Any) -> CronJob:
    marks = {"simulate.flyball.dev/run-for": run_for, "simulate.flyball.dev/exit-code": exit_code}
    pod = PodTemplateSpec(
        metadata=ObjectMeta(annotations=marks),
        spec=PodSpec(containers=[Container(name="c", image="i")], restart_policy="Never"),
    )
    template = JobTemplateSpec(
        metadata=ObjectMeta(labels={"made-by": "tick"}), spec=JobSpec(template=pod, backoff_limit=0)
    )
    metadata = ObjectMeta(name="tick", namespace="default")
    return CronJob(metadata=metadata, spec=CronJobSpec(schedule=schedule, job_template=template, **spec))


def name_at(moment: datetime) -> str:
    return f"tick-{int(moment.timestamp()) // 60}"


def is_complete(job: Job) -> bool:
    end = finished(job)
    return end is not None and end.type == "Complete"


async def test_a_job_is_made_at_each_moment_and_named_after_it() -> None:
    async with box() as one:
        await one.client.create(cronjob("*/5 * * * *"))
        await one.clock.advance(4 * MINUTE)
        assert await one.jobs() == []
        await one.clock.advance(2 * MINUTE)
        due = START + timedelta(minutes=5)
        found = await one.until(one.jobs)
        assert [job.metadata.name for job in found] == [name_at(due)]
        job = found[0]
        assert job.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"] == "2026-01-01T00:05:00Z"
        assert job.metadata.labels == {"made-by": "tick"}
        (owner,) = job.metadata.owner_references
        assert (owner.kind, owner.name, owner.controller) == ("CronJob", "tick", True)
        tick = await one.until(
            one.cronjob, lambda tick: tick.status.active is None and tick.status.last_successful_time
        )
        assert tick.status.last_schedule_time == due
        told = await one.told()
        assert ("SuccessfulCreate", f"Created job {name_at(due)}") in told
        assert ("SawCompletedJob", f"Saw completed job: {name_at(due)}, condition: Complete") in told


@pytest.mark.capability("N3")
async def test_the_month_of_a_daily_cronjob_takes_no_time() -> None:
    async with box() as one:
        await one.client.create(cronjob("30 6 * * *", successful_jobs_history_limit=40))
        began = time.process_time()
        await one.clock.advance(timedelta(days=31).total_seconds())
        passed = time.process_time() - began
        jobs, due = await one.jobs(), [START + timedelta(days=day, hours=6, minutes=30) for day in range(31)]
        assert [job.metadata.name for job in jobs] == [name_at(moment) for moment in due]
        assert [job.status.start_time for job in jobs] == due
        assert all(map(is_complete, jobs))
        assert passed < 6, "seconds of machine time; with nothing else to do it is less than one"


async def names(one: Box) -> list[str]:
    return [job.metadata.name for job in await one.jobs()]


async def reasons(one: Box) -> list[str]:
    return [reason for reason, _ in await one.told()]


def minute(number: int) -> str:
    return name_at(START + timedelta(minutes=number))


async def test_a_time_zone_moves_the_moments() -> None:
    async with box() as one:
        await one.client.create(cronjob("30 5 * * *", time_zone="Asia/Kolkata"))
        await one.until(one.jobs, step=600)
        (job,) = await one.jobs()
        assert job.metadata.name == name_at(START + timedelta(days=1))
        stamp = job.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]
        assert stamp == "2026-01-02T05:30:00+05:30"


async def test_company_is_forbidden_until_the_job_before_has_ended() -> None:
    async with box() as one:
        await one.client.create(cronjob("* * * * *", run_for="150", concurrency_policy="Forbid"))
        await one.clock.advance(200)
        assert await names(one) == [minute(1)]
        assert "JobAlreadyActive" in await reasons(one)
        await one.until(one.jobs, lambda jobs: len(jobs) == 2, step=1)
        assert (await names(one))[1] in (minute(3), minute(4)), "the latest moment that was missed counts"


async def test_a_job_that_runs_is_replaced() -> None:
    async with box() as one:
        await one.client.create(cronjob("* * * * *", run_for="1000", concurrency_policy="Replace"))
        for wanted in (minute(1), minute(2), minute(3)):
            await one.until(lambda: names(one), lambda found, wanted=wanted: found == [wanted], step=1)
        tick = await one.cronjob()
        assert [active.name for active in tick.status.active or ()] == [minute(3)]


async def test_history_is_kept_within_its_limits() -> None:
    async with box() as one:
        limits: dict[str, Any] = {"successful_jobs_history_limit": 2, "failed_jobs_history_limit": 1}
        await one.client.create(cronjob("* * * * *", run_for="0", **limits))
        await one.until(one.jobs, lambda jobs: minute(5) in [j.metadata.name for j in jobs], step=1)
        await one.until(one.jobs, lambda jobs: [j.metadata.name for j in jobs] == [minute(4), minute(5)], step=1)
        place = ref(CronJob, "tick", namespace="default")
        failing = {"metadata": {"annotations": {"simulate.flyball.dev/exit-code": "1"}}}
        change = MergePatch({"spec": {"jobTemplate": {"spec": {"template": failing}}}})
        await one.client.patch(place, change)
        await one.until(one.jobs, lambda jobs: minute(8) in [j.metadata.name for j in jobs], step=1)

        def right(jobs: list[Job]) -> bool:
            return [j.metadata.name for j in jobs] == [minute(4), minute(5), minute(8)] and all(map(finished, jobs))

        await one.until(one.jobs, right, step=1)


async def test_what_was_missed_while_it_was_suspended_is_made_up_for_once() -> None:
    async with box() as one:
        await one.client.create(cronjob("* * * * *", suspend=True))
        await one.clock.advance(10 * MINUTE + 5)
        place = ref(CronJob, "tick", namespace="default")
        await one.client.patch(place, MergePatch({"spec": {"suspend": False}}))
        await one.until(one.jobs)
        assert await names(one) == [minute(10)]


async def test_more_than_a_hundred_missed_moments_are_told_and_made_up_for_once() -> None:
    async with box() as one:
        await one.client.create(cronjob("* * * * *", suspend=True))
        await one.clock.advance(150 * MINUTE + 5)
        await one.client.patch(ref(CronJob, "tick", namespace="default"), MergePatch({"spec": {"suspend": False}}))
        await one.until(one.jobs)
        assert await names(one) == [minute(150)]
        assert "TooManyMissedTimes" in await reasons(one)


async def test_what_is_too_late_is_left_out() -> None:
    async with box() as one:
        await one.client.create(cronjob("*/10 * * * *", suspend=True, starting_deadline_seconds=60))
        await one.clock.advance(12 * MINUTE)
        await one.client.patch(ref(CronJob, "tick", namespace="default"), MergePatch({"spec": {"suspend": False}}))
        await one.clock.advance(2 * MINUTE)
        assert await names(one) == []
        await one.until(one.jobs, step=10)
        assert await names(one) == [minute(20)]


async def test_another_schedule_makes_up_for_nothing() -> None:
    async with box() as one:
        await one.client.create(cronjob("0 0 1 6 *"))
        await one.clock.advance(30 * MINUTE)
        await one.client.patch(
            ref(CronJob, "tick", namespace="default"), MergePatch({"spec": {"schedule": "45 * * * *"}})
        )
        await one.clock.advance(10 * MINUTE)
        assert await names(one) == []
        await one.until(one.jobs, step=10)
        assert await names(one) == [minute(45)]


async def test_a_job_of_that_name_that_is_somebody_elses_is_left_alone() -> None:
    async with box() as one:
        await one.client.create(cronjob("*/5 * * * *"))
        template = PodTemplateSpec(spec=PodSpec(containers=[Container(name="c", image="i")], restart_policy="Never"))
        metadata = ObjectMeta(name=minute(5), namespace="default")
        await one.client.create(Job(metadata=metadata, spec=JobSpec(template=template)))
        await one.clock.advance(6 * MINUTE)
        assert (await one.jobs())[0].metadata.owner_references == []
        assert (await one.cronjob()).status.active is None
        await one.until(one.jobs, lambda jobs: minute(10) in [job.metadata.name for job in jobs], step=10)


async def test_a_schedule_that_never_comes_is_told_and_does_no_harm() -> None:
    async with box() as one:
        await one.client.create(cronjob("59 23 31 2 *"))
        told = (
            "InvalidSchedule",
            "invalid schedule: 59 23 31 2 * : time difference between two schedules is less than 1 second",
        )
        await one.until(one.told, lambda events: told in events)
        await one.clock.advance(60 * MINUTE)
        assert await names(one) == []


async def test_a_lost_job_is_forgotten() -> None:
    async with box() as one:
        await one.client.create(cronjob("0 * * * *", run_for="100000"))
        await one.until(one.jobs, step=60)
        lost = (await names(one))[0]
        await one.until(one.cronjob, lambda tick: tick.status.active)
        await one.client.delete(Job, lost, namespace="default", propagation="Background")
        await one.until(one.cronjob, lambda tick: not tick.status.active)
        assert ("MissingJob", f"Active job went missing: {lost}") in await one.told()


EVERY_MINUTE = parse_schedule("* * * * *")


@pytest.mark.parametrize(
    ("since", "now", "latest", "many"),
    [
        (0, 30, None, False),
        (0, 60, 60, False),
        (0, 119, 60, False),
        (0, 120, 120, False),
        (0, 100 * 60, 100 * 60, False),
        (0, 101 * 60, 101 * 60, True),
        (90, 3600, 3600, False),
    ],
)
def test_missed_moments(since: int, now: int, latest: int | None, many: bool) -> None:
    found = missed(EVERY_MINUTE, START + timedelta(seconds=since), START + timedelta(seconds=now))
    assert found == (None if latest is None else START + timedelta(seconds=latest), many)


def test_missed_moments_of_an_uneven_schedule() -> None:
    schedule = parse_schedule("30 6-16/4 * * 1-5")
    monday = datetime(2026, 1, 5, 7, tzinfo=UTC)
    assert missed(schedule, START, monday).latest == datetime(2026, 1, 5, 6, 30, tzinfo=UTC)


async def test_a_refused_job_is_told_and_tried_again() -> None:
    async with box() as one:
        tick = cronjob("*/5 * * * *")
        assert tick.spec.job_template.spec is not None
        tick.spec.job_template.metadata = ObjectMeta(labels={"a b": "no label"})
        await one.client.create(tick)
        told = await one.until(one.told, lambda told: any(reason == "FailedCreate" for reason, _ in told), step=30)
        assert any(
            reason == "FailedCreate" and 'metadata.labels: Invalid value: "a b"' in words for reason, words in told
        )
        change = MergePatch({"spec": {"jobTemplate": {"metadata": {"labels": {"a b": None}}}}})
        await one.client.patch(ref(CronJob, "tick", namespace="default"), change)
        await one.until(one.jobs, step=1)
        assert await names(one) == [minute(5)]
