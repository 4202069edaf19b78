"""What stories tell: only what is new, and nothing accidental."""

from __future__ import annotations

from typing import Any

import pytest
from tools.differential.cases import CaseError, step
from tools.differential.pods import choose, state_of, status_of
from tools.differential.scenes import Narrator

from flyball.clock import ManualClock


def replica_set(name: str, replicas: int, **more: Any) -> dict[str, Any]:
    label = name.rpartition("-")[2]
    metadata = {"name": name, "uid": "u", "labels": {"pod-template-hash": label}, "creationTimestamp": "1", **more}
    return {"metadata": metadata, "spec": {"replicas": replicas}, "status": {"replicas": replicas}}


def pod(name: str, phase: str = "Pending", **metadata: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i:1"}]
    base = name[:-5]
    return {
        "metadata": {"name": name, "generateName": base, **metadata},
        "spec": {"containers": containers},
        "status": {"phase": phase},
    }


def event(number: int, message: str, reason: str = "SuccessfulCreate") -> dict[str, Any]:
    return {
        "metadata": {"resourceVersion": str(number)},
        "involvedObject": {"kind": "ReplicaSet", "name": "web-5d7b"},
        "type": "Normal",
        "reason": reason,
        "reportingComponent": "replicaset-controller",
        "message": message,
    }


def test_names_are_told_by_their_order_and_pods_by_their_number() -> None:
    narrator = Narrator("ns-of-a-test", {})
    found = {"replicasets": [replica_set("web-5d7b", 2)], "pods": [pod("web-5d7b-bcdfg"), pod("web-5d7b-xwvts")]}
    narrator.learn(found)
    told = narrator.tell(found, [event(2, "Created pod: web-5d7b-xwvts"), event(1, "Created pod: web-5d7b-bcdfg")])
    assert told["replicasets"]["web-H1"]["spec"] == {"replicas": 2}
    assert told["pods"] == [{"count": 2, "name": "web-H1-*", "status": {"phase": "Pending"}}]
    assert told["events"] == [
        "ReplicaSet/web-H1 Normal SuccessfulCreate [replicaset-controller]: Created pod: web-H1-*"
    ]
    assert narrator.real_name("web-H1") == "web-5d7b"


def test_only_what_is_new_is_told() -> None:
    narrator = Narrator("ns-of-a-test", {})
    first = {"replicasets": [replica_set("web-5d7b", 2), replica_set("web-9c8f", 1)], "pods": []}
    narrator.learn(first)
    narrator.tell(first, [event(1, "one")])
    assert narrator.tell(first, [event(1, "one")]) == {}
    second = {"replicasets": [replica_set("web-5d7b", 3)], "pods": []}
    told = narrator.tell(second, [event(1, "one"), event(2, "(combined from similar events): two", "Other")])
    assert set(told["replicasets"]) == {"web-H1", "web-H2"}
    assert told["replicasets"]["web-H2"] is None
    assert told["events"] == ["ReplicaSet/web-H1 Normal Other [replicaset-controller]: two"]


def test_conditions_are_told_by_type_and_times_are_not() -> None:
    narrator = Narrator("ns-of-a-test", {})
    one = replica_set("web-5d7b", 1)
    one["status"]["conditions"] = [{"type": "A", "status": "True", "reason": "R", "lastTransitionTime": "x"}]
    told = narrator.tell({"replicasets": [one]}, [])
    (shown,) = told["replicasets"].values()
    assert shown["status"]["conditions"] == {"A": {"status": "True", "reason": "R"}}


def test_what_happens_concerns_only_some_pods() -> None:
    waiting, going, ended = pod("a"), pod("b", deletionTimestamp="1"), pod("c", "Failed")
    marked = pod("d", annotations={"mark": "first"})
    pods = [waiting, going, ended, marked]
    assert [state_of(one) for one in pods] == ["pending", "deleting", "failed", "pending"]
    assert choose(pods, "ready", {}) == [waiting, marked]
    assert choose(pods, "ready", {"count": 1}) == [waiting]
    assert choose(pods, "ready", {"marked": "first"}) == [marked]
    assert choose(pods, "gone", {}) == [going]
    assert choose(pods, "status", {"are": "failed"}) == [ended]
    assert choose(pods, "ready", {"image": "i:2"}) == []


def test_a_kubelet_keeps_times_of_what_has_not_changed() -> None:
    clock = ManualClock()
    one = pod("a")
    one["status"] = status_of(one, "running", clock.now(), 1)
    clock.jump(60)
    told = status_of(one, "ready", clock.now(), 1)
    times = {each["type"]: each["lastTransitionTime"] for each in told["conditions"]}
    assert (times["Initialized"], times["Ready"]) == ("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z")
    assert told["startTime"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize("written", [{"pods": "ready", "make": {}}, {"pass": 1, "with": {}}, {"pods": "x", "whom": 1}])
def test_a_step_that_makes_no_sense_is_refused(written: dict[str, Any]) -> None:
    with pytest.raises(CaseError):
        step(written)
