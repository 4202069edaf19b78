"""One look at a Job and its Pods: which Pods there should be, what has come of them, and whether the Job is over.

A Pod is counted in three steps, each of which is stored before the next begins: it is noted in the status by its uid
(or by its index), its finalizer is taken off, and it becomes a number. So it cannot vanish before it is noted, and a
crash at any point neither loses nor doubles it.

A Job ends in two steps, too: a first condition says how it will end (`SuccessCriteriaMet`, `FailureTarget`), and the
last one (`Complete`, `Failed`) comes when all Pods have ended and are counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Any, Final, Literal

from flyball.api import to_dict
from flyball.api.changes import merge_patch
from flyball.client import MergePatch
from flyball.controller import Context, Controller, Request, controller, set_controller
from flyball.controller.predicates import resource_version_changed
from flyball.controlplane.controllers.jobs import conditions
from flyball.controlplane.controllers.jobs.claims import (
    adopt_orphans,
    claims,
    is_left_to_others,
    release,
    release_foreign,
)
from flyball.controlplane.controllers.jobs.conditions import (
    End,
    failure,
    find,
    finished,
    new_condition,
    state,
    success,
)
from flyball.controlplane.controllers.jobs.hands import Hands
from flyball.controlplane.controllers.jobs.indexes import Indexes
from flyball.controlplane.controllers.jobs.pauses import Memory, Remembered, Streak, ended_at, left_of_pause
from flyball.controlplane.controllers.jobs.pods import (
    FAILURES,
    IGNORED_FAILURES,
    has_failed,
    index_of,
    is_indexed,
    is_tracked,
    number_in,
    pod_for,
    replaces_only_failed,
    surplus,
)
from flyball.controlplane.controllers.jobs.policies import FAIL_INDEX, judge_failure, rule_of_success
from flyball.controlplane.controllers.pods import is_active, is_ready, is_terminating, phase_of
from flyball.errors import ApiError, NotFound
from flyball.k8s.batch.v1 import Job, UncountedTerminatedPods
from flyball.k8s.core.v1 import Pod

__all__ = ["BURST", "job_controllers"]

BURST: Final = 500
"""More Pods than this are not made, deleted or counted in one pass."""
_TRIES: Final = 6
_MODES: Final = (None, "NonIndexed", "Indexed")


def job_controllers() -> Sequence[Controller[Any]]:
    """Make the controllers of Jobs, with a memory of their own."""
    memory = Memory()

    @controller(
        Job,
        owns=[Pod],
        name="job-controller",
        raw=True,
        predicates=[resource_version_changed],
        error_condition=None,
        max_concurrent=5,
    )
    async def jobs(request: Request, ctx: Context) -> None:
        """Bring a Job nearer to its end."""
        job = await ctx.get(Job, request.name)
        if job is None:
            memory.forget(request)
            return
        if is_left_to_others(job):
            return
        pods = await ctx.owned(Pod, of=job)
        if finished(job):
            memory.forget(request)
            for pod in pods:
                await release(pod, ctx)
            return
        if job.spec.completion_mode not in _MODES:
            told = "Skipped Job sync because completion mode is unknown"
            ctx.record("Warning", "UnknownCompletionMode", told, about=job)
            return
        mine = [*await release_foreign(job, pods, ctx), *await adopt_orphans(job, ctx)]
        await _Pass(job, mine, ctx, memory.of(request, job.metadata.uid)).run()

    return [jobs, claims]


@dataclass
class _Pass:
    """One look at a Job that has not ended."""

    job: Job
    pods: list[Pod]
    ctx: Context
    known: Remembered
    _events: list[tuple[Literal["Normal", "Warning"], str, str]] = field(
        default_factory=list[tuple[Literal["Normal", "Warning"], str, str]]
    )

    async def run(self) -> None:
        self._stored = to_dict(self.job.status)
        self._hands = Hands(self.job, self.ctx)
        self._look()
        end = self._ends_already() or self._ends_byfailure()
        if self._indexed:
            end = self._look_at_indexes(end)
        if end is not None:
            if not await self._delete(self._active):
                end = None  # the rest has to go first
        elif self.job.metadata.deletion_timestamp is None:
            await self._bring_to_number()
            end = self._ends_by_number()
            if end is None:
                self._tell_suspended()
        else:
            end = self._ends_by_number()
        await self._track(end)
        if self._hands.refused:
            self.ctx.requeue(after=self.known.refused())
        else:
            self.known.refusals = 0

    # Looking

    def _look(self) -> None:
        """Find out what there is."""
        job, status = self.job, self.job.status
        self._indexed = is_indexed(job)
        self._per_index = self._indexed and job.spec.backoff_limit_per_index is not None
        self._completions = job.spec.completions
        self._failed_indexes: Indexes | None = None
        self._last_of_index: dict[int, Pod] = {}
        self._active = [pod for pod in self.pods if is_active(pod)]
        self._running = len(self._active)
        self._ready = sum(map(is_ready, self._active))
        self._terminating = sum(map(is_terminating, self.pods))
        if status.uncounted_terminated_pods is None:
            status.uncounted_terminated_pods = UncountedTerminatedPods()
        noted = status.uncounted_terminated_pods
        succeeded = self._waiting(noted.succeeded, lambda pod: phase_of(pod) == "Succeeded")
        failed = self._waiting(noted.failed, lambda pod: has_failed(pod, job))
        self._succeeded = (status.succeeded or 0) + len(succeeded) + len(noted.succeeded or ())
        counting = [pod for pod in failed if judge_failure(job.spec.pod_failure_policy, pod).counts]
        self._failed = (status.failed or 0) + len(counting) + len(noted.failed or ())
        if status.start_time is None and not job.spec.suspend:
            status.start_time = self._now()
        self._streak = self._streak_before().after(succeeded, failed)

    def _waiting(self, noted: Sequence[str] | None, chosen: Callable[[Pod], bool]) -> list[Pod]:
        """Return the Pods that have ended in one way, and are not even noted."""
        known = set(noted or ())
        return [
            pod
            for pod in self.pods
            if is_tracked(pod)
            and pod.metadata.uid not in known
            and (not self._indexed or index_of(pod, self.job) is not None)
            and chosen(pod)
        ]

    def _streak_before(self) -> Streak:
        """Return the failures since the last success, as they were; when that is not known, by the Pods counted."""
        if self.known.streak is None:
            counted = [pod for pod in self.pods if not is_tracked(pod)]
            succeeded = [pod for pod in counted if phase_of(pod) == "Succeeded"]
            self.known.streak = Streak().after(succeeded, [pod for pod in counted if phase_of(pod) == "Failed"])
        return self.known.streak

    def _now(self) -> Any:
        return self.ctx.now().replace(microsecond=0)

    # Deciding

    def _ends_already(self) -> End | None:
        """Return what an earlier pass has decided."""
        met = find(self.job, conditions.CRITERIA_MET)
        if met is not None:
            return success(met.reason or "", met.message or "")
        target = find(self.job, conditions.FAILURE_TARGET)
        return None if target is None else failure(target.reason or "", target.message or "")

    def _ends_byfailure(self) -> End | None:
        """Return why the Job fails as a whole, if it does; wake up when it would."""
        spec = self.job.spec
        for pod in self.pods if spec.pod_failure_policy is not None else ():
            message = judge_failure(spec.pod_failure_policy, pod).fails_job if has_failed(pod, self.job) else ""
            if message:
                return failure("PodFailurePolicy", message)
        if self._failed > self._tries or self._has_restarted_too_often():
            return failure("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        start = self.job.status.start_time
        if spec.active_deadline_seconds is not None and start is not None and not spec.suspend:
            left = start + timedelta(seconds=spec.active_deadline_seconds) - self.ctx.now()
            if left <= timedelta(0):
                return failure("DeadlineExceeded", "Job was active longer than specified deadline")
            self.ctx.requeue(after=left)
        return None

    @property
    def _tries(self) -> int:
        limit = self.job.spec.backoff_limit
        return _TRIES if limit is None else limit

    def _has_restarted_too_often(self) -> bool:
        """Tell whether containers that are restarted in their Pods have used up all tries."""
        template = self.job.spec.template
        if template.spec is None or template.spec.restart_policy != "OnFailure":
            return False
        restarts = sum(
            one.restart_count or 0
            for pod in self.pods
            if phase_of(pod) in ("Pending", "Running")
            for one in [*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ())]
        )
        return restarts >= max(self._tries, 1)

    def _look_at_indexes(self, end: End | None) -> End | None:
        """Find out which indexes are done, and whether that ends the Job."""
        job, status, completions = self.job, self.job.status, self._completions or 0
        self._done_before = Indexes.read(status.completed_indexes or "", below=completions)
        waiting = {pod.metadata.uid: index_of(pod, job) for pod in self.pods if is_tracked(pod)}
        indexes = [(index, pod) for pod in self.pods if (index := waiting.get(pod.metadata.uid)) is not None]
        self._done = self._done_before | Indexes.of(one for one, pod in indexes if phase_of(pod) == "Succeeded")
        self._succeeded = self._done.count
        if self._per_index:
            before = Indexes.read(status.failed_indexes or "", below=completions)
            failed = self._failed_indexes = before | Indexes.of(one for one, pod in indexes if self._fails_index(pod))
            end = end or self._ends_by_indexes(failed)
            self._find_last_of_indexes(indexes, failed)
        place = rule_of_success(job.spec.success_policy, self._done, completions) if end is None else None
        return end if place is None else success("SuccessPolicy", f"Matched rules at index {place}")

    def _fails_index(self, pod: Pod) -> bool:
        """Tell whether the failure of a Pod is the last that its index may have."""
        if not has_failed(pod, self.job):
            return False
        found = judge_failure(self.job.spec.pod_failure_policy, pod)
        tries = self.job.spec.backoff_limit_per_index or 0
        return found.action == FAIL_INDEX or (found.counts and number_in(pod, FAILURES) >= tries)

    def _ends_by_indexes(self, failed: Indexes) -> End | None:
        most, count = self.job.spec.max_failed_indexes, failed.count
        if most is not None and count > most:
            told = "Job has exceeded the specified maximal number of failed indexes"
            return failure("MaxFailedIndexesExceeded", told)
        if count and count + self._done.count >= (self._completions or 0):
            return failure("FailedIndexes", "Job has failed indexes")
        return None

    def _find_last_of_indexes(self, indexes: Sequence[tuple[int, Pod]], failed: Indexes) -> None:
        """Find the Pods that still have to tell their successors how often their index has failed."""
        over = self._done | failed | Indexes.of(index for index, pod in indexes if is_active(pod))
        for index, pod in indexes:
            if index not in over and has_failed(pod, self.job):
                last = self._last_of_index.get(index)
                if last is None or (_failures(last), ended_at(last)) <= (_failures(pod), ended_at(pod)):
                    self._last_of_index[index] = pod

    def _ends_by_number(self) -> End | None:
        """Tell whether enough Pods have succeeded."""
        if self._completions is None:
            enough = self._succeeded > 0
        else:
            enough = self._succeeded >= self._completions
        if not enough or self._running:
            return None
        return success("CompletionsReached", "Reached expected number of succeeded pods")

    def _tell_suspended(self) -> None:
        """State whether the Job is suspended; its time begins anew when it is resumed."""
        suspended = bool(self.job.spec.suspend)
        word = "Suspended" if suspended else "Resumed"
        told = f"Job {word.lower()}"
        stated = new_condition("Suspended", f"Job{word}", told, self.ctx.now(), holds=suspended)
        if state(self.job, stated):
            self.job.status.start_time = None if suspended else self._now()
            self._events.append(("Normal", word, told))

    # Making and deleting

    async def _bring_to_number(self) -> None:
        """Make the Pods that are missing, or delete those that are too many."""
        job = self.job
        if job.spec.suspend:
            await self._give_up(surplus(job, self._active, len(self._active)))
            return
        parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
        wanted = parallelism
        if self._completions is not None:
            wanted = max(0, min(parallelism, self._completions - self._succeeded))
        elif self._succeeded:
            wanted = self._running
        gone = surplus(job, self._active, max(0, self._running - wanted))[:BURST]
        if gone:
            await self._give_up(gone)
            return
        missing = wanted - self._running - (self._terminating if replaces_only_failed(job) else 0)
        if missing > 0:
            await self._make_missing(min(missing, BURST))

    async def _make_missing(self, count: int) -> None:
        left = 0.0 if self._per_index else self._streak.left(self.ctx.now())
        indexes: list[int | None] = [None] * count
        if self._indexed and not left:
            indexes, left = self._free_indexes(count)
        if left:
            self.ctx.requeue(after=left)
            return
        self._running += await self._hands.make([self._new_pod(index) for index in indexes])

    def _free_indexes(self, count: int) -> tuple[list[int | None], float]:
        """Choose indexes to begin with; when all of them have to pause: how long the shortest pause is."""
        taken = [pod for pod in self.pods if is_active(pod) or (replaces_only_failed(self.job) and is_terminating(pod))]
        busy = self._done | Indexes.of(one for pod in taken if (one := index_of(pod, self.job)) is not None)
        if self._failed_indexes is not None:
            busy |= self._failed_indexes
        pauses = {one: self._pause_of(one) for one in islice(busy.missing(self._completions or 0), count)}
        now = [one for one, pause in pauses.items() if not pause]
        return [*now], 0.0 if now else min(pauses.values(), default=0.0)

    def _pause_of(self, index: int) -> float:
        last = self._last_of_index.get(index)
        return 0.0 if last is None else left_of_pause(_failures(last) + 1, ended_at(last), self.ctx.now())

    def _new_pod(self, index: int | None) -> Pod:
        pod = pod_for(self.job, index)
        if index is not None and self._per_index:
            failures, ignored = self._failures_so_far(index)
            pod.metadata.annotations[FAILURES] = str(failures)
            if ignored:
                pod.metadata.annotations[IGNORED_FAILURES] = str(ignored)
        set_controller(self.job, pod)
        return pod

    def _failures_so_far(self, index: int) -> tuple[int, int]:
        last = self._last_of_index.get(index)
        if last is None:
            return 0, 0
        counts = judge_failure(self.job.spec.pod_failure_policy, last).counts
        return number_in(last, FAILURES) + counts, number_in(last, IGNORED_FAILURES) + (not counts)

    async def _give_up(self, pods: Sequence[Pod]) -> None:
        """Delete Pods that are not wanted any more: they have not failed, so they are not counted."""
        for pod in pods:
            await release(pod, self.ctx)
        await self._delete(pods)

    async def _delete(self, pods: Sequence[Pod]) -> bool:
        """Delete Pods; tell whether all of them are going."""
        gone = await self._hands.delete(pods)
        self._running -= len(gone)
        self._terminating += len(gone)
        self._ready -= sum(map(is_ready, gone))
        return len(gone) == len(pods)

    # Counting

    async def _track(self, end: End | None) -> None:
        """Note Pods that have ended, release them, count them, and end the Job when nothing is left to do."""
        status = self.job.status
        status.active, status.ready, status.terminating = self._running or None, self._ready, self._terminating
        waiting = {pod.metadata.uid for pod in self.pods if is_tracked(pod)}
        self._count(waiting)
        going = self._note(end)
        if self._indexed:
            status.completed_indexes = str(self._done) or None
            status.succeeded = self._done.count or None
            status.failed_indexes = None if self._failed_indexes is None else str(self._failed_indexes)
        if end is not None:
            state(self.job, new_condition(end.first, end.reason, end.message, self.ctx.now()))
        await self._store()
        self.known.streak = self._streak
        released = await asyncio.gather(*(self._release(pod) for pod in going))
        self._count(waiting - {pod.metadata.uid for pod, worked in zip(going, released, strict=True) if worked})
        if len(going) >= BURST:
            self.ctx.requeue()
        elif end is not None:
            self._finish(end)
        await self._store()

    def _count(self, waiting: set[str]) -> None:
        """Make numbers of the Pods that are noted and do not wait any more."""
        status, noted = self.job.status, self.job.status.uncounted_terminated_pods
        assert noted is not None
        succeeded = [uid for uid in noted.succeeded or () if uid in waiting]
        failed = [uid for uid in noted.failed or () if uid in waiting]
        counted = len(noted.succeeded or ()) - len(succeeded), len(noted.failed or ()) - len(failed)
        status.succeeded = (status.succeeded or 0) + counted[0] or None
        status.failed = (status.failed or 0) + counted[1] or None
        status.uncounted_terminated_pods = UncountedTerminatedPods(succeeded=succeeded or None, failed=failed or None)

    def _note(self, end: End | None) -> list[Pod]:
        """Note the Pods that count; return those that need not wait any longer."""
        noted = self.job.status.uncounted_terminated_pods
        assert noted is not None
        succeeded, failed = list(noted.succeeded or ()), list(noted.failed or ())
        going: list[Pod] = []
        for pod in self.pods:
            uid = pod.metadata.uid
            if not is_tracked(pod) or not self._may_go(pod, end) or len(going) >= BURST:
                continue
            going.append(pod)
            if phase_of(pod) == "Succeeded" and uid not in failed:
                if not self._indexed and uid not in succeeded:
                    succeeded.append(uid)
            elif uid not in failed and self._counts_as_failed(pod, end):
                failed.append(uid)
        noted.succeeded, noted.failed = succeeded or None, failed or None
        return going

    def _may_go(self, pod: Pod, end: End | None) -> bool:
        """Tell whether nothing depends on a Pod any more, once it is noted."""
        if self.job.metadata.deletion_timestamp is not None or end is not None or phase_of(pod) == "Succeeded":
            return True
        if not has_failed(pod, self.job):
            return False
        index = index_of(pod, self.job)
        last = self._last_of_index.get(index) if index is not None else None
        return last is None or last.metadata.uid != pod.metadata.uid

    def _counts_as_failed(self, pod: Pod, end: End | None) -> bool:
        """Tell whether a Pod is a failure; when the Job fails, that is every one that has not succeeded."""
        failing = end is not None and not end.succeeds
        if not failing and not has_failed(pod, self.job):
            return False
        if self._indexed and index_of(pod, self.job) is None:
            return False
        return judge_failure(self.job.spec.pod_failure_policy, pod).counts

    async def _release(self, pod: Pod) -> bool:
        try:
            await release(pod, self.ctx)
        except ApiError as error:
            self._hands.refused.append(error)
            return False
        return True

    def _finish(self, end: End) -> None:
        status, noted = self.job.status, self.job.status.uncounted_terminated_pods
        if (noted is not None and (noted.succeeded or noted.failed)) or self._terminating:
            return
        stated = new_condition(end.last, end.reason, end.message, self.ctx.now())
        state(self.job, stated)
        if not end.succeeds:
            self._events.append(("Warning", end.reason, end.message))
            return
        status.completion_time = stated.last_transition_time
        if self._completions is not None and (status.succeeded or 0) > self._completions:
            told = "Too many succeeded pods running after completion count reached"
            self._events.append(("Warning", "TooManySucceededPods", told))
        self._events.append(("Normal", "Completed", "Job completed"))

    async def _store(self) -> None:
        """Write the status if it says something new, and tell people what follows from it."""
        wanted = to_dict(self.job.status)
        if wanted != self._stored:
            patch = MergePatch({"status": merge_patch(self._stored, wanted)})
            try:
                self.job = await self.ctx.patch(self.job, patch, subresource="status", guard=True)
            except NotFound:
                return  # the Job is gone, and with it whoever would read its status
            self._stored = to_dict(self.job.status)
        for type_, reason, message in self._events:
            self.ctx.record(type_, reason, message, about=self.job)
        self._events.clear()


def _failures(pod: Pod) -> int:
    """Return how often the index of a Pod had failed before it, in whatever way."""
    return number_in(pod, FAILURES) + number_in(pod, IGNORED_FAILURES)
