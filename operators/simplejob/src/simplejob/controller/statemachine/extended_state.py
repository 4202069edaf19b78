"""What the machine works with, and what it works on."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from flyball.fsm.operator import OperatorContext, OperatorState
from flyball.k8s.batch.v1 import Job
from flyball.k8s.core.v1 import Pod

from simplejob.api import SimpleJob, SimpleJobStatus


@dataclass(slots=True)
class Context(OperatorContext):
    """A pass of the controller is all that is needed."""


@dataclass(slots=True)
class ExtendedState(OperatorState[SimpleJob]):
    """What a pass has found out."""

    job: Job | None = None
    """The attempt that the status speaks of."""
    due: int = 0
    """The number of the attempt that is to be made now; 0: none."""
    retry_at: datetime | None = None
    """When the next attempt is due."""
    replace: bool = False
    """The job is of an older run template, and has not begun."""
    outcome: Literal["Complete", "Failed"] | None = None
    """How the run has ended."""
    keep: bool = False
    """The end is known from the status only, which stays as it is."""

    attempts: list[Job] = field(default_factory=list[Job])
    """The attempts with the present run template, by their numbers."""
    pods: list[Pod] = field(default_factory=list[Pod])
    """The pods of all attempts."""
    before: SimpleJobStatus = field(default_factory=SimpleJobStatus)
    """The status as it was read, to tell only of what is new."""
