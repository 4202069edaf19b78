"""What is to be done: decided from the Jobs that are there, and from nothing else while they tell."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from flyball.k8s.batch.v1 import Job

from simplejob.api import SimpleJob
from simplejob.controller.attempts import (
    HASH,
    end_of,
    ended_at,
    has_begun,
    is_unfinished,
    number_of,
    template_hash,
)
from simplejob.controller.statemachine.extended_state import ExtendedState

LONGEST_WAIT = 300


def look(state: ExtendedState, jobs: Sequence[Job], now: datetime) -> None:
    """Put what the Jobs show into the state; the first of these questions that is answered by yes decides."""
    simplejob, hash_ = state.loaded, template_hash(state.loaded)
    state.attempts = sorted((job for job in jobs if job.metadata.labels.get(HASH) == hash_), key=number_of)
    newest = state.attempts[-1] if state.attempts else None
    number = number_of(newest) if newest is not None else 0
    end = end_of(newest)
    old = next((job for job in jobs if job.metadata.labels.get(HASH) != hash_ and end_of(job) is None), None)

    if end is not None and end.type == "Complete":
        state.job, state.outcome = newest, "Complete"
    elif end is not None and number > simplejob.spec.max_retries:
        state.job, state.outcome = newest, "Failed"
    elif marker := terminal_marker(simplejob):
        state.outcome, state.keep = marker, True
    elif old is not None:
        state.job = old
        state.replace = old.metadata.deletion_timestamp is None and not has_begun(old, state.pods)
    elif simplejob.spec.suspend or (newest is not None and is_unfinished(newest)):
        state.job = newest
    elif newest is not None and (due := retry_time(simplejob, newest)) > now:
        state.job, state.retry_at = newest, due
    else:
        state.due = number + 1


def terminal_marker(simplejob: SimpleJob) -> Literal["Complete", "Failed"] | None:
    """How the run has ended by the status: asked only when the Jobs do not show it any more."""
    for name in ("Complete", "Failed"):
        found = simplejob.status.condition(name)
        if found is not None and found.status == "True":
            return name if found.observed_generation == simplejob.metadata.generation else None
    return None


def retry_time(simplejob: SimpleJob, failed: Job) -> datetime:
    """When the attempt after a failed one is due."""
    ended = ended_at(failed)
    assert ended is not None
    wait = min(LONGEST_WAIT, simplejob.spec.retry_backoff_seconds * 2 ** (number_of(failed) - 1))
    return ended + timedelta(seconds=wait)


def expiry(state: ExtendedState) -> datetime | None:
    """When the SimpleJob is to be deleted, now that its run is over."""
    ttl, ended = state.loaded.spec.ttl_seconds_after_finished, state.loaded.status.completion_time
    if state.outcome is None or ttl is None or ended is None:
        return None
    return ended + timedelta(seconds=ttl)
