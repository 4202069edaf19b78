"""Jobs: Pods that run to an end, counted exactly once, until enough of them succeeded or too many failed.

What is counted is remembered before it can vanish: a Pod that has ended is noted by its uid in the status, loses its
finalizer only when that note is stored, and becomes a number only when the finalizer is gone. So a crash at any point
neither loses nor doubles a count.

Not supported yet: `podFailurePolicy`, `successPolicy`, `backoffLimitPerIndex`. A Job that asks for one is left alone,
and an event says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from flyball.controller import Context, Request, controller, controller_of
from flyball.controller.predicates import everything
from flyball.controlplane.controllers.pods import is_active, is_ready, new_pod, phase_of
from flyball.errors import NotFound
from flyball.k8s.batch.v1 import Job, JobCondition, UncountedTerminatedPods
from flyball.k8s.core.v1 import EnvVar, EnvVarSource, ObjectFieldSelector, Pod

__all__ = ["TRACKING", "compact_indexes", "jobs", "orphans", "parse_indexes"]

TRACKING: Final = "batch.kubernetes.io/job-tracking"
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_FIRST_PAUSE: Final = 10.0
_LONGEST_PAUSE: Final = 600.0
_NOT_SUPPORTED: Final = ("pod_failure_policy", "success_policy", "backoff_limit_per_index", "managed_by")


@controller(Job, owns=[Pod], name="job-controller", error_condition=None, max_concurrent=5)
async def jobs(job: Job, ctx: Context) -> None:
    """Bring a Job nearer to its end."""
    missing = [name for name in _NOT_SUPPORTED if getattr(job.spec, name, None) is not None]
    if missing:
        told = f"this cluster does not support {', '.join(missing)} of a Job yet; the Job is left alone"
        ctx.record("Warning", "NotSupported", told)
        return
    await _Pass(job, await ctx.owned(Pod), ctx).run()


@controller(Pod, name="job-pod-releaser", raw=True, predicates=[everything], error_condition=None)
async def orphans(request: Request, ctx: Context) -> None:
    """Release a Pod that waits to be counted by a Job that is going, or has gone."""
    pod = await ctx.get(Pod, request.name)
    if pod is None or TRACKING not in pod.metadata.finalizers:
        return
    owner = controller_of(pod)
    if owner is None:
        await _let_go([pod], ctx)
    elif pod.metadata.deletion_timestamp is not None:
        found = await ctx.live.get(Job, owner.name)
        if found is None or found.metadata.uid != owner.uid or found.metadata.deletion_timestamp is not None:
            await _let_go([pod], ctx)


async def _let_go(pods: Iterable[Pod], ctx: Context) -> None:
    """Take the finalizer off, so that the Pods may vanish."""
    for pod in pods:
        if TRACKING in pod.metadata.finalizers:
            pod.metadata.finalizers = [one for one in pod.metadata.finalizers if one != TRACKING]
            with suppress(NotFound):  # gone meanwhile
                await ctx.patch(pod)


@dataclass
class _Pass:
    """One look at a Job and its Pods."""

    job: Job
    pods: list[Pod]
    ctx: Context

    async def run(self) -> None:
        job, status = self.job, self.job.status
        if self._condition("Complete") or self._condition("Failed"):
            await _let_go(self.pods, self.ctx)
            await self._expire()
            return
        await self._count()
        active = [pod for pod in self.pods if is_active(pod)]
        if job.spec.suspend:
            await self._suspend(active)
            return
        if status.start_time is None:
            status.start_time = self._now()
            if self._find("Suspended") and self._say("Suspended", False, "JobResumed", "Job resumed"):
                self.ctx.record("Normal", "Resumed", "Job resumed")
        reason = self._failure()
        if reason is not None:
            await self._fail(active, *reason)
        elif self._is_done():
            await self._finish(active)
        else:
            active = await self._keep_running(active)
        self._tell(active)

    # Counting

    async def _count(self) -> None:
        """Note Pods that have ended, release them, and make numbers of those that are released."""
        status = self.job.status
        noted = status.uncounted_terminated_pods or UncountedTerminatedPods()
        succeeded, failed = list(noted.succeeded or ()), list(noted.failed or ())
        by_uid = {pod.metadata.uid: pod for pod in self.pods}
        for uids, count in ((succeeded, "succeeded"), (failed, "failed")):
            for uid in list(uids):
                pod = by_uid.get(uid)
                if pod is not None and TRACKING in pod.metadata.finalizers:
                    await _let_go([pod], self.ctx)
                    continue
                uids.remove(uid)
                setattr(status, count, (getattr(status, count) or 0) + 1)
        for pod in self.pods:
            if TRACKING not in pod.metadata.finalizers or pod.metadata.uid in (*succeeded, *failed):
                continue
            phase = phase_of(pod)
            if phase == "Succeeded":
                succeeded.append(pod.metadata.uid)
                self._note_index(pod)
            elif phase == "Failed" or (pod.metadata.deletion_timestamp is not None and not pod.spec.node_name):
                failed.append(pod.metadata.uid)
        status.uncounted_terminated_pods = UncountedTerminatedPods(succeeded=succeeded or None, failed=failed or None)
        self._noted = (len(succeeded), len(failed))
        if self._noted != (0, 0):
            self.ctx.requeue(after=0)  # the note is stored at the end of this pass: the next one goes on from there

    _noted: tuple[int, int] = (0, 0)

    @property
    def _succeeded(self) -> int:
        return (self.job.status.succeeded or 0) + self._noted[0]

    @property
    def _failed(self) -> int:
        return (self.job.status.failed or 0) + self._noted[1]

    @property
    def _indexed(self) -> bool:
        return self.job.spec.completion_mode == "Indexed"

    def _note_index(self, pod: Pod) -> None:
        if self._indexed:
            index = pod.metadata.annotations.get(_INDEX, "")
            if index.isdecimal():
                done = {*parse_indexes(self.job.status.completed_indexes or ""), int(index)}
                self.job.status.completed_indexes = compact_indexes(done)

    # Deciding

    def _failure(self) -> tuple[str, str] | None:
        """Return why the Job has failed, if it has."""
        target = self._find("FailureTarget")
        if target is not None:
            return target.reason or "", target.message or ""
        limit = 6 if self.job.spec.backoff_limit is None else self.job.spec.backoff_limit
        if self._failed > limit:
            return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        deadline = self.job.spec.active_deadline_seconds
        start = self.job.status.start_time
        if deadline is not None and start is not None:
            left = start + timedelta(seconds=deadline) - self.ctx.now()
            if left <= timedelta(0):
                return "DeadlineExceeded", "Job was active longer than specified deadline"
            self.ctx.requeue(after=left)
        return None

    def _is_done(self) -> bool:
        wanted = self.job.spec.completions
        if wanted is None:
            return self._succeeded > 0 and not any(is_active(pod) for pod in self.pods)
        return self._succeeded >= wanted

    # Doing

    async def _keep_running(self, active: list[Pod]) -> list[Pod]:
        parallelism = 1 if self.job.spec.parallelism is None else self.job.spec.parallelism
        wanted = parallelism
        if self.job.spec.completions is not None:
            wanted = min(parallelism, self.job.spec.completions - self._succeeded)
        elif self._succeeded:
            wanted = min(parallelism, len(active))
        if len(active) > wanted:
            await self._give_up(active[wanted:])
            return active[:wanted]
        if len(active) < wanted and not self._must_wait():
            made = [await self._make(index) for index in self._free_indexes(active, wanted - len(active))]
            return [*active, *made]
        return active

    def _must_wait(self) -> bool:
        """Tell whether the pause after failures is not over; wake up when it is."""
        ended = [_ended(pod, self.ctx.now()) for pod in self.pods if phase_of(pod) == "Failed"]
        if not ended or not self._failed:
            return False
        pause = min(_FIRST_PAUSE * 2.0 ** min(self._failed - 1, 10), _LONGEST_PAUSE)
        left = max(ended) + timedelta(seconds=pause) - self.ctx.now()
        if left > timedelta(0):
            self.ctx.requeue(after=left)
            return True
        return False

    def _free_indexes(self, active: Sequence[Pod], count: int) -> list[int | None]:
        if not self._indexed:
            return [None] * count
        done = set(parse_indexes(self.job.status.completed_indexes or ""))
        taken = {int(pod.metadata.annotations.get(_INDEX, "-1")) for pod in active}
        free = (index for index in range(self.job.spec.completions or 0) if index not in done | taken)
        return [index for index, _ in zip(free, range(count), strict=False)]

    async def _make(self, index: int | None) -> Pod:
        name = self.job.metadata.name
        pod = new_pod(self.job.spec.template, f"{name}-" if index is None else f"{name}-{index}-")
        pod.metadata.finalizers = [*pod.metadata.finalizers, TRACKING]
        if index is not None:
            pod.metadata.annotations[_INDEX] = str(index)
            pod.metadata.labels[_INDEX] = str(index)
            pod.spec.hostname = f"{name}-{index}"
            path = f"metadata.labels['{_INDEX}']"
            source = EnvVarSource(field_ref=ObjectFieldSelector(api_version="v1", field_path=path))
            for container in pod.spec.containers:
                container.env = [*(container.env or []), EnvVar(name="JOB_COMPLETION_INDEX", value_from=source)]
        made = await self.ctx.create(pod)
        self.ctx.record("Normal", "SuccessfulCreate", f"Created pod: {made.metadata.name}")
        return made

    async def _delete(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            await self.ctx.delete(pod)
            self.ctx.record("Normal", "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")

    async def _give_up(self, pods: list[Pod]) -> None:
        """Delete Pods that are not wanted any more: they have not failed, so they are not counted."""
        await _let_go(pods, self.ctx)
        await self._delete(pods)

    async def _suspend(self, active: list[Pod]) -> None:
        await self._give_up(active)
        self.job.status.start_time = None
        if self._say("Suspended", True, "JobSuspended", "Job suspended"):
            self.ctx.record("Normal", "Suspended", "Job suspended")
        self._tell([])

    async def _fail(self, active: list[Pod], reason: str, message: str) -> None:
        self._say("FailureTarget", True, reason, message)
        await self._delete(active)
        if not active and not self._unsettled():
            self._say("Failed", True, reason, message)
            self.ctx.record("Warning", reason, message)
            self._plan_expiry()

    async def _finish(self, active: list[Pod]) -> None:
        message = "Reached expected number of succeeded pods"
        self._say("SuccessCriteriaMet", True, "CompletionsReached", message)
        await self._delete(active)
        if not active and not self._unsettled():
            self.job.status.completion_time = self._now()
            self._say("Complete", True, "CompletionsReached", message)
            self.ctx.record("Normal", "Completed", "Job completed")
            self._plan_expiry()

    def _unsettled(self) -> bool:
        """Tell whether Pods are still ending, or not counted yet."""
        ending = any(pod.metadata.deletion_timestamp is not None and is_live(pod) for pod in self.pods)
        return ending or self._noted != (0, 0)

    # The time after the end

    def _plan_expiry(self) -> None:
        ttl = self.job.spec.ttl_seconds_after_finished
        if ttl is not None:
            self.ctx.requeue(after=ttl)

    async def _expire(self) -> None:
        ttl = self.job.spec.ttl_seconds_after_finished
        if ttl is None:
            return
        ended = max(
            one.last_transition_time
            for one in self.job.status.conditions or ()
            if one.type in ("Complete", "Failed") and one.last_transition_time is not None
        )
        left = ended + timedelta(seconds=ttl) - self.ctx.now()
        if left > timedelta(0):
            self.ctx.requeue(after=left)
        else:
            await self.ctx.delete(self.job, propagation="Foreground")

    # Telling

    def _tell(self, active: Sequence[Pod]) -> None:
        status = self.job.status
        status.active = len(active) or None
        status.ready = sum(map(is_ready, active))
        status.terminating = sum(pod.metadata.deletion_timestamp is not None and is_live(pod) for pod in self.pods)

    def _now(self) -> datetime:
        return self.ctx.now().replace(microsecond=0)

    def _find(self, type_: str) -> JobCondition | None:
        return next((one for one in self.job.status.conditions or () if one.type == type_), None)

    def _condition(self, type_: str) -> bool:
        found = self._find(type_)
        return found is not None and found.status == "True"

    def _say(self, type_: str, holds: bool, reason: str, message: str) -> bool:
        """State a condition; tell whether it is new."""
        word, found = ("True" if holds else "False"), self._find(type_)
        if found is not None and found.status == word:
            return False
        stated = JobCondition(
            type=type_,
            status=word,
            last_probe_time=self._now(),
            last_transition_time=self._now(),
            reason=reason,
            message=message,
        )
        others = [one for one in self.job.status.conditions or () if one.type != type_]
        self.job.status.conditions = [*others, stated]
        return True


def is_live(pod: Pod) -> bool:
    """Tell whether a Pod has not ended."""
    return phase_of(pod) not in ("Succeeded", "Failed")


def _ended(pod: Pod, now: datetime) -> datetime:
    """Return when a Pod ended: the latest end of its containers, or now when nobody says."""
    ends = [
        one.state.terminated.finished_at
        for one in pod.status.container_statuses or ()
        if one.state is not None and one.state.terminated is not None and one.state.terminated.finished_at is not None
    ]
    return max(ends, default=now)


def parse_indexes(text: str) -> list[int]:
    """Read `0-2,5`."""
    indexes: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        indexes.extend(range(int(first), int(last or first) + 1))
    return indexes


def compact_indexes(indexes: Iterable[int]) -> str:
    """Write `0-2,5`."""
    runs: list[list[int]] = []
    for index in sorted(set(indexes)):
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(_run(first, last) for first, last in runs)


def _run(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
