"""CronJobs: a Job at each moment of a schedule.

A Job is named after its moment, so the same moment never makes two. When moments were missed, the latest one counts and
the others do not; `startingDeadlineSeconds` says how late it may be.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import format_datetime
from typing import Any, Final, NamedTuple

from flyball.api.cron import BadSchedule, Schedule, parse_schedule, time_zone
from flyball.controller import Context, Controller, NameConflict, controller, is_controlled_by
from flyball.controller.predicates import resource_version_changed
from flyball.controlplane.controllers.jobs.conditions import COMPLETE, FAILED, finished
from flyball.errors import ApiError, RetryAfter
from flyball.k8s.batch.v1 import CronJob, Job
from flyball.k8s.core.v1 import ObjectReference
from flyball.k8s.meta.v1 import ObjectMeta

__all__ = ["Missed", "cronjob_controllers", "missed"]

_SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_MANY: Final = 100
_LONGEST_PAUSE: Final = 600
_REMEMBERED: Final = 10_000


class Missed(NamedTuple):
    """The moments of a schedule that have come since a Job was made."""

    latest: datetime | None = None
    many: bool = False
    """Whether there are so many that something is wrong."""


def missed(schedule: Schedule, since: datetime, now: datetime) -> Missed:
    """Find the latest moment since another one; `BadSchedule` when the schedule never has one.

    How many there are is estimated by the first two, as it could be millions.
    """
    first = schedule.next(since)
    second = schedule.next(first) if first is not None else None
    if first is not None and now < first:
        return Missed()
    if first is not None and (second is None or now < second):
        return Missed(first)
    if first is None or second is None:
        raise BadSchedule("time difference between two schedules is less than 1 second")
    between = max(int((second - first).total_seconds()), 1)
    count = int((now - first).total_seconds()) // between + 1
    latest, moment = None, schedule.next(first + timedelta(seconds=(count - 2) * between))
    while moment is not None and moment <= now:
        latest, moment = moment, schedule.next(moment)
    return Missed(latest, count > _MANY)


def cronjob_controllers() -> Sequence[Controller[Any]]:
    """Make the controller of CronJobs, with a memory of its own."""
    memory: dict[str, _Known] = {}

    @controller(
        CronJob,
        owns=[Job],
        name="cronjob-controller",
        predicates=[resource_version_changed],
        error_condition=None,
        max_concurrent=5,
        while_deleting=True,
    )
    async def cronjobs(cronjob: CronJob, ctx: Context) -> None:
        """Make the Job that is due, forget those that have ended, and come back at the next moment."""
        uid, schedule = cronjob.metadata.uid, (cronjob.spec.schedule, cronjob.spec.time_zone)
        known = memory[uid] = memory.pop(uid, _Known(schedule))
        if len(memory) > _REMEMBERED:
            del memory[next(iter(memory))]
        one = _Pass(cronjob, await ctx.owned(Job), ctx, known)
        if known.schedule != schedule:
            known.schedule = schedule
            one.wait_for_new_schedule()
        else:
            await one.run()

    return [cronjobs]


@dataclass
class _Known:
    """What is remembered of a CronJob, and does no harm when it is lost."""

    schedule: tuple[str, str | None]
    refusals: int = 0

    def refused(self) -> float:
        """Note that a Job could not be made or deleted; return the seconds until the next attempt."""
        self.refusals += 1
        return float(min(2 ** min(self.refusals - 1, 10), _LONGEST_PAUSE))


@dataclass
class _Pass:
    """One look at a CronJob and its Jobs."""

    cronjob: CronJob
    jobs: list[Job]
    ctx: Context
    known: _Known

    async def run(self) -> None:
        await self._clean_up()
        self._follow_jobs()
        await self._forget_lost_jobs()
        if self.ctx.deleting or self.cronjob.spec.suspend:
            return
        schedule = self._read_schedule()
        if schedule is None:
            return
        now = self.ctx.now()
        try:
            found = missed(schedule, self._since(now, by_deadline=True), now)
        except BadSchedule as error:
            self._warn("InvalidSchedule", f"invalid schedule: {self.cronjob.spec.schedule} : {error}")
            return
        if found.many and found.latest is not None:
            told = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._warn("TooManyMissedTimes", told)
        if found.latest is not None and self._may_start(found.latest, now):
            await self._start(found.latest)
        self._wait(schedule, now)

    def wait_for_new_schedule(self) -> None:
        """Wait for the next moment of a schedule that was changed: what it would have missed is not made up for."""
        schedule = self._read_schedule()
        if schedule is not None:
            self._wait(schedule, self.ctx.now())

    # The schedule

    def _read_schedule(self) -> Schedule | None:
        spec = self.cronjob.spec
        try:
            zone: tzinfo = UTC if spec.time_zone is None else time_zone(spec.time_zone)
        except BadSchedule as error:
            self._warn("UnknownTimeZone", f'invalid timeZone: "{spec.time_zone}": {error}')
            return None
        if "TZ" in spec.schedule:
            told = f'CRON_TZ or TZ used in schedule "{spec.schedule}" is not officially supported'
            self._warn("UnsupportedSchedule", told)
        try:
            return parse_schedule(spec.schedule, zone)
        except BadSchedule as error:
            self._warn("UnparseableSchedule", f'unparseable schedule: "{spec.schedule}" : {error}')
            return None

    def _since(self, now: datetime, *, by_deadline: bool) -> datetime:
        """Return the moment after which a Job may be missing."""
        created = self.cronjob.metadata.creation_timestamp
        since = self.cronjob.status.last_schedule_time or created or now
        deadline = self.cronjob.spec.starting_deadline_seconds
        if by_deadline and deadline is not None:
            return max(since, now - timedelta(seconds=deadline))
        return since

    def _wait(self, schedule: Schedule, now: datetime) -> None:
        """Come back at the next moment."""
        since = self._since(now, by_deadline=False)
        try:
            found = missed(schedule, since, now)
            following = schedule.next(found.latest or since)
        except BadSchedule:
            following = schedule.next(now)
        while following is not None and following <= now:
            following = schedule.next(now)
        if following is not None:
            self.ctx.requeue(at=following)

    # The Jobs that there are

    def _follow_jobs(self) -> None:
        """Take Jobs that have ended off the list of those that run."""
        status = self.cronjob.status
        for job in self.jobs:
            listed, end = self._is_listed(job), finished(job)
            if end is None:
                if not listed:
                    told = f"Saw a job that the controller did not create or forgot: {job.metadata.name}"
                    self._warn("UnexpectedJob", told)
                continue
            if listed:
                self._unlist(job.metadata.uid)
                self._tell("SawCompletedJob", f"Saw completed job: {job.metadata.name}, condition: {end.type}")
            done = job.status.completion_time
            if end.type == COMPLETE and done is not None:
                status.last_successful_time = max(done, status.last_successful_time or done)

    async def _forget_lost_jobs(self) -> None:
        """Take Jobs that have gone off the list; whether they have, the server itself is asked."""
        uids = {job.metadata.uid for job in self.jobs}
        for one in list(self.cronjob.status.active or ()):
            if one.uid not in uids and await self.ctx.live.get(Job, one.name or "") is None:
                self._tell("MissingJob", f"Active job went missing: {one.name}")
                self._unlist(one.uid or "")

    async def _clean_up(self) -> None:
        """Delete the oldest of the Jobs that have ended, more than are to be kept."""
        spec, left = self.cronjob.spec, list[Job]()
        for type_, kept in ((COMPLETE, spec.successful_jobs_history_limit), (FAILED, spec.failed_jobs_history_limit)):
            ended = [job for job in self.jobs if _end_of(job) == type_]
            if kept is not None:
                surplus = sorted(ended, key=_age)[: max(0, len(ended) - kept)]
                left += [job for job in surplus if await self._delete(job)]
        gone = {job.metadata.uid for job in left}
        self.jobs = [job for job in self.jobs if job.metadata.uid not in gone]

    async def _delete(self, job: Job) -> bool:
        try:
            await self.ctx.delete(job)
        except ApiError as error:
            self._warn("FailedDelete", f"Deleted job: {error.message}")
            return False
        self._unlist(job.metadata.uid)
        self._tell("SuccessfulDelete", f"Deleted job {job.metadata.name}")
        return True

    # The Job that is due

    def _may_start(self, moment: datetime, now: datetime) -> bool:
        spec, status = self.cronjob.spec, self.cronjob.status
        deadline = spec.starting_deadline_seconds
        if deadline is not None and moment + timedelta(seconds=deadline) < now:
            told = format_datetime(moment.astimezone(UTC))
            self._warn("MissSchedule", f"Missed scheduled time to start a job: {told}")
            return False
        if status.last_schedule_time == moment or any(one.name == self._name(moment) for one in status.active or ()):
            return False
        if spec.concurrency_policy == "Forbid" and status.active:
            told = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._tell("JobAlreadyActive", told)
            return False
        return True

    async def _start(self, moment: datetime) -> None:
        if self.cronjob.spec.concurrency_policy == "Replace" and not await self._end_present():
            raise RetryAfter(self.known.refused(), "a Job that is to be replaced could not be deleted")
        name = self._name(moment)
        job = await self.ctx.get(Job, name)
        if job is None:
            try:
                job = await self.ctx.create(self._job(moment))
            except NameConflict:
                return  # somebody else's: they know what they do
            except ApiError as error:
                if any(one.get("reason") == "NamespaceTerminating" for one in error.causes):
                    return
                self._warn("FailedCreate", f"Error creating job: {error.message}")
                raise RetryAfter(self.known.refused(), str(error)) from error
            self._tell("SuccessfulCreate", f"Created job {name}")
        elif not is_controlled_by(job, self.cronjob):
            return
        self.known.refusals = 0
        metadata = job.metadata
        started = ObjectReference(
            kind="Job",
            api_version="batch/v1",
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
        )
        self.cronjob.status.active = [*(self.cronjob.status.active or ()), started]
        self.cronjob.status.last_schedule_time = moment

    async def _end_present(self) -> bool:
        """Delete the Jobs that run; tell whether all of them go."""
        by_uid = {job.metadata.uid: job for job in self.jobs}
        running = [by_uid[one.uid] for one in self.cronjob.status.active or () if one.uid in by_uid]
        return all([await self._delete(job) for job in running])

    def _name(self, moment: datetime) -> str:
        return f"{self.cronjob.metadata.name}-{int(moment.timestamp()) // 60}"

    def _job(self, moment: datetime) -> Job:
        template, zone = self.cronjob.spec.job_template, self.cronjob.spec.time_zone
        given = template.metadata or ObjectMeta()
        local = moment.astimezone(UTC if zone is None else time_zone(zone))
        stamp = local.isoformat(timespec="seconds").replace("+00:00", "Z")
        job = Job(
            metadata=ObjectMeta(
                name=self._name(moment),
                namespace=self.cronjob.metadata.namespace,
                labels=dict(given.labels),
                annotations={**given.annotations, _SCHEDULED: stamp},
            )
        )
        if template.spec is not None:
            job.spec = copy.deepcopy(template.spec)
        return job

    # The list of those that run

    def _is_listed(self, job: Job) -> bool:
        return any(one.uid == job.metadata.uid for one in self.cronjob.status.active or ())

    def _unlist(self, uid: str) -> None:
        left = [one for one in self.cronjob.status.active or () if one.uid != uid]
        self.cronjob.status.active = left or None

    def _tell(self, reason: str, message: str) -> None:
        self.ctx.record("Normal", reason, message)

    def _warn(self, reason: str, message: str) -> None:
        self.ctx.record("Warning", reason, message)


def _end_of(job: Job) -> str:
    end = finished(job)
    return end.type if end is not None else ""


def _age(job: Job) -> tuple[bool, datetime, str]:
    start = job.status.start_time
    return start is None, start or datetime.min.replace(tzinfo=UTC), job.metadata.name
