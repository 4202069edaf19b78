"""The crash matrix of Jobs: controllers that die before or after any of their writes count each Pod exactly once."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import pytest
from tests.integration.controller.harness import running

from flyball.client import Client, MergePatch, ref
from flyball.clock import ManualClock
from flyball.controlplane.controllers.cronjobs import cronjob_controllers
from flyball.controlplane.controllers.jobs import job_controllers
from flyball.controlplane.controllers.jobs.conditions import finished
from flyball.k8s.batch.v1 import CronJob, CronJobSpec, Job, JobSpec, JobTemplateSpec
from flyball.k8s.core.v1 import Container, Pod, PodSpec, PodTemplateSpec
from flyball.k8s.meta.v1 import ObjectMeta
from flyball.testing.cluster import Cluster
from flyball.testing.cutting import Cut, When

TEMPLATE = PodTemplateSpec(spec=PodSpec(containers=[Container(name="c", image="i")], restart_policy="Never"))
BOTH: Final[tuple[When, ...]] = ("before", "after")
_LOOKS = 200


class Life:
    """A Job from beginning to end: the first of its Pods fails, all others succeed."""

    def __init__(self, point: int = 0, when: When = "before", **spec: Any) -> None:
        self.point, self.spec = point, spec
        self.when: When = when
        self.clock = ManualClock()
        self.failed_once = False

    async def live(self) -> None:
        async with Cluster(clock=self.clock) as cluster:
            self.client = cluster.client
            self.first = Cut(cluster.transport, self.point, self.when)
            metadata = ObjectMeta(name="work", namespace="default")
            await self.client.create(Job(metadata=metadata, spec=JobSpec(template=TEMPLATE, **self.spec)))
            async with running(self.first, *job_controllers(), clock=self.clock, grace=0):
                await self.play(self.first)
            if self.first.dead.is_set():
                after = Cut(cluster.transport)
                async with running(after, *job_controllers(), clock=self.clock, grace=0):
                    await self.play(after)
            self.job = await self.client.get(Job, "work", namespace="default")
            self.pods = await self.client.list(Pod, namespace="default")

    async def play(self, process: Cut) -> None:
        """Be the kubelet until the Job has ended and all is put away, or the process is dead."""
        for _ in range(_LOOKS):
            await self.clock.advance(2)
            if process.dead.is_set():
                return
            pods = await self.client.list(Pod, namespace="default")
            for pod in pods:
                if (pod.status.phase or "Pending") == "Pending":
                    await self.end(pod)
            job = await self.client.get(Job, "work", namespace="default")
            if finished(job) and not any(pod.metadata.finalizers for pod in pods):
                return
        raise AssertionError("the Job does not end")

    async def end(self, pod: Pod) -> None:
        phase = "Succeeded" if self.failed_once else "Failed"
        self.failed_once = True
        place = ref(Pod, pod.metadata.name, namespace="default")
        await self.client.patch(place, MergePatch({"status": {"phase": phase}}), subresource="status")

    def told(self) -> dict[str, Any]:
        """What is to be the same, however often somebody died."""
        status, phases = self.job.status, sorted(pod.status.phase or "" for pod in self.pods)
        end = finished(self.job)
        return {
            "end": end.type if end is not None else None,
            "numbers": (status.succeeded, status.failed, status.active, status.ready, status.terminating),
            "indexes": (status.completed_indexes, status.failed_indexes),
            "phases": phases,
        }


@pytest.mark.parametrize(
    "spec",
    [
        {"completions": 2, "parallelism": 2},
        {"completions": 2, "parallelism": 2, "completion_mode": "Indexed"},
        {"completions": 2, "parallelism": 2, "completion_mode": "Indexed", "backoff_limit_per_index": 1},
        {"completions": 2, "parallelism": 2, "backoff_limit": 0},
    ],
    ids=["plain", "indexed", "tries-per-index", "fails"],
)
async def test_each_pod_is_counted_once_wherever_the_controllers_die(spec: dict[str, Any]) -> None:
    whole = Life(**spec)
    await whole.live()
    acts = whole.first.acts
    assert len(acts) >= 6, acts
    for point in range(1, len(acts) + 1):
        for when in BOTH:
            life = Life(point, when, **spec)
            await life.live()
            assert life.first.dead.is_set()
            assert life.told() == whole.told(), f"cut {when} act {point}: {acts[point - 1]}"


async def ticks(point: int = 0, when: When = "before") -> tuple[Cut, list[str], CronJob, datetime]:
    """A CronJob through three moments, with a controller that may die."""
    clock = ManualClock()
    async with Cluster(clock=clock) as cluster:
        client: Client = cluster.client
        template = JobTemplateSpec(spec=JobSpec(template=TEMPLATE))
        spec = CronJobSpec(schedule="*/10 * * * *", job_template=template)
        await client.create(CronJob(metadata=ObjectMeta(name="tick", namespace="default"), spec=spec))
        first, left = Cut(cluster.transport, point, when), 30 * 60 + 5
        async with running(first, *cronjob_controllers(), clock=clock, grace=0):
            while left > 0 and not first.dead.is_set():
                await clock.advance(5)
                left -= 5
        if first.dead.is_set():
            async with running(Cut(cluster.transport), *cronjob_controllers(), clock=clock, grace=0):
                while left > 0:
                    await clock.advance(5)
                    left -= 5
        names = sorted(job.metadata.name for job in await client.list(Job, namespace="default"))
        return first, names, await client.get(CronJob, "tick", namespace="default"), clock.now()


async def test_a_moment_has_one_job_wherever_the_controller_dies() -> None:
    whole, names, tick, _ = await ticks()
    assert len(names) == 3
    assert sorted(one.name or "" for one in tick.status.active or ()) == names
    for point in range(1, len(whole.acts) + 1):
        for when in BOTH:
            cut, made, found, _ = await ticks(point, when)
            words = f"cut {when} act {point}: {whole.acts[point - 1]}"
            assert cut.dead.is_set(), words
            assert made == names, words
            assert sorted(one.name or "" for one in found.status.active or ()) == names, words
            assert found.status.last_schedule_time == tick.status.last_schedule_time, words
