"""Whose Pod it is: Jobs take up Pods that fit their selector and belong to nobody, and let go of what does not fit.

A Pod with the finalizer of a Job cannot vanish until somebody takes that off. When the Job has gone, has ended, or is
not the Pod's owner any more, nobody counts the Pod, and it is released here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from flyball.cache import CacheEvent
from flyball.cache.matching import label_match
from flyball.client import StrategicPatch
from flyball.client.selectors import label_text
from flyball.controller import Context, Request, Watches, controller, controller_of, owner_reference
from flyball.controller.predicates import generation_changed, predicate
from flyball.controlplane.controllers.jobs.conditions import finished
from flyball.controlplane.controllers.jobs.pods import TRACKING, is_tracked
from flyball.controlplane.controllers.pods import is_active
from flyball.errors import NotFound
from flyball.k8s.batch.v1 import Job
from flyball.k8s.core.v1 import Pod

__all__ = ["adopt_orphans", "claims", "is_left_to_others", "release", "release_foreign"]

_OURSELVES = (None, "kubernetes.io/job-controller")
_JOB_NAME = "batch.kubernetes.io/job-name"
_MANUAL = b'"manualSelector":true'


def is_left_to_others(job: Job) -> bool:
    """Tell whether a Job names another controller that shall see to it."""
    return job.spec.managed_by not in _OURSELVES


async def release(pod: Pod, ctx: Context) -> None:
    """Take the finalizer off, so that the Pod may vanish; fine if it is gone already."""
    if is_tracked(pod):
        with suppress(NotFound):
            await ctx.patch(pod, _metadata(pod, {"$deleteFromPrimitiveList/finalizers": [TRACKING]}))


def _metadata(pod: Pod, change: Mapping[str, Any]) -> StrategicPatch:
    """A change of the metadata of this very Pod."""
    return StrategicPatch({"metadata": {"uid": pod.metadata.uid, **change}})


async def release_foreign(job: Job, pods: Iterable[Pod], ctx: Context) -> list[Pod]:
    """Let go of the Pods of a Job that its selector does not choose any more; return the others."""
    chosen, kept = selection(job), list[Pod]()
    for pod in pods:
        if chosen(pod.metadata.labels) or job.metadata.deletion_timestamp is not None:
            kept.append(pod)
            continue
        references = [{"$patch": "delete", "uid": job.metadata.uid}]
        finalizers = {"$deleteFromPrimitiveList/finalizers": [TRACKING]} if is_tracked(pod) else {}
        with suppress(NotFound):
            await ctx.patch(pod, _metadata(pod, {"ownerReferences": references, **finalizers}))
    return kept


def selection(job: Job) -> Callable[[Mapping[str, str]], bool]:
    """Return the test for the labels of the Pods that a Job claims; without a selector it claims none."""
    selector = job.spec.selector
    text = label_text(selector) if selector is not None else None
    return label_match(text) if text else lambda labels: False


@predicate
def _concerns_claims(event: CacheEvent) -> bool:
    """Tell whether a Pod may need somebody else than its Job."""
    pod = event.object.record
    if event.type == "deleted":
        return False
    tracked = TRACKING in (pod.finalizers or ())
    if any(owner.controller for owner in pod.owners):
        return tracked and bool(pod.deletion_timestamp)
    return tracked or bool(pod.labels)


def _orphans_for(job: Job, pods: Any) -> list[Request]:
    """Name the Pods without an owner that a new Job with a selector of its own may want."""
    chosen = selection(job)
    return [
        Request(one.namespace, one.name)
        for one in pods.peek_list(job.metadata.namespace)
        if not one.record.owners and chosen(one.record.labels)
    ]


@predicate
def _chooses_itself(event: CacheEvent) -> bool:
    return event.type != "deleted" and _MANUAL in event.object.raw


@controller(
    Pod,
    name="job-pod-claims",
    raw=True,
    predicates=[_concerns_claims],
    watches=[Watches(Job, _orphans_for, predicates=[_chooses_itself, generation_changed])],
    error_condition=None,
)
async def claims(request: Request, ctx: Context) -> None:
    """Find the Job of a Pod that has none, and release a Pod that no Job will count."""
    pod = await ctx.get(Pod, request.name)
    if pod is None:
        return
    owner = controller_of(pod)
    if owner is None:
        job = await _adopter(pod, ctx) if is_active(pod) else None
        if job is None:
            await release(pod, ctx)
        else:
            await _adopt(pod, job, ctx)
    elif (owner.api_version, owner.kind) == ("batch/v1", "Job") and is_tracked(pod):
        job = await _alive(owner.name, owner.uid, ctx)
        if job is None or (finished(job) and not is_left_to_others(job)):
            await release(pod, ctx)


async def adopt_orphans(job: Job, ctx: Context) -> list[Pod]:
    """Take up the Pods without an owner that fit the selector of a Job which has chosen its own; return them."""
    if not job.spec.manual_selector or job.spec.selector is None or job.metadata.deletion_timestamp is not None:
        return []
    orphans = [pod for pod in await ctx.list(Pod, labels=job.spec.selector) if not controller_of(pod)]
    wanted = [pod for pod in orphans if is_active(pod)]
    if not wanted or await _still_wants(job, ctx) is None:
        return []
    return [adopted for pod in wanted if (adopted := await _adopt(pod, job, ctx)) is not None]


async def _alive(name: str, uid: str, ctx: Context) -> Job | None:
    """Return a Job by its name and uid; whether it has gone, the server itself is asked."""
    job = await ctx.get(Job, name)
    if job is None or job.metadata.uid != uid:
        job = await ctx.live.get(Job, name)
    return job if job is not None and job.metadata.uid == uid else None


async def _adopter(pod: Pod, ctx: Context) -> Job | None:
    """Return the Job whose selector chooses a Pod that belongs to nobody."""
    name = pod.metadata.labels.get(_JOB_NAME)
    named = await ctx.get(Job, name) if name else None
    candidates = [named] if named is not None else [job for job in await ctx.list(Job) if job.spec.manual_selector]
    for job in candidates:
        if finished(job) or is_left_to_others(job) or not selection(job)(pod.metadata.labels):
            continue
        now = await _still_wants(job, ctx)
        if now is not None:
            return now
    return None


async def _still_wants(job: Job, ctx: Context) -> Job | None:
    """Return a Job as the server has it, unless it has gone or is on its way out: then it must not adopt."""
    now = await ctx.live.get(Job, job.metadata.name)
    same = now is not None and now.metadata.uid == job.metadata.uid
    return now if now is not None and same and now.metadata.deletion_timestamp is None else None


async def _adopt(pod: Pod, job: Job, ctx: Context) -> Pod | None:
    """Make a Job the owner of a Pod; None when the Pod has gone."""
    pod.metadata.owner_references = [*pod.metadata.owner_references, owner_reference(job)]
    if not is_tracked(pod):
        pod.metadata.finalizers = [*pod.metadata.finalizers, TRACKING]
    try:
        return await ctx.patch(pod)
    except NotFound:
        return None
