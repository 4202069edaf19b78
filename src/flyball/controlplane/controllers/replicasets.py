"""ReplicaSets and ReplicationControllers: as many Pods as are wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from flyball.api import find_condition, from_dict
from flyball.client.kinds import kind_from
from flyball.controller import Context, controller, controller_of
from flyball.controller.predicates import resource_version_changed
from flyball.controlplane.controllers.claiming import Adopts, claim, matcher
from flyball.controlplane.controllers.pods import (
    available_at,
    is_active,
    is_available,
    is_ready,
    is_terminating,
    new_pod,
    ranked_for_deletion,
)
from flyball.controlplane.controllers.setbacks import Setbacks
from flyball.errors import ApiError, Forbidden, NotFound
from flyball.k8s.apps.v1 import ReplicaSet, ReplicaSetCondition
from flyball.k8s.core.v1 import Pod, ReplicationController, ReplicationControllerCondition
from flyball.k8s.meta.v1 import LabelSelector

__all__ = ["BURST", "replicasets", "replicationcontrollers"]

AnySet = ReplicaSet | ReplicationController

BURST: Final = 500
"""More Pods than this are not made or deleted in one pass."""
_FAILURE: Final = "ReplicaFailure"
_setbacks: Final = Setbacks()


@controller(
    ReplicaSet,
    owns=[Pod],
    watches=[Adopts(Pod)],
    predicates=[resource_version_changed],
    name="replicaset-controller",
    error_condition=None,
    max_concurrent=5,
    while_deleting=True,
)
async def replicasets(replica_set: ReplicaSet, ctx: Context) -> None:
    """Make missing Pods, delete surplus ones, and tell how many there are."""
    replica_set.status.terminating_replicas = await _reconcile(replica_set, replica_set.spec.selector, ctx)


@controller(
    ReplicationController,
    owns=[Pod],
    watches=[Adopts(Pod)],
    predicates=[resource_version_changed],
    name="replication-controller",
    error_condition=None,
    max_concurrent=5,
    while_deleting=True,
)
async def replicationcontrollers(replica_set: ReplicationController, ctx: Context) -> None:
    """Do the same for what came before ReplicaSets; how many Pods are on their way out it does not tell."""
    await _reconcile(replica_set, replica_set.spec.selector, ctx)


async def _reconcile(replica_set: AnySet, selector: LabelSelector | Mapping[str, str] | None, ctx: Context) -> int:
    """Bring the number of Pods to what is wanted; return how many are on their way out."""
    owned = await ctx.owned(Pod)
    pods = await claim(Pod, replica_set, selector, ctx, which=is_active, owned=owned)
    finds = matcher(selector)
    failure = None if ctx.deleting else await _bring_to(replica_set, pods, ctx)
    _tell(replica_set, pods, ctx)
    _tell_failure(replica_set, failure, len(pods) < _wanted(replica_set), ctx.now())
    if failure is None:
        _setbacks.over(replica_set.metadata.uid)
    else:
        _setbacks.again(replica_set.metadata.uid, ctx)
    return sum(is_terminating(pod) and finds(pod.metadata.labels) for pod in owned)


def _wanted(replica_set: AnySet) -> int:
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas


async def _bring_to(replica_set: AnySet, pods: list[Pod], ctx: Context) -> str | None:
    """Make or delete Pods; return what went wrong, if anything did."""
    missing = _wanted(replica_set) - len(pods)
    if missing > 0:
        return await _make(replica_set, min(missing, BURST), ctx)
    if missing < 0:
        return await _delete(replica_set, pods, min(-missing, BURST), ctx)
    return None


async def _make(replica_set: AnySet, count: int, ctx: Context) -> str | None:
    """Make Pods: one, then two, then four at once and so on, so that what fails for all of them fails seldom."""
    template = replica_set.spec.template
    if template is None:
        return None

    async def make() -> str | None:
        try:
            made = await ctx.create(new_pod(template, f"{replica_set.metadata.name}-"))
        except ApiError as error:
            if _is_ending(error):
                return None  # nothing can be made in this namespace any more, and nothing has to
            ctx.record("Warning", "FailedCreate", f"Error creating: {error.message}")
            return error.message
        ctx.record("Normal", "SuccessfulCreate", f"Created pod: {made.metadata.name}")
        return None

    size = 1
    while count > 0:
        size = min(size, count)
        failure = await _all_of([make] * size)
        if failure is not None:
            return failure
        count -= size
        size *= 2
    return None


def _is_ending(error: ApiError) -> bool:
    return isinstance(error, Forbidden) and any(one.get("reason") == "NamespaceTerminating" for one in error.causes)


async def _delete(replica_set: AnySet, pods: list[Pod], count: int, ctx: Context) -> str | None:
    """Delete the Pods that can be missed most easily."""
    chosen = pods
    if count < len(pods):
        chosen = ranked_for_deletion(pods, now=ctx.now(), related=await _related(replica_set, ctx))[:count]

    async def delete(pod: Pod) -> str | None:
        try:
            await ctx.delete(pod)
        except NotFound:
            return None
        except ApiError as error:
            ctx.record("Warning", "FailedDelete", f"Error deleting: {error.message}")
            return error.message
        ctx.record("Normal", "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")
        return None

    return await _all_of([lambda pod=pod: delete(pod) for pod in chosen])  # type: ignore[misc]


async def _all_of(work: Sequence[Callable[[], Awaitable[str | None]]]) -> str | None:
    """Do it all at once; return the first failure."""
    said = await asyncio.gather(*(one() for one in work))
    return next((one for one in said if one is not None), None)


async def _related(replica_set: AnySet, ctx: Context) -> list[Pod]:
    """Return the Pods of all sets that the same controller has, so that its Pods stay spread over nodes."""
    owner = controller_of(replica_set)
    if owner is None:
        return []
    pods_of = ctx.running.children_index(kind_from(Pod))
    sets = await ctx.list(type(replica_set))
    siblings = [one for one in sets if (found := controller_of(one)) is not None and found.uid == owner.uid]
    return [pod for one in siblings for pod in pods_of(one.metadata.uid)] if pods_of is not None else []


def _tell(replica_set: AnySet, pods: list[Pod], ctx: Context) -> None:
    status, template, now = replica_set.status, replica_set.spec.template, ctx.now()
    least = replica_set.spec.min_ready_seconds or 0
    labels = template.metadata.labels if template is not None and template.metadata is not None else {}
    ready = [pod for pod in pods if is_ready(pod)]
    waiting = [pod for pod in ready if not is_available(pod, least, now)]
    status.observed_generation = replica_set.metadata.generation
    status.replicas = len(pods)
    status.fully_labeled_replicas = sum(labels.items() <= pod.metadata.labels.items() for pod in pods) or None
    status.ready_replicas = len(ready) or None
    status.available_replicas = len(ready) - len(waiting) or None
    if waiting:
        moments = [moment for moment in (available_at(pod, least) for pod in waiting) if moment is not None]
        ctx.requeue(at=min(moments, default=now + timedelta(seconds=least)))


def _tell_failure(replica_set: AnySet, failure: str | None, too_few: bool, now: datetime) -> None:
    """State that Pods cannot be made or deleted; the first failure is told until it is over."""
    present = find_condition(replica_set.status.conditions, _FAILURE)
    if (failure is None) is (present is None):
        return
    told = {"type": _FAILURE, "status": "True", "reason": "FailedCreate" if too_few else "FailedDelete"}
    told |= {"message": failure or "", "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
    if isinstance(replica_set, ReplicaSet):
        made = [from_dict(ReplicaSetCondition, told)] if failure is not None else []
        kept = [one for one in replica_set.status.conditions or () if one.type != _FAILURE]
        replica_set.status.conditions = [*kept, *made] or None
    else:
        stated = [from_dict(ReplicationControllerCondition, told)] if failure is not None else []
        others = [one for one in replica_set.status.conditions or () if one.type != _FAILURE]
        replica_set.status.conditions = [*others, *stated] or None
