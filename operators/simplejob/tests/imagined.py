"""An imagined SimpleJob and its Jobs, for tests without a cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from flyball.controller import owner_reference
from flyball.fsm.testing import EventLog, ImaginedPass
from flyball.k8s.batch.v1 import Job, JobCondition
from flyball.k8s.core.v1 import ContainerState, ContainerStateRunning, ContainerStatus, Pod, PodStatus
from flyball.k8s.meta.v1 import ObjectMeta

from simplejob.api import SimpleJob, SimpleJobSpec
from simplejob.controller.attempts import new_attempt
from simplejob.controller.statemachine import SimpleJobReconciler
from simplejob.controller.statemachine.extended_state import Context

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)

Ending = Literal["Complete", "Failed"]


def simplejob(**spec: Any) -> SimpleJob:
    """A SimpleJob as the server has it."""
    given: dict[str, Any] = {"command": "true", "image": "i", **spec}
    made = SimpleJob.new("demo", namespace="default", spec=SimpleJobSpec(**given))
    made.metadata.uid, made.metadata.generation, made.metadata.resource_version = "uid-1", 1, "1"
    return made


def job(of: SimpleJob, number: int, ended: Ending | None = None, *, ago: float = 1000, deleting: bool = False) -> Job:
    """An attempt, and how it ended so many seconds ago."""
    made = new_attempt(of, number)
    made.metadata.uid, made.metadata.namespace = f"uid-of-{made.metadata.name}", "default"
    made.metadata.owner_references = [owner_reference(of)]
    made.status.start_time = NOW - timedelta(seconds=ago + 10)
    if deleting:
        made.metadata.deletion_timestamp = NOW
    if ended is not None:
        moment = NOW - timedelta(seconds=ago)
        reason = "BackoffLimitExceeded" if ended == "Failed" else "CompletionsReached"
        made.status.conditions = [JobCondition(type=ended, status="True", reason=reason, last_transition_time=moment)]
        made.status.completion_time = moment if ended == "Complete" else None
    return made


def running_pod(of: Job) -> Pod:
    """Its pod, at work."""
    metadata = ObjectMeta(name=f"{of.metadata.name}-pod", owner_references=[owner_reference(of)])
    state = ContainerState(running=ContainerStateRunning(started_at=NOW))
    container = ContainerStatus(name="job", image="i", image_id="", ready=True, restart_count=0, state=state)
    return Pod(metadata=metadata, status=PodStatus(phase="Running", container_statuses=[container]))


def machine_of(ctx: ImaginedPass, events: EventLog | None = None) -> SimpleJobReconciler:
    """A machine that has not run, for that pass."""
    made = SimpleJobReconciler(Context(recorder=events or EventLog(), ctx=ctx))
    made.state.resource_name, made.state.namespace = "demo", "default"
    return made
