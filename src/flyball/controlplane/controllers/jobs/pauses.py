"""Pauses before the next try: the first is ten seconds, each is twice the one before, and none is over ten minutes.

How many Pods have failed since the last success is remembered here, not in the status. After a restart it is counted
from the Pods that are still there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from flyball.api import find_condition
from flyball.controller import Request
from flyball.k8s.core.v1 import ContainerStatus, Pod

__all__ = ["Memory", "Remembered", "Streak", "ended_at", "left_of_pause"]

_FIRST: Final = 10.0
_LONGEST: Final = 600.0
_FIRST_REFUSED: Final = 1.0
_LONGEST_REFUSED: Final = 60.0


def ended_at(pod: Pod) -> datetime:
    """Return when a Pod ended, as well as that can be told.

    When all of its containers had ended; else since when it is not ready; else when its deletion was asked for; else
    when it was made.
    """
    moment = _containers_ended(pod)
    if moment is not None:
        return moment
    ready = find_condition(pod.status.conditions, "Ready")
    if ready is not None and ready.status == "False" and ready.last_transition_time is not None:
        return ready.last_transition_time
    deleted, created = pod.metadata.deletion_timestamp, pod.metadata.creation_timestamp
    if deleted is not None:
        return deleted - timedelta(seconds=pod.metadata.deletion_grace_period_seconds or 0)
    assert created is not None, "what comes from a server has a time of creation"
    return created


def _containers_ended(pod: Pod) -> datetime | None:
    sidecars = {one.name for one in pod.spec.init_containers or () if one.restart_policy == "Always"}
    inits = [one for one in pod.status.init_container_statuses or () if one.name in sidecars]
    moments = [_finished(one) for one in [*(pod.status.container_statuses or ()), *inits]]
    known = [one for one in moments if one is not None]
    return max(known) if known and len(known) == len(moments) else None


def _finished(container: ContainerStatus) -> datetime | None:
    ended = container.state.terminated if container.state is not None else None
    return ended.finished_at if ended is not None else None


def left_of_pause(failures: int, last: datetime | None, now: datetime) -> float:
    """Return how many seconds are left of the pause after so many failures in a row, of which this was the last."""
    if not failures or last is None:
        return 0.0
    pause = min(_FIRST * 2.0 ** min(failures - 1, 10), _LONGEST)
    return max(0.0, pause - (now - last).total_seconds())


@dataclass(frozen=True, slots=True)
class Streak:
    """Failures of a Job since its last success."""

    failures: int = 0
    last: datetime | None = None

    def after(self, succeeded: Iterable[Pod], failed: Iterable[Pod]) -> Streak:
        """Return what it is when these Pods have ended, too."""
        successes, failures = [ended_at(pod) for pod in succeeded], [ended_at(pod) for pod in failed]
        if not successes:
            return Streak(self.failures + len(failures), max(failures)) if failures else self
        later = [one for one in failures if one > max(successes)]
        return Streak(len(later), max(later, default=None))

    def left(self, now: datetime) -> float:
        """Return how many seconds are left until the next try."""
        return left_of_pause(self.failures, self.last, now)


@dataclass(slots=True)
class Remembered:
    """What is remembered of one Job."""

    uid: str
    streak: Streak | None = None
    refusals: int = 0

    def refused(self) -> float:
        """Note that a Pod could not be made or deleted; return the seconds until the next attempt."""
        self.refusals += 1
        return float(min(_FIRST_REFUSED * 2.0 ** min(self.refusals - 1, 10), _LONGEST_REFUSED))


@dataclass(slots=True)
class Memory:
    """What the controller remembers of its Jobs, and can find out again when it is lost."""

    _known: dict[Request, Remembered] = field(default_factory=dict[Request, Remembered])

    def of(self, request: Request, uid: str) -> Remembered:
        """Return what is remembered of a Job: of this one, not of an earlier one with its name."""
        found = self._known.get(request)
        if found is None or found.uid != uid:
            found = self._known[request] = Remembered(uid)
        return found

    def forget(self, request: Request) -> None:
        """Forget a Job that has ended or gone."""
        self._known.pop(request, None)
