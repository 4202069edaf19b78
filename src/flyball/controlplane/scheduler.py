"""The scheduler: small and honest. It puts Pods onto nodes that take them, and says why none does.

It looks at node selectors, taints, whether a node takes new Pods at all, and requests. Affinity, spreading, priorities
and preemption it does not know: a Pod that asks for required node affinity is told so instead of being put anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from flyball.api import Quantity, find_condition
from flyball.client import Client, MergePatch
from flyball.controller import Context, Controller, Watches, controller
from flyball.controller.predicates import everything
from flyball.controlplane.controllers.pods import is_active
from flyball.k8s.core.v1 import Node, Pod, Taint, Toleration

__all__ = ["refusal", "requests_of", "scheduler"]

_NAME = "default-scheduler"
_UNSCHEDULED = "spec.nodeName="


def scheduler(client: Client) -> Controller[Pod]:
    """Make a scheduler that binds through this client."""

    @controller(
        Pod,
        name=_NAME,
        predicates=[everything],
        watches=[Watches(Node, _waiting_pods)],
        error_condition=None,
    )
    async def schedule(pod: Pod, ctx: Context) -> None:
        """Put one Pod onto a node."""
        spec = pod.spec
        if spec.node_name or not is_active(pod) or spec.scheduling_gates or (spec.scheduler_name or _NAME) != _NAME:
            return
        nodes = await ctx.list(Node, namespace="*")
        placed = await ctx.list(Pod, namespace="*")
        refusals: Counter[str] = Counter()
        for node in sorted(nodes, key=lambda one: len(_on(placed, one))):
            reason = refusal(pod, node, _on(placed, node))
            if reason is None:
                await client.bind(pod, node.metadata.name)
                where = f"{pod.metadata.namespace}/{pod.metadata.name}"
                ctx.record("Normal", "Scheduled", f"Successfully assigned {where} to {node.metadata.name}")
                return
            refusals[reason] += 1
        await _tell(client, pod, ctx, len(nodes), refusals)

    return schedule


def _waiting_pods(node: Node, pods: Iterable[Pod]) -> list[tuple[str | None, str]]:
    """A node that changed may take Pods that nobody took before."""
    del node
    return [
        (pod.metadata.namespace, pod.metadata.name) for pod in getattr(pods, "list", list)() if not pod.spec.node_name
    ]


def _on(pods: Sequence[Pod], node: Node) -> list[Pod]:
    return [pod for pod in pods if pod.spec.node_name == node.metadata.name and is_active(pod)]


def refusal(pod: Pod, node: Node, present: Sequence[Pod]) -> str | None:
    """Return why a node does not take a Pod, in kube-scheduler's words; None when it does."""
    if node.spec.unschedulable:
        return "node(s) were unschedulable"
    taint = next((one for one in node.spec.taints or () if _repels(one, pod.spec.tolerations or ())), None)
    if taint is not None:
        return f"node(s) had untolerated taint(s) {{{taint.key}: {taint.value or ''}}}"
    labels = node.metadata.labels
    if not (pod.spec.node_selector or {}).items() <= labels.items() or _wants_affinity(pod):
        return "node(s) didn't match Pod's node affinity/selector"
    allocatable = node.status.allocatable or node.status.capacity or {}
    if len(present) >= int(Quantity(allocatable.get("pods", "110"))):
        return "Too many pods"
    used = _sum(requests_of(one) for one in present)
    for name, amount in requests_of(pod).items():
        if amount and used.get(name, Decimal(0)) + amount > Quantity(allocatable.get(name, "0")).value:
            return f"Insufficient {name}"
    return None


def _repels(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    if taint.effect not in ("NoSchedule", "NoExecute"):
        return False
    return not any(_tolerates(one, taint) for one in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or (bool(toleration.key) and (toleration.value or "") == (taint.value or ""))


def _wants_affinity(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    return (
        affinity is not None
        and affinity.node_affinity is not None
        and affinity.node_affinity.required_during_scheduling_ignored_during_execution is not None
    )


def requests_of(pod: Pod) -> dict[str, Decimal]:
    """Return what a Pod asks for: all containers together, or the largest init container when that is more."""
    together = _sum(_amounts(one.resources.requests if one.resources else None) for one in pod.spec.containers)
    for container in pod.spec.init_containers or ():
        for name, amount in _amounts(container.resources.requests if container.resources else None).items():
            together[name] = max(together.get(name, Decimal(0)), amount)
    return together


def _amounts(requests: Mapping[str, object] | None) -> dict[str, Decimal]:
    return {name: Quantity(str(amount)).value for name, amount in (requests or {}).items()}


def _sum(parts: Iterable[Mapping[str, Decimal]]) -> dict[str, Decimal]:
    total: dict[str, Decimal] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, Decimal(0)) + amount
    return total


async def _tell(client: Client, pod: Pod, ctx: Context, nodes: int, refusals: Counter[str]) -> None:
    """Say at the Pod why it waits."""
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in refusals.items()))
    message = f"0/{nodes} nodes are available: {reasons}." if nodes else "no nodes available to schedule pods"
    found = find_condition(pod.status.conditions, "PodScheduled")
    if found is not None and found.status == "False" and found.message == message:
        return
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "lastTransitionTime": ctx.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    others = [one for one in pod.status.conditions or () if one.type != "PodScheduled"]
    await client.patch(pod, MergePatch({"status": {"conditions": [*others, condition]}}), subresource="status")
    ctx.record("Warning", "FailedScheduling", message)
