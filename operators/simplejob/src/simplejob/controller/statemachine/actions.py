"""Actions: the work that the machine does in its states."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from flyball import Done, Result
from flyball.controller import InvalidSpec, NameConflict, expect_valid, selector_labels
from flyball.fsm.run import action
from flyball.k8s.batch.v1 import Job
from flyball.k8s.core.v1 import Pod

from simplejob.api import SimpleJob
from simplejob.controller.attempts import (
    HASH,
    end_of,
    has_failed,
    in_words,
    is_running,
    new_attempt,
    number_of,
    pods_of,
    template_hash,
    why_it_failed,
    why_it_waits,
)
from simplejob.controller.outlook import expiry, look
from simplejob.controller.report import report, tell_what_is_new

if TYPE_CHECKING:
    from .zz_generated_statemachine import Machine

NAME_CONFLICT_WAIT = 60


@action("Initialize")
def initialize(m: Machine) -> None:
    """Begin with nothing."""
    m.state.instance, m.state.job = None, None


@action("LoadResource")
async def load_resource(m: Machine) -> None:
    """Read the SimpleJob; one that is being deleted is as good as gone."""
    found = await m.context.ctx.load(SimpleJob)
    if found is not None and found.metadata.deletion_timestamp is None:
        m.state.instance, m.state.before = found, copy.copy(found.status)


@action("CheckJobStatus")
async def check_job_status(m: Machine) -> None:
    """Look at the attempts that are there, and decide what is due."""
    simplejob, ctx = m.state.loaded, m.context.ctx
    expect_valid(simplejob)
    m.state.pods = await ctx.list(Pod, labels=selector_labels(simplejob))
    look(m.state, await ctx.owned(Job), ctx.now())


@action("CreateJob")
async def create_job(m: Machine) -> None:
    """Start the attempt that is due. That it is there is what counts it."""
    state, simplejob = m.state, m.state.loaded
    state.job = await m.context.ctx.create(new_attempt(simplejob, state.due))
    words = in_words(simplejob, state.due)
    last = state.attempts[-1] if state.attempts else None
    if last is not None and has_failed(last):
        words += f", attempt {number_of(last)} failed: {why_it_failed(last, pods_of(last, state.pods))}"
    m.context.recorder.record("Normal", "AttemptStarted", words)
    report(state, "Pending", f"{in_words(simplejob, state.due)} has not begun yet")


@action("RetryJob")
async def retry_job(m: Machine) -> None:
    """Wait for the next attempt; or delete one of an older run template that has not begun."""
    state, job = m.state, m.state.job
    assert job is not None
    if state.replace:
        await m.context.ctx.delete(job, propagation="Foreground", guard=True)
        message = f"{job.metadata.name} has not begun and gives way to the present spec"
        m.context.recorder.record("Normal", "AttemptReplaced", message)
        report(state, "Pending", message)
    else:
        cause = why_it_failed(job, pods_of(job, state.pods))
        words = f"{in_words(state.loaded, number_of(job))} failed: {cause}"
        report(state, "Retrying", f"{words}; the next one starts at {state.retry_at:%Y-%m-%dT%H:%M:%SZ}")


@action("SetPhase")
def set_phase(m: Machine) -> None:
    """Say how far it is."""
    state, simplejob, job = m.state, m.state.loaded, m.state.job
    if state.keep:
        status = simplejob.status
        status.set_condition("Progressing", False, reason="Finished", message=status.message or "")
        return
    if job is None:
        report(state, "Suspended", "suspended before the first attempt")
        return
    words, pods = in_words(simplejob, number_of(job)), pods_of(job, state.pods)
    if state.outcome == "Complete":
        report(state, "Completed", f"{words} succeeded")
    elif state.outcome == "Failed":
        report(state, "Failed", f"{words} failed: {why_it_failed(job, pods)}; no retries are left")
    elif end_of(job) is not None and job.metadata.deletion_timestamp is None:
        report(state, "Suspended", f"suspended, {words} failed: {why_it_failed(job, pods)}")
    else:
        if job.metadata.labels.get(HASH) != template_hash(simplejob):
            words = f"{job.metadata.name} of an older spec"
        if job.metadata.deletion_timestamp is not None:
            report(state, "Pending", f"{words} is being deleted")
        elif any(map(is_running, pods)):
            report(state, "Running", f"{words} is running")
        else:
            waits = why_it_waits(pods)
            report(state, "Pending", f"{words}: {waits}" if waits else f"{words} has not begun yet")


@action("UpdateStatus")
async def update_status(m: Machine) -> None:
    """Write the status; when there is nothing new in it and its time is over, delete the SimpleJob."""
    ctx, simplejob, end = m.context.ctx, m.state.loaded, expiry(m.state)
    ctx.measure("simplejob_active", float(simplejob.status.phase in ("Pending", "Running")))
    if await ctx.write_status():
        tell_what_is_new(m)
    elif end is not None and end <= ctx.now():
        await ctx.delete(simplejob, propagation="Background")
        words = f"deleted {simplejob.spec.ttl_seconds_after_finished} s after its end"
        m.context.recorder.record("Normal", "Expired", words, about=simplejob)
        return
    when = m.state.retry_at or end
    m.state.result = Result.at(when) if when is not None else Done


@action("HandleError")
def handle_error(m: Machine) -> None:
    """Tell of what only people can mend. Every other error stays stored: the framework reports it and tries again."""
    error = m.state.error
    if m.state.instance is None or not isinstance(error, InvalidSpec | NameConflict):
        return
    m.state.instance.status.message = str(error)
    m.context.ctx.report(error)
    m.state.result = Done if isinstance(error, InvalidSpec) else Result.after(NAME_CONFLICT_WAIT)
    m.clear_error()
