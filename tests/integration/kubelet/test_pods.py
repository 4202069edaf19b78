"""Pods as processes: forty manifests and what becomes of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.integration.kubelet.cases import Case, cases, differences

from flyball.api import DynamicObject, from_dict, to_dict
from flyball.client import ref
from flyball.clock import ManualClock
from flyball.controlplane.apiserver.kubelets import KubeletRefusal, LogOptions
from flyball.controlplane.kubelet.process import Processes
from flyball.k8s.core.v1 import Event, Pod
from flyball.testing import Cluster, eventually

PATIENCE = 60.0
EVERY = cases()


async def told(cluster: Cluster) -> list[str]:
    """The events about the Pod."""
    events = await cluster.client.list(Event)
    return [f"{one.type} {one.reason} {one.message}" for one in events if one.involved_object.kind == "Pod"]


async def log(cluster: Cluster, pod: dict[str, Any], container: str) -> str:
    kubelet = cluster.embedded.server.kubelets.of("node-1")
    assert kubelet is not None
    try:
        return b"".join([piece async for piece in kubelet.logs(pod, LogOptions(container))]).decode()
    except KubeletRefusal as refused:
        return f"refused: {refused}"


async def wrong(cluster: Cluster, pod: dict[str, Any], expect: dict[str, Any]) -> list[str]:
    """Say what is not as expected."""
    found = differences(expect.get("status", {}), pod.get("status"), "status")
    events = await told(cluster)
    for wanted in expect.get("events", ()):
        if all(differences(wanted, event) for event in events):
            found.append(f"no event {wanted!r} among {events}")
    for container, text in expect.get("logs", {}).items():
        found += differences(text, await log(cluster, pod, container), f"log of {container}")
    return found


def test_there_are_at_least_forty() -> None:
    assert len({case.name for case in EVERY}) == len(EVERY)


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name)
async def test_pod(case: Case) -> None:
    await play(case, Processes())


@pytest.mark.parametrize("case", [one for one in EVERY if not one.isolated], ids=lambda case: case.name)
async def test_pod_without_namespaces(case: Case) -> None:
    await play(case, Processes(isolation=False))


async def play(case: Case, processes: Processes) -> None:
    clock = ManualClock()
    async with Cluster(workloads=True, pods="process", clock=clock, processes=processes) as cluster:
        for other in case.others:
            await cluster.client.create(DynamicObject(other))
        await cluster.client.create(from_dict(Pod, case.manifest))
        place = ref(Pod, case.name, namespace="default")

        async def state() -> dict[str, Any]:
            return to_dict(await cluster.client.get(Pod, case.name, namespace="default"))

        async def as_expected(expect: dict[str, Any], turn: float) -> list[str]:
            left = await wrong(cluster, await state(), expect)
            if left and turn:
                await clock.advance(turn)
            return left

        if case.first is not None:
            first = case.first
            await eventually(lambda: as_expected(first, 0), lambda left: not left, timeout=PATIENCE)
        await eventually(lambda: as_expected(case.expect, case.turn), lambda left: not left, timeout=PATIENCE)
        if case.delete is None:
            return
        deleted = asyncio.ensure_future(last_seen(cluster, case.name))
        await cluster.client.delete(place, **case.delete)

        async def gone() -> bool:
            await clock.advance(case.turn)
            return deleted.done()

        await eventually(gone, timeout=PATIENCE)
        last = await deleted
        await eventually(lambda: wrong(cluster, last, case.left or {}), lambda left: not left, timeout=PATIENCE)


async def last_seen(cluster: Cluster, name: str) -> dict[str, Any]:
    """Follow a Pod until it is gone; return how it was then."""
    async with cluster.client.watch(Pod, namespace="default", fields=f"metadata.name={name}") as watch:
        async for event in watch:
            if event.type == "DELETED":
                return to_dict(event.object)
    raise AssertionError("the watch ended")
