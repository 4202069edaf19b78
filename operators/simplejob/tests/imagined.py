"""A pass over imagined Jobs: no cluster, only what the machine is told and what it does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, cast

from flyball import Context as PassContext
from flyball.controller import owner_reference
from flyball.fsm.testing import EventLog
from flyball.k8s.batch.v1 import Job, JobCondition
from flyball.k8s.core.v1 import ContainerState, ContainerStateRunning, ContainerStatus, Pod, PodStatus
from flyball.k8s.meta.v1 import ObjectMeta

from simplejob.api import SimpleJob, SimpleJobSpec
from simplejob.controller.attempts import new_attempt
from simplejob.controller.statemachine import SimpleJobReconciler
from simplejob.controller.statemachine.extended_state import Context, ExtendedState

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


class Imagined:
    """What `ctx` is in a pass of a controller; `done` is what the machine did with it."""

    def __init__(self, of: SimpleJob | None, jobs: Sequence[Job] = (), pods: Sequence[Pod] = ()) -> None:
        self.simplejob, self.jobs, self.pods = of, list(jobs), list(pods)
        self.done: list[str] = []
        self.fails: dict[str, Exception] = {}
        self.status_differs = True
        self.numbers: dict[str, float] = {}
        self.reported: Exception | None = None

    def _do(self, words: str) -> None:
        failure = self.fails.get(words.partition(" ")[0])
        if failure is not None:
            raise failure
        self.done.append(words)

    def now(self) -> datetime:
        return NOW

    async def load(self, kind: type[SimpleJob]) -> SimpleJob | None:
        if "load" in self.fails:
            raise self.fails["load"]
        return self.simplejob

    async def owned(self, kind: Any) -> list[Job]:
        return self.jobs

    async def list(self, kind: Any, *, labels: Any) -> Sequence[Pod]:
        return self.pods

    async def create(self, made: Job) -> Job:
        self._do(f"create {made.metadata.name}")
        return made

    async def delete(self, obj: Any, *, propagation: str, guard: bool = False) -> None:
        self._do(f"delete {obj.metadata.name} {propagation}{' guarded' if guard else ''}")

    async def write_status(self) -> bool:
        self._do("status")
        return self.status_differs

    def report(self, error: Exception) -> None:
        self.reported = error

    def measure(self, name: str, value: float) -> None:
        self.numbers[name] = value

    def count(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        key = f"{name}{labels or ''}"
        self.numbers[key] = self.numbers.get(key, 0.0) + value

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        self.numbers[name] = value


def machine_of(ctx: Imagined, events: EventLog | None = None) -> SimpleJobReconciler:
    """A machine that has not run, for that pass."""
    made = SimpleJobReconciler(Context(recorder=events or EventLog(), ctx=cast("PassContext", ctx)))
    made.state.resource_name, made.state.namespace = "demo", "default"
    return made


def loaded(ctx: Imagined) -> ExtendedState:
    """The extended state once the SimpleJob is loaded."""
    state = ExtendedState()
    state.instance, state.pods = ctx.simplejob, ctx.pods
    return state
