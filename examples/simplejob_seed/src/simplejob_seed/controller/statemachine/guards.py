"""Guards: the questions that decide which way the machine goes. They only read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flyball.fsm.run import guard

if TYPE_CHECKING:
    from .zz_generated_statemachine import Machine


@guard("IsError")
def is_error(m: Machine, *params: str) -> bool:
    return m.has_error(*params)


@guard("IsJobFailed")
def is_job_failed(m: Machine) -> bool:
    return m.state.job is not None and (m.state.job.status.failed or 0) > 0


@guard("IsJobMissing")
def is_job_missing(m: Machine) -> bool:
    return m.state.job is None


@guard("IsMaxRetriesExceeded")
def is_max_retries_exceeded(m: Machine) -> bool:
    assert m.state.instance is not None
    return m.state.instance.status.attempts >= (m.state.instance.spec.max_retries or 3)


@guard("IsNotFound")
def is_not_found(m: Machine) -> bool:
    return m.state.instance is None
