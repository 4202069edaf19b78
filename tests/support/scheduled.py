"""The cases of `tests.support.scheduling` on a cluster that schedules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.support.scheduling import CASES, CLAIMS, CLASS, NODES

from flyball.api import DynamicObject, find_condition
from flyball.client import Client, MergePatch, ref
from flyball.k8s.core.v1 import Node, Pod
from flyball.k8s.events.v1 import Event

Said = tuple[str | None, str | None]
"""The node that a Pod got, and what its condition PodScheduled says."""


async def play(client: Client, settle: Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]) -> dict[str, Said]:
    """Make the nodes and Pods, one after the other, and return what became of each."""
    for node in NODES:
        await client.create(DynamicObject(node))
        place = ref(Node, node["metadata"]["name"])
        await client.patch(place, MergePatch({"spec": {"taints": node["spec"].get("taints")}}))
        await client.patch(place, MergePatch({"status": node["status"]}), subresource="status")
    priority = {"metadata": {"name": "calm"}, "value": 0, "preemptionPolicy": "Never"}
    await client.create(DynamicObject({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **priority}))
    for one in (CLASS, *CLAIMS):
        await client.create(DynamicObject(one))
    said: dict[str, Said] = {}
    for case in CASES:
        name: str = case.pod["metadata"]["name"]
        await client.create(DynamicObject(case.pod))

        async def told(name: str = name) -> bool:
            pod = await client.get(Pod, name, namespace="default")
            condition = find_condition(pod.status.conditions, "PodScheduled")
            said[name] = (pod.spec.node_name, condition.message if condition is not None else None)
            return condition is not None

        await settle(told)
    return said


async def told_by_events(client: Client) -> dict[str, tuple[str | None, ...]]:
    """What Events say of each Pod: type, reason, action, who says it, and the text."""
    found: dict[str, Any] = {}
    for event in await client.list(Event, namespace="default"):
        if event.regarding is not None and event.regarding.kind == "Pod":
            said = (event.type, event.reason, event.action, event.reporting_controller, event.note)
            found[event.regarding.name or ""] = said
    return found
