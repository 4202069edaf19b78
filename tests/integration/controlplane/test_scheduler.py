"""The scheduler places Pods as kube-scheduler would, and says in its words why it cannot."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.scheduled import play, told_by_events
from tests.support.scheduling import CASES, NO_NODES, PLACED, node, pod

from flyball.api import DynamicObject, find_condition
from flyball.client import Client, MergePatch, ref
from flyball.clock import ManualClock
from flyball.k8s.core.v1 import Node, Pod
from flyball.testing import Cluster, eventually


class Box:
    """A cluster with a scheduler and the nodes of a test's own."""

    def __init__(self, client: Client, clock: ManualClock) -> None:
        self.client, self.clock = client, clock

    async def until(self, probe: Callable[[], Awaitable[Any]]) -> None:
        for _ in range(500):
            if await probe():
                return
            await self.clock.advance(0.02)
        raise AssertionError("it does not happen")

    async def node(self, made: dict[str, Any]) -> None:
        await self.client.create(DynamicObject(made))
        place = ref(Node, made["metadata"]["name"])
        await self.client.patch(place, MergePatch({"spec": {"taints": made["spec"].get("taints")}}))
        await self.client.patch(place, MergePatch({"status": made["status"]}), subresource="status")

    async def pod(self, made: dict[str, Any]) -> None:
        await self.client.create(DynamicObject(made))

    async def where(self, name: str) -> str | None:
        return (await self.client.get(Pod, name, namespace="default")).spec.node_name

    async def message(self, name: str) -> str | None:
        found = await self.client.get(Pod, name, namespace="default")
        condition = find_condition(found.status.conditions, "PodScheduled")
        return condition.message if condition is not None and condition.status == "False" else None

    async def placed(self, name: str, node: str) -> None:
        async def there() -> bool:
            return await self.where(name) == node

        await self.until(there)

    async def waits(self, name: str) -> str:
        await self.until(lambda: self.message(name))
        return await self.message(name) or ""


@pytest.fixture
async def box() -> Any:
    clock = ManualClock()
    async with Cluster(clock=clock, workloads=True, pods="none") as cluster:
        yield Box(cluster.client, clock)


@pytest.mark.capability("N3")
async def test_it_says_what_kube_scheduler_says(box: Box) -> None:
    said = await play(box.client, box.until)
    expected = {
        case.pod["metadata"]["name"]: (PLACED.get(case.pod["metadata"]["name"]), case.message) for case in CASES
    }
    assert said == expected
    await box.clock.advance(1)
    told = await told_by_events(box.client)
    for name, (where, message) in expected.items():
        if where is not None:
            note = f"Successfully assigned default/{name} to {where}"
            assert told[name] == ("Normal", "Scheduled", "Binding", "default-scheduler", note)
        elif name == "gated":
            assert name not in told, "nobody was looked for"
        else:
            assert told[name] == ("Warning", "FailedScheduling", "Scheduling", "default-scheduler", message)


async def test_without_nodes_it_says_so_and_the_first_node_takes_the_pod(box: Box) -> None:
    await box.pod(pod("first"))
    assert await box.waits("first") == NO_NODES
    await box.node(node("n"))
    await box.placed("first", "n")


async def test_the_more_important_pod_comes_first_and_of_equal_ones_the_older(box: Box) -> None:
    value = {"metadata": {"name": "urgent"}, "value": 1000}
    await box.client.create(DynamicObject({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **value}))
    for name in ("old", "young"):
        await box.pod(pod(name, {"cpu": "2"}))
        await box.waits(name)
        await box.clock.advance(1)
    await box.pod(pod("urgent", {"cpu": "2"}, priorityClassName="urgent"))
    await box.waits("urgent")
    await box.node(node("n"))
    await box.placed("urgent", "n")
    assert (await box.where("old"), await box.where("young")) == (None, None)
    await box.client.delete(Pod, "urgent", namespace="default", grace_period=0)
    await box.placed("old", "n")
    assert await box.where("young") is None


async def test_room_that_is_given_back_lets_the_next_one_in(box: Box) -> None:
    await box.node(node("n"))
    await box.pod(pod("one", {"cpu": "2"}))
    await box.placed("one", "n")
    await box.pod(pod("two", {"cpu": "1500m"}))
    assert "1 Insufficient cpu" in await box.waits("two")
    ended = {"status": {"phase": "Succeeded"}}
    await box.client.patch(ref(Pod, "one", namespace="default"), MergePatch(ended), subresource="status")
    await box.placed("two", "n")


async def test_a_taint_that_goes_lets_the_pod_in_and_a_node_that_goes_is_no_more(box: Box) -> None:
    taints = {"taints": [{"key": "closed", "effect": "NoExecute"}]}
    await box.node(node("n", spec=taints))
    await box.pod(pod("one"))
    assert "untolerated taint" in await box.waits("one")
    await box.client.patch(ref(Node, "n"), MergePatch({"spec": {"taints": None}}))
    await box.placed("one", "n")
    await box.client.delete(Node, "n")
    await box.clock.advance(1)
    await box.pod(pod("two"))
    assert await box.waits("two") == NO_NODES


async def test_a_gate_that_is_lifted_lets_the_pod_in(box: Box) -> None:
    await box.node(node("n"))
    await box.pod(pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
    await box.waits("gated")
    await box.client.patch(ref(Pod, "gated", namespace="default"), MergePatch({"spec": {"schedulingGates": None}}))
    await box.placed("gated", "n")


async def test_a_claim_that_is_bound_lets_the_pod_in(box: Box) -> None:
    await box.node(node("n"))
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"}}
    made = await box.client.create(DynamicObject({**claim, "spec": spec}))
    await box.pod(pod("one", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]))
    assert "unbound immediate PersistentVolumeClaims" in await box.waits("one")
    await box.client.patch(made, MergePatch({"spec": {"volumeName": "pv-1"}}))
    await box.client.patch(made, MergePatch({"status": {"phase": "Bound"}}), subresource="status")
    await box.placed("one", "n")


async def test_a_pod_of_another_scheduler_is_left_alone(box: Box) -> None:
    await box.node(node("n"))
    await box.pod(pod("theirs", schedulerName="mine"))
    await box.pod(pod("ours"))
    await box.placed("ours", "n")
    assert await box.where("theirs") is None
    assert await box.message("theirs") is None


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            {
                "affinity": {
                    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "x"}]}
                }
            },
            "knows no required pod affinity or anti-affinity",
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "x", "whenUnsatisfiable": "DoNotSchedule"}]},
            "knows no topology spread constraints that must hold",
        ),
    ],
)
async def test_what_it_cannot_do_is_said_and_the_pod_is_put_nowhere(box: Box, spec: dict[str, Any], told: str) -> None:
    await box.node(node("n"))
    await box.pod(pod("hard", **spec))
    assert told in await box.waits("hard")
    assert await box.where("hard") is None


async def test_that_less_important_pods_could_go_is_said_because_it_is_not_done(box: Box) -> None:
    value = {"metadata": {"name": "urgent"}, "value": 1000}
    await box.client.create(DynamicObject({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **value}))
    await box.node(node("n"))
    await box.pod(pod("one", {"cpu": "2"}))
    await box.placed("one", "n")
    await box.pod(pod("urgent", {"cpu": "2"}, priorityClassName="urgent"))
    assert "1 Preemption would help and is not done by this scheduler" in await box.waits("urgent")


async def test_no_node_is_given_more_than_it_has_and_pods_are_spread() -> None:
    async with Cluster(workloads=True, pods="none") as cluster:
        box = Box(cluster.client, ManualClock())
        for number in range(40):
            await box.node(node(f"n{number}", pods="6"))
        for number in range(240):
            await box.pod(pod(f"p{number}"))

        async def nodes_of_pods() -> list[str]:
            pods = await cluster.client.list(Pod, namespace="default")
            return [one.spec.node_name for one in pods if one.spec.node_name]

        found = await eventually(nodes_of_pods, lambda nodes: len(nodes) == 240, timeout=120)
        assert {found.count(f"n{number}") for number in range(40)} == {6}
