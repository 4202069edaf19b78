"""Tests of single guards."""

from __future__ import annotations

from flyball.errors import FlyballError
from flyball.fsm.testing import ask_guard, covers_guard

from simplejob.controller.statemachine.zz_generated_statemachine import Machine

from ..imagined import NOW


@covers_guard("IsError")
def test_is_error(machine: Machine) -> None:
    """An error is stored."""
    assert not ask_guard(machine, "IsError")
    machine.state.error = FlyballError("no")
    assert ask_guard(machine, "IsError")


@covers_guard("IsJobFailed")
def test_is_job_failed(machine: Machine) -> None:
    """There is something to wait for, or to replace."""
    assert not ask_guard(machine, "IsJobFailed")
    machine.state.retry_at = NOW
    assert ask_guard(machine, "IsJobFailed")
    machine.state.retry_at, machine.state.replace = None, True
    assert ask_guard(machine, "IsJobFailed")


@covers_guard("IsJobMissing")
def test_is_job_missing(machine: Machine) -> None:
    """An attempt is due."""
    assert not ask_guard(machine, "IsJobMissing")
    machine.state.due = 1
    assert ask_guard(machine, "IsJobMissing")


@covers_guard("IsMaxRetriesExceeded")
def test_is_max_retries_exceeded(machine: Machine) -> None:
    """The run has failed."""
    assert not ask_guard(machine, "IsMaxRetriesExceeded")
    machine.state.outcome = "Complete"
    assert not ask_guard(machine, "IsMaxRetriesExceeded")
    machine.state.outcome = "Failed"
    assert ask_guard(machine, "IsMaxRetriesExceeded")


@covers_guard("IsNotFound")
def test_is_not_found(machine: Machine) -> None:
    """Nothing was loaded."""
    assert not ask_guard(machine, "IsNotFound")
    machine.state.instance = None
    assert ask_guard(machine, "IsNotFound")
