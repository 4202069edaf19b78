"""What `kubectl get` shows, for what the recorded tables do not show."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from flyball.controlplane.apiserver.builtin import builtin_kinds
from flyball.controlplane.apiserver.printing.cells import age, duration, selector_text, some
from flyball.controlplane.apiserver.printing.columns import columns_of
from flyball.controlplane.apiserver.printing.pods import summary

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KINDS = {f"{kind.plural}.{kind.group}".rstrip("."): kind for kind in builtin_kinds()}


def cells(storage: str, obj: dict[str, Any]) -> dict[str, Any]:
    obj = {"metadata": {"name": "a", "creationTimestamp": "2026-01-02T03:03:05Z", **obj.pop("metadata", {})}, **obj}
    return {column.name: column.cell(obj, NOW) for column in columns_of(KINDS[storage])}


def test_every_kind_can_show_an_empty_object() -> None:
    for storage in KINDS:
        assert cells(storage, {}), storage


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        *[(-5, "<invalid>"), (-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (190, "3m10s"), (600, "10m")],
        *[(10800, "3h"), (11000, "3h3m"), (86400, "24h"), (200000, "2d7h"), (900000, "10d")],
        *[(70000000, "2y80d"), (300000000, "9y")],
    ],
)
def test_durations(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def test_ages() -> None:
    assert age("2026-01-02T03:03:05Z", NOW) == "60s"
    assert age("2026-01-02T03:03:05.123456Z", NOW) == "59s"
    assert age(None, NOW) == age("", NOW) == "<unknown>"


def test_texts() -> None:
    expressions = [{"key": "k", "operator": "NotIn", "values": ["b", "a"]}, {"key": "e", "operator": "DoesNotExist"}]
    assert selector_text({"matchLabels": {"x": "z"}, "matchExpressions": expressions}) == "!e,k notin (a,b),x=z"
    assert some(["a", "b", "c"], 2, 3, "-") == "a,b + 1 more..."
    assert some([], 2, 0, "-") == "-"


def test_an_ended_job() -> None:
    status = {
        "succeeded": 1,
        "startTime": "2026-01-02T03:00:00Z",
        "completionTime": "2026-01-02T03:01:30Z",
        "conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}],
    }
    shown = cells("jobs.batch", {"spec": {"completions": 1}, "status": status})
    assert (shown["Status"], shown["Completions"], shown["Duration"]) == ("Complete", "1/1", "90s")


def test_events_of_both_shapes() -> None:
    old = {"involvedObject": {"kind": "Pod", "name": "p"}, "message": "m", "count": 2, "source": {"component": "c"}}
    new = {
        "regarding": {"kind": "Pod", "name": "p"},
        "note": "m",
        "deprecatedCount": 2,
        "reportingController": "c",
        "deprecatedLastTimestamp": "2026-01-02T03:04:00Z",
    }
    one = cells("events", {**old, "lastTimestamp": "2026-01-02T03:04:00Z"})
    other = cells("events.events.k8s.io", new)
    assert one == other
    assert (one["Object"], one["Last Seen"], one["Count"]) == ("pod/p", "5s", 2)


def test_nodes_with_addresses() -> None:
    status = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "1.2.3.4"}],
        "nodeInfo": {"kernelVersion": "6.1", "architecture": "amd64"},
    }
    shown = cells("nodes", {"status": status})
    assert (shown["Status"], shown["Internal-IP"], shown["Kernel-Version"]) == ("Ready", "1.2.3.4", "6.1 (amd64)")


def pod(status: dict[str, Any], *, init: list[dict[str, Any]] | None = None, deleted: bool = False) -> dict[str, Any]:
    metadata = {"name": "p", **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {})}
    spec = {"containers": [{"name": "c"}], "initContainers": init or []}
    return {"metadata": metadata, "spec": spec, "status": status}


SIDECAR = [{"name": "i", "restartPolicy": "Always"}]
WAITS = {"name": "c", "state": {"waiting": {"reason": "PodInitializing"}}}
RUNS = {"name": "c", "ready": True, "state": {"running": {}}}


@pytest.mark.parametrize(
    ("obj", "ready", "word"),
    [
        (pod({"phase": "Running", "containerStatuses": [RUNS]}), "1/1", "Running"),
        (pod({"phase": "Running", "containerStatuses": [RUNS]}, deleted=True), "1/1", "Terminating"),
        (pod({"phase": "Succeeded"}, deleted=True), "0/1", "Succeeded"),
        (pod({"phase": "Running", "reason": "NodeLost"}, deleted=True), "0/1", "Unknown"),
        (
            pod({"initContainerStatuses": [{"name": "i", "started": True, "ready": True}]}, init=SIDECAR),
            "1/2",
            "",
        ),
        (
            pod(
                {"initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 3}}}]},
                init=[{"name": "i"}],
            ),
            "0/1",
            "Init:ExitCode:3",
        ),
        (
            pod(
                {"initContainerStatuses": [{"name": "i", "state": {"waiting": {"reason": "ErrImagePull"}}}]},
                init=[{"name": "i"}],
            ),
            "0/1",
            "Init:ErrImagePull",
        ),
        (
            pod(
                {
                    "phase": "Running",
                    "containerStatuses": [RUNS, {"name": "d", "state": {"terminated": {"reason": "Completed"}}}],
                }
            ),
            "1/1",
            "NotReady",
        ),
        (
            pod({"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 2, "reason": "Error"}}}]}),
            "0/1",
            "Error",
        ),
    ],
)
def test_the_state_of_a_pod(obj: dict[str, Any], ready: str, word: str) -> None:
    found = summary(obj)
    assert (f"{found.ready}/{found.total}", found.reason) == (ready, word)
