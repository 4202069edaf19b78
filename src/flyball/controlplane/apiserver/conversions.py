"""Built-in resources that have two shapes: each is stored once, in the shape of one version.

Events of the core group and of `events.k8s.io` are the same objects; so are HorizontalPodAutoscalers in v1 and v2. The
other shape is made when it is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from flyball.controlplane.apiserver.store import Entry

__all__ = ["SHAPES", "STORED_WITH", "Shape"]

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """The other shape of a resource (a `kinds.Conversion`)."""

    stored_as: str
    """The apiVersion in which objects are stored."""
    message: str
    """The published type of that version."""
    to_shape: Callable[[Object], Object]
    to_stored: Callable[[Object], Object]

    def as_it_is(self, entry: Entry) -> bool:
        """Tell whether the stored body is what this version shows: never."""
        return False

    def read(self, obj: Object) -> Object:
        """Bring a stored object into this shape."""
        return self.to_shape(obj)

    def store(self, obj: Object) -> Object:
        """Bring an object of this shape into the one that is stored."""
        return {**self.to_stored(obj), "apiVersion": self.stored_as}


# Events

_EVENT_NAMES: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_OLD_EVENT_NAMES: Final = {new: old for old, new in _EVENT_NAMES.items()}


def _renamed(obj: Object, names: Mapping[str, str]) -> Object:
    return {names.get(name, name): value for name, value in obj.items()}


# Autoscalers

_METRICS: Final = "autoscaling.alpha.kubernetes.io/metrics"
_CURRENT: Final = "autoscaling.alpha.kubernetes.io/current-metrics"
_CONDITIONS: Final = "autoscaling.alpha.kubernetes.io/conditions"
_BEHAVIOR: Final = "autoscaling.alpha.kubernetes.io/behavior"
_COMMON_STATUS: Final = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")


def _old_autoscaler(obj: Object) -> Object:
    """Show in v1: the use of CPU in a field, everything else in annotations."""
    spec, status = dict(obj.get("spec") or {}), obj.get("status") or {}
    notes = dict(obj["metadata"].get("annotations") or {})
    metrics: list[Object] = spec.pop("metrics", None) or []
    others: list[Object] = []
    for metric in metrics:
        target = _cpu_use(metric)
        if target is not None and "targetCPUUtilizationPercentage" not in spec:
            spec["targetCPUUtilizationPercentage"] = target
        else:
            others.append(metric)
    shown = {name: status[name] for name in _COMMON_STATUS if name in status}
    current: list[Object] = status.get("currentMetrics") or []
    for metric in current:
        used = ((metric.get("resource") or {}).get("current") or {}).get("averageUtilization")
        if metric.get("type") == "Resource" and metric["resource"].get("name") == "cpu" and used is not None:
            shown["currentCPUUtilizationPercentage"] = used
    kept = {
        _METRICS: others,
        _CURRENT: current,
        _CONDITIONS: status.get("conditions"),
        _BEHAVIOR: spec.pop("behavior", None),
    }
    notes.update({name: json.dumps(value, separators=(",", ":")) for name, value in kept.items() if value})
    metadata = {**obj["metadata"], **({"annotations": notes} if notes else {})}
    return {**obj, "metadata": metadata, "spec": spec, "status": shown}


def _cpu_use(metric: Object) -> int | None:
    resource = metric.get("resource") or {}
    target = resource.get("target") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu" or target.get("type") != "Utilization":
        return None
    use = target.get("averageUtilization")
    return use if isinstance(use, int) else None


def _new_autoscaler(obj: Object) -> Object:
    """Read from v1 what it keeps in annotations."""
    metadata, spec, status = dict(obj["metadata"]), dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    notes = dict(metadata.pop("annotations", None) or {})
    kept = {name: _json(notes.pop(name, "")) for name in (_METRICS, _CURRENT, _CONDITIONS, _BEHAVIOR)}
    metrics = list(kept[_METRICS] or [])
    use = spec.pop("targetCPUUtilizationPercentage", None)
    if use is not None:
        target = {"type": "Utilization", "averageUtilization": use}
        metrics.insert(0, {"type": "Resource", "resource": {"name": "cpu", "target": target}})
    if metrics:
        spec["metrics"] = metrics
    if kept[_BEHAVIOR]:
        spec["behavior"] = kept[_BEHAVIOR]
    used = status.pop("currentCPUUtilizationPercentage", None)
    current = kept[_CURRENT] or []
    if used is not None and not current:
        current = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": used}}}]
    if current:
        status["currentMetrics"] = current
    if kept[_CONDITIONS]:
        status["conditions"] = kept[_CONDITIONS]
    if notes:
        metadata["annotations"] = notes
    return {**obj, "metadata": metadata, "spec": spec, "status": status}


def _json(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None  # what is no JSON says nothing of the metrics


SHAPES: Final[Mapping[tuple[str, str, str], Shape]] = {
    ("events.k8s.io", "v1", "events"): Shape(
        "v1",
        "io.k8s.api.core.v1.Event",
        lambda obj: _renamed(obj, _EVENT_NAMES),
        lambda obj: _renamed(obj, _OLD_EVENT_NAMES),
    ),
    ("autoscaling", "v1", "horizontalpodautoscalers"): Shape(
        "autoscaling/v2",
        "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
        _old_autoscaler,
        _new_autoscaler,
    ),
}
"""By group, version and resource: the shapes that are not stored."""

STORED_WITH: Final[Mapping[tuple[str, str], str]] = {("events.k8s.io", "events"): "events"}
"""Resources that lie in the storage of another one."""
