"""Guards: the questions that decide which way the machine goes. They only read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flyball.fsm.run import guard

if TYPE_CHECKING:
    from .zz_generated_statemachine import Machine


@guard("IsError")
def is_error(m: Machine, *params: str) -> bool:
    """An error is stored."""
    return m.has_error(*params)


@guard("IsJobFailed")
def is_job_failed(m: Machine) -> bool:
    """An attempt has failed and the next one is not due yet, or an attempt must make room."""
    return m.state.retry_at is not None or m.state.replace


@guard("IsJobMissing")
def is_job_missing(m: Machine) -> bool:
    """An attempt is due."""
    return m.state.due > 0


@guard("IsMaxRetriesExceeded")
def is_max_retries_exceeded(m: Machine) -> bool:
    """All attempts have failed."""
    return m.state.outcome == "Failed"


@guard("IsNotFound")
def is_not_found(m: Machine) -> bool:
    """The SimpleJob is gone, or going."""
    return m.state.instance is None
