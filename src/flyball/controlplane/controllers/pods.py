"""What controllers of workloads ask about Pods, and how they make them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import datetime

from flyball.api import find_condition
from flyball.k8s.core.v1 import Pod, PodTemplateSpec
from flyball.k8s.meta.v1 import ObjectMeta

__all__ = ["is_active", "is_available", "is_ready", "new_pod", "phase_of", "ranked_for_deletion"]

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def is_active(pod: Pod) -> bool:
    """Tell whether a Pod works or will: it has not ended, and nobody is deleting it."""
    return phase_of(pod) not in ("Succeeded", "Failed") and pod.metadata.deletion_timestamp is None


def phase_of(pod: Pod) -> str:
    """Return the phase, `Pending` while nobody has said anything."""
    return pod.status.phase or "Pending"


def is_ready(pod: Pod) -> bool:
    """Tell whether a Pod serves."""
    found = find_condition(pod.status.conditions, "Ready")
    return found is not None and found.status == "True"


def is_available(pod: Pod, min_ready_seconds: int, now: datetime) -> bool:
    """Tell whether a Pod has been serving for long enough."""
    found = find_condition(pod.status.conditions, "Ready")
    if found is None or found.status != "True":
        return False
    since = found.last_transition_time
    return not min_ready_seconds or (since is not None and (now - since).total_seconds() >= min_ready_seconds)


def new_pod(template: PodTemplateSpec, prefix: str) -> Pod:
    """Make a Pod of a template; the server completes its name."""
    given = template.metadata if template.metadata is not None else ObjectMeta()
    metadata = ObjectMeta(
        generate_name=prefix,
        labels=dict(given.labels),
        annotations=dict(given.annotations),
        finalizers=list(given.finalizers),
    )
    pod = Pod(metadata=metadata)
    if template.spec is not None:
        pod.spec = copy.deepcopy(template.spec)
    return pod


def ranked_for_deletion(pods: Sequence[Pod]) -> list[Pod]:
    """Return Pods in the order in which they can be missed: unassigned, pending, not ready, cheap, and young first."""
    return sorted(pods, key=_worth)


def _worth(pod: Pod) -> tuple[bool, int, bool, int, float]:
    phases = {"Pending": 0, "Unknown": 1, "Running": 2}
    cost = pod.metadata.annotations.get(_DELETION_COST, "0")
    created = pod.metadata.creation_timestamp
    age = created.timestamp() if created is not None else 0.0
    return (
        bool(pod.spec.node_name),
        phases.get(phase_of(pod), 1),
        is_ready(pod),
        int(cost) if cost.lstrip("-").isdecimal() else 0,
        -age,
    )
