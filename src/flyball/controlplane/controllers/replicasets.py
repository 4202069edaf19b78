"""ReplicaSets: as many Pods as are wanted."""

from __future__ import annotations

from flyball.controller import Context, controller
from flyball.controlplane.controllers.pods import (
    is_active,
    is_available,
    is_ready,
    new_pod,
    ranked_for_deletion,
)
from flyball.k8s.apps.v1 import ReplicaSet
from flyball.k8s.core.v1 import Pod

__all__ = ["BURST", "replicasets"]

BURST = 500
"""More Pods than this are not made or deleted in one pass."""


@controller(ReplicaSet, owns=[Pod], name="replicaset-controller", error_condition=None, max_concurrent=5)
async def replicasets(replica_set: ReplicaSet, ctx: Context) -> None:
    """Make missing Pods, delete surplus ones, and tell how many there are."""
    pods = [pod for pod in await ctx.owned(Pod) if is_active(pod)]
    await _bring_to(replica_set, pods, ctx)
    _tell(replica_set, pods, ctx)


async def _bring_to(replica_set: ReplicaSet, pods: list[Pod], ctx: Context) -> None:
    wanted = 1 if replica_set.spec.replicas is None else replica_set.spec.replicas
    template = replica_set.spec.template
    if len(pods) < wanted and template is not None:
        for _ in range(min(wanted - len(pods), BURST)):
            made = await ctx.create(new_pod(template, f"{replica_set.metadata.name}-"))
            ctx.record("Normal", "SuccessfulCreate", f"Created pod: {made.metadata.name}")
    for pod in ranked_for_deletion(pods)[: min(max(len(pods) - wanted, 0), BURST)]:
        await ctx.delete(pod)
        ctx.record("Normal", "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")


def _tell(replica_set: ReplicaSet, pods: list[Pod], ctx: Context) -> None:
    status, template = replica_set.status, replica_set.spec.template
    least = replica_set.spec.min_ready_seconds or 0
    ready = [pod for pod in pods if is_ready(pod)]
    labels = template.metadata.labels if template is not None and template.metadata is not None else {}
    available = [pod for pod in ready if is_available(pod, least, ctx.now())]
    status.observed_generation = replica_set.metadata.generation
    status.replicas = len(pods)
    status.fully_labeled_replicas = sum(labels.items() <= pod.metadata.labels.items() for pod in pods) or None
    status.ready_replicas = len(ready) or None
    status.available_replicas = len(available) or None
    if len(available) < len(ready):
        ctx.requeue(after=least)
