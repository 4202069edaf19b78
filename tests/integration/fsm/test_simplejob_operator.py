"""The seed's SimpleJob as an operator on the cluster in the box: the generated machine, the guide's code, real Jobs.

No Job controller is at work: the tests play it, by patching the Job's status.
"""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.integration.fsm.fsm_projects import flyball
from tests.integration.fsm.test_simplejob_seed import COMMAND, DIAGRAM, with_the_code_of_the_guide

from flyball.api import DynamicObject, crd_of
from flyball.client import MergePatch, ref
from flyball.clock import ManualClock
from flyball.fsm import fsm_controller
from flyball.k8s.batch.v1 import Job
from flyball.testing import Cluster, eventually

pytestmark = pytest.mark.capability("S1")

LOADED = ("Initializing", "LoadingResource")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the generated package and the guide's code in it."""
    folder = tmp_path_factory.mktemp("simplejob-operator")
    shutil.copy(DIAGRAM, folder)
    flyball(folder, *COMMAND)
    with_the_code_of_the_guide(folder)
    return folder


@pytest.fixture
def package(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The generated package, imported."""
    monkeypatch.syspath_prepend(project / "src")
    yield importlib.import_module("simplejob_seed.controller.statemachine")
    for name in [name for name in sys.modules if name.partition(".")[0] == "simplejob_seed"]:
        del sys.modules[name]


class Operator:
    """The operator at work on one SimpleJob, and the paths its machine took."""

    def __init__(self, cluster: Cluster, package: ModuleType, clock: ManualClock) -> None:
        self.cluster, self.clock = cluster, clock
        self.api: Any = importlib.import_module("simplejob_seed.api")
        self.paths: list[tuple[str, ...]] = []
        machine, paths = package.SimpleJobReconciler, self.paths

        class Watched(machine):  # type: ignore[misc, valid-type]
            """The machine, telling which way it went."""

            async def run(self, *args: Any, **options: Any) -> Any:
                try:
                    return await super().run(*args, **options)
                finally:
                    paths.append(tuple(self.outcome().trace.states))

        self.controller = fsm_controller(Watched, self.api.SimpleJob, name="simplejob")

    async def job(self) -> Job:
        return await self.cluster.client.get(Job, "demo", namespace="default")

    async def status(self) -> Any:
        return (await self.cluster.client.get(self.api.SimpleJob, "demo", namespace="default")).status

    async def play(self, **status: Any) -> None:
        """Do what a Job controller would do, and let the guide's polling find it."""
        job = ref(Job, "demo", namespace="default")
        await self.cluster.client.patch(job, MergePatch({"status": status}), subresource="status")
        await self.clock.advance(3)

    async def took(self, *states: str) -> None:
        """Wait until the machine has gone this way."""
        path = (*LOADED, *states, "[*]")
        await eventually(lambda: path in self.paths)


@asynccontextmanager
async def operator(package: ModuleType, **spec: Any) -> AsyncGenerator[Operator]:
    """An operator on a cluster of its own, with the SimpleJob `demo`."""
    clock = ManualClock()
    async with Cluster(clock=clock) as cluster:
        made = Operator(cluster, package, clock)
        await cluster.client.apply(DynamicObject(crd_of(made.api.SimpleJob)), field_manager="test")
        async with cluster.running(made.controller):
            wanted = made.api.SimpleJobSpec(**{"command": "exit 0", "image": "busybox", **spec})
            await cluster.client.create(made.api.SimpleJob.new("demo", namespace="default", spec=wanted))
            yield made


async def test_a_job_that_succeeds(package: ModuleType) -> None:
    async with operator(package) as one:
        await one.took("CheckingJobStatus", "CreatingJob", "UpdatingStatus")
        job = await one.job()
        assert job.metadata.owner_references[0].kind == "SimpleJob"
        pod = job.spec.template.spec
        assert pod is not None
        assert pod.containers[0].command == ["/bin/sh", "-c", "exit 0"]
        await one.play(active=1)
        await one.took("CheckingJobStatus", "SettingPhase", "UpdatingStatus")
        await eventually(one.status, lambda status: status.phase == "Running")
        await one.play(active=0, succeeded=1)
        await eventually(one.status, lambda status: status.phase == "Completed" and status.completion_time is not None)


async def test_a_job_that_fails_is_made_again(package: ModuleType) -> None:
    async with operator(package) as one:
        first = await eventually(one.job)
        await one.play(failed=1)
        await one.took("CheckingJobStatus", "RetryingJob", "UpdatingStatus")
        await one.clock.advance(3)
        again = await eventually(one.job, lambda job: job.metadata.uid != first.metadata.uid)
        assert again.status.failed is None
        await eventually(one.status, lambda status: status.attempts == 3)


async def test_a_resource_that_is_gone_ends_the_run_without_error(package: ModuleType) -> None:
    async with operator(package) as one:
        await eventually(one.job)
        await one.cluster.client.delete(one.api.SimpleJob, "demo", namespace="default")
        await one.took()
        assert (*LOADED, "HandlingError", "[*]") not in one.paths


async def test_a_status_that_cannot_be_written_is_an_error_that_is_tried_again(package: ModuleType) -> None:
    async with operator(package) as one:
        await one.took("CheckingJobStatus", "CreatingJob", "UpdatingStatus")
        one.cluster.faults.status(409, verb="update", resource="simplejobs", subresource="status", first=1)
        await one.play(active=1)
        await one.took("CheckingJobStatus", "SettingPhase", "UpdatingStatus", "HandlingError")
        await one.clock.advance(3)
        await eventually(one.status, lambda status: status.phase == "Running")
