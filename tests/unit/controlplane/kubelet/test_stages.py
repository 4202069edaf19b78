"""Stages as data: which Pods they are about, when they happen, and what is refused."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from flyball.controlplane.kubelet.simulated import Match, SimulatedPod, Stage, stage
from flyball.controlplane.kubelet.simulated.stage_files import read_stages, stages_of
from flyball.controlplane.kubelet.simulated.stages import chosen_stage
from flyball.errors import ConfigError

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def pod(**status: Any) -> SimulatedPod:
    metadata = {"name": "p", "namespace": "default", "uid": "1-2", "labels": {"app": "web"}}
    spec = {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}], "restartPolicy": "Never"}
    return SimulatedPod({"metadata": metadata, "spec": spec, "status": status}, NOW)


def nothing(pod: SimulatedPod) -> None:
    """A stage in which nothing happens."""


@pytest.mark.parametrize(
    ("match", "holds"),
    [
        (Match(".status.phase", "In", ["Running", "Pending"]), True),
        (Match(".status.phase", "NotIn", ["Running"]), False),
        (Match(".status.phase", "Exists"), True),
        (Match(".status.podIP", "Exists"), False),
        (Match(".status.podIP", "DoesNotExist"), True),
        (Match(".status.podIP", "NotIn", ["10.0.0.1"]), True),
        (Match('.status.conditions[?(@.type=="Ready")].status', "In", ["True"]), True),
        (Match(".spec.containers[*].name", "In", ["d"]), True),
        (Match(".status.phase.more", "Exists"), False),
    ],
)
def test_what_stands_at_a_path(match: Match, holds: bool) -> None:
    found = pod(phase="Running", conditions=[{"type": "Ready", "status": "True"}])
    assert match.holds(found.pod) is holds


def test_a_stage_selects_by_labels_and_leaves_alone_what_is_being_deleted() -> None:
    ours = stage("ours", labels={"app": "web"})(nothing)
    assert ours.selects(pod())
    assert not stage("theirs", labels={"app": "db"})(nothing).selects(pod())
    assert not stage("marked", annotations={"a": "b"})(nothing).selects(pod())
    going = pod()
    going.pod["metadata"]["deletionTimestamp"] = "2026-05-01T12:00:00Z"
    assert not ours.selects(going)
    assert stage("last", where=[Match(".metadata.deletionTimestamp")])(nothing).selects(going)


def test_the_first_counts_or_chance_by_weight_the_same_way_each_time() -> None:
    plain = [stage("one")(nothing), stage("two")(nothing)]
    found = chosen_stage(plain, pod(), random.Random(1))
    assert found is plain[0]
    assert chosen_stage([], pod(), random.Random(1)) is None
    often, seldom = stage("often", weight=9)(nothing), stage("seldom", weight=1)(nothing)

    def draws() -> list[str]:
        picked = [chosen_stage([often, seldom], pod(), random.Random(number)) for number in range(500)]
        return [one.name for one in picked if one is not None]

    assert draws() == draws()
    assert 400 < draws().count("often") < 480


def test_the_delay_has_a_jitter() -> None:
    late = stage("late", delay=3, jitter=2)(nothing)
    waits = [late.wait(random.Random(number)) for number in range(100)]
    assert all(3 <= one <= 5 for one in waits)
    assert max(waits) - min(waits) > 1.5


YAML = """
apiVersion: simulate.flyball.dev/v1
kind: Stage
metadata: {name: crashes}
spec:
  selector:
    matchLabels: {app: web}
    matchExpressions:
    - {key: .status.phase, operator: In, values: [Running]}
  delay: {duration: 1m30s, jitterDurationMilliseconds: 500}
  weight: 2
  next:
    containers:
    - {name: c, state: terminated, exitCode: 137, reason: OOMKilled, message: no memory}
    - {name: nobody, state: running}
    status: {message: 'at $(now)', conditions: [{type: Sad, status: "True", reason: '$(name)'}]}
    annotations: {was: here}
    log: |
      one
      two
    event: {type: Warning, reason: Crashed, message: it crashed}
---
apiVersion: simulate.flyball.dev/v1
kind: Stage
metadata: {name: goes}
spec: {delay: 5s, next: {delete: true}}
"""


def test_stages_are_read_from_yaml(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(YAML)
    (tmp_path / "notes.txt").write_text("not a stage")
    crashes, goes = read_stages(tmp_path)
    assert (crashes.name, crashes.delay, crashes.jitter, crashes.weight) == ("crashes", 90.0, 0.5, 2)
    assert (goes.delay, goes.weight) == (5.0, 0)
    found = pod(phase="Running", startTime="2026-05-01T11:00:00Z")
    assert crashes.selects(found)
    crashes.act(found)
    status = found.conclusion()
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (137, "OOMKilled", "no memory")
    assert status["message"] == "at 2026-05-01T12:00:00Z"
    assert status["conditions"] == [{"type": "Sad", "status": "True", "reason": "p"}]
    assert found.annotations == {"was": "here"}
    assert found.lines == [("c", "one"), ("c", "two")]
    assert [tuple(one) for one in found.said] == [("Warning", "Crashed", "it crashed")]
    gone = pod()
    goes.act(gone)
    assert gone.deleted


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", "this is no YAML"),
        ("just text", "stage (without a name): Expected `object`"),
        (
            YAML.replace("spec:\n  selector", "spec:\n  selektor"),
            "stage crashes: Object contains unknown field `selektor`",
        ),
        (YAML.replace("simulate.flyball.dev/v1", "kwok.x-k8s.io/v1alpha1"), "is no Stage of simulate.flyball.dev/v1"),
        (YAML.replace("operator: In", "operator: Is"), "operator 'Is' is not one of In, NotIn, Exists, DoesNotExist"),
        (YAML.replace(".status.phase", ".status["), ".status["),
        (YAML.replace("exitCode: 137", "exitCode: 300"), "stage crashes: Expected `int` <= 255"),
        (YAML.replace("1m30s", "soon"), "stage crashes: "),
        (YAML.replace("weight: 2", "weight: -2"), "are not negative"),
        (YAML.replace(", values: [Running]", ""), "In needs values"),
        (YAML.replace("event: {", "statusTemplate: x\n    event: {"), "unknown field `statusTemplate`"),
    ],
)
def test_what_is_no_stage_is_refused_with_its_name(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as failure:
        stages_of(text)
    assert told in str(failure.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file or folder"):
        read_stages(tmp_path / "nothing")
    (tmp_path / "bad.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"bad\.yaml: "):
        read_stages(tmp_path)


def test_a_stage_that_waits_less_than_no_time_is_refused() -> None:
    with pytest.raises(ConfigError, match="stage x: delay, jitter and weight are not negative"):
        Stage("x", nothing, delay=-1)


def test_the_stage_in_the_documentation_is_one() -> None:
    page = Path(__file__).parents[4] / "docs" / "simulated-pods.md"
    text = page.read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    (found,) = stages_of(text)
    assert (found.name, found.delay, found.jitter) == ("runs out of memory", 30.0, 10.0)
