"""A world for the operator: an API server without a Job controller, whose part the tests play.

On the box the clock is turned by hand; on a real API server it is the real one, and numbers of seconds are small.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from flyball import Manager
from flyball.api import to_dict
from flyball.client import Client, MergePatch, ref
from flyball.clock import Clock, ManualClock
from flyball.controller import owner_reference
from flyball.errors import NotFound
from flyball.k8s.batch.v1 import Job
from flyball.k8s.core.v1 import Pod
from flyball.k8s.events.v1 import Event
from flyball.k8s.meta.v1 import ObjectMeta
from flyball.testing import Cluster, consistently, eventually, install, running

from simplejob.api import SimpleJob, SimpleJobSpec, SimpleJobStatus
from simplejob.controller import simplejob
from simplejob.controller.attempts import ATTEMPT, number_of

PATIENCE = 20.0


class World:
    """One namespace of one API server."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        clock: Clock,
        box: Cluster | None = None,
        *,
        rights: Client | None = None,
    ) -> None:
        """`rights` is a client that may do what config/rbac allows, for the operator."""
        self.client, self.namespace, self.clock, self.box, self.rights = client, namespace, clock, box, rights
        self.manager: Manager | None = None
        self._numbers = itertools.count(1)

    # The operator

    @asynccontextmanager
    async def operator(
        self, *, client: Client | None = None, definitions: bool = True, **options: Any
    ) -> AsyncGenerator[Manager]:
        """The operator at work, one change per pass; left, it is gone with all that it knew."""
        made = copy.copy(simplejob)
        made.options = replace(simplejob.options, **{"write_budget": 1, **options})
        if definitions:
            await install(self.client, SimpleJob)
        async with running(
            client or self.rights or self.client, made, clock=self.clock, definitions=False
        ) as self.manager:
            yield self.manager

    def passes(self) -> int:
        """How many passes have ended."""
        assert self.manager is not None
        return round(
            sum(
                value
                for family in self.manager.metrics.families()
                if family.name == "controller_runtime_reconcile_total"
                for _, labels, value in family.samples
                if labels["controller"] == "simplejob"
            )
        )

    async def quiet(self) -> None:
        """Wait until nothing happens any more without the clock."""
        if not isinstance(self.clock, ManualClock) or self.box is None:
            await eventually(self._nothing_for_a_moment, timeout=PATIENCE)
            return
        seen: Any = None
        while seen != (seen := (self.passes(), self.box.embedded.store.revision)):
            await self.clock.settle()
            await self.clock.settle()

    async def _nothing_for_a_moment(self) -> bool:
        before = self.passes()
        await consistently(self.passes, lambda found: found == before, during=0.4)
        return True

    async def later(self, seconds: float) -> None:
        """Let time pass. On a real server time passes by itself, so there a test waits for what it brings."""
        if isinstance(self.clock, ManualClock):
            await self.quiet()
            await self.clock.advance(seconds)
            await self.quiet()

    async def nothing_happens(self, seconds: float = 600.0) -> None:
        """No pass for a long time. On a real server, where others are at work: no change for a moment."""
        await self.quiet()
        before = await self._seen()
        await self.later(seconds)
        await self.quiet()
        assert await self._seen() == before

    async def _seen(self) -> Any:
        if self.box is not None:
            return self.passes()
        found = await self.client.list(SimpleJob, namespace=self.namespace)
        return [one.metadata.resource_version for one in found], [one.metadata.uid for one in await self.jobs()]

    # The SimpleJob

    async def create(self, name: str = "demo", **spec: Any) -> SimpleJob:
        given: dict[str, Any] = {"command": "true", "image": "busybox", "retry_backoff_seconds": 0, **spec}
        wanted = SimpleJobSpec(**given)
        return await self.client.create(SimpleJob.new(name, namespace=self.namespace, spec=wanted))

    async def get(self, name: str = "demo") -> SimpleJob:
        return await self.client.get(SimpleJob, name, namespace=self.namespace)

    async def edit(self, **spec: Any) -> SimpleJob:
        return await self.client.patch(ref(SimpleJob, "demo", namespace=self.namespace), MergePatch({"spec": spec}))

    async def wipe_status(self) -> None:
        place = ref(SimpleJob, "demo", namespace=self.namespace)
        await self.client.patch(place, MergePatch({"status": None}), subresource="status")

    async def touch(self) -> None:
        """Wake the operator without a reason."""
        marks = {"touched": str(next(self._numbers))}
        place = ref(SimpleJob, "demo", namespace=self.namespace)
        await self.client.patch(place, MergePatch({"metadata": {"annotations": marks}}))

    async def until(self, right: Callable[[SimpleJobStatus], object], name: str = "demo") -> SimpleJobStatus:
        """Wait for a status."""
        found = await eventually(lambda: self.get(name), lambda one: right(one.status), timeout=PATIENCE)
        return found.status

    async def phase(self, phase: str, **more: Any) -> SimpleJobStatus:
        """Wait for a phase, and further fields."""
        wanted = {"phase": phase, **more}
        return await self.until(lambda status: {name: getattr(status, name) for name in wanted} == wanted)

    async def condition(self, type_: str) -> tuple[str, str]:
        found = (await self.get()).status.condition(type_)
        assert found is not None
        return found.status, found.reason

    async def told(self, reason: str | None = None) -> list[Event]:
        """The Events about the SimpleJob."""
        assert self.manager is not None
        await self.quiet()
        found = [
            one
            for one in await self.client.list(Event, namespace=self.namespace)
            if one.regarding is not None and one.regarding.kind == "SimpleJob" and reason in (None, one.reason)
        ]
        return sorted(found, key=lambda one: int(one.metadata.resource_version))

    async def warnings(self) -> list[str]:
        return [one.reason or "" for one in await self.told() if one.type == "Warning"]

    # Jobs and pods, played

    async def jobs(self) -> list[Job]:
        found = await self.client.list(Job, namespace=self.namespace)
        return sorted(found, key=lambda job: (str(job.metadata.creation_timestamp), number_of(job)))

    async def numbers(self) -> list[int]:
        """The numbers of the attempts that are there."""
        return [number_of(job) for job in await self.jobs()]

    async def job(self, number: int, *, but: Sequence[str] = ()) -> Job:
        """Wait for the attempt of this number, not one of these uids."""

        def wanted(jobs: list[Job]) -> list[Job]:
            return [
                one for one in jobs if one.metadata.labels.get(ATTEMPT) == str(number) and one.metadata.uid not in but
            ]

        return wanted(await eventually(self.jobs, wanted, timeout=PATIENCE))[-1]

    async def pod(self, job: Job) -> Pod:
        """The pod of an attempt; it is made when there is none."""
        name = f"{job.metadata.name}-pod"
        try:
            return await self.client.get(Pod, name, namespace=self.namespace)
        except NotFound:
            template = job.spec.template
            assert template.spec is not None
            assert template.metadata is not None
            made = Pod(
                metadata=ObjectMeta(name=name, namespace=self.namespace, labels=dict(template.metadata.labels)),
                spec=template.spec,
            )
            made.metadata.owner_references = [owner_reference(job)]
            return await self.client.create(made)

    async def play_pod(self, job: Job, phase: str, state: dict[str, Any]) -> None:
        pod = await self.pod(job)
        ready = "True" if "running" in state else "False"
        now = _time(self.clock.now())
        container = {
            "name": "job",
            "image": "busybox",
            "imageID": "",
            "ready": "running" in state,
            "restartCount": 0,
            "state": state,
        }
        status = {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": now}],
            "containerStatuses": [container],
        }
        await self.client.patch(pod, MergePatch({"status": status}), subresource="status")

    async def play_job(self, job: Job, *conditions: tuple[str, str], **status: Any) -> None:
        now = _time(self.clock.now())
        stated = [
            {
                "type": type_,
                "status": "True",
                "reason": reason,
                "message": f"it is {reason}",
                "lastTransitionTime": now,
                "lastProbeTime": now,
            }
            for type_, reason in conditions
        ]
        await self.client.patch(
            ref(Job, job.metadata.name, namespace=self.namespace),
            MergePatch({"status": {**status, **({"conditions": stated} if stated else {})}}),
            subresource="status",
        )

    async def start(self, job: Job, *, ready: int) -> None:
        """Let the Job know of its pod; it starts once only."""
        found = await self.client.get(Job, job.metadata.name, namespace=self.namespace)
        start = {} if found.status.start_time is not None else {"startTime": _time(self.clock.now())}
        await self.play_job(job, **start, active=1, ready=ready)

    async def stick(self, job: Job, reason: str) -> None:
        """Let the pod wait for something that does not come."""
        await self.play_pod(job, "Pending", {"waiting": {"reason": reason, "message": "no such thing"}})
        await self.start(job, ready=0)

    async def begin(self, job: Job) -> None:
        """Let the pod run."""
        await self.play_pod(job, "Running", {"running": {"startedAt": _time(self.clock.now())}})
        await self.start(job, ready=1)

    async def succeed(self, job: Job) -> None:
        await self.begin(job)
        now = _time(self.clock.now())
        await self.play_pod(job, "Succeeded", {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": now}})
        reason = "CompletionsReached"
        await self.play_job(
            job,
            ("SuccessCriteriaMet", reason),
            ("Complete", reason),
            **{"active": 0, "ready": 0, "succeeded": 1, "completionTime": now},
        )

    async def fail(self, job: Job, exit_code: int = 1) -> None:
        await self.begin(job)
        now = _time(self.clock.now())
        ended = {"exitCode": exit_code, "reason": "Error", "finishedAt": now}
        await self.play_pod(job, "Failed", {"terminated": ended})
        reason = "BackoffLimitExceeded"
        await self.play_job(job, ("FailureTarget", reason), ("Failed", reason), active=0, ready=0, failed=1)

    async def fail_all(self, count: int, *, first: int = 1) -> None:
        """Let attempts fail as they come."""
        for number in range(first, first + count):
            await self.fail(await self.job(number))

    async def hold(self, job: Job) -> Job:
        """Let a Job stay when it is deleted."""
        place = ref(Job, job.metadata.name, namespace=self.namespace)
        return await self.client.patch(place, MergePatch({"metadata": {"finalizers": ["example.com/held"]}}))

    async def let_go(self, job: Job) -> None:
        """Let a held Job go."""
        place = ref(Job, job.metadata.name, namespace=self.namespace)
        await self.client.patch(place, MergePatch({"metadata": {"finalizers": None}}))

    async def is_going(self, job: Job) -> bool:
        found = await self.client.get(Job, job.metadata.name, namespace=self.namespace)
        return found.metadata.deletion_timestamp is not None

    async def pods_go(self) -> None:
        """Let pods that are being deleted go at once, as a kubelet does."""
        for pod in await self.client.list(Pod, namespace=self.namespace):
            if pod.metadata.deletion_timestamp is not None:
                await self.client.delete(pod, grace_period=0, missing_ok=True)

    async def remove(self, job: Job) -> None:
        """Delete a Job, and wait until it has gone."""
        await self.client.delete(job, propagation="Background")
        await eventually(lambda: self._is_gone(job), timeout=PATIENCE)

    async def _is_gone(self, job: Job) -> bool:
        return all(one.metadata.uid != job.metadata.uid for one in await self.jobs())


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def was_kept(job: Job) -> dict[str, Any]:
    """What a Job says beside its status."""
    found = to_dict(job)
    return {"metadata": {name: found["metadata"][name] for name in ("name", "uid", "labels")}, "spec": found["spec"]}
