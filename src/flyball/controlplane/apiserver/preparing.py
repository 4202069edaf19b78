"""What the server itself writes into new and changed objects of built-in kinds, beyond their defaults.

Each function brings an object in order just before it is admitted; nobody manages these fields. What needs to know of
other objects is not here but in `admission`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from flyball.api.quantity import Quantity
from flyball.api.structural import same

__all__ = [
    "clear_balancer",
    "count_templates",
    "drop_unavailable",
    "keep_claim_status",
    "keep_namespace_finalizers",
    "keep_spec",
    "prepare_job",
    "prepare_namespace",
    "prepare_pod",
    "prepare_volume",
    "quality_of",
    "sync_account",
    "update_pod",
]

Object = dict[str, Any]

_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
_JOB_LABELS: Final = (
    *("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"),
    *("controller-uid", "job-name"),
)
_GATED: Final = "Scheduling is blocked due to non-empty scheduling gates"
_COMPUTE: Final = ("cpu", "memory")


# Namespaces and volumes


def prepare_namespace(obj: Object) -> None:
    """Mark a new namespace as active, to be emptied before it goes."""
    finalizers = (obj.get("spec") or {}).get("finalizers") or []
    obj["spec"] = {"finalizers": finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]}
    obj["status"] = {"phase": "Active"}
    obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = obj["metadata"].get("name", "")


def keep_namespace_finalizers(obj: Object, old: Object) -> None:
    """Leave the finalizers of a namespace to the endpoint that writes them."""
    obj["spec"] = {**(obj.get("spec") or {}), "finalizers": (old.get("spec") or {}).get("finalizers")}


def prepare_volume(obj: Object) -> None:
    """Mark a new volume as not yet bound."""
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": obj["metadata"]["creationTimestamp"]}


def keep_claim_status(obj: Object) -> None:
    """Mark a new claim as not yet bound."""
    obj["status"] = {"phase": "Pending"}


def clear_balancer(obj: Object, old: Object) -> None:
    """Forget where the balancer of a Service is reached that has none any more."""
    if old["spec"].get("type") == "LoadBalancer" != obj["spec"].get("type"):
        obj["status"] = {**(obj.get("status") or {}), "loadBalancer": {}}


def keep_spec(obj: Object, old: Object) -> None:
    """Keep what may never change."""
    obj["spec"] = old["spec"]


# Workloads


def prepare_job(obj: Object) -> None:
    """Give a new job labels that tell its pods from those of others, unless it brings a selector of its own."""
    spec = obj["spec"]
    if spec.get("manualSelector"):
        return
    uid, name = obj["metadata"]["uid"], obj["metadata"].get("name", "")
    values = dict(zip(_JOB_LABELS, (uid, name, uid, name), strict=True))
    template = spec.setdefault("template", {})
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    for key, value in values.items():
        labels.setdefault(key, value)
    selector = spec.get("selector") or {}
    chosen = dict(selector.get("matchLabels") or {})
    chosen.setdefault(_JOB_LABELS[0], labels[_JOB_LABELS[0]])
    spec["selector"] = {**selector, "matchLabels": chosen}
    if not obj["metadata"].get("labels") or obj["metadata"]["labels"] is labels:
        obj["metadata"]["labels"] = dict(labels)


def count_templates(obj: Object, old: Object) -> None:
    """Count the templates of a daemon set in an annotation that old clients read."""
    before = (old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "0")
    number = int(before) if before.isdecimal() else 0
    if not same(obj["spec"].get("template"), old["spec"].get("template")):
        number += 1
    obj["metadata"].setdefault("annotations", {})[_TEMPLATE_GENERATION] = str(number)


def drop_unavailable(obj: Object, old: Object | None = None) -> None:
    """Drop what a StatefulSet says of members that may be missing: the feature is off unless somebody turns it on."""
    del old
    ((obj["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}).pop("maxUnavailable", None)


# Pods


def sync_account(spec: Object) -> None:
    """Write the name of the account under its old name too."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def prepare_pod(obj: Object) -> None:
    """Give a new pod its first status."""
    spec = obj["spec"]
    status: Object = {"phase": "Pending"}
    if spec.get("schedulingGates"):
        condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": _GATED}
        status["conditions"] = [
            {**condition, "lastProbeTime": None, "lastTransitionTime": obj["metadata"]["creationTimestamp"]}
        ]
    obj["status"] = {**status, "qosClass": quality_of(spec)}


def update_pod(obj: Object, old: Object) -> None:
    """Keep the quality that a pod was made with."""
    quality = (old.get("status") or {}).get("qosClass")
    if quality:
        obj.setdefault("status", {}).setdefault("qosClass", quality)


def quality_of(spec: Mapping[str, Any]) -> str:
    """Return the class of service that a pod gets for what it asks for."""
    if spec.get("resources"):
        return _quality([spec["resources"]])
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return _quality([container.get("resources") or {} for container in containers])


def _quality(resources: Iterable[Mapping[str, Any]]) -> str:
    requests: dict[str, Decimal] = {}
    limits: dict[str, Decimal] = {}
    every = True
    for one in resources:
        for name, amount in _computing(one.get("requests")):
            requests[name] = requests.get(name, 0) + amount
        given = set[str]()
        for name, amount in _computing(one.get("limits")):
            given.add(name)
            limits[name] = limits.get(name, 0) + amount
        every = every and given == set(_COMPUTE)
    if not requests and not limits:
        return "BestEffort"
    if every and all(limits.get(name) == amount for name, amount in requests.items()) and len(requests) == len(limits):
        return "Guaranteed"
    return "Burstable"


def _computing(amounts: Mapping[str, Any] | None) -> Iterable[tuple[str, Decimal]]:
    for name in _COMPUTE:
        amount = Quantity(str((amounts or {}).get(name) or 0)).value
        if amount > 0:
            yield name, amount
