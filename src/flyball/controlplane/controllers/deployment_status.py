"""What a Deployment tells of its rollout: numbers, and the conditions Available, Progressing and ReplicaFailure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from flyball.api import find_condition
from flyball.controller import Context
from flyball.controlplane.controllers.rolling import Limits
from flyball.k8s.apps.v1 import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet

__all__ = ["CREATE_ERROR", "FOUND", "MADE", "state", "tell", "tell_numbers", "tell_pause"]

PROGRESSING: Final = "Progressing"
MADE, FOUND, CREATE_ERROR = "NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetCreateError"
_DONE, _UNDER_WAY, _LATE = "NewReplicaSetAvailable", "ReplicaSetUpdated", "ProgressDeadlineExceeded"
_PAUSED, _RESUMED = "DeploymentPaused", "DeploymentResumed"
_FAILURE: Final = "ReplicaFailure"
_NO_DEADLINE: Final = 2**31 - 1
_SLACK: Final = timedelta(seconds=1)
"""A deadline is looked at a second after it: times are kept in whole seconds."""


def has_deadline(deployment: Deployment) -> bool:
    """Tell whether the progress of a Deployment is watched at all."""
    return deployment.spec.progress_deadline_seconds not in (None, _NO_DEADLINE)


def state(deployment: Deployment, type_: str, word: str, reason: str, message: str, now: datetime) -> None:
    """State a condition. The same word for the same reason stays as it was said first."""
    found = find_condition(deployment.status.conditions, type_)
    if found is not None and (found.status, found.reason) == (word, reason):
        return
    moment = now.replace(microsecond=0)
    since = found.last_transition_time if found is not None and found.status == word else moment
    _replace(deployment, _condition(type_, word, reason, message, since, moment))


def _condition(
    type_: str, word: str, reason: str | None, message: str | None, since: datetime | None, updated: datetime | None
) -> DeploymentCondition:
    return DeploymentCondition(
        type=type_, status=word, reason=reason, message=message, last_transition_time=since, last_update_time=updated
    )


def _replace(deployment: Deployment, condition: DeploymentCondition) -> None:
    _drop(deployment, condition.type)
    deployment.status.conditions = [*(deployment.status.conditions or ()), condition]


def _drop(deployment: Deployment, type_: str) -> None:
    if find_condition(deployment.status.conditions, type_) is not None:
        deployment.status.conditions = [one for one in deployment.status.conditions or () if one.type != type_]


def tell_pause(deployment: Deployment, now: datetime) -> None:
    """State that a rollout waits, or goes on; not of one that is late already."""
    found = find_condition(deployment.status.conditions, PROGRESSING)
    if not has_deadline(deployment) or (found is not None and found.reason == _LATE):
        return
    paused = found is not None and found.reason == _PAUSED
    if deployment.spec.paused and not paused:
        state(deployment, PROGRESSING, "Unknown", _PAUSED, "Deployment is paused", now)
    elif not deployment.spec.paused and paused:
        state(deployment, PROGRESSING, "Unknown", _RESUMED, "Deployment is resumed", now)


def tell_numbers(deployment: Deployment, sets: Sequence[ReplicaSet], newest: ReplicaSet | None, now: datetime) -> None:
    """Tell how many Pods there are, and whether those are enough."""
    status, limits = deployment.status, Limits.of(deployment)
    available = sum(one.status.available_replicas or 0 for one in sets)
    wanted = sum(1 if one.spec.replicas is None else one.spec.replicas for one in sets)
    status.observed_generation = deployment.metadata.generation
    status.replicas = sum(one.status.replicas or 0 for one in sets) or None
    status.updated_replicas = (newest.status.replicas if newest is not None else 0) or None
    status.ready_replicas = sum(one.status.ready_replicas or 0 for one in sets) or None
    status.available_replicas = available or None
    status.unavailable_replicas = max(wanted - available, 0) or None
    status.terminating_replicas = _terminating(sets)
    enough = available >= limits.least
    word, reason = ("True", "MinimumReplicasAvailable") if enough else ("False", "MinimumReplicasUnavailable")
    message = f"Deployment {'has' if enough else 'does not have'} minimum availability."
    state(deployment, "Available", word, reason, message, now)


def _terminating(sets: Sequence[ReplicaSet]) -> int | None:
    """Return how many Pods are on their way out; None when a set that was looked at does not know."""
    known = [
        one.status for one in sets if one.status.observed_generation or one.status.terminating_replicas is not None
    ]
    if any(one.terminating_replicas is None for one in known):
        return None
    return sum(one.terminating_replicas or 0 for one in known)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a rollout is."""

    updated: int
    old: int
    ready: int
    available: int

    @classmethod
    def of(cls, status: DeploymentStatus) -> Progress:
        """Read it."""
        updated = status.updated_replicas or 0
        old = (status.replicas or 0) - updated
        return cls(updated, old, status.ready_replicas or 0, status.available_replicas or 0)

    def is_beyond(self, before: Progress) -> bool:
        """Tell whether it got further."""
        return (
            self.updated > before.updated
            or self.old < before.old
            or self.ready > before.ready
            or self.available > before.available
        )


def is_complete(deployment: Deployment) -> bool:
    """Tell whether all Pods, and only those, are of the newest template and available, as far as the status knows."""
    status, replicas = deployment.status, Limits.of(deployment).replicas
    numbers = (status.updated_replicas or 0, status.replicas or 0, status.available_replicas or 0)
    return numbers == (replicas,) * 3 and (status.observed_generation or 0) >= (deployment.metadata.generation or 0)


def tell(deployment: Deployment, sets: Sequence[ReplicaSet], newest: ReplicaSet | None, ctx: Context) -> None:
    """Tell everything at the end of a step of a rollout, and look again when its deadline is over."""
    before, now = Progress.of(deployment.status), ctx.now()
    tell_numbers(deployment, sets, newest, now)
    if not has_deadline(deployment):
        _drop(deployment, PROGRESSING)
    else:
        _tell_progress(deployment, newest, Progress.of(deployment.status).is_beyond(before), now)
        _look_again(deployment, ctx)
    _tell_failure(deployment, sets, newest)


def _tell_progress(deployment: Deployment, newest: ReplicaSet | None, moved: bool, now: datetime) -> None:
    status = deployment.status
    found = find_condition(status.conditions, PROGRESSING)
    if found is not None and found.reason == _DONE and status.replicas == status.updated_replicas:
        return  # the rollout has succeeded; that Pods are missing since then is another matter
    name = f'ReplicaSet "{newest.metadata.name}"' if newest is not None else f'Deployment "{deployment.metadata.name}"'
    if is_complete(deployment):
        state(deployment, PROGRESSING, "True", _DONE, f"{name} has successfully progressed.", now)
    elif moved:
        moment = now.replace(microsecond=0)
        since = found.last_transition_time if found is not None and found.status == "True" else moment
        message = f"{name} is progressing."
        _replace(deployment, _condition(PROGRESSING, "True", _UNDER_WAY, message, since, moment))
    elif found is not None and _is_late(deployment, found, now):
        state(deployment, PROGRESSING, "False", _LATE, f"{name} has timed out progressing.", now)


def _is_late(deployment: Deployment, found: DeploymentCondition, now: datetime) -> bool:
    if found.reason in (_DONE, _LATE):
        return found.reason == _LATE
    due = _due(deployment, found)
    return due is not None and now > due


def _due(deployment: Deployment, found: DeploymentCondition) -> datetime | None:
    seconds, since = deployment.spec.progress_deadline_seconds, found.last_update_time
    return None if seconds is None or since is None else since + timedelta(seconds=seconds)


def _look_again(deployment: Deployment, ctx: Context) -> None:
    found = find_condition(deployment.status.conditions, PROGRESSING)
    if found is None or found.reason in (_DONE, _LATE) or is_complete(deployment):
        return
    due = _due(deployment, found)
    if due is not None:
        ctx.requeue(at=due + _SLACK)


def _tell_failure(deployment: Deployment, sets: Sequence[ReplicaSet], newest: ReplicaSet | None) -> None:
    """Repeat what the sets say about Pods that cannot be made, the newest one first."""
    ordered = [*([newest] if newest is not None else []), *sets]
    found = next((one for each in ordered if (one := find_condition(each.status.conditions, _FAILURE))), None)
    if found is None:
        _drop(deployment, _FAILURE)
        return
    present = find_condition(deployment.status.conditions, _FAILURE)
    if present is None or (present.status, present.reason) != (found.status, found.reason):
        since = found.last_transition_time
        _replace(deployment, _condition(_FAILURE, found.status, found.reason, found.message, since, since))
