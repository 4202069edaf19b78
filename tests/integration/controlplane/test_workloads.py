"""Workloads progress by themselves on the cluster in the box, on a clock that is turned by hand."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from flyball.api import find_condition
from flyball.client import Client, MergePatch, ref
from flyball.clock import ManualClock
from flyball.controlplane.controllers.deployments import resolve_rolling
from flyball.k8s.apps.v1 import Deployment, DeploymentSpec, DeploymentStrategy, ReplicaSet
from flyball.k8s.core.v1 import Container, Event, Node, Pod, PodSpec, PodTemplateSpec, ResourceRequirements
from flyball.k8s.meta.v1 import LabelSelector, ObjectMeta
from flyball.testing import Cluster, eventually

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


def reason(found: Deployment) -> str | None:
    progressing = find_condition(found.status.conditions, "Progressing")
    return progressing.reason if progressing is not None else None


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
