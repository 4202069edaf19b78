"""What ReplicaSets and Deployments do when the server refuses: few attempts, growing pauses, and it is told."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from flyball.api import find_condition
from flyball.client import MergePatch, ref
from flyball.clock import ManualClock
from flyball.errors import NotFound
from flyball.k8s.apps.v1 import Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec
from flyball.k8s.core.v1 import Container, Event, Pod, PodSpec, PodTemplateSpec
from flyball.k8s.meta.v1 import LabelSelector, ObjectMeta
from flyball.testing import Cluster

LABELS = {"app": "web"}


@asynccontextmanager
async def standing() -> AsyncGenerator[tuple[Cluster, ManualClock]]:
    """A cluster with workloads whose time stands still."""
    clock = ManualClock()
    async with Cluster(clock=clock, workloads=True) as cluster:
        yield cluster, clock


def template() -> PodTemplateSpec:
    return PodTemplateSpec(
        metadata=ObjectMeta(labels=LABELS), spec=PodSpec(containers=[Container(name="c", image="i:1")])
    )


def replica_set(replicas: int) -> ReplicaSet:
    return ReplicaSet(
        metadata=ObjectMeta(name="web", namespace="default"),
        spec=ReplicaSetSpec(replicas=replicas, selector=LabelSelector(match_labels=LABELS), template=template()),
    )


def deployment(replicas: int = 1) -> Deployment:
    return Deployment(
        metadata=ObjectMeta(name="web", namespace="default"),
        spec=DeploymentSpec(replicas=replicas, selector=LabelSelector(match_labels=LABELS), template=template()),
    )


async def turned(clock: ManualClock, seconds: float) -> None:
    """Turn the clock in small steps: what is sent in the background is not on it."""
    for _ in range(20):
        await clock.advance(seconds / 20)


async def test_what_fails_for_one_pod_is_not_tried_for_all() -> None:
    async with standing() as (cluster, clock):
        rule = cluster.faults.status(403, verb="create", resource="pods")
        await cluster.client.create(replica_set(100))
        await turned(clock, 0.004)
        assert len(cluster.requests.of("create", "pods")) == 1
        await turned(clock, 10)
        tries = len(cluster.requests.of("create", "pods"))
        assert 8 <= tries <= 14, "each pause is twice as long as the one before"
        told = await cluster.client.get(ReplicaSet, "web", namespace="default")
        failure = find_condition(told.status.conditions, "ReplicaFailure")
        assert failure is not None
        assert (failure.status, failure.reason) == ("True", "FailedCreate")
        assert told.status.observed_generation == told.metadata.generation
        rule.remove()
        await turned(clock, 30)
        assert len(await cluster.client.list(Pod, namespace="default")) == 100
        told = await cluster.client.get(ReplicaSet, "web", namespace="default")
        assert find_condition(told.status.conditions, "ReplicaFailure") is None


async def test_a_failure_among_many_is_made_up_for() -> None:
    async with standing() as (cluster, clock):
        rule = cluster.faults.status(403, verb="create", resource="pods", subresource="", skip=3, first=2)
        await cluster.client.create(replica_set(20))
        await turned(clock, 5)
        assert rule.hits == 2
        assert len(await cluster.client.list(Pod, namespace="default")) == 20
        told = await cluster.client.get(ReplicaSet, "web", namespace="default")
        assert (told.status.ready_replicas, told.status.conditions) == (20, None)


async def test_a_pod_that_cannot_be_deleted_is_told() -> None:
    async with standing() as (cluster, clock):
        await cluster.client.create(replica_set(2))
        await turned(clock, 2)
        rule = cluster.faults.status(403, verb="delete", resource="pods")
        await cluster.client.patch(ref(ReplicaSet, "web", namespace="default"), MergePatch({"spec": {"replicas": 1}}))
        await turned(clock, 2)
        told = await cluster.client.get(ReplicaSet, "web", namespace="default")
        failure = find_condition(told.status.conditions, "ReplicaFailure")
        assert failure is not None
        assert failure.reason == "FailedDelete"
        rule.remove()
        await turned(clock, 20)
        assert len(await cluster.client.list(Pod, namespace="default")) == 1


async def test_a_set_that_cannot_be_made_is_told_at_the_deployment() -> None:
    async with standing() as (cluster, clock):
        rule = cluster.faults.status(403, verb="create", resource="replicasets")
        await cluster.client.create(deployment())
        await turned(clock, 2)
        told = await cluster.client.get(Deployment, "web", namespace="default")
        progressing = find_condition(told.status.conditions, "Progressing")
        assert progressing is not None
        assert (progressing.status, progressing.reason) == ("False", "ReplicaSetCreateError")
        assert (progressing.message or "").startswith('Failed to create new replica set "web-')
        events = {event.reason for event in await cluster.client.list(Event, namespace="default")}
        assert events == {"ReplicaSetCreateError"}
        rule.remove()
        await turned(clock, 20)
        told = await cluster.client.get(Deployment, "web", namespace="default")
        assert told.status.available_replicas == 1
        progressing = find_condition(told.status.conditions, "Progressing")
        assert progressing is not None
        assert progressing.reason == "NewReplicaSetAvailable"


async def test_lost_answers_make_nothing_twice() -> None:
    async with standing() as (cluster, clock):
        cluster.faults.cut_after_commit(verb="create", resource="replicasets", first=1)
        cluster.faults.cut_after_commit(verb="patch", resource="deployments", first=1)
        await cluster.client.create(deployment(3))
        await turned(clock, 20)
        assert len(await cluster.client.list(ReplicaSet, namespace="default")) == 1
        assert len(await cluster.client.list(Pod, namespace="default")) == 3
        told = await cluster.client.get(Deployment, "web", namespace="default")
        assert (told.status.available_replicas, told.status.collision_count) == (3, None)


async def test_what_is_left_is_told_while_it_is_deleted() -> None:
    async with standing() as (cluster, clock):
        await cluster.client.create(deployment(2))
        await turned(clock, 2)
        place = ref(Deployment, "web", namespace="default")
        await cluster.client.patch(place, MergePatch({"metadata": {"finalizers": ["example.org/wait"]}}))
        await cluster.client.delete(Deployment, "web", namespace="default", propagation="Foreground")
        await turned(clock, 5)
        told = await cluster.client.get(Deployment, "web", namespace="default")
        assert (told.status.replicas, told.status.available_replicas) == (None, None)
        await cluster.client.patch(place, MergePatch({"metadata": {"finalizers": []}}))
        await turned(clock, 2)
        with pytest.raises(NotFound):
            await cluster.client.get(Deployment, "web", namespace="default")
