"""What controllers of workloads ask about Pods, and how they make them."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cmp_to_key

from flyball.api import find_condition
from flyball.k8s.core.v1 import Pod, PodTemplateSpec
from flyball.k8s.meta.v1 import ObjectMeta

__all__ = [
    "available_at",
    "is_active",
    "is_available",
    "is_ready",
    "is_terminating",
    "new_pod",
    "phase_of",
    "ranked_for_deletion",
]

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def is_active(pod: Pod) -> bool:
    """Tell whether a Pod works or will: it has not ended, and nobody is deleting it."""
    return phase_of(pod) not in ("Succeeded", "Failed") and pod.metadata.deletion_timestamp is None


def is_terminating(pod: Pod) -> bool:
    """Tell whether a Pod is being deleted and has not ended yet."""
    return phase_of(pod) not in ("Succeeded", "Failed") and pod.metadata.deletion_timestamp is not None


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


def available_at(pod: Pod, min_ready_seconds: int) -> datetime | None:
    """Return from when on a Pod that is ready now will have been so for long enough; None if it does not say since."""
    since = _ready_since(pod)
    return None if since is None else since + timedelta(seconds=min_ready_seconds)


def _ready_since(pod: Pod) -> datetime | None:
    found = find_condition(pod.status.conditions, "Ready")
    return found.last_transition_time if found is not None and found.status == "True" else None


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


def ranked_for_deletion(pods: Sequence[Pod], *, now: datetime | None = None, related: Iterable[Pod] = ()) -> list[Pod]:
    """Return Pods in the order in which they can be missed.

    First those that are unassigned, pending, not ready, cheap (by their annotation), on a node with many of the
    `related` Pods, ready for a shorter time, restarted more often, and younger. With `now`, ages of the same order of
    magnitude count as equal, and then chance (their uids) decides: so that not always the same Pods live long.
    """
    crowds = Counter(pod.spec.node_name for pod in related if is_active(pod))

    def compare(one: Pod, two: Pod) -> int:
        return _compare(one, two, crowds, now)

    return sorted(pods, key=cmp_to_key(compare))


def _compare(one: Pod, two: Pod, crowds: Mapping[str | None, int], now: datetime | None) -> int:
    for worth in (_standing, lambda pod: (-crowds.get(pod.spec.node_name, 0),)):
        if worth(one) != worth(two):
            return -1 if worth(one) < worth(two) else 1
    if is_ready(one) and is_ready(two):
        order = _younger_first(_ready_since(one), _ready_since(two), one, two, now)
        if order:
            return order
    if _restarts(one) != _restarts(two):
        return -1 if _restarts(one) > _restarts(two) else 1
    return _younger_first(one.metadata.creation_timestamp, two.metadata.creation_timestamp, one, two, now)


def _standing(pod: Pod) -> tuple[int, ...]:
    phases = {"Pending": 0, "Unknown": 1, "Running": 2}
    cost = pod.metadata.annotations.get(_DELETION_COST, "0")
    return (
        bool(pod.spec.node_name),
        phases.get(phase_of(pod), 1),
        is_ready(pod),
        int(cost) if cost.lstrip("-").isdecimal() else 0,
    )


def _restarts(pod: Pod) -> int:
    return max((one.restart_count or 0 for one in pod.status.container_statuses or ()), default=0)


def _younger_first(a: datetime | None, b: datetime | None, one: Pod, two: Pod, now: datetime | None) -> int:
    if a == b:
        return 0
    if a is None or b is None:
        return -1 if a is None else 1
    if now is None:
        return -1 if a > b else 1
    first, second = _magnitude(now - a), _magnitude(now - b)
    if first != second:
        return -1 if first < second else 1
    return -1 if one.metadata.uid < two.metadata.uid else 1


def _magnitude(age: timedelta) -> int:
    nanoseconds = int(age / timedelta(microseconds=1)) * 1000
    return nanoseconds.bit_length() - 1 if nanoseconds > 0 else -1
