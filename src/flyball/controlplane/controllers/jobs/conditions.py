"""The conditions of a Job: how they are found and stated."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from flyball.k8s.batch.v1 import Job, JobCondition

__all__ = [
    "COMPLETE",
    "CRITERIA_MET",
    "FAILED",
    "FAILURE_TARGET",
    "End",
    "failure",
    "find",
    "finished",
    "new_condition",
    "state",
    "success",
]

COMPLETE = "Complete"
FAILED = "Failed"
CRITERIA_MET = "SuccessCriteriaMet"
FAILURE_TARGET = "FailureTarget"


class End(NamedTuple):
    """How a Job ends: the condition that comes first, and the one that comes last."""

    first: str
    last: str
    reason: str
    message: str

    @property
    def succeeds(self) -> bool:
        """Whether it is a good end."""
        return self.last == COMPLETE


def success(reason: str, message: str) -> End:
    """Return the good end of a Job."""
    return End(CRITERIA_MET, COMPLETE, reason, message)


def failure(reason: str, message: str) -> End:
    """Return the bad end of a Job."""
    return End(FAILURE_TARGET, FAILED, reason, message)


def find(job: Job, *types: str) -> JobCondition | None:
    """Return the first condition of these types that holds."""
    return next((one for one in job.status.conditions or () if one.type in types and one.status == "True"), None)


def finished(job: Job) -> JobCondition | None:
    """Return the condition by which a Job has ended, None while it has not."""
    return find(job, COMPLETE, FAILED)


def new_condition(type_: str, reason: str, message: str, now: datetime, *, holds: bool = True) -> JobCondition:
    """Make a condition that is stated now."""
    moment = now.replace(microsecond=0)
    return JobCondition(
        type=type_,
        status="True" if holds else "False",
        last_probe_time=moment,
        last_transition_time=moment,
        reason=reason,
        message=message,
    )


def state(job: Job, stated: JobCondition) -> bool:
    """Put a condition into the status; tell whether it says something new.

    That something does not hold is said only where it did hold before.
    """
    present = job.status.conditions or []
    known = next((place for place, one in enumerate(present) if one.type == stated.type), None)
    if known is None:
        if stated.status != "False":
            job.status.conditions = [*present, stated]
        return stated.status != "False"
    before = present[known]
    if (before.status, before.reason, before.message) == (stated.status, stated.reason, stated.message):
        return False
    job.status.conditions = [*present[:known], stated, *present[known + 1 :]]
    return True
