"""What users are told: the status in every situation, and by events and numbers what is new in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simplejob.api import Phase, SimpleJobStatus
from simplejob.controller.attempts import HASH, ended_at, has_failed, number_of, template_hash
from simplejob.controller.statemachine.extended_state import ExtendedState

if TYPE_CHECKING:
    from simplejob.controller.statemachine.zz_generated_statemachine import Machine

PROGRESSING: dict[Phase, tuple[bool, str]] = {
    "Pending": (True, "AttemptPending"),
    "Running": (True, "AttemptRunning"),
    "Retrying": (True, "WaitingForRetry"),
    "Suspended": (False, "Suspended"),
    "Completed": (False, "Finished"),
    "Failed": (False, "Finished"),
}


def report(state: ExtendedState, phase: Phase, message: str) -> None:
    """Put the situation into the status."""
    simplejob, job = state.loaded, state.job
    status = simplejob.status
    status.phase, status.message = phase, message
    status.attempts = state.due or (number_of(state.attempts[-1]) if state.attempts else 0)
    status.job_name = job.metadata.name if job is not None else None
    status.start_time = state.attempts[0].status.start_time if state.attempts else None
    status.completion_time = ended_at(job) if state.outcome is not None else None
    status.next_retry_time = state.retry_at

    progressing, reason = PROGRESSING[phase]
    status.set_condition("Progressing", progressing, reason=reason, message=message)
    not_complete = "RetriesExhausted" if phase == "Failed" else "NotFinished"
    complete = phase == "Completed"
    status.set_condition("Complete", complete, reason="Succeeded" if complete else not_complete, message=message)
    failed_before = any(map(has_failed, state.attempts)) and not complete
    failing = "RetriesExhausted" if phase == "Failed" else "AttemptFailed" if failed_before else "NoFailure"
    status.set_condition("Failed", phase == "Failed", reason=failing, message=message)
    old = job is not None and job.metadata.labels.get(HASH) != template_hash(simplejob)
    status.set_condition("UpToDate", not old, reason="OldTemplateRunning" if old else "Current", message=message)


def tell_what_is_new(m: Machine) -> None:
    """Events about what was acted on by waiting or ending, and numbers; after the status was written."""
    before, status, message = m.state.before, m.state.loaded.status, m.state.loaded.status.message or ""
    count, record = m.context.ctx.count, m.context.recorder.record
    waits_anew = (before.phase, before.job_name) != (status.phase, status.job_name)
    if status.phase == "Retrying" and waits_anew:
        record("Warning", "AttemptFailed", message)
    elif status.phase == "Completed" and before.phase != "Completed":
        record("Normal", "Completed", message)
        count("simplejob_attempts_total", result="succeeded")
        count("simplejob_runs_total", result="succeeded")
    elif status.phase == "Failed" and before.phase != "Failed":
        record("Warning", "RetriesExhausted", message)
        count("simplejob_runs_total", result="failed")
    newly_failed = failures(status) - failures(before)
    if newly_failed > 0:
        count("simplejob_attempts_total", newly_failed, result="failed")
    if newly_failed > 0 or (status.phase == "Completed" and before.phase != "Completed"):
        observe_duration(m)


def failures(status: SimpleJobStatus) -> int:
    """How many attempts have failed, as far as a status tells."""
    return max(status.attempts - (status.phase not in ("Retrying", "Failed")), 0)


def observe_duration(m: Machine) -> None:
    """Measure the attempt that has ended last."""
    ended = [job for job in m.state.attempts if ended_at(job) is not None]
    started = ended[-1].status.start_time if ended else None
    end = ended_at(ended[-1]) if ended else None
    if started is not None and end is not None:
        m.context.ctx.observe("simplejob_attempt_duration_seconds", (end - started).total_seconds())
