"""The columns of what runs pods: Deployments and their kin, Jobs, CronJobs, autoscalers, budgets."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from flyball.api.quantity import Quantity
from flyball.controlplane.apiserver.printing.cells import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Column,
    age,
    at,
    column,
    containers,
    count,
    duration,
    from_field,
    go_time,
    labels_text,
    number,
    selector,
    selector_text,
    some,
)

__all__ = ["COLUMNS"]

Object = dict[str, Any]

_POD: Final = "spec.template.spec.containers"
_UNKNOWN: Final = "<unknown>"
_HPA_SHOWN: Final = 2


def _of(part: str, whole: str) -> Any:
    return lambda obj, now: f"{at(obj, part, 0)}/{at(obj, whole, 0)}"


# Jobs


def _completions(job: Object, now: datetime) -> str:
    done = at(job, "status.succeeded", 0)
    wanted = at(job, "spec.completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = at(job, "spec.parallelism", 0)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _job_duration(job: Object, now: datetime) -> str:
    start, end = at(job, "status.startTime"), at(job, "status.completionTime")
    begun = go_time(start) if start else None
    if begun is None:
        return ""
    return duration(((go_time(end) if end else None) or now).timestamp() - begun.timestamp())


_JOB_CONDITIONS: Final = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _job_status(job: Object, now: datetime) -> str:
    conditions = {one.get("type"): one.get("status") for one in reversed(at(job, "status.conditions", []))}
    for type_, word in _JOB_CONDITIONS:
        if type_ and conditions.get(type_) == "True":
            return word
        if not type_ and job["metadata"].get("deletionTimestamp") is not None:
            return word
    return "Running"


def _last_schedule(job: Object, now: datetime) -> str:
    last = at(job, "status.lastScheduleTime")
    return age(last, now) if last else NONE


def _suspend(job: Object, now: datetime) -> str:
    suspended = at(job, "spec.suspend")
    return UNSET if suspended is None else "True" if suspended else "False"


# Autoscalers


def _quantity(value: Any) -> str:
    return "0" if value is None else str(Quantity(str(value)))


def _target(spec: Object, status: Object | None, *, plain: bool) -> str:
    """Tell what a metric is and what it should be; `plain` metrics may be meant as an average."""
    target: Object = spec.get("target") or {}
    current: Object = (status or {}).get("current") or {}
    if plain and target.get("averageValue") is None:
        shown = _UNKNOWN if status is None else _quantity(current.get("value"))
        return f"{shown}/{_quantity(target.get('value'))}"
    known = status is not None and (not plain or current.get("averageValue") is not None)
    shown = _quantity(current.get("averageValue")) if known else _UNKNOWN
    return f"{shown}/{_quantity(target['averageValue'])}{' (avg)' if plain else ''}"


def _resource_target(spec: Object, status: Object | None) -> str:
    target: Object = spec.get("target") or {}
    current: Object = (status or {}).get("current") or {}
    if target.get("averageValue") is not None:
        return f"{spec.get('name')}: {_target(spec, status, plain=False)}"
    used, wanted = current.get("averageUtilization"), target.get("averageUtilization")
    shown = _UNKNOWN if used is None else f"{used}%"
    return f"{spec.get('name')}: {shown}/{'<auto>' if wanted is None else f'{wanted}%'}"


_METRICS: Final = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _metric(spec: Object, status: Object | None) -> str:
    type_ = spec.get("type") or ""
    if type_ not in _METRICS:
        return "<unknown type>"
    part = _METRICS[type_]
    wanted, found = spec.get(part) or {}, (status or {}).get(part)
    if type_ in ("Resource", "ContainerResource"):
        return _resource_target(wanted, found)
    return _target(wanted, found, plain=type_ != "Pods")


def _metrics(obj: Object, now: datetime) -> str:
    specs, statuses = at(obj, "spec.metrics", []), at(obj, "status.currentMetrics", [])
    if not specs and at(obj, "spec.targetCPUUtilizationPercentage") is not None:
        specs, statuses = _old_metrics(obj)
    if not specs:
        return NONE
    told = [_metric(spec, statuses[place] if place < len(statuses) else None) for place, spec in enumerate(specs)]
    return some(told, _HPA_SHOWN, len(told), NONE, ", ")


def _old_metrics(obj: Object) -> tuple[list[Object], list[Object]]:
    """Read the one metric of autoscaling/v1, the share of a CPU, as the later version has it."""
    wanted = at(obj, "spec.targetCPUUtilizationPercentage")
    found = at(obj, "status.currentCPUUtilizationPercentage")
    spec = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": wanted}}}
    status = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": found}}}
    return [spec], [] if found is None else [status]


def _reference(obj: Object, now: datetime) -> str:
    return f"{at(obj, 'spec.scaleTargetRef.kind', '')}/{at(obj, 'spec.scaleTargetRef.name', '')}"


def _least(obj: Object, now: datetime) -> str:
    return str(at(obj, "spec.minReplicas", UNSET))


# The rest


def _owner(obj: Object, now: datetime) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = owner["apiVersion"].rpartition("/")[0]
            kind = f"{owner['kind']}.{group}" if group else owner["kind"]
            return f"{kind.lower()}/{owner['name']}"
    return NONE


def _or_not_applicable(path: str) -> Any:
    return lambda obj, now: str(at(obj, path, "N/A"))


def _replicas(*more: Column) -> tuple[Column, ...]:
    return (
        NAME,
        number("Desired", from_field("spec.replicas", 0)),
        number("Current", from_field("status.replicas", 0)),
        number("Ready", from_field("status.readyReplicas", 0)),
        AGE,
        *containers(_POD),
        *more,
    )


COLUMNS: Final[dict[str, tuple[Column, ...]]] = {
    "deployments.apps": (
        NAME,
        column("Ready", _of("status.readyReplicas", "spec.replicas")),
        column("Up-to-date", from_field("status.updatedReplicas", 0)),
        column("Available", from_field("status.availableReplicas", 0)),
        AGE,
        *containers(_POD),
        column("Selector", lambda obj, now: selector_text(at(obj, "spec.selector")), wide=True),
    ),
    "replicasets.apps": _replicas(selector("spec.selector")),
    "replicationcontrollers": _replicas(
        column("Selector", lambda obj, now: labels_text(at(obj, "spec.selector")), wide=True)
    ),
    "statefulsets.apps": (
        NAME,
        column("Ready", _of("status.readyReplicas", "spec.replicas")),
        AGE,
        *containers(_POD),
    ),
    "daemonsets.apps": (
        NAME,
        number("Desired", from_field("status.desiredNumberScheduled", 0)),
        number("Current", from_field("status.currentNumberScheduled", 0)),
        number("Ready", from_field("status.numberReady", 0)),
        number("Up-to-date", from_field("status.updatedNumberScheduled", 0)),
        number("Available", from_field("status.numberAvailable", 0)),
        column("Node Selector", lambda obj, now: labels_text(at(obj, "spec.template.spec.nodeSelector"))),
        AGE,
        *containers(_POD),
        selector("spec.selector"),
    ),
    "controllerrevisions.apps": (
        NAME,
        column("Controller", _owner),
        column("Revision", from_field("revision", 0)),
        AGE,
    ),
    "jobs.batch": (
        NAME,
        column("Status", _job_status),
        column("Completions", _completions),
        column("Duration", _job_duration),
        AGE,
        *containers(_POD),
        selector("spec.selector"),
    ),
    "cronjobs.batch": (
        NAME,
        column("Schedule", from_field("spec.schedule")),
        column("Timezone", from_field("spec.timeZone", NONE)),
        column("Suspend", _suspend, "boolean"),
        number("Active", count("status.active")),
        column("Last Schedule", _last_schedule),
        AGE,
        *containers("spec.jobTemplate.spec.template.spec.containers"),
        selector("spec.jobTemplate.spec.selector"),
    ),
    "horizontalpodautoscalers.autoscaling": (
        NAME,
        column("Reference", _reference),
        column("Targets", _metrics),
        column("MinPods", _least),
        column("MaxPods", from_field("spec.maxReplicas", 0)),
        column("Replicas", from_field("status.currentReplicas", 0)),
        AGE,
    ),
    "poddisruptionbudgets.policy": (
        NAME,
        column("Min Available", _or_not_applicable("spec.minAvailable")),
        column("Max Unavailable", _or_not_applicable("spec.maxUnavailable")),
        number("Allowed Disruptions", from_field("status.disruptionsAllowed", 0)),
        AGE,
    ),
}
