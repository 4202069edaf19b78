"""The seed's SimpleJob: its diagram unchanged, the guide's user code, and the paths that were observed [fsm.md 6.3]."""

from __future__ import annotations

import asyncio
import importlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.integration.fsm.fsm_projects import flyball, run, snapshot

from flyball.errors import Conflict, NotFound, error_from
from flyball.fsm.compile import compile_file

ROOT = Path(__file__).parents[3]
DIAGRAM = ROOT / "operators" / "simplejob" / "simplejob_reconciler.uml"
EXAMPLE = ROOT / "examples" / "simplejob_seed"
COMMAND = (
    *("generate", "-i", "simplejob_reconciler.uml", "-o", "src/simplejob_seed/controller"),
    *("--operator", "--group", "jobs", "--api-version", "v1alpha1", "--api-kind", "SimpleJob"),
)
PACKAGE = "src/simplejob_seed/controller/statemachine"

pytestmark = pytest.mark.capability("S1")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the generated package and the guide's code in it."""
    folder = tmp_path_factory.mktemp("simplejob")
    shutil.copy(DIAGRAM, folder)
    flyball(folder, *COMMAND)
    with_the_code_of_the_guide(folder)
    return folder


def with_the_code_of_the_guide(folder: Path) -> None:
    """Put what a person wrote over what was generated."""
    shutil.copy(EXAMPLE / "src/simplejob_seed/api.py", folder / "src/simplejob_seed")
    for name in ("actions", "guards", "extended_state"):
        shutil.copy(EXAMPLE / PACKAGE / f"{name}.py", folder / PACKAGE)


def test_the_example_is_what_the_generator_makes_of_the_diagram(project: Path) -> None:
    made = (project / PACKAGE / "zz_generated_statemachine.py").read_text()
    assert (EXAMPLE / PACKAGE / "zz_generated_statemachine.py").read_text() == made


def test_the_example_can_be_run(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "p", ignore=shutil.ignore_patterns("__pycache__"))
    code = "import sys; sys.path.insert(0, 'src'); from simplejob_seed.controller import simplejob; print(simplejob)"
    done = run(tmp_path / "p", sys.executable, "-c", code)
    assert done.stdout.startswith("<controller simplejob-seed of SimpleJob")


def test_the_diagram_compiles_with_the_three_expected_warnings() -> None:
    diagram, findings = compile_file(DIAGRAM)
    assert diagram is not None
    assert diagram.title == "SimpleJobReconciler"
    assert [one.key for one in findings if one.severity != "info"] == [
        "W-unhandled-error:Initializing",
        "W-unhandled-error:SettingPhase",
        "W-unhandled-error:HandlingError",
    ]


def test_the_files_are_those_of_the_guide(project: Path) -> None:
    files = {str(path.relative_to(project)) for path in project.rglob("*.py")}
    assert files == {
        "src/simplejob_seed/__init__.py",
        "src/simplejob_seed/api.py",
        "src/simplejob_seed/controller/__init__.py",
        *(f"{PACKAGE}/{name}.py" for name in ("__init__", "actions", "extended_state", "guards")),
        f"{PACKAGE}/zz_generated_statemachine.py",
        "tests/__init__.py",
        "tests/conftest.py",
        *(f"tests/statemachine/{name}.py" for name in ("__init__", "conftest", "test_actions", "test_guards")),
        "tests/statemachine/test_integration.py",
        "tests/statemachine/test_zz_generated_statemachine.py",
    }


def test_the_guide_s_code_type_checks_and_is_left_alone(project: Path) -> None:
    before = snapshot(project)
    assert flyball(project, *COMMAND).stdout == ""
    assert snapshot(project) == before
    run(project, sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "src")


class World:
    """A client over a dictionary: just enough for five calls."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Any] = {}
        self.refuse_status = False

    async def get(self, kind: Any, name: str, *, namespace: str | None = None) -> Any:
        found = self.objects.get((kind.__name__, name))
        if found is None:
            raise error_from(404, {}, b"", action=f"get {kind.__name__} {namespace}/{name}", host="here")
        return found

    async def create(self, obj: Any) -> Any:
        self.objects[type(obj).__name__, obj.metadata.name] = obj
        return obj

    async def delete(self, obj: Any, *, propagation: str) -> None:
        assert propagation == "Background"
        del self.objects[type(obj).__name__, obj.metadata.name]

    async def update(self, obj: Any, *, subresource: str) -> Any:
        assert subresource == "status"
        if self.refuse_status:
            raise error_from(409, {}, b"", action="update", host="here")
        self.objects[type(obj).__name__, obj.metadata.name] = obj
        return obj


@pytest.fixture
def package(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The generated package, imported."""
    monkeypatch.syspath_prepend(project / "src")
    yield importlib.import_module("simplejob_seed.controller.statemachine")
    for name in [name for name in sys.modules if name.partition(".")[0] == "simplejob_seed"]:
        del sys.modules[name]


@pytest.fixture
def world(package: ModuleType) -> World:
    """A world with one SimpleJob in it."""
    api = importlib.import_module("simplejob_seed.api")
    made = World()
    spec = api.SimpleJobSpec(command="exit 0", image="busybox")
    made.objects["SimpleJob", "demo"] = api.SimpleJob.new("demo", namespace="default", spec=spec)
    return made


def reconcile(package: ModuleType, world: World) -> Any:
    """One pass; how it ended."""
    machine = package.SimpleJobReconciler(context=package.Context(client=world))
    machine.state.resource_name, machine.state.namespace = "demo", "default"
    return asyncio.run(machine.settle())


LOADED = ["Initializing", "LoadingResource"]


def test_job_missing(package: ModuleType, world: World) -> None:
    outcome = reconcile(package, world)
    assert list(outcome.trace.states) == [*LOADED, "CheckingJobStatus", "CreatingJob", "UpdatingStatus", "[*]"]
    job = world.objects["Job", "demo"]
    assert job.spec.backoff_limit == 0
    assert job.spec.template.spec.containers[0].command == ["/bin/sh", "-c", "exit 0"]
    assert job.metadata.owner_references[0].controller is True
    assert world.objects["SimpleJob", "demo"].status.attempts == 1
    assert outcome.result.delay.total_seconds() == 3


def test_job_running_and_done(package: ModuleType, world: World) -> None:
    reconcile(package, world)
    world.objects["Job", "demo"].status.active = 1
    outcome = reconcile(package, world)
    assert list(outcome.trace.states) == [*LOADED, "CheckingJobStatus", "SettingPhase", "UpdatingStatus", "[*]"]
    assert world.objects["SimpleJob", "demo"].status.phase == "Running"

    world.objects["Job", "demo"].status.active = 0
    world.objects["Job", "demo"].status.succeeded = 1
    outcome = reconcile(package, world)
    assert world.objects["SimpleJob", "demo"].status.phase == "Completed"
    assert world.objects["SimpleJob", "demo"].status.completion_time is not None
    assert outcome.result.delay is None


def test_job_failed(package: ModuleType, world: World) -> None:
    reconcile(package, world)
    world.objects["Job", "demo"].status.failed = 1
    outcome = reconcile(package, world)
    assert list(outcome.trace.states) == [*LOADED, "CheckingJobStatus", "RetryingJob", "UpdatingStatus", "[*]"]
    assert ("Job", "demo") not in world.objects
    assert world.objects["SimpleJob", "demo"].status.attempts == 2


def test_resource_gone(package: ModuleType, world: World) -> None:
    world.objects.clear()
    outcome = reconcile(package, world)
    assert list(outcome.trace.states) == [*LOADED, "[*]"]
    assert outcome.error is None


def test_update_fails(package: ModuleType, world: World) -> None:
    world.refuse_status = True
    outcome = reconcile(package, world)
    assert list(outcome.trace.states) == [
        *(*LOADED, "CheckingJobStatus", "CreatingJob", "UpdatingStatus", "HandlingError", "[*]"),
    ]
    assert isinstance(outcome.error, Conflict)
    assert not isinstance(outcome.error, NotFound)


def test_the_guide_s_defect_is_there_to_be_seen(package: ModuleType, world: World) -> None:
    """With three retries a job that always fails runs twice: deletions are counted as attempts."""
    created = 0
    for _ in range(6):
        had = ("Job", "demo") in world.objects
        reconcile(package, world)
        if ("Job", "demo") in world.objects and not had:
            created += 1
        if ("Job", "demo") in world.objects:
            world.objects["Job", "demo"].status.failed = 1
    assert created == 2
    assert world.objects["SimpleJob", "demo"].status.phase == "Failed"
