"""The Pods of a Job: how they are made, what tells them apart, and which of them have failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from flyball.api import find_condition
from flyball.controlplane.controllers.pods import is_ready, is_terminating, new_pod, phase_of
from flyball.k8s.batch.v1 import Job
from flyball.k8s.core.v1 import Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod, PodTemplateSpec

__all__ = [
    "FAILURES",
    "IGNORED_FAILURES",
    "TRACKING",
    "has_failed",
    "index_of",
    "is_indexed",
    "is_tracked",
    "number_in",
    "pod_for",
    "replaces_only_failed",
    "surplus",
]

TRACKING: Final = "batch.kubernetes.io/job-tracking"
"""The finalizer by which a Pod waits until it is counted."""
FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
"""Annotations that say how often the Pods of this index had failed when this one was made."""
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_LONGEST_PREFIX: Final = 58
_LARGEST: Final = 2**31 - 1


def is_indexed(job: Job) -> bool:
    """Tell whether each Pod of a Job has an index to do."""
    return job.spec.completion_mode == "Indexed"


def is_tracked(pod: Pod) -> bool:
    """Tell whether a Pod still waits to be counted."""
    return TRACKING in pod.metadata.finalizers


def replaces_only_failed(job: Job) -> bool:
    """Tell whether a Pod is replaced only when it has really ended, not when its deletion begins."""
    return job.spec.pod_replacement_policy == "Failed" or job.spec.pod_failure_policy is not None


def has_failed(pod: Pod, job: Job) -> bool:
    """Tell whether a Pod has failed.

    One that is being deleted has, unless only real failures are replaced, or it goes because the Job goes.
    """
    if phase_of(pod) == "Failed":
        return True
    return is_terminating(pod) and not replaces_only_failed(job) and job.metadata.deletion_timestamp is None


def index_of(pod: Pod, job: Job) -> int | None:
    """Return the index of a Pod, None when it has none that the Job asks for."""
    text = pod.metadata.annotations.get(_INDEX, "")
    index = int(text) if text.isdecimal() else -1
    return index if 0 <= index < (job.spec.completions or 0) else None


def number_in(pod: Pod, annotation: str) -> int:
    """Return the number that an annotation holds, 0 when it is none."""
    text = pod.metadata.annotations.get(annotation, "")
    number = int(text) if text.isdecimal() else 0
    return number if number <= _LARGEST else 0


def pod_for(job: Job, index: int | None = None) -> Pod:
    """Make a new Pod of a Job, for an index if there is one; the server completes its name."""
    name = job.metadata.name
    pod = new_pod(job.spec.template or PodTemplateSpec(), _prefix(name, "" if index is None else f"-{index}"))
    pod.metadata.namespace = job.metadata.namespace
    if TRACKING not in pod.metadata.finalizers:
        pod.metadata.finalizers = [*pod.metadata.finalizers, TRACKING]
    if index is not None:
        pod.metadata.annotations[_INDEX] = str(index)
        pod.metadata.labels[_INDEX] = str(index)
        pod.spec.hostname = f"{name}-{index}"
        for container in [*(pod.spec.init_containers or ()), *pod.spec.containers]:
            _tell_index(container)
    return pod


def _prefix(name: str, index: str) -> str:
    """Begin a name; of an indexed one the index is kept when it is too long."""
    tail = f"{index}-"
    return (
        f"{name}{tail}"
        if not index or len(name + tail) <= _LONGEST_PREFIX
        else name[: _LONGEST_PREFIX - len(tail)] + tail
    )


def _tell_index(container: Container) -> None:
    """Let a container know its index, unless it says something itself."""
    if any(one.name == _INDEX_VARIABLE for one in container.env or ()):
        return
    source = EnvVarSource(field_ref=ObjectFieldSelector(field_path=f"metadata.labels['{_INDEX}']"))
    container.env = [*(container.env or []), EnvVar(name=_INDEX_VARIABLE, value_from=source)]


def surplus(job: Job, active: Sequence[Pod], at_least: int) -> list[Pod]:
    """Choose the Pods that have to go: those without an index of their own, and then the least useful, so many."""
    if not is_indexed(job):
        return _ranked(active)[:at_least]
    gone: list[Pod] = []
    left: dict[int, Pod] = {}
    for pod in reversed(_ranked(active)):
        index = index_of(pod, job)
        if index is None or index in left:
            gone.append(pod)
        else:
            left[index] = pod
    return [*gone, *_ranked(left.values())[: max(0, at_least - len(gone))]]


def _ranked(pods: Iterable[Pod]) -> list[Pod]:
    """Return Pods in the order in which they can be missed."""
    return sorted(pods, key=_worth)


def _worth(pod: Pod) -> tuple[bool, int, bool, float, int, float]:
    phases = {"Pending": 0, "Unknown": 1, "Running": 2}
    ready = find_condition(pod.status.conditions, "Ready")
    since = ready.last_transition_time if ready is not None and is_ready(pod) else None
    restarts = [one.restart_count or 0 for one in pod.status.container_statuses or ()]
    created = pod.metadata.creation_timestamp
    return (
        bool(pod.spec.node_name),
        phases.get(phase_of(pod), 1),
        is_ready(pod),
        -since.timestamp() if since is not None else 0.0,
        -max(restarts, default=0),
        -created.timestamp() if created is not None else 0.0,
    )
