"""Jobs progress by themselves on the cluster in the box, on a clock that is turned by hand."""

from __future__ import annotations

import time
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from tests.support.boxes import Box, box

from flyball.client import MergePatch, ref
from flyball.client.arguments import Propagation
from flyball.controlplane.controllers.jobs.conditions import find, finished
from flyball.errors import NotFound
from flyball.k8s.batch.v1 import (
    Job,
    JobSpec,
    PodFailurePolicy,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyRule,
    SuccessPolicy,
    SuccessPolicyRule,
)
from flyball.k8s.core.v1 import Container, Pod, PodSpec, PodTemplateSpec
from flyball.k8s.meta.v1 import ObjectMeta

SIMULATE = "simulate.flyball.dev/"
INDEX = "batch.kubernetes.io/job-completion-index"
PLACE = ref(Job, "work", namespace="default")


def job(annotations: dict[str, str] | None = None, **spec: Any) -> Job:
    marks = {SIMULATE + name.replace("_", "-"): text for name, text in (annotations or {}).items()}
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels={"app": "web"}, annotations=marks),
        spec=PodSpec(containers=[Container(name="c", image="i:1")], restart_policy="Never"),
    )
    return Job(metadata=ObjectMeta(name="work", namespace="default"), spec=JobSpec(template=template, **spec))


def ended(found: Job, type_: str) -> bool:
    end = finished(found)
    return end is not None and end.type == type_


async def number_of_pods(one: Box, wanted: int) -> None:
    """Wait until there are so many Pods."""
    await one.until(one.pods, lambda pods: len(pods) == wanted)


async def play(one: Box, pod: Pod, status: dict[str, Any]) -> None:
    """Say what has become of a Pod, as its kubelet would."""
    place = ref(Pod, pod.metadata.name, namespace="default")
    await one.client.patch(place, MergePatch({"status": status}), subresource="status")


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_deleted_while_it_runs_it_takes_its_pods_along(propagation: Propagation) -> None:
    async with box() as one:
        await one.client.create(job({"run_for": "1000"}, parallelism=2))
        await number_of_pods(one, 2)
        await one.client.delete(Job, "work", namespace="default", propagation=propagation)
        await number_of_pods(one, 0)
        assert not await one.client.list(Job, namespace="default")


async def test_pods_that_outlive_it_are_released() -> None:
    async with box() as one:
        await one.client.create(job({"run_for": "1000"}, parallelism=2))
        await number_of_pods(one, 2)
        await one.client.delete(Job, "work", namespace="default", propagation="Orphan")
        await one.until(one.pods, lambda pods: not any(pod.metadata.finalizers for pod in pods))
        assert [pod.metadata.owner_references for pod in await one.pods()] == [[], []]


async def test_it_completes_and_counts_each_pod_once() -> None:
    async with box() as one:
        await one.client.create(job(completions=3, parallelism=2))
        await one.until(one.pods, lambda pods: len(pods) == 2)
        for _ in range(3):
            await one.clock.advance(2)
        found = await one.until(one.job, lambda done: ended(done, "Complete"))
        assert (found.status.succeeded, found.status.active, found.status.failed) == (3, None, None)
        assert found.status.completion_time is not None
        await one.until(one.pods, lambda pods: not any(pod.metadata.finalizers for pod in pods))


async def test_failures_are_tried_again_with_growing_pauses_until_the_limit() -> None:
    async with box() as one:
        await one.client.create(job({"exit_code": "3"}, backoff_limit=2))
        found = await one.until(one.job, lambda done: ended(done, "Failed"), step=1)
        condition = next(one for one in found.status.conditions or () if one.type == "Failed")
        assert (condition.reason, found.status.failed) == ("BackoffLimitExceeded", 3)
        moments = sorted(pod.metadata.creation_timestamp or one.clock.now() for pod in await one.pods())
        first, second, third = moments
        assert 10 <= (second - first).total_seconds() <= 15
        assert 20 <= (third - second).total_seconds() <= 25


async def test_a_deadline_ends_it() -> None:
    async with box() as one:
        await one.client.create(job({"run_for": "1000"}, active_deadline_seconds=60))
        await one.until(one.pods, lambda pods: len(pods) == 1 and pods[0].status.phase == "Running")
        await one.clock.advance(61)
        found = await one.until(one.job, lambda done: ended(done, "Failed"))
        assert [one.reason for one in found.status.conditions or ()][-1] == "DeadlineExceeded"
        await one.until(one.pods, lambda pods: not pods)


async def test_suspended_it_has_no_pods_and_resumed_it_goes_on() -> None:
    async with box() as one:
        await one.client.create(job(suspend=True))
        await one.until(one.job, lambda found: find(found, "Suspended"))
        assert await one.pods() == []
        await one.client.patch(ref(Job, "work", namespace="default"), MergePatch({"spec": {"suspend": False}}))
        await one.until(one.pods, lambda pods: len(pods) == 1)
        await one.clock.advance(2)
        await one.until(one.job, lambda found: ended(found, "Complete"))


async def test_what_is_taken_away_by_suspending_has_not_failed() -> None:
    async with box() as one:
        await one.client.create(job({"run_for": "5"}, backoff_limit=0))
        await one.until(one.pods, lambda pods: len(pods) == 1 and pods[0].status.phase == "Running")
        for suspended in (True, False):
            wish = MergePatch({"spec": {"suspend": suspended}})
            await one.client.patch(ref(Job, "work", namespace="default"), wish)
            await number_of_pods(one, 0 if suspended else 1)
        found = await one.until(one.job, lambda found: ended(found, "Complete"), step=1)
        assert (found.status.failed, found.status.succeeded) == (None, 1)


async def test_indexes_are_each_done_once() -> None:
    async with box() as one:
        await one.client.create(job(completions=3, parallelism=3, completion_mode="Indexed"))
        pods = await one.until(one.pods, lambda pods: len(pods) == 3)
        names = {pod.metadata.annotations["batch.kubernetes.io/job-completion-index"]: pod for pod in pods}
        assert sorted(names) == ["0", "1", "2"]
        assert names["1"].spec.hostname == "work-1"
        await one.clock.advance(2)
        found = await one.until(one.job, lambda done: ended(done, "Complete"))
        assert found.status.completed_indexes == "0-2"


async def test_it_goes_when_its_time_after_the_end_is_over() -> None:
    async with box() as one:
        await one.client.create(job(ttl_seconds_after_finished=100))
        await one.until(one.pods)
        await one.clock.advance(2)
        await one.until(one.job, lambda found: ended(found, "Complete"))
        await one.clock.advance(101)

        async def gone() -> bool:
            try:
                await one.job()
            except NotFound:
                return True
            return False

        await one.until(gone)


async def test_a_failed_pod_is_judged_by_the_policy() -> None:
    exits = PodFailurePolicyOnExitCodesRequirement(operator="In", values=[42])
    policy = PodFailurePolicy(rules=[PodFailurePolicyRule(action="FailJob", on_exit_codes=exits)])
    async with box() as one:
        await one.client.create(job({"exit_code": "42"}, pod_failure_policy=policy))
        found = await one.until(one.job, lambda done: ended(done, "Failed"), step=0.5)
        end, (pod,) = finished(found), await one.pods()
        assert end is not None
        told = (
            f"Container c for pod default/{pod.metadata.name} failed with exit code 42 matching FailJob rule at index 0"
        )
        assert (end.reason, end.message) == ("PodFailurePolicy", told)


async def test_enough_indexes_end_the_job_and_the_other_pods() -> None:
    policy = SuccessPolicy(rules=[SuccessPolicyRule(succeeded_count=1)])
    async with box(nodes=0) as one:
        await one.client.create(job(completions=3, parallelism=3, completion_mode="Indexed", success_policy=policy))
        await number_of_pods(one, 3)
        await play(one, (await one.pods())[1], {"phase": "Succeeded"})
        found = await one.until(one.job, lambda done: ended(done, "Complete"))
        assert (found.status.completed_indexes, found.status.succeeded, found.status.failed) == ("1", 1, None)
        await number_of_pods(one, 1)


async def test_each_index_has_tries_of_its_own() -> None:
    async with box(nodes=0) as one:
        await one.client.create(job(completions=2, parallelism=2, completion_mode="Indexed", backoff_limit_per_index=2))
        for number in range(3):
            broken = await one.until(one.pods, lambda pods, wanted=number + 2: len(pods) == wanted, step=1)
            youngest = [
                pod for pod in broken if pod.metadata.annotations[INDEX] == "0" and pod.status.phase != "Failed"
            ]
            assert [pod.metadata.annotations["batch.kubernetes.io/job-index-failure-count"] for pod in youngest] == [
                str(number)
            ]
            await play(one, youngest[0], {"phase": "Failed"})
        await one.until(one.job, lambda found: found.status.failed_indexes == "0")
        (other,) = [pod for pod in await one.pods() if pod.metadata.annotations[INDEX] == "1"]
        await play(one, other, {"phase": "Succeeded"})
        found = await one.until(one.job, lambda done: ended(done, "Failed"))
        assert (found.status.completed_indexes, found.status.failed_indexes, found.status.failed) == ("1", "0", 3)


async def test_another_controller_has_its_jobs_for_itself() -> None:
    async with box() as one:
        await one.client.create(job(managed_by="example.org/mine"))
        await one.clock.advance(60)
        assert await one.pods() == []
        assert (await one.job()).status.start_time is None


async def test_a_pause_grows_up_to_ten_minutes_and_begins_anew_after_a_success() -> None:
    async with box(nodes=0) as one:
        await one.client.create(job(completions=2, parallelism=1, backoff_limit=100))

        async def next_pod() -> Pod:
            pods = await one.until(one.pods, lambda pods: any(pod.status.phase == "Pending" for pod in pods), step=1)
            (pod,) = [pod for pod in pods if pod.status.phase == "Pending"]
            return pod

        made: list[datetime] = []
        for _ in range(8):
            pod = await next_pod()
            made.append(pod.metadata.creation_timestamp or one.clock.now())
            await play(one, pod, {"phase": "Failed", **_ended_at(one.clock.now())})
        pauses = [round((later - before).total_seconds()) for before, later in pairwise(made)]
        expected = (10, 20, 40, 80, 160, 320, 600)
        assert all(wanted <= pause <= wanted + 3 for pause, wanted in zip(pauses, expected, strict=True))
        await play(one, await next_pod(), {"phase": "Succeeded", **_ended_at(one.clock.now())})
        await play(one, await next_pod(), {"phase": "Failed", **_ended_at(one.clock.now())})
        before = one.clock.now()
        await next_pod()
        assert 9 <= (one.clock.now() - before).total_seconds() <= 13


def _ended_at(moment: datetime) -> dict[str, Any]:
    at = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": at}]}


async def test_refused_pods_are_told_and_tried_again_ever_more_rarely() -> None:
    async with box() as one:
        wanted = job()
        wanted.spec.template.spec.service_account_name = "nobody"  # pyright: ignore[reportOptionalMemberAccess]
        await one.client.create(wanted)
        told = await one.until(one.told, lambda told: any(reason == "FailedCreate" for reason, _ in told))
        assert any("serviceaccount" in message for reason, message in told if reason == "FailedCreate")


@pytest.mark.parametrize(
    "status",
    [
        {"uncountedTerminatedPods": {"succeeded": ["nobody"], "failed": ["somebody"]}},
        {"active": 7, "terminating": 3, "succeeded": 1},
        {"conditions": [{"type": "Strange", "status": "Maybe"}]},
    ],
)
async def test_what_others_wrote_into_the_status_breaks_nothing(status: dict[str, Any]) -> None:
    async with box() as one:
        await one.client.create(job(completions=3, parallelism=3, completion_mode="Indexed", suspend=True))
        await one.until(one.job, lambda found: bool(found.status.conditions))
        await one.client.patch(PLACE, MergePatch({"status": status}), subresource="status")
        await one.client.patch(PLACE, MergePatch({"spec": {"suspend": False}}))
        found = await one.until(one.job, lambda found: finished(found), step=0.5)
        assert found.status.succeeded == 3


@pytest.mark.parametrize("note", ["", "x", "-1", "99999999999999999999", "3"])
async def test_pods_with_an_index_that_is_none_are_replaced(note: str) -> None:
    async with box(nodes=0) as one:
        await one.client.create(job(completions=2, parallelism=2, completion_mode="Indexed"))
        await number_of_pods(one, 2)
        spoilt = (await one.pods())[0]
        place = ref(Pod, spoilt.metadata.name, namespace="default")
        await one.client.patch(place, MergePatch({"metadata": {"annotations": {INDEX: note}}}))
        pods = await one.until(
            one.pods, lambda pods: len(pods) == 2 and spoilt.metadata.uid not in [pod.metadata.uid for pod in pods]
        )
        assert sorted(pod.metadata.annotations[INDEX] for pod in pods) == ["0", "1"]


async def test_a_time_after_the_end_takes_no_time() -> None:
    async with box() as one:
        await one.client.create(job({"run_for": "0"}, ttl_seconds_after_finished=30 * 24 * 3600))
        await one.until(one.job, lambda found: finished(found))
        began = time.perf_counter()
        await one.clock.advance(30 * 24 * 3600 - 5)
        await one.job()
        await one.clock.advance(10)
        await one.until(one.jobs, lambda jobs: not jobs)
        assert time.perf_counter() - began < 10, "real seconds; on a machine of its own it is well under one"


async def test_more_time_after_the_end_can_be_given_while_it_runs() -> None:
    async with box() as one:
        await one.client.create(job({"run_for": "0"}, ttl_seconds_after_finished=100))
        await one.until(one.job, lambda found: finished(found))
        await one.clock.advance(90)
        await one.client.patch(PLACE, MergePatch({"spec": {"ttlSecondsAfterFinished": 1000}}))
        await one.clock.advance(500)
        await one.job()
        await one.client.patch(PLACE, MergePatch({"spec": {"ttlSecondsAfterFinished": 10}}))
        await one.until(one.jobs, lambda jobs: not jobs)
