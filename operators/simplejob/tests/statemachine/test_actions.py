"""Tests of single actions."""

from __future__ import annotations

from datetime import timedelta

import pytest
from flyball import Done, Result
from flyball.controller import InvalidSpec, NameConflict
from flyball.errors import FlyballError
from flyball.fsm.testing import EventLog, ImaginedPass, covers_action, run_action

from simplejob.api import SimpleJob
from simplejob.controller.statemachine.zz_generated_statemachine import Machine

from ..imagined import NOW, job


@covers_action("Initialize")
def test_initialize(machine: Machine) -> None:
    """Nothing is left."""
    run_action(machine, "Initialize")
    assert machine.state.instance is None


@covers_action("LoadResource")
def test_load_resource(machine: Machine, ctx: ImaginedPass, sample: SimpleJob) -> None:
    """The object is loaded, unless it is being deleted or gone."""
    machine.state.instance = None
    run_action(machine, "LoadResource")
    assert machine.state.loaded is sample
    machine.state.instance, sample.metadata.deletion_timestamp = None, NOW
    run_action(machine, "LoadResource")
    assert machine.state.instance is None
    ctx.object = None
    run_action(machine, "LoadResource")
    assert machine.state.instance is None


@covers_action("CheckJobStatus")
def test_check_job_status(machine: Machine, ctx: ImaginedPass, sample: SimpleJob) -> None:
    """What is due follows from the Jobs."""
    ctx.children = [job(sample, 1, "Failed")]
    run_action(machine, "CheckJobStatus")
    assert machine.state.due == 2


def test_a_spec_that_makes_no_sense(machine: Machine, ctx: ImaginedPass, sample: SimpleJob) -> None:
    """It is refused with the path."""
    sample.spec.command, sample.spec.max_retries = "", -1
    with pytest.raises(InvalidSpec, match=r"spec\.command.*spec\.maxRetries"):
        run_action(machine, "CheckJobStatus")


@covers_action("CreateJob")
def test_create_job(machine: Machine, ctx: ImaginedPass, sample: SimpleJob, events: EventLog) -> None:
    """The Job is made, counted and told."""
    machine.state.due = 1
    run_action(machine, "CreateJob")
    (made,) = ctx.done
    assert made == f"create Job {sample.status.job_name}"
    assert (sample.status.phase, sample.status.attempts) == ("Pending", 1)
    assert [arguments[1] for _, arguments, _ in events.calls] == ["AttemptStarted"]


@covers_action("RetryJob")
def test_retry_job(machine: Machine, ctx: ImaginedPass, sample: SimpleJob) -> None:
    """It waits, and deletes nothing."""
    machine.state.job = job(sample, 1, "Failed")
    machine.state.attempts = [machine.state.job]
    machine.state.retry_at = NOW + timedelta(seconds=5)
    run_action(machine, "RetryJob")
    assert ctx.done == []
    assert (sample.status.phase, sample.status.next_retry_time) == ("Retrying", NOW + timedelta(seconds=5))


def test_retry_job_replaces(machine: Machine, ctx: ImaginedPass, sample: SimpleJob, events: EventLog) -> None:
    """An attempt that has not begun is deleted: this one, in this version, and its pod with it."""
    machine.state.job, machine.state.replace = job(sample, 1), True
    run_action(machine, "RetryJob")
    assert ctx.done == [f"delete Job {machine.state.job.metadata.name} Foreground guarded"]
    assert sample.status.phase == "Pending"
    assert [arguments[1] for _, arguments, _ in events.calls] == ["AttemptReplaced"]


@covers_action("SetPhase")
def test_set_phase(machine: Machine, sample: SimpleJob) -> None:
    """The phase is that of the attempt; with `keep` nothing is touched."""
    machine.state.job, machine.state.outcome = job(sample, 1, "Complete"), "Complete"
    machine.state.attempts = [machine.state.job]
    run_action(machine, "SetPhase")
    assert sample.status.phase == "Completed"
    machine.state.job, machine.state.keep = None, True
    run_action(machine, "SetPhase")
    assert sample.status.phase == "Completed"


@covers_action("UpdateStatus")
def test_update_status(machine: Machine, ctx: ImaginedPass, sample: SimpleJob) -> None:
    """The status is written; if there is nothing new and the time is over, the object is deleted."""
    machine.state.outcome, sample.status.completion_time = "Complete", NOW - timedelta(seconds=30)
    sample.spec.ttl_seconds_after_finished = 30
    run_action(machine, "UpdateStatus")
    assert ctx.done == ["write status"]
    assert machine.state.result == Result.at(NOW)
    ctx.status_differs = False
    run_action(machine, "UpdateStatus")
    assert ctx.done == ["write status", "write status", "delete SimpleJob demo Background"]


@covers_action("HandleError")
@pytest.mark.parametrize(
    ("error", "answer"),
    [(InvalidSpec("spec.image: Required value"), Done), (NameConflict("Job default/x", "nobody"), Result.after(60))],
)
def test_handle_error(
    machine: Machine, ctx: ImaginedPass, sample: SimpleJob, error: FlyballError, answer: Result
) -> None:
    """What only people can mend is told, and ends the pass in peace."""
    machine.state.error = error
    run_action(machine, "HandleError")
    assert machine.state.error is None
    assert machine.state.result == answer
    assert ctx.reported is error
    assert sample.status.message == str(error)


def test_other_errors_stay(machine: Machine, ctx: ImaginedPass) -> None:
    """The framework reports them and tries again."""
    machine.state.error = error = FlyballError("the server is away")
    run_action(machine, "HandleError")
    assert machine.state.error is error
    assert ctx.reported is None
