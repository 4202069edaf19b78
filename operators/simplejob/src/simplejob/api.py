"""The API: what a SimpleJob looks like."""

from datetime import datetime
from typing import Annotated, Literal

from flyball import Ge, Int32, Int64, Le, MaxLength, MinLength, PrintColumn, Resource, Rule, Spec, Status
from flyball.k8s.core.v1 import EnvVar, LocalObjectReference, ResourceRequirements

Phase = Literal["Pending", "Running", "Retrying", "Suspended", "Completed", "Failed"]

NO_WHITE_SPACE = Rule(
    r"[' ', '\t', '\n', '\r', '\f', '\v'].all(one, !self.contains(one))", message="must not contain white space"
)
NAME_FITS = Rule(
    "size(self.metadata.name) <= 52",
    message="metadata.name must be no more than 52 characters: the names of its Jobs are longer",
)


class SimpleJobSpec(Spec):
    """What is asked for."""

    command: Annotated[str, MinLength(1), MaxLength(65536)]
    """The command to run, by `/bin/sh -c`."""
    image: Annotated[str, MinLength(1), MaxLength(1024), NO_WHITE_SPACE]
    """The image to run it in."""
    max_retries: Annotated[Int32, Ge(0), Le(100)] = 3
    """How often it may be tried again after the first attempt."""
    active_deadline_seconds: Annotated[Int64, Ge(1)] | None = None
    """How long one attempt may take."""
    retry_backoff_seconds: Annotated[Int32, Ge(0), Le(300)] = 5
    """How long to wait before the second attempt; doubled for each further one, up to 300."""
    suspend: bool = False
    """Start no new attempt; one that runs goes on."""
    ttl_seconds_after_finished: Annotated[Int32, Ge(0)] | None = None
    """Delete the SimpleJob so long after its end."""
    env: list[EnvVar] | None = None
    """Environment variables of the command."""
    resources: ResourceRequirements | None = None
    """What the command needs and may use."""
    service_account_name: str | None = None
    """The ServiceAccount to run as; without one the command gets no token."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When to pull the image."""
    image_pull_secrets: list[LocalObjectReference] | None = None
    """Secrets to pull the image with."""


class SimpleJobStatus(Status):
    """What was found and done."""

    phase: Annotated[Phase, PrintColumn] | None = None
    """Where the run is, in one word."""
    attempts: Annotated[Int32, PrintColumn] = 0
    """How many attempts were started with the present spec."""
    message: str | None = None
    """The same in one sentence, with the cause."""
    start_time: datetime | None = None
    """When the first attempt started."""
    completion_time: datetime | None = None
    """When the run ended, successful or not."""
    next_retry_time: datetime | None = None
    """When the next attempt starts, while it is waited for."""
    job_name: str | None = None
    """The Job that the status speaks of."""


class SimpleJob(
    Resource,
    group="jobs.example.com",
    version="v1alpha1",
    short_names=["sj"],
    rules=[NAME_FITS],
    columns=[
        PrintColumn("Age", ".metadata.creationTimestamp"),
        PrintColumn("Message", ".status.message"),
        PrintColumn("Completed", ".status.completionTime", type="string"),
    ],
):
    """Runs one shell command in a container, again if it fails, and tells how far it is."""

    spec: SimpleJobSpec
    status: SimpleJobStatus
