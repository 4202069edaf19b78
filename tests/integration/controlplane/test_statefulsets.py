"""StatefulSets on the cluster in the box, on a clock that is turned by hand."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from flyball.api import find_condition
from flyball.client import Client, MergePatch, ref
from flyball.clock import ManualClock
from flyball.k8s.apps.v1 import (
    ControllerRevision,
    RollingUpdateStatefulSetStrategy,
    StatefulSet,
    StatefulSetOrdinals,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetSpec,
    StatefulSetUpdateStrategy,
)
from flyball.k8s.core.v1 import (
    Container,
    Event,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodSpec,
    PodTemplateSpec,
    Volume,
    VolumeResourceRequirements,
)
from flyball.k8s.meta.v1 import LabelSelector, ObjectMeta
from flyball.testing import Cluster

T = TypeVar("T")

SIMULATE = "simulate.flyball.dev/"
_LOOKS = 1000


class Box:
    """A cluster with one StatefulSet, `web`."""

    def __init__(self, client: Client, clock: ManualClock) -> None:
        self.client, self.clock = client, clock

    async def statefulset(self) -> StatefulSet:
        return await self.client.get(StatefulSet, "web", namespace="default")

    async def pods(self) -> dict[str, Pod]:
        return {pod.metadata.name: pod for pod in await self.client.list(Pod, namespace="default")}

    async def claims(self) -> list[str]:
        found = await self.client.list(PersistentVolumeClaim, namespace="default")
        return sorted(one.metadata.name for one in found)

    async def revisions(self) -> list[ControllerRevision]:
        found = await self.client.list(ControllerRevision, namespace="default")
        return sorted(found, key=lambda one: one.revision)

    async def told(self) -> list[tuple[str, str]]:
        """What was said about the StatefulSet, in order."""
        events = sorted(
            await self.client.list(Event, namespace="default"), key=lambda one: int(one.metadata.resource_version)
        )
        return [(one.reason or "", one.message or "") for one in events if one.involved_object.kind == "StatefulSet"]

    async def change(self, **spec: Any) -> None:
        await self.client.patch(ref(StatefulSet, "web", namespace="default"), MergePatch({"spec": spec}))

    async def new_image(self, image: str, **annotations: str) -> None:
        changed = template(image, **annotations)
        found = await self.statefulset()
        found.spec.template = changed
        await self.client.patch(found)

    async def until(self, probe: Callable[[], Awaitable[T]], right: Callable[[T], object], *, step: float = 0.02) -> T:
        """Turn the clock in small steps until the answer is right."""
        answer = await probe()
        for _ in range(_LOOKS):
            if right(answer):
                return answer
            await self.clock.advance(step)
            answer = await probe()
        raise AssertionError(f"not so after {_LOOKS} steps of {step} s; last seen: {answer}")

    async def settled(self, replicas: int, image: str = "i:1") -> StatefulSet:
        """Wait until all members are available and of this image."""
        await self.until(
            self.pods,
            lambda pods: (
                len(pods) == replicas
                and all(pod.spec.containers[0].image == image and not going(pod) for pod in pods.values())
            ),
        )
        return await self.until(
            self.statefulset,
            lambda one: (
                one.status.available_replicas == replicas
                and one.status.replicas == replicas
                and one.status.current_revision == one.status.update_revision
            ),
        )


def scheduled(pod: Pod) -> str | None:
    """What the scheduler says of a Pod."""
    found = find_condition(pod.status.conditions, "PodScheduled")
    return found.message if found is not None else None


def going(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


@asynccontextmanager
async def box() -> AsyncGenerator[Box]:
    clock = ManualClock()
    async with Cluster(clock=clock, workloads=True) as cluster:
        yield Box(cluster.client, clock)


def template(image: str = "i:1", **annotations: str) -> PodTemplateSpec:
    return PodTemplateSpec(
        metadata=ObjectMeta(
            labels={"app": "web"},
            annotations={SIMULATE + name.replace("_", "-"): text for name, text in annotations.items()},
        ),
        spec=PodSpec(containers=[Container(name="c", image=image)]),
    )


def statefulset(replicas: int, annotations: dict[str, str] | None = None, **spec: Any) -> StatefulSet:
    return StatefulSet(
        metadata=ObjectMeta(name="web", namespace="default"),
        spec=StatefulSetSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels={"app": "web"}),
            template=template(**(annotations or {})),
            service_name="members",
            **spec,
        ),
    )


@pytest.mark.capability("N2")
async def test_members_come_one_after_the_other_and_know_who_they_are() -> None:
    async with box() as one:
        await one.client.create(statefulset(3))
        found = await one.settled(3)
        assert (found.status.ready_replicas, found.status.current_replicas, found.status.updated_replicas) == (3, 3, 3)
        assert found.status.collision_count == 0
        pods = await one.pods()
        assert sorted(pods) == ["web-0", "web-1", "web-2"]
        second = pods["web-1"]
        assert second.metadata.labels == {
            "app": "web",
            "apps.kubernetes.io/pod-index": "1",
            "controller-revision-hash": found.status.current_revision,
            "statefulset.kubernetes.io/pod-name": "web-1",
        }
        assert (second.spec.hostname, second.spec.subdomain) == ("web-1", "members")
        told = [message for reason, message in await one.told() if reason == "SuccessfulCreate"]
        assert told == [f"Create Pod web-{number} in StatefulSet web successful" for number in range(3)]


async def test_a_member_that_is_not_ready_keeps_the_next_ones_waiting() -> None:
    async with box() as one:
        await one.client.create(statefulset(3, {"ready_after": "60"}))
        await one.until(one.pods, lambda pods: "web-0" in pods)
        await one.clock.advance(30)
        assert sorted(await one.pods()) == ["web-0"]
        await one.until(one.pods, lambda pods: len(pods) == 2, step=1)
        await one.clock.advance(30)
        assert sorted(await one.pods()) == ["web-0", "web-1"]
        await one.until(one.pods, lambda pods: len(pods) == 3, step=1)


async def test_parallel_members_do_not_wait_for_each_other() -> None:
    async with box() as one:
        await one.client.create(statefulset(4, {"ready_after": "never"}, pod_management_policy="Parallel"))
        await one.until(one.pods, lambda pods: len(pods) == 4)
        await one.change(replicas=1)
        assert sorted(await one.until(one.pods, lambda pods: len(pods) == 1)) == ["web-0"]


async def test_the_last_member_goes_first() -> None:
    async with box() as one:
        await one.client.create(statefulset(3))
        await one.settled(3)
        await one.change(replicas=1)
        await one.settled(1)
        told = [message for reason, message in await one.told() if reason == "SuccessfulDelete"]
        assert told == [f"Delete Pod web-{number} in StatefulSet web successful" for number in (2, 1)]


async def test_counting_may_begin_elsewhere() -> None:
    async with box() as one:
        await one.client.create(statefulset(2, ordinals=StatefulSetOrdinals(start=5)))
        await one.settled(2)
        assert sorted(await one.pods()) == ["web-5", "web-6"]
        await one.change(ordinals={"start": 6})
        await one.until(one.pods, lambda pods: sorted(pods) == ["web-6", "web-7"])


async def test_a_member_that_ended_or_was_lost_is_made_again() -> None:
    async with box() as one:
        await one.client.create(statefulset(2))
        await one.settled(2)
        before = await one.pods()
        failed = MergePatch({"status": {"phase": "Failed"}})
        await one.client.patch(ref(Pod, "web-0", namespace="default"), failed, subresource="status")
        await one.client.delete(before["web-1"])

        def new(pods: dict[str, Pod]) -> bool:
            return len(pods) == 2 and all(pods[name].metadata.uid != before[name].metadata.uid for name in pods)

        await one.until(one.pods, new)
        await one.settled(2)


async def test_a_new_template_reaches_the_last_member_first_and_stops_at_one_that_is_not_ready() -> None:
    async with box() as one:
        await one.client.create(statefulset(3))
        first = (await one.settled(3)).status.current_revision
        await one.new_image("i:2", ready_after="never")
        await one.until(one.pods, lambda pods: "web-2" in pods and pods["web-2"].spec.containers[0].image == "i:2")
        found = await one.until(one.statefulset, lambda found: found.status.ready_replicas == 2)
        assert (found.status.current_revision, found.status.updated_replicas) == (first, 1)
        assert found.status.update_revision != first
        for _ in range(20):
            await one.clock.advance(10)
        images = {name: pod.spec.containers[0].image for name, pod in (await one.pods()).items()}
        assert images == {"web-0": "i:1", "web-1": "i:1", "web-2": "i:2"}
        await one.new_image("i:3")
        await one.client.delete((await one.pods())["web-2"])  # as upstream: it waits for the broken one
        await one.settled(3, "i:3")


async def test_members_below_the_partition_stay_what_they_are_also_when_they_are_made_again() -> None:
    async with box() as one:
        rolling = StatefulSetUpdateStrategy(rolling_update=RollingUpdateStatefulSetStrategy(partition=2))
        await one.client.create(statefulset(3, update_strategy=rolling))
        await one.settled(3)
        await one.new_image("i:2")
        wanted = {"web-0": "i:1", "web-1": "i:1", "web-2": "i:2"}

        def images(pods: dict[str, Pod]) -> dict[str, str | None]:
            return {name: pod.spec.containers[0].image for name, pod in pods.items()}

        await one.until(one.pods, lambda pods: images(pods) == wanted)
        lost = (await one.pods())["web-1"]
        await one.client.delete(lost)
        await one.until(one.pods, lambda pods: len(pods) == 3 and pods["web-1"].metadata.uid != lost.metadata.uid)
        assert images(await one.pods()) == wanted
        await one.change(updateStrategy={"rollingUpdate": {"partition": 0}})
        await one.settled(3, "i:2")


async def test_on_delete_members_are_replaced_when_somebody_deletes_them() -> None:
    async with box() as one:
        await one.client.create(statefulset(2, update_strategy=StatefulSetUpdateStrategy(type="OnDelete")))
        await one.settled(2)
        await one.new_image("i:2")
        await one.until(one.statefulset, lambda found: found.status.current_revision != found.status.update_revision)
        await one.clock.advance(60)
        assert {pod.spec.containers[0].image for pod in (await one.pods()).values()} == {"i:1"}
        await one.client.delete((await one.pods())["web-0"])
        await one.until(one.pods, lambda pods: "web-0" in pods and pods["web-0"].spec.containers[0].image == "i:2")


async def test_going_back_takes_the_old_revision_up_again_and_history_is_kept_to_its_limit() -> None:
    async with box() as one:
        await one.client.create(statefulset(1, revision_history_limit=1))
        first = (await one.settled(1)).status.current_revision
        for image in ("i:2", "i:1"):
            await one.new_image(image)
            found = await one.settled(1, image)
        assert found.status.current_revision == first
        assert [(one.metadata.name == first, one.revision) for one in await one.revisions()] == [(False, 2), (True, 3)]
        for image in ("i:3", "i:4"):
            await one.new_image(image)
            await one.settled(1, image)
        await one.until(one.revisions, lambda kept: [one.revision for one in kept] == [4, 5])


async def test_seconds_of_being_ready_count_before_the_next_one_comes() -> None:
    async with box() as one:
        await one.client.create(statefulset(2, min_ready_seconds=30))
        await one.until(one.statefulset, lambda found: found.status.ready_replicas == 1)
        await one.clock.advance(20)
        assert sorted(await one.pods()) == ["web-0"]
        assert (await one.statefulset()).status.available_replicas == 0
        await one.until(one.pods, lambda pods: len(pods) == 2, step=1)
        await one.until(one.statefulset, lambda found: found.status.available_replicas == 2, step=1)


def claim_template() -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name="data", labels={"tier": "disk"}),
        spec=PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"], resources=VolumeResourceRequirements(requests={"storage": "1Gi"})
        ),
    )


class TestClaims:
    async def test_each_member_has_its_claim_and_waits_for_it(self) -> None:
        async with box() as one:
            await one.client.create(
                statefulset(2, pod_management_policy="Parallel", volume_claim_templates=[claim_template()])
            )
            pods = await one.until(one.pods, lambda pods: len(pods) == 2)
            assert await one.claims() == ["data-web-0", "data-web-1"]
            found = await one.client.get(PersistentVolumeClaim, "data-web-1", namespace="default")
            assert found.metadata.labels == {"app": "web", "tier": "disk"}
            assert found.metadata.owner_references == []
            (volume,) = (volume for volume in pods["web-1"].spec.volumes or () if volume.name == "data")
            assert volume.persistent_volume_claim is not None
            assert volume.persistent_volume_claim.claim_name == "data-web-1"
            refused = await one.until(one.pods, lambda pods: all(scheduled(pod) is not None for pod in pods.values()))
            assert {pod.status.phase for pod in refused.values()} == {"Pending"}
            for pod in refused.values():
                assert "pod has unbound immediate PersistentVolumeClaims" in (scheduled(pod) or "")
            told = [message for _, message in await one.told()]
            assert "Create Claim data-web-0 Pod web-0 in StatefulSet web success" in told
            await one.client.delete(StatefulSet, "web", namespace="default")
            await one.until(one.pods, lambda pods: not pods)
            assert await one.claims() == ["data-web-0", "data-web-1"], "claims outlive the set"

    @pytest.mark.parametrize(
        ("scaled", "deleted", "after_scaling", "after_deletion"),
        [
            ("Retain", "Retain", ["data-web-0", "data-web-1"], ["data-web-0", "data-web-1"]),
            ("Delete", "Retain", ["data-web-0"], ["data-web-0"]),
            ("Retain", "Delete", ["data-web-0", "data-web-1"], []),
            ("Delete", "Delete", ["data-web-0"], []),
        ],
    )
    async def test_the_policy_says_which_claims_go(
        self, scaled: str, deleted: str, after_scaling: list[str], after_deletion: list[str]
    ) -> None:
        async with box() as one:
            policy = StatefulSetPersistentVolumeClaimRetentionPolicy(when_scaled=scaled, when_deleted=deleted)
            await one.client.create(
                statefulset(
                    2,
                    pod_management_policy="Parallel",
                    volume_claim_templates=[claim_template()],
                    persistent_volume_claim_retention_policy=policy,
                )
            )
            await one.until(one.pods, lambda pods: len(pods) == 2)
            await one.change(replicas=1)
            await one.until(one.pods, lambda pods: len(pods) == 1)
            await one.until(one.claims, lambda claims: claims == after_scaling)
            await one.client.delete(StatefulSet, "web", namespace="default")
            await one.until(one.pods, lambda pods: not pods)
            await one.until(one.claims, lambda claims: claims == after_deletion)

    async def test_a_claim_in_use_stays_until_its_pod_has_gone(self) -> None:
        async with box() as one:
            claim = claim_template()
            claim.metadata.namespace = "default"
            await one.client.create(claim)
            source = PersistentVolumeClaimVolumeSource(claim_name="data")
            pod = Pod(
                metadata=ObjectMeta(name="user", namespace="default"),
                spec=PodSpec(
                    node_name="node-1",
                    containers=[Container(name="c", image="i:1")],
                    volumes=[Volume(name="data", persistent_volume_claim=source)],
                ),
            )
            await one.client.create(pod)
            await one.client.delete(PersistentVolumeClaim, "data", namespace="default")
            await one.clock.advance(200)
            assert await one.claims() == ["data"]
            await one.client.delete(Pod, "user", namespace="default")
            await one.until(one.claims, lambda claims: not claims)
