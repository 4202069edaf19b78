"""kubectl makes Jobs and CronJobs, waits for them and describes them, on a cluster whose workloads progress."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from flyball.testing import Cluster
from flyball.testing.binaries import BinariesMissing, find_binaries

Kubectl = Callable[..., str]

FAILING: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "broken"},
    "spec": {
        "backoffLimit": 0,
        "template": {
            "metadata": {"annotations": {"simulate.flyball.dev/exit-code": "3", "simulate.flyball.dev/run-for": "0"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]},
        },
    },
}


@pytest.fixture
def kubectl(tmp_path: Path) -> Generator[Kubectl]:
    try:
        program = find_binaries().path("kubectl")
    except BinariesMissing as missing:
        pytest.skip(str(missing))
    with Cluster(workloads=True) as cluster:
        start = [str(program), f"--kubeconfig={cluster.kubeconfig}", f"--cache-dir={tmp_path}"]

        def run(*words: str, given: Any = None, fails: str = "") -> str:
            text = None if given is None else json.dumps(given)
            done = subprocess.run([*start, *words], input=text, capture_output=True, text=True, timeout=60)
            assert (done.returncode != 0) == bool(fails), f"{' '.join(words)}: {done.stdout}{done.stderr}"
            assert fails in done.stderr
            return done.stdout.strip()

        yield run


def fields(described: str) -> dict[str, str]:
    """The lines `Name:  value` of a description."""
    found = re.findall(r"^([A-Z][A-Za-z ]+):  +(\S.*)$", described, re.MULTILINE)
    return dict(found)


def events(described: str) -> list[list[str]]:
    """Type, reason, origin and message of the events of a description."""
    lines = described.partition("\nEvents:\n")[2].splitlines()[2:]
    words = [re.split(r"  +", line.strip()) for line in lines]
    return [[each[0], each[1], each[-2], each[-1]] for each in words]


@pytest.mark.capability("N2")
def test_a_job_is_waited_for_and_described(kubectl: Kubectl) -> None:
    assert kubectl("create", "job", "work", "--image=busybox", "--", "true") == "job.batch/work created"
    assert kubectl("wait", "--for=condition=complete", "job/work", "--timeout=60s") == "job.batch/work condition met"
    name, status, completions, duration, *_ = kubectl("get", "job", "work", "--no-headers").split()
    assert (name, status, completions) == ("work", "Complete", "1/1")
    assert re.fullmatch(r"\d+s", duration)
    described = kubectl("describe", "job", "work")
    told = fields(described)
    assert told["Pods Statuses"] == "0 Active (0 Ready) / 1 Succeeded / 0 Failed"
    assert (told["Parallelism"], told["Completions"], told["Completion Mode"]) == ("1", "1", "NonIndexed")
    assert (told["Suspend"], told["Backoff Limit"]) == ("false", "6")
    assert {"Start Time", "Completed At", "Duration"} <= set(told)
    pod = kubectl("get", "pods", "-l", "job-name=work", "-o", "name").removeprefix("pod/")
    assert events(described) == [
        ["Normal", "SuccessfulCreate", "job-controller", f"Created pod: {pod}"],
        ["Normal", "Completed", "job-controller", "Job completed"],
    ]


def test_a_job_that_fails_is_waited_for_and_described(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=FAILING)
    assert kubectl("wait", "--for=condition=failed", "job/broken", "--timeout=60s") == "job.batch/broken condition met"
    assert kubectl("get", "job", "broken", "--no-headers").split()[1:3] == ["Failed", "0/1"]
    described = kubectl("describe", "job", "broken")
    assert fields(described)["Pods Statuses"] == "0 Active (0 Ready) / 0 Succeeded / 1 Failed"
    told = ["Warning", "BackoffLimitExceeded", "job-controller", "Job has reached the specified backoff limit"]
    assert events(described)[-1] == told
    assert (
        kubectl("delete", "job", "broken", "--cascade=foreground")
        == 'job.batch "broken" deleted from default namespace'
    )
    assert kubectl("get", "pods", "-o", "name") == ""


def test_a_job_leaves_its_pods_when_it_is_told_to(kubectl: Kubectl) -> None:
    kubectl("create", "job", "work", "--image=busybox", "--", "true")
    kubectl("wait", "--for=condition=complete", "job/work", "--timeout=60s")
    kubectl("delete", "job", "work", "--cascade=orphan")
    assert len(kubectl("get", "pods", "-l", "job-name=work", "-o", "name").splitlines()) == 1


def test_a_suspended_job_begins_when_it_is_resumed(kubectl: Kubectl) -> None:
    waiting = {**FAILING, "metadata": {"name": "later"}, "spec": {**FAILING["spec"], "suspend": True}}
    kubectl("create", "-f", "-", given=waiting)
    kubectl("wait", "--for=condition=suspended", "job/later", "--timeout=60s")
    assert kubectl("get", "job", "later", "--no-headers").split()[1:3] == ["Suspended", "0/1"]
    assert kubectl("get", "pods", "-o", "name") == ""
    kubectl("patch", "job", "later", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    kubectl("wait", "--for=condition=failed", "job/later", "--timeout=60s")
    assert [each[1] for each in events(kubectl("describe", "job", "later"))][:2] == ["Suspended", "SuccessfulCreate"]


def test_a_cronjob_is_made_shown_and_started_by_hand(kubectl: Kubectl) -> None:
    assert kubectl("create", "cronjob", "tick", "--image=busybox", "--schedule=0 0 1 1 *", "--", "true") == (
        "cronjob.batch/tick created"
    )
    words = kubectl("get", "cronjob", "tick", "--no-headers").split()
    assert words[:8] == ["tick", "0", "0", "1", "1", "*", "<none>", "False"]
    assert words[8:10] == ["0", "<none>"]
    told = fields(kubectl("describe", "cronjob", "tick"))
    assert (told["Schedule"], told["Concurrency Policy"], told["Suspend"]) == ("0 0 1 1 *", "Allow", "False")
    assert (told["Last Schedule Time"], told["Active Jobs"]) == ("<unset>", "<none>")
    assert kubectl("create", "job", "now", "--from=cronjob/tick") == "job.batch/now created"
    kubectl("wait", "--for=condition=complete", "job/now", "--timeout=60s")
    owner = kubectl("get", "job", "now", "-o", "jsonpath={.metadata.ownerReferences[0].kind}")
    note = kubectl("get", "job", "now", "-o", r"jsonpath={.metadata.annotations.cronjob\.kubernetes\.io/instantiate}")
    assert (owner, note) == ("CronJob", "manual")
    kubectl("delete", "cronjob", "tick", "--cascade=foreground")
    assert kubectl("get", "jobs", "-o", "name") == ""


def test_a_cronjob_tells_of_its_jobs(kubectl: Kubectl) -> None:
    kubectl("create", "cronjob", "tick", "--image=busybox", "--schedule=@every 1s", "--", "true")
    kubectl("wait", "--for=jsonpath={.status.lastSuccessfulTime}", "cronjob/tick", "--timeout=60s")
    kubectl("patch", "cronjob", "tick", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    reasons = [each[1] for each in events(kubectl("describe", "cronjob", "tick"))]
    assert reasons[:2] == ["SuccessfulCreate", "SawCompletedJob"]


def test_what_makes_no_sense_is_refused(kubectl: Kubectl) -> None:
    words = ("create", "cronjob", "tick", "--image=busybox", "--schedule=often")
    kubectl(*words, fails="spec.schedule: Invalid value")
    bad = {**FAILING, "spec": {**FAILING["spec"], "successPolicy": {"rules": [{"succeededCount": 1}]}}}
    kubectl("create", "-f", "-", given=bad, fails="spec.successPolicy: Invalid value")
