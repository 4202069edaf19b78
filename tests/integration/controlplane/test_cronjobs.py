"""CronJobs make Jobs at the moments of their schedule, on a clock that is turned by hand."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support.boxes import box

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
        await one.clock.settle()
        began, due = time.perf_counter(), START + timedelta(hours=6, minutes=30)
        for day in range(31):
            moment = due + timedelta(days=day)
            one.clock.jump((moment - one.clock.now()).total_seconds())
            await one.until(one.jobs, lambda jobs, wanted=day + 1: sum(map(is_complete, jobs)) == wanted)
        passed = time.perf_counter() - began
        jobs = await one.jobs()
        assert [job.metadata.name for job in jobs] == [name_at(due + timedelta(days=day)) for day in range(31)]
        starts = [job.status.start_time for job in jobs]
        assert starts == [due + timedelta(days=day) for day in range(31)]
        assert passed < 20, "real seconds on a loaded machine; alone it takes about one"
