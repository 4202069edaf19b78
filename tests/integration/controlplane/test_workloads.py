"""Workloads progress by themselves on the cluster in the box, on a clock that is turned by hand."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from flyball.api import find_condition
from flyball.client import Client, MergePatch, ref
from flyball.client.arguments import Propagation
from flyball.clock import ManualClock
from flyball.controlplane.controllers.deployments import resolve_rolling
from flyball.errors import NotFound
from flyball.k8s.apps.v1 import Deployment, DeploymentSpec, DeploymentStrategy, ReplicaSet
from flyball.k8s.batch.v1 import Job, JobSpec
from flyball.k8s.core.v1 import Container, Event, Node, Pod, PodSpec, PodTemplateSpec, ResourceRequirements
from flyball.k8s.meta.v1 import LabelSelector, ObjectMeta
from flyball.testing import Cluster, eventually
from flyball.testing.cluster import ClusterError

T = TypeVar("T")

SIMULATE = "simulate.flyball.dev/"
_LOOKS = 1000


class Box:
    """A cluster whose workloads live."""

    def __init__(self, client: Client, clock: ManualClock) -> None:
        self.client, self.clock = client, clock

    async def pods(self) -> list[Pod]:
        return list(await self.client.list(Pod, namespace="default"))

    async def deployment(self) -> Deployment:
        return await self.client.get(Deployment, "web", namespace="default")

    async def job(self) -> Job:
        return await self.client.get(Job, "work", namespace="default")

    async def told(self) -> list[tuple[str, str]]:
        return [
            (event.reason or "", event.message or "") for event in await self.client.list(Event, namespace="default")
        ]

    async def until(
        self, probe: Callable[[], Awaitable[T]], right: Callable[[T], object] = bool, *, step: float = 0.02
    ) -> T:
        """Turn the clock in small steps (back-off is on it, too) until the answer is right."""
        answer = await probe()
        for _ in range(_LOOKS):
            if right(answer):
                return answer
            await self.clock.advance(step)
            answer = await probe()
        raise AssertionError(f"not so after {_LOOKS} steps of {step} s; last seen: {answer}")

    async def number_of_pods(self, wanted: int) -> None:
        """Wait until there are so many Pods."""
        await self.until(self.pods, lambda pods: len(pods) == wanted)

    async def rolled_out(self, image: str, replicas: int) -> None:
        """Wait until only Pods of this image are there, as many as wanted."""

        def done(pods: list[Pod]) -> bool:
            return len(pods) == replicas and all(pod.spec.containers[0].image == image for pod in pods)

        await self.until(self.pods, done)
        await self.until(self.deployment, lambda one: one.status.available_replicas == replicas)


@asynccontextmanager
async def box(nodes: int = 1) -> AsyncGenerator[Box]:
    clock = ManualClock()
    async with Cluster(clock=clock, workloads=True, nodes=nodes) as cluster:
        yield Box(cluster.client, clock)


def template(image: str = "i:1", policy: str | None = None, **annotations: str) -> PodTemplateSpec:
    return PodTemplateSpec(
        metadata=ObjectMeta(
            labels={"app": "web"},
            annotations={SIMULATE + name.replace("_", "-"): text for name, text in annotations.items()},
        ),
        spec=PodSpec(containers=[Container(name="c", image=image)], restart_policy=policy),
    )


def deployment(replicas: int, image: str = "i:1", strategy: str | None = None, **annotations: str) -> Deployment:
    return Deployment(
        metadata=ObjectMeta(name="web", namespace="default"),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels={"app": "web"}),
            template=template(image, **annotations),
            strategy=DeploymentStrategy(type=strategy) if strategy else None,
        ),
    )


def job(annotations: dict[str, str] | None = None, **spec: Any) -> Job:
    return Job(
        metadata=ObjectMeta(name="work", namespace="default"),
        spec=JobSpec(template=template(policy="Never", **(annotations or {})), **spec),
    )


def reason(found: Deployment) -> str | None:
    progressing = find_condition(found.status.conditions, "Progressing")
    return progressing.reason if progressing is not None else None


def ended(found: Job, type_: str) -> bool:
    condition = next((one for one in found.status.conditions or () if one.type == type_), None)
    return condition is not None and condition.status == "True"


async def test_controllers_that_were_not_chosen_do_nothing() -> None:
    clock = ManualClock()
    async with Cluster(clock=clock, workloads=True, controllers=("*", "-replicaset-controller")) as cluster:
        one = Box(cluster.client, clock)
        await one.client.apply(deployment(2), field_manager="test")
        await one.until(lambda: one.client.list(ReplicaSet, namespace="default"))
        await clock.advance(60)
        assert await one.pods() == []


async def test_without_a_kubelet_there_is_no_node_and_pods_wait() -> None:
    clock = ManualClock()
    async with Cluster(clock=clock, workloads=True, pods="none") as cluster:
        one = Box(cluster.client, clock)
        await one.client.apply(deployment(1), field_manager="test")
        await one.until(one.told, lambda told: ("FailedScheduling", "no nodes available to schedule pods") in told)
        assert [pod.status.phase for pod in await one.pods()] == ["Pending"]
        assert list(await one.client.list(Node)) == []


async def test_simulated_pods_live_faster_when_asked_to() -> None:
    clock = ManualClock()
    async with Cluster(clock=clock, workloads=True, speed=10) as cluster:
        one = Box(cluster.client, clock)
        await one.client.create(job({"run_for": "100"}))
        begun = clock.monotonic()
        await one.until(one.job, lambda job: ended(job, "Complete"))
        assert 10 <= clock.monotonic() - begun < 15


def test_a_workload_controller_that_would_not_run_is_refused() -> None:
    with pytest.raises(ClusterError, match="job-controller would not run; add workloads=True"):
        Cluster(controllers=("namespace", "job-controller"))


@pytest.mark.capability("N2")
async def test_a_deployment_becomes_available_and_rolls_to_a_new_template() -> None:
    async with box() as one:
        await one.client.apply(deployment(3), field_manager="test")
        await one.rolled_out("i:1", 3)
        await one.client.apply(deployment(3, "i:2"), field_manager="test")
        await one.rolled_out("i:2", 3)
        found = await one.deployment()
        assert found.metadata.annotations["deployment.kubernetes.io/revision"] == "2"
        await one.until(one.deployment, lambda one: reason(one) == "NewReplicaSetAvailable")
        sets = await one.client.list(ReplicaSet, namespace="default")
        assert sorted(one.spec.replicas or 0 for one in sets) == [0, 3], "history is kept"


async def test_going_back_to_a_template_takes_its_replica_set_up_again() -> None:
    async with box() as one:
        for image in ("i:1", "i:2", "i:1"):
            await one.client.apply(deployment(2, image), field_manager="test")
            await one.rolled_out(image, 2)
        assert len(await one.client.list(ReplicaSet, namespace="default")) == 2
        assert (await one.deployment()).metadata.annotations["deployment.kubernetes.io/revision"] == "3"


async def test_a_template_that_never_gets_ready_does_not_take_the_old_pods_away() -> None:
    async with box() as one:
        await one.client.apply(deployment(4), field_manager="test")
        await one.rolled_out("i:1", 4)
        await one.client.apply(deployment(4, "i:2", ready_after="never"), field_manager="test")

        def stuck(pods: list[Pod]) -> bool:
            images = [pod.spec.containers[0].image for pod in pods]
            return images.count("i:1") == 3 and images.count("i:2") == 2

        await one.until(one.pods, stuck)
        late = await one.until(one.deployment, lambda one: reason(one) == "ProgressDeadlineExceeded", step=10)
        assert stuck(await one.pods())
        assert late.metadata.creation_timestamp is not None
        assert 600 <= (one.clock.now() - late.metadata.creation_timestamp).total_seconds() <= 650
        available = find_condition((await one.deployment()).status.conditions, "Available")
        assert available is not None
        assert available.status == "True"


async def test_paused_it_follows_the_number_but_not_the_template_until_it_is_resumed() -> None:
    async with box() as one:
        await one.client.apply(deployment(2), field_manager="test")
        await one.rolled_out("i:1", 2)
        place = ref(Deployment, "web", namespace="default")
        await one.client.patch(place, MergePatch({"spec": {"paused": True}}))
        await one.client.apply(deployment(3, "i:2"), field_manager="test")
        await one.rolled_out("i:1", 3)
        assert reason(await one.deployment()) == "DeploymentPaused"
        await one.client.patch(place, MergePatch({"spec": {"paused": False}}))
        await one.rolled_out("i:2", 3)


async def test_recreate_lets_the_old_go_first() -> None:
    async with box() as one:
        await one.client.apply(deployment(2, strategy="Recreate"), field_manager="test")
        await one.rolled_out("i:1", 2)
        await one.client.apply(deployment(2, "i:2", strategy="Recreate"), field_manager="test")
        await one.rolled_out("i:2", 2)
        told = [message for reason, message in await one.told() if reason == "ScalingReplicaSet"]
        assert any("from 2 to 0" in message for message in told)


async def test_scaling_follows_the_number_up_and_down() -> None:
    async with box() as one:
        await one.client.apply(deployment(1), field_manager="test")
        for replicas in (5, 0, 2):
            place = ref(Deployment, "web", namespace="default")
            await one.client.patch(place, MergePatch({"spec": {"replicas": replicas}}))
            await one.number_of_pods(replicas)


async def test_what_is_written_onto_a_deployment_is_remembered_with_its_revision() -> None:
    async with box() as one:
        wanted = deployment(1)
        wanted.metadata.annotations["kubernetes.io/change-cause"] = "a try"
        await one.client.apply(wanted, field_manager="test")
        await one.rolled_out("i:1", 1)
        (made,) = await one.client.list(ReplicaSet, namespace="default")
        assert made.metadata.annotations["kubernetes.io/change-cause"] == "a try"
        assert made.metadata.annotations["deployment.kubernetes.io/revision"] == "1"


async def test_a_lost_pod_is_made_again() -> None:
    async with box() as one:
        await one.client.apply(deployment(2), field_manager="test")
        await one.rolled_out("i:1", 2)
        lost = (await one.pods())[0]
        await one.client.delete(lost)
        await one.until(
            one.pods, lambda pods: len(pods) == 2 and lost.metadata.uid not in {p.metadata.uid for p in pods}
        )


@pytest.mark.capability("C74")
async def test_everything_goes_with_the_deployment() -> None:
    async with box() as one:
        await one.client.apply(deployment(2), field_manager="test")
        await one.rolled_out("i:1", 2)
        await one.client.delete(Deployment, "web", namespace="default")
        await one.until(one.pods, lambda pods: not pods)
        assert not await one.client.list(ReplicaSet, namespace="default")


class TestJobs:
    @pytest.mark.parametrize("propagation", ["Background", "Foreground"])
    async def test_deleted_while_it_runs_it_takes_its_pods_along(self, propagation: Propagation) -> None:
        async with box() as one:
            await one.client.create(job({"run_for": "1000"}, parallelism=2))
            await one.number_of_pods(2)
            await one.client.delete(Job, "work", namespace="default", propagation=propagation)
            await one.number_of_pods(0)
            assert not await one.client.list(Job, namespace="default")

    async def test_pods_that_outlive_it_are_released(self) -> None:
        async with box() as one:
            await one.client.create(job({"run_for": "1000"}, parallelism=2))
            await one.number_of_pods(2)
            await one.client.delete(Job, "work", namespace="default", propagation="Orphan")
            await one.until(one.pods, lambda pods: not any(pod.metadata.finalizers for pod in pods))
            assert [pod.metadata.owner_references for pod in await one.pods()] == [[], []]

    async def test_it_completes_and_counts_each_pod_once(self) -> None:
        async with box() as one:
            await one.client.create(job(completions=3, parallelism=2))
            await one.until(one.pods, lambda pods: len(pods) == 2)
            for _ in range(3):
                await one.clock.advance(2)
            found = await one.until(one.job, lambda done: ended(done, "Complete"))
            assert (found.status.succeeded, found.status.active, found.status.failed) == (3, None, None)
            assert found.status.completion_time is not None
            await one.until(one.pods, lambda pods: not any(pod.metadata.finalizers for pod in pods))

    async def test_failures_are_tried_again_with_growing_pauses_until_the_limit(self) -> None:
        async with box() as one:
            await one.client.create(job({"exit_code": "3"}, backoff_limit=2))
            found = await one.until(one.job, lambda done: ended(done, "Failed"), step=1)
            condition = next(one for one in found.status.conditions or () if one.type == "Failed")
            assert (condition.reason, found.status.failed) == ("BackoffLimitExceeded", 3)
            moments = sorted(pod.metadata.creation_timestamp or one.clock.now() for pod in await one.pods())
            first, second, third = moments
            assert 10 <= (second - first).total_seconds() <= 15
            assert 20 <= (third - second).total_seconds() <= 25

    async def test_a_deadline_ends_it(self) -> None:
        async with box() as one:
            await one.client.create(job({"run_for": "1000"}, active_deadline_seconds=60))
            await one.until(one.pods, lambda pods: len(pods) == 1 and pods[0].status.phase == "Running")
            await one.clock.advance(61)
            found = await one.until(one.job, lambda done: ended(done, "Failed"))
            assert [one.reason for one in found.status.conditions or ()][-1] == "DeadlineExceeded"
            await one.until(one.pods, lambda pods: not pods)

    async def test_suspended_it_has_no_pods_and_resumed_it_goes_on(self) -> None:
        async with box() as one:
            await one.client.create(job(suspend=True))
            await one.until(one.job, lambda found: ended(found, "Suspended"))
            assert await one.pods() == []
            await one.client.patch(ref(Job, "work", namespace="default"), MergePatch({"spec": {"suspend": False}}))
            await one.until(one.pods, lambda pods: len(pods) == 1)
            await one.clock.advance(2)
            await one.until(one.job, lambda found: ended(found, "Complete"))

    async def test_what_is_taken_away_by_suspending_has_not_failed(self) -> None:
        async with box() as one:
            await one.client.create(job({"run_for": "5"}, backoff_limit=0))
            await one.until(one.pods, lambda pods: len(pods) == 1 and pods[0].status.phase == "Running")
            for suspended in (True, False):
                wish = MergePatch({"spec": {"suspend": suspended}})
                await one.client.patch(ref(Job, "work", namespace="default"), wish)
                await one.number_of_pods(0 if suspended else 1)
            found = await one.until(one.job, lambda found: ended(found, "Complete"), step=1)
            assert (found.status.failed, found.status.succeeded) == (None, 1)

    async def test_indexes_are_each_done_once(self) -> None:
        async with box() as one:
            await one.client.create(job(completions=3, parallelism=3, completion_mode="Indexed"))
            pods = await one.until(one.pods, lambda pods: len(pods) == 3)
            names = {pod.metadata.annotations["batch.kubernetes.io/job-completion-index"]: pod for pod in pods}
            assert sorted(names) == ["0", "1", "2"]
            assert names["1"].spec.hostname == "work-1"
            await one.clock.advance(2)
            found = await one.until(one.job, lambda done: ended(done, "Complete"))
            assert found.status.completed_indexes == "0-2"

    async def test_it_goes_when_its_time_after_the_end_is_over(self) -> None:
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


async def test_a_pod_that_fits_nowhere_is_told_so_and_placed_when_it_fits() -> None:
    async with box(nodes=2) as one:
        big = ResourceRequirements(requests={"cpu": "9"})
        spec = PodSpec(containers=[Container(name="c", image="i", resources=big)])
        await one.client.create(Pod(metadata=ObjectMeta(name="big", namespace="default"), spec=spec))
        message = (
            "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, "
            "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
        )
        await one.until(one.told, lambda told: ("FailedScheduling", message) in told)
        room = MergePatch({"status": {"allocatable": {"cpu": "16"}}})
        await one.client.patch(ref(Node, "node-2"), room, subresource="status")
        await one.until(one.pods, lambda pods: pods[0].status.phase == "Running" and pods[0].spec.node_name == "node-2")


async def test_nodes_of_an_earlier_life_go_on(tmp_path: Path) -> None:
    async with Cluster(data=tmp_path / "data", workloads=True, nodes=3):
        pass
    async with Cluster(data=tmp_path / "data", workloads=True, nodes=1) as cluster:
        assert len(await cluster.client.list(Node)) == 3
        one = Box(cluster.client, ManualClock())
        await cluster.client.apply(deployment(3), field_manager="test")
        await eventually(one.deployment, lambda found: found.status.available_replicas == 3)
        assert len({pod.spec.node_name for pod in await one.pods()}) > 1


async def test_a_pod_that_cannot_start_waits_and_says_why() -> None:
    async with box() as one:
        await one.client.apply(deployment(1, waiting="ImagePullBackOff"), field_manager="test")
        (pod,) = await one.until(one.pods, lambda pods: len(pods) == 1 and bool(pods[0].status.container_statuses))
        (status,) = pod.status.container_statuses or []
        assert pod.status.phase == "Pending"
        assert status.state is not None
        assert status.state.waiting is not None
        assert status.state.waiting.reason == "ImagePullBackOff"


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "expected"),
    [
        (None, None, 4, (1, 1)),
        ("25%", "25%", 3, (1, 0)),
        (0, 0, 5, (0, 1)),
        ("0%", "10%", 3, (0, 1)),
        (2, 1, 9, (2, 1)),
    ],
)
def test_surge_is_rounded_up_and_lack_down(
    surge: Any, unavailable: Any, replicas: int, expected: tuple[int, int]
) -> None:
    assert resolve_rolling(surge, unavailable, replicas) == expected
