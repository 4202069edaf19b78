"""What the tests of the machine share."""

from __future__ import annotations

import pytest
from flyball.fsm.testing import EventLog, ImaginedPass, register_marks

from simplejob.api import SimpleJob
from simplejob.controller.statemachine.zz_generated_statemachine import Machine

from ..imagined import NOW, machine_of, simplejob


def pytest_configure(config: pytest.Config) -> None:
    """Make the marks of the tests known."""
    register_marks(config)


@pytest.fixture
def sample() -> SimpleJob:
    """An object to reconcile."""
    return simplejob()


@pytest.fixture
def events() -> EventLog:
    """What the machine records."""
    return EventLog()


@pytest.fixture
def ctx(sample: SimpleJob) -> ImaginedPass:
    """The pass."""
    return ImaginedPass(sample, now=NOW)


@pytest.fixture
def machine(sample: SimpleJob, ctx: ImaginedPass, events: EventLog) -> Machine:
    """A machine that has not run, with the sample loaded."""
    one = machine_of(ctx, events)
    one.state.instance = sample
    return one
