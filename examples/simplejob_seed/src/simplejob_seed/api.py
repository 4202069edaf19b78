"""The API of SimpleJob, as the first edition of the guide has it."""

from datetime import datetime
from typing import Annotated

from flyball.api import Ge, Resource, Spec, Status


class SimpleJobSpec(Spec):
    """What is asked for."""

    command: str
    image: str
    max_retries: Annotated[int, Ge(0)] = 3


class SimpleJobStatus(Status):
    """What was found and done."""

    phase: str = ""
    attempts: int = 0
    message: str = ""
    start_time: datetime | None = None
    completion_time: datetime | None = None


class SimpleJob(Resource, group="jobs.example.com", version="v1alpha1"):
    """Runs a command until it succeeds."""

    spec: SimpleJobSpec
    status: SimpleJobStatus
