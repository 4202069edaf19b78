"""Two shapes of one object: what is written in one is read in the other."""

from __future__ import annotations

from typing import Any

from flyball.controlplane.apiserver.conversions import SHAPES
from flyball.controlplane.apiserver.preparing import quality_of

Object = dict[str, Any]

EVENTS = SHAPES["events.k8s.io", "v1", "events"]
OLD_AUTOSCALER = SHAPES["autoscaling", "v1", "horizontalpodautoscalers"]


def test_an_event_keeps_everything_on_its_way_and_back() -> None:
    event = {"apiVersion": "events.k8s.io/v1", "metadata": {"name": "e"}, "regarding": {"kind": "Pod"}, "note": "n"}
    stored = EVENTS.store(event)
    assert (stored["apiVersion"], stored["involvedObject"], stored["message"]) == ("v1", {"kind": "Pod"}, "n")
    assert EVENTS.read({**stored, "apiVersion": "events.k8s.io/v1"}) == event


def test_an_old_autoscaler_keeps_its_metrics_in_annotations() -> None:
    memory: Object = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization"}}}
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    spec = {"maxReplicas": 3, "metrics": [{"type": "Resource", "resource": cpu}, memory], "behavior": {"scaleUp": {}}}
    stored = {"apiVersion": "autoscaling/v2", "metadata": {"name": "a"}, "spec": spec, "status": {}}
    shown = OLD_AUTOSCALER.read(stored)
    assert shown["spec"] == {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}
    assert set(shown["metadata"]["annotations"]) == {
        "autoscaling.alpha.kubernetes.io/metrics",
        "autoscaling.alpha.kubernetes.io/behavior",
    }
    assert OLD_AUTOSCALER.store(shown) == stored


def test_the_quality_of_a_pod_follows_from_what_it_asks_for() -> None:
    def spec(**resources: Any) -> Object:
        return {"containers": [{"resources": resources}]}

    both = {"cpu": "1", "memory": "1Gi"}
    assert quality_of(spec()) == "BestEffort"
    assert quality_of(spec(requests={"cpu": "0"})) == "BestEffort"
    assert quality_of(spec(requests={"cpu": "1"})) == "Burstable"
    assert quality_of(spec(requests=both, limits={"cpu": "1000m", "memory": "1024Mi"})) == "Guaranteed"
    assert quality_of(spec(requests=both, limits={"cpu": "2", "memory": "1Gi"})) == "Burstable"
