"""Scenario 21: the diagram, the tables of what is decided and which way it goes, and hashes that stay."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from flyball import Done, Result, StrictWarning
from flyball.api import to_dict
from flyball.controller import NameConflict
from flyball.errors import FlyballError
from flyball.fsm.run import guard
from flyball.fsm.testing import EventLog, ImaginedPass
from flyball.k8s.batch.v1 import Job
from flyball.k8s.core.v1 import EnvVar, LocalObjectReference, Pod, ResourceRequirements

from simplejob.api import SimpleJob
from simplejob.controller.attempts import new_attempt, template_hash
from simplejob.controller.outlook import look
from simplejob.controller.statemachine import SimpleJobReconciler
from simplejob.controller.statemachine.extended_state import ExtendedState

from .imagined import NOW, job, machine_of, running_pod, simplejob

pytestmark = [pytest.mark.capability("S4"), pytest.mark.scenario("simplejob-21")]

PROJECT = Path(__file__).parents[1]
DIAGRAM = PROJECT / "simplejob_reconciler.uml"

OLD = simplejob(command="older")
"""The SimpleJob before an edit: the same uid, another run template."""


def marked(condition: str, generation: int = 1, **spec: Any) -> SimpleJob:
    """A SimpleJob whose status says how its run has ended."""
    made = simplejob(**spec)
    made.status.set_condition(condition, True, reason="Because", observed_generation=generation)
    return made


# The diagram


def test_the_diagram_is_the_guide_s_to_the_letter() -> None:
    guide = "f142848bb53afd30b108f5348e9fd430cc5810ba8cf8f44905d9a5ae4e57e99b"
    assert sha256(DIAGRAM.read_bytes()).hexdigest() == guide


def test_generating_again_changes_nothing(tmp_path: Path) -> None:
    shutil.copytree(PROJECT, tmp_path / "p", ignore=shutil.ignore_patterns("__pycache__", ".*"))
    done = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("flyball")), "fsm", "generate", "--check"),
            *("-i", "simplejob_reconciler.uml", "-o", "src/simplejob/controller", "--operator"),
            *("--group", "jobs", "--api-version", "v1alpha1", "--api-kind", "SimpleJob"),
        ],
        cwd=tmp_path / "p",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


# What is decided


@dataclass
class Row:
    """What is there, and what must be decided."""

    name: str
    simplejob: SimpleJob
    jobs: Callable[[SimpleJob], Sequence[Job]] = lambda _: ()
    pods: Callable[[Sequence[Job]], Sequence[Pod]] = lambda _: ()
    wanted: dict[str, Any] = field(default_factory=dict[str, Any])
    job: int | None = None
    """Which of the Jobs is the one that the status speaks of."""


ROWS = [
    Row("1 complete", simplejob(), lambda it: [job(it, 1, "Complete")], wanted={"outcome": "Complete"}, job=0),
    Row(
        "1 complete, with retries used up",
        simplejob(max_retries=1),
        lambda it: [job(it, 1, "Failed"), job(it, 2, "Complete")],
        wanted={"outcome": "Complete"},
        job=1,
    ),
    Row(
        "1 complete, and being deleted",
        simplejob(),
        lambda it: [job(it, 1, "Complete", deleting=True)],
        wanted={"outcome": "Complete"},
        job=0,
    ),
    Row(
        "2 the last one failed",
        simplejob(max_retries=0),
        lambda it: [job(it, 1, "Failed")],
        wanted={"outcome": "Failed"},
        job=0,
    ),
    Row(
        "2 the last one failed, in any order",
        simplejob(max_retries=1),
        lambda it: [job(it, 2, "Failed"), job(it, 1, "Failed")],
        wanted={"outcome": "Failed"},
        job=0,
    ),
    Row(
        "2 it comes before an old one that runs",
        simplejob(max_retries=0),
        lambda it: [job(it, 1, "Failed"), job(OLD, 1)],
        wanted={"outcome": "Failed"},
        job=0,
    ),
    Row("3 the marker says complete", marked("Complete"), wanted={"outcome": "Complete", "keep": True}),
    Row("3 the marker says failed", marked("Failed"), wanted={"outcome": "Failed", "keep": True}),
    Row(
        "3 the marker, while an attempt can be seen",
        marked("Complete"),
        lambda it: [job(it, 1)],
        wanted={"outcome": "Complete", "keep": True},
    ),
    Row("3 a marker of another generation says nothing", marked("Complete", generation=0), wanted={"due": 1}),
    Row("4 an old one runs", simplejob(), lambda _: [job(OLD, 1)], lambda jobs: [running_pod(jobs[0])], {}, job=0),
    Row("4 an old one has not begun", simplejob(), lambda _: [job(OLD, 1)], wanted={"replace": True}, job=0),
    Row("4 an old one is being deleted", simplejob(), lambda _: [job(OLD, 1, deleting=True)], job=0),
    Row(
        "4 an old one that has ended is in nobody's way",
        simplejob(),
        lambda _: [job(OLD, 1, "Failed"), job(OLD, 2, "Complete")],
        wanted={"due": 1},
    ),
    Row("4 before suspension", simplejob(suspend=True), lambda _: [job(OLD, 1)], wanted={"replace": True}, job=0),
    Row("5 it has not ended", simplejob(), lambda it: [job(it, 1)], job=0),
    Row("5 it goes on while suspended", simplejob(suspend=True), lambda it: [job(it, 1)], job=0),
    Row("5 it is being deleted", simplejob(), lambda it: [job(it, 1, deleting=True)], job=0),
    Row("5 it failed and is being deleted", simplejob(), lambda it: [job(it, 1, "Failed", deleting=True)], job=0),
    Row("6 suspended before the first", simplejob(suspend=True)),
    Row("6 suspended after a failure", simplejob(suspend=True), lambda it: [job(it, 1, "Failed")], job=0),
    *(
        Row(
            f"7 after failure {number} it waits {wait} s",
            simplejob(max_retries=9, retry_backoff_seconds=base),
            lambda it, number=number: [job(it, number, "Failed", ago=1)],
            wanted={"retry_at": NOW + timedelta(seconds=wait - 1)},
            job=0,
        )
        for base, number, wait in ((5, 1, 5), (5, 2, 10), (5, 3, 20), (200, 1, 200), (200, 2, 300), (1, 9, 256))
    ),
    Row("8 the first", simplejob(), wanted={"due": 1}),
    Row("8 the next one", simplejob(), lambda it: [job(it, 1, "Failed")], wanted={"due": 2}),
    Row(
        "8 the next one at the very moment",
        simplejob(),
        lambda it: [job(it, 1, "Failed", ago=5)],
        wanted={"due": 2},
    ),
    Row(
        "8 without a wait",
        simplejob(retry_backoff_seconds=0),
        lambda it: [job(it, 1, "Failed", ago=0)],
        wanted={"due": 2},
    ),
    Row(
        "8 older ones may be missing",
        simplejob(max_retries=5),
        lambda it: [job(it, 3, "Failed")],
        wanted={"due": 4},
    ),
    Row("8 the first of another template", simplejob(), lambda _: [job(OLD, 4, "Failed")], wanted={"due": 1}),
]


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_what_the_jobs_show(row: Row) -> None:
    jobs = list(row.jobs(row.simplejob))
    state = ExtendedState()
    state.instance, state.pods = row.simplejob, list(row.pods(jobs))
    look(state, jobs, NOW)
    found = {name: getattr(state, name) for name in ("due", "retry_at", "replace", "outcome", "keep")}
    assert found == {"due": 0, "retry_at": None, "replace": False, "outcome": None, "keep": False, **row.wanted}
    assert state.job is (jobs[row.job] if row.job is not None else None)


# Which way it goes

LOADED = ["Initializing", "LoadingResource"]
CREATE = [*LOADED, "CheckingJobStatus", "CreatingJob", "UpdatingStatus", "[*]"]
SET = [*LOADED, "CheckingJobStatus", "SettingPhase", "UpdatingStatus", "[*]"]
RETRY = [*LOADED, "CheckingJobStatus", "RetryingJob", "UpdatingStatus", "[*]"]


@dataclass
class Way:
    """A situation, the states that the machine goes through, what it does, and what it answers."""

    name: str
    simplejob: SimpleJob | None
    jobs: Callable[[SimpleJob], Sequence[Job]]
    states: list[str]
    done: list[str]
    answer: Result = Done
    fails: dict[str, Exception] = field(default_factory=dict[str, Exception])
    error: type[Exception] | None = None
    phase: str | None = None
    quiet: bool = False
    """There is nothing new in the status."""


def nothing(_: SimpleJob) -> Sequence[Job]:
    return ()


def being_deleted() -> SimpleJob:
    made = simplejob()
    made.metadata.deletion_timestamp = NOW
    return made


AWAY = FlyballError("the server is away")

WAYS = [
    Way("first pass", simplejob(), nothing, CREATE, ["create 1", "status"], phase="Pending"),
    Way("pending", simplejob(), lambda it: [job(it, 1)], SET, ["status"], phase="Pending"),
    Way("suspended", simplejob(suspend=True), nothing, SET, ["status"], phase="Suspended"),
    Way(
        "suspended after a failure",
        simplejob(suspend=True),
        lambda it: [job(it, 1, "Failed")],
        SET,
        ["status"],
        phase="Suspended",
    ),
    Way(
        "failed, the wait is not over",
        simplejob(),
        lambda it: [job(it, 1, "Failed", ago=1)],
        RETRY,
        ["status"],
        Result.at(NOW + timedelta(seconds=4)),
        phase="Retrying",
    ),
    Way(
        "failed, the wait is over",
        simplejob(),
        lambda it: [job(it, 1, "Failed")],
        CREATE,
        ["create 2", "status"],
        phase="Pending",
    ),
    Way("succeeded", simplejob(), lambda it: [job(it, 1, "Complete")], SET, ["status"], phase="Completed"),
    Way(
        "retries exhausted",
        simplejob(max_retries=0),
        lambda it: [job(it, 1, "Failed")],
        SET,
        ["status"],
        phase="Failed",
    ),
    Way(
        "succeeded, with a time to live",
        simplejob(ttl_seconds_after_finished=2000),
        lambda it: [job(it, 1, "Complete", ago=1000)],
        SET,
        ["status"],
        Result.at(NOW + timedelta(seconds=1000)),
        phase="Completed",
        quiet=True,
    ),
    Way(
        "its time to live is over",
        simplejob(ttl_seconds_after_finished=30),
        lambda it: [job(it, 1, "Complete")],
        SET,
        ["status", "delete demo Background"],
        phase="Completed",
        quiet=True,
    ),
    Way(
        "an old attempt has not begun",
        simplejob(),
        lambda _: [job(OLD, 1)],
        RETRY,
        ["delete old Foreground guarded", "status"],
        phase="Pending",
    ),
    Way("gone", None, nothing, [*LOADED, "[*]"], []),
    Way("being deleted", being_deleted(), nothing, [*LOADED, "[*]"], []),
    Way(
        "the server is away, when it is read",
        simplejob(),
        nothing,
        [*LOADED, "HandlingError", "[*]"],
        [],
        fails={"load": AWAY},
        error=FlyballError,
    ),
    Way(
        "the server is away, when a Job is made",
        simplejob(),
        nothing,
        [*LOADED, "CheckingJobStatus", "CreatingJob", "HandlingError", "[*]"],
        [],
        fails={"create": AWAY},
        error=FlyballError,
    ),
    Way(
        "the server is away, when the status is written",
        simplejob(),
        nothing,
        [*LOADED, "CheckingJobStatus", "CreatingJob", "UpdatingStatus", "HandlingError", "[*]"],
        ["create 1"],
        fails={"status": AWAY},
        error=FlyballError,
    ),
    Way(
        "a stranger's Job has the name",
        simplejob(),
        nothing,
        [*LOADED, "CheckingJobStatus", "CreatingJob", "HandlingError", "[*]"],
        [],
        Result.after(60),
        fails={"create": NameConflict("Job default/x", "nobody")},
    ),
    Way(
        "a spec that makes no sense",
        simplejob(image=""),
        nothing,
        [*LOADED, "CheckingJobStatus", "HandlingError", "[*]"],
        [],
    ),
]


@pytest.mark.parametrize("way", WAYS, ids=[way.name for way in WAYS])
async def test_which_way_it_goes(way: Way) -> None:
    given = simplejob() if way.simplejob is None else way.simplejob
    jobs = list(way.jobs(given))
    ctx = ImaginedPass(way.simplejob, children=jobs, now=NOW)
    ctx.fails, ctx.status_differs = dict(way.fails), not way.quiet
    events = EventLog()
    outcome = await machine_of(ctx, events).settle()
    assert list(outcome.trace.states) == way.states
    names = {new_attempt(given, number).metadata.name: str(number) for number in (1, 2, 3)}
    names[new_attempt(OLD, 1).metadata.name] = "old"
    done = [" ".join(names.get(word, word) for word in words.split()) for words in ctx.done]
    done = [words.replace("Job ", "").replace("Simple", "").replace("write ", "") for words in done]
    assert done == way.done
    changes = [words for words in done if not words.startswith("status")]
    assert len(changes) <= 1, "more than one change besides the status"
    if way.error is not None:
        assert isinstance(outcome.error, way.error)
    else:
        assert outcome.error is None
        assert outcome.result == way.answer
    if way.simplejob is not None and way.phase is not None:
        assert way.simplejob.status.phase == way.phase


async def test_a_guard_that_changes_the_state_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    @guard("IsJobMissing")
    def changes_it(m: Any) -> bool:
        m.state.due = 7
        return True

    table = SimpleJobReconciler.table
    spoilt = table.rebound(guards=lambda name: changes_it if name == "IsJobMissing" else table.guards[name])
    monkeypatch.setattr(SimpleJobReconciler, "table", spoilt)
    with warnings.catch_warnings(), pytest.raises(StrictWarning, match="FSM-02"):
        warnings.simplefilter("error")
        await machine_of(ImaginedPass(simplejob(), now=NOW)).settle()


# Hashes


GOLDEN = [
    ({}, "9wl7n"),
    ({"command": "false"}, "2lsh4"),
    ({"image": "busybox:1.36"}, "nqpjv"),
    ({"env": [EnvVar(name="A", value="b")]}, "5xskg"),
    ({"resources": ResourceRequirements(limits={"cpu": "100m", "memory": "64Mi"})}, "7f4jn"),
    ({"active_deadline_seconds": 60, "service_account_name": "worker"}, "m7p64"),
]


@pytest.mark.parametrize(("spec", "wanted"), GOLDEN, ids=[one for _, one in GOLDEN])
def test_hashes_stay_the_same_over_versions(spec: dict[str, Any], wanted: str) -> None:
    assert template_hash(simplejob(**spec)) == wanted


def test_what_is_no_part_of_the_template_does_not_change_the_hash() -> None:
    plain = template_hash(simplejob())
    other = simplejob(max_retries=9, retry_backoff_seconds=0, suspend=True, ttl_seconds_after_finished=9)
    assert template_hash(other) == plain
    again = simplejob()
    again.metadata.uid = "uid-2"
    assert template_hash(again) != plain


def test_what_is_copied_to_the_pod() -> None:
    made = new_attempt(
        simplejob(
            env=[EnvVar(name="A", value="b")],
            resources=ResourceRequirements(requests={"cpu": "100m"}),
            service_account_name="worker",
            image_pull_policy="Always",
            image_pull_secrets=[LocalObjectReference(name="pull")],
        ),
        1,
    )
    pod = to_dict(made)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["env"] == [{"name": "A", "value": "b"}]
    assert container["resources"] == {"requests": {"cpu": "100m"}}
    assert container["imagePullPolicy"] == "Always"
    assert (pod["serviceAccountName"], pod["automountServiceAccountToken"]) == ("worker", True)
    assert pod["imagePullSecrets"] == [{"name": "pull"}]


def test_every_scenario_of_the_specification_is_played() -> None:
    texts = [path.read_text() for path in Path(__file__).parent.glob("test_*.py")]
    played = {int(number) for text in texts for number in re.findall(r'scenario\("simplejob-(\d+)"\)', text)}
    assert played == set(range(1, 22))
