"""Jobs that have ended go when their time after the end (`ttlSecondsAfterFinished`) is over."""

from __future__ import annotations

from datetime import datetime, timedelta

from flyball.controller import Context, controller
from flyball.controller.predicates import resource_version_changed
from flyball.controlplane.controllers.jobs.conditions import finished
from flyball.k8s.batch.v1 import Job

__all__ = ["expires_at", "ttl"]


def expires_at(job: Job) -> datetime | None:
    """Return when a Job is to go; None when it has not ended, or stays."""
    seconds, end = job.spec.ttl_seconds_after_finished, finished(job)
    if seconds is None or end is None or end.last_transition_time is None:
        return None
    return end.last_transition_time + timedelta(seconds=seconds)


@controller(Job, name="ttl-after-finished-controller", predicates=[resource_version_changed], error_condition=None)
async def ttl(job: Job, ctx: Context) -> None:
    """Delete a Job whose time is over; its Pods go first."""
    if not _is_over(job, ctx):
        return
    present = await ctx.live.get(Job, job.metadata.name)  # its owner may just have given it more time
    if present is not None and present.metadata.uid == job.metadata.uid and _is_over(present, ctx):
        await ctx.delete(present, propagation="Foreground")


def _is_over(job: Job, ctx: Context) -> bool:
    moment = expires_at(job)
    if moment is None or job.metadata.deletion_timestamp is not None:
        return False
    if moment > ctx.now():
        ctx.requeue(at=moment)
        return False
    return True
