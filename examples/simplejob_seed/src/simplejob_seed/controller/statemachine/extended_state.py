"""What the machine works with, and what it works on."""

from __future__ import annotations

from dataclasses import dataclass

from flyball.fsm.operator import OperatorContext, OperatorState
from flyball.k8s.batch.v1 import Job

from simplejob_seed.api import SimpleJob


@dataclass(slots=True)
class Context(OperatorContext):
    """The client is all that is needed."""


@dataclass(slots=True)
class ExtendedState(OperatorState[SimpleJob]):
    """The job beside the resource."""

    job: Job | None = None
