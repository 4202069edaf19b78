"""The rules of Deployments, ReplicaSets, StatefulSets, DaemonSets and ReplicationControllers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from flyball.api.fielderrors import FieldError, Shown
from flyball.controlplane.apiserver.rules.common import (
    Errors,
    Object,
    at_least,
    immutable,
    items,
    label_selector,
    matches,
    one_of,
)
from flyball.controlplane.apiserver.rules.pods import template

__all__ = [
    "controller",
    "daemon_set",
    "deployment",
    "deployment_status",
    "fixed_selector",
    "replica_set",
    "revision_update",
    "stateful_set",
    "stateful_set_update",
]

_PERCENT_WORDS: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_NOT_MATCHING: Final = "`selector` does not match template `labels`"
_STS_FIELDS: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_STS_POLICIES: Final = ("OrderedReady", "Parallel")
_STS_MAY_CHANGE: Final = (
    *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
)


def _labels(spec: Mapping[str, Any]) -> Mapping[str, str] | None:
    return ((spec.get("template") or {}).get("metadata") or {}).get("labels")


def _selector(spec: Mapping[str, Any], what: str) -> Errors:
    selector = spec.get("selector")
    if selector is None:
        yield FieldError.required("spec.selector")
        return
    yield from label_selector(selector, "spec.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield FieldError.invalid("spec.selector", selector, f"empty selector is invalid for {what}")


def _template(spec: Mapping[str, Any], *, always: bool = True, what: str = "ReplicaSet") -> Errors:
    labels, selector = _labels(spec), spec.get("selector")
    wanted = selector if selector is not None else {}
    empty = not wanted.get("matchLabels") and not wanted.get("matchExpressions")
    if (selector is None or not empty) and (selector is None or not matches(wanted, labels or {})):
        yield FieldError.invalid("spec.template.metadata.labels", labels, _NOT_MATCHING)
    yield from template(spec, "spec")
    restart = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy")
    if always and restart not in (None, "Always") and restart in ("OnFailure", "Never"):
        yield FieldError.not_supported("spec.template.spec.restartPolicy", restart, ["Always"])
    if ((spec.get("template") or {}).get("spec") or {}).get("activeDeadlineSeconds") is not None:
        told = f"activeDeadlineSeconds in {what} is not Supported"
        yield FieldError.forbidden("spec.template.spec.activeDeadlineSeconds", told)


def _part(value: Any, path: str) -> Errors:
    """Judge a number or percentage of replicas."""
    if isinstance(value, str):
        if not value.endswith("%") or not value[:-1].isdecimal():
            yield FieldError.invalid(path, value, _PERCENT_WORDS)
        elif int(value[:-1]) > 100:
            yield FieldError.invalid(path, value, "must not be greater than 100%")
    else:
        yield from at_least(value, path)


def deployment(obj: Object) -> Errors:
    """Judge a Deployment."""
    spec: Mapping[str, Any] = obj["spec"]
    yield from at_least(spec.get("replicas"), "spec.replicas")
    yield from _selector(spec, "deployment")
    yield from _template(spec)
    yield from _strategy(spec.get("strategy") or {})
    yield from at_least(spec.get("minReadySeconds"), "spec.minReadySeconds")
    yield from at_least(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit")
    deadline = spec.get("progressDeadlineSeconds")
    yield from at_least(deadline, "spec.progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        yield FieldError.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _strategy(strategy: Mapping[str, Any]) -> Errors:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            told = "may not be specified when strategy `type` is 'Recreate'"
            yield FieldError.forbidden("spec.strategy.rollingUpdate", told)
    elif kind == "RollingUpdate":
        if rolling is None:
            told = "this should be defaulted and never be nil"
            yield FieldError.required("spec.strategy.rollingUpdate", told)
            return
        yield from _part(rolling.get("maxUnavailable"), "spec.strategy.rollingUpdate.maxUnavailable")
        yield from _part(rolling.get("maxSurge"), "spec.strategy.rollingUpdate.maxSurge")
        if all(rolling.get(name) in (0, "0%") for name in ("maxUnavailable", "maxSurge")):
            told = "may not be 0 when `maxSurge` is 0"
            path = "spec.strategy.rollingUpdate.maxUnavailable"
            yield FieldError.invalid(path, rolling.get("maxUnavailable"), told)
    else:
        yield FieldError.not_supported("spec.strategy.type", kind, ["Recreate", "RollingUpdate"])


def deployment_status(obj: Object) -> Errors:
    """Judge the numbers that a controller reports."""
    status: Mapping[str, Any] = obj.get("status") or {}
    total = status.get("replicas", 0)
    for name in ("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas"):
        yield from at_least(status.get(name), f"status.{name}")
    for name in ("updatedReplicas", "readyReplicas", "availableReplicas"):
        if status.get(name, 0) > total:
            told = "cannot be greater than status.replicas"
            yield FieldError.invalid(f"status.{name}", status.get(name, 0), told)
    if status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
        told = "cannot be greater than readyReplicas"
        yield FieldError.invalid("status.availableReplicas", status.get("availableReplicas", 0), told)


def replica_set(obj: Object) -> Errors:
    """Judge a ReplicaSet."""
    spec: Mapping[str, Any] = obj["spec"]
    yield from at_least(spec.get("replicas"), "spec.replicas")
    yield from at_least(spec.get("minReadySeconds"), "spec.minReadySeconds")
    yield from _selector(spec, "deployment")
    yield from _template(spec)


def controller(obj: Object) -> Errors:
    """Judge a ReplicationController: its selector is a plain map."""
    spec: Mapping[str, Any] = obj["spec"]
    selector: Mapping[str, str] = spec.get("selector") or {}
    yield from at_least(spec.get("minReadySeconds"), "spec.minReadySeconds")
    if not selector:
        yield FieldError.required("spec.selector")
    yield from at_least(spec.get("replicas"), "spec.replicas")
    if spec.get("template") is None:
        yield FieldError.required("spec.template")
        return
    labels = _labels(spec) or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        yield FieldError.invalid("spec.template.metadata.labels", dict(labels), _NOT_MATCHING)
    yield from template(spec, "spec")


def daemon_set(obj: Object) -> Errors:
    """Judge a DaemonSet."""
    spec: Mapping[str, Any] = obj["spec"]
    yield from _selector(spec, "daemonset")
    yield from _template(spec)
    yield from at_least(spec.get("minReadySeconds"), "spec.minReadySeconds")
    strategy: Mapping[str, Any] = spec.get("updateStrategy") or {}
    yield from one_of(strategy.get("type"), "spec.updateStrategy.type", ("RollingUpdate", "OnDelete"))
    yield from at_least(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit")


def stateful_set(obj: Object) -> Errors:
    """Judge a StatefulSet."""
    spec: Mapping[str, Any] = obj["spec"]
    policy = spec.get("podManagementPolicy")
    if not policy:
        yield FieldError.required("spec.podManagementPolicy")
    elif policy not in _STS_POLICIES:
        told = "must be 'OrderedReady' or 'Parallel'"
        yield FieldError.invalid("spec.podManagementPolicy", policy, told)
    yield from _set_strategy(spec.get("updateStrategy") or {})
    retention: Mapping[str, Any] = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for field in ("whenDeleted", "whenScaled"):
        path = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
        yield from one_of(retention.get(field), path, ("Retain", "Delete"))
    yield from at_least(spec.get("replicas"), "spec.replicas")
    yield from at_least(spec.get("minReadySeconds"), "spec.minReadySeconds")
    yield from at_least((spec.get("ordinals") or {}).get("start"), "spec.ordinals.start")
    yield from _selector(spec, "statefulset")
    yield from _template(_with_claims(spec), what="StatefulSet")
    for place, claim in enumerate(items(spec, "volumeClaimTemplates")):
        if not (claim.get("metadata") or {}).get("name"):
            yield FieldError.required(f"spec.volumeClaimTemplates[{place}].metadata.name")


def _set_strategy(strategy: Mapping[str, Any]) -> Errors:
    kind, rolling, path = strategy.get("type"), strategy.get("rollingUpdate"), "spec.updateStrategy"
    shown = "null"
    if rolling is not None:
        shown = f'{{"Partition":{rolling.get("partition", "null")},"MaxUnavailable":null}}'
    if not kind:
        yield FieldError.required(path)
    elif kind not in ("RollingUpdate", "OnDelete"):
        whole = Shown(f'{{"Type":"{kind}","RollingUpdate":{shown}}}')
        yield FieldError.invalid(path, whole, "must be 'RollingUpdate' or 'OnDelete'")
    elif kind == "OnDelete" and rolling is not None:
        told = "only allowed for updateStrategy 'RollingUpdate'"
        yield FieldError.invalid(f"{path}.rollingUpdate", Shown(shown), told)
    elif rolling is not None:
        yield from at_least(rolling.get("partition"), f"{path}.rollingUpdate.partition")


def _with_claims(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the spec with the template that Pods get: with the volumes of its claims, and names of their own."""
    inner = (spec.get("template") or {}).get("spec") or {}
    names = [(one.get("metadata") or {}).get("name") for one in items(spec, "volumeClaimTemplates")]
    claims = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names if name]
    volumes = [*claims, *(one for one in items(inner, "volumes") if one.get("name") not in names)]
    kept = {name: value for name, value in inner.items() if name not in ("hostname", "subdomain")}
    return {**spec, "template": {**(spec.get("template") or {}), "spec": {**kept, "volumes": volumes}}}


def _set_status(status: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    counts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    for name in ("replicas", *counts, "observedGeneration", "collisionCount"):
        yield from at_least(status.get(name), f"status.{name}")
    for name in counts:
        if status.get(name, 0) > status.get("replicas", 0):
            yield FieldError.invalid(f"status.{name}", status[name], "cannot be greater than status.replicas")
    if status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
        told = "cannot be greater than status.readyReplicas"
        yield FieldError.invalid("status.availableReplicas", status["availableReplicas"], told)
    if old.get("collisionCount") is not None and (status.get("collisionCount") or 0) < old["collisionCount"]:
        told = "cannot be decremented"
        yield FieldError.invalid("status.collisionCount", status.get("collisionCount") or 0, told)


def fixed_selector(judge: Callable[[Object], Errors]) -> Callable[[Object, Object], Errors]:
    """Add to the rules of a kind that its selector never changes."""

    def update(obj: Object, old: Object) -> Errors:
        yield from judge(obj)
        yield from immutable(obj["spec"].get("selector"), old["spec"].get("selector"), "spec.selector")

    return update


def revision_update(obj: Object, old: Object) -> Errors:
    """Judge a change of a ControllerRevision: what it keeps stays."""
    yield from immutable(obj.get("data"), old.get("data"), "data")


def stateful_set_update(obj: Object, old: Object) -> Errors:
    """Judge a change of a StatefulSet: what its Pods are made from stays."""
    if obj.get("status") != old.get("status"):
        yield from _set_status(obj.get("status") or {}, old.get("status") or {})
    yield from stateful_set(obj)
    kept = {name: value for name, value in obj["spec"].items() if name not in _STS_MAY_CHANGE}
    if kept != {name: value for name, value in old["spec"].items() if name not in _STS_MAY_CHANGE}:
        yield FieldError.forbidden("spec", _STS_FIELDS)
