"""ReplicaSets: as many Pods as are wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from flyball.api import find_condition
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
from flyball.k8s.core.v1 import Pod

__all__ = ["BURST", "replicasets"]

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
    selector = replica_set.spec.selector
    pods = await claim(Pod, replica_set, selector, ctx, which=is_active)
    finds = matcher(selector)
    going = [pod for pod in await ctx.owned(Pod) if is_terminating(pod) and finds(pod.metadata.labels)]
    failure = None if ctx.deleting else await _bring_to(replica_set, pods, ctx)
    _tell(replica_set, pods, len(going), ctx)
    _tell_failure(replica_set, failure, len(pods) < _wanted(replica_set), ctx.now())
    if failure is None:
        _setbacks.over(replica_set.metadata.uid)
    else:
        _setbacks.again(replica_set.metadata.uid, ctx)


def _wanted(replica_set: ReplicaSet) -> int:
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas


async def _bring_to(replica_set: ReplicaSet, pods: list[Pod], ctx: Context) -> str | None:
    """Make or delete Pods; return what went wrong, if anything did."""
    missing = _wanted(replica_set) - len(pods)
    if missing > 0:
        return await _make(replica_set, min(missing, BURST), ctx)
    if missing < 0:
        return await _delete(replica_set, pods, min(-missing, BURST), ctx)
    return None


async def _make(replica_set: ReplicaSet, count: int, ctx: Context) -> str | None:
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


async def _delete(replica_set: ReplicaSet, pods: list[Pod], count: int, ctx: Context) -> str | None:
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


async def _related(replica_set: ReplicaSet, ctx: Context) -> list[Pod]:
    """Return the Pods of all sets that the same controller has, so that its Pods stay spread over nodes."""
    owner = controller_of(replica_set)
    if owner is None:
        return []
    sets = await ctx.list(ReplicaSet)
    siblings = [one for one in sets if (found := controller_of(one)) is not None and found.uid == owner.uid]
    finds = [matcher(one.spec.selector) for one in siblings]
    return [pod for pod in await ctx.list(Pod) if any(find(pod.metadata.labels) for find in finds)]


def _tell(replica_set: ReplicaSet, pods: list[Pod], going: int, ctx: Context) -> None:
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
    status.terminating_replicas = going
    if waiting:
        moments = [moment for moment in (available_at(pod, least) for pod in waiting) if moment is not None]
        ctx.requeue(at=min(moments, default=now + timedelta(seconds=least)))


def _tell_failure(replica_set: ReplicaSet, failure: str | None, too_few: bool, now: datetime) -> None:
    """State that Pods cannot be made or deleted; the first failure is told until it is over."""
    status = replica_set.status
    present = find_condition(status.conditions, _FAILURE)
    if failure is None and present is not None:
        status.conditions = [one for one in status.conditions or () if one.type != _FAILURE] or None
    if failure is not None and present is None:
        reason = "FailedCreate" if too_few else "FailedDelete"
        told = ReplicaSetCondition(
            type=_FAILURE,
            status="True",
            reason=reason,
            message=failure,
            last_transition_time=now.replace(microsecond=0),
        )
        status.conditions = [*(status.conditions or ()), told]
