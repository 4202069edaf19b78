"""StatefulSets: Pods with names that last, made, replaced and taken away one after the other.

A Pod is known by its ordinal: `web-0` is the same member whichever Pod stands for it. Each pass looks at all of them
and takes the next step only: with `OrderedReady` one that waits keeps those behind it waiting; with `Parallel` only
an update goes one by one. What a member is made from is kept in revisions: those below the partition come from the
current one, the others from the newest.

The Pods of claim templates get their claims made. Nobody binds claims on this cluster, so such a Pod stays Pending.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from flyball.api import origin, to_dict
from flyball.controller import Context, NameConflict, Watches, controller
from flyball.controller.predicates import resource_version_changed
from flyball.controlplane.controllers.claiming import Adopts, claim
from flyball.controlplane.controllers.claims import Claims
from flyball.controlplane.controllers.pods import available_at, is_available, is_ready, new_pod, phase_of
from flyball.controlplane.controllers.revisions import REVISION_LABEL, History, template_of
from flyball.controlplane.controllers.setbacks import Setbacks
from flyball.errors import ApiError, Conflict, RetryAfter
from flyball.k8s.apps.v1 import ControllerRevision, StatefulSet
from flyball.k8s.core.v1 import PersistentVolumeClaim, Pod

__all__ = ["INDEX_LABEL", "NAME_LABEL", "ordinal_of", "statefulsets"]

NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
_setbacks: Final = Setbacks()
_MEMBER: Final = re.compile(r"(.*)-([0-9]+)")


class _Told(Exception):
    """Something went wrong, and what there is to say of it is said."""


def _nobody(claim: PersistentVolumeClaim) -> None:
    """A claim that changes wakes nobody: claims are looked at with their Pods."""
    del claim


@controller(
    StatefulSet,
    owns=[Pod, ControllerRevision],
    watches=[Adopts(Pod), Watches(PersistentVolumeClaim, _nobody)],
    predicates=[resource_version_changed],
    name="statefulset-controller",
    error_condition=None,
    max_concurrent=5,
    while_deleting=True,
)
async def statefulsets(statefulset: StatefulSet, ctx: Context) -> None:
    """Take the next step towards the members that are wanted, and tell how many there are."""
    status, name = statefulset.status, statefulset.metadata.name
    pods = await claim(Pod, statefulset, statefulset.spec.selector, ctx, which=lambda pod: _parent(pod) == name)
    if ctx.deleting:
        tell(statefulset, pods, status.current_revision or "", status.update_revision or "", ctx)
        return
    history = await History.read(statefulset, statefulset.spec.selector, status.collision_count or 0, ctx)
    newest = await history.take_up(_template(statefulset))
    present = history.named(status.current_revision) or newest
    step = _Pass(statefulset, pods, present, newest, ctx)
    try:
        await step.run()
        _setbacks.over(statefulset.metadata.uid)
    except _Told:
        _setbacks.again(statefulset.metadata.uid, ctx)
    finally:
        status.collision_count = history.collisions
        tell(statefulset, pods, present.metadata.name, newest.metadata.name, ctx, replaced=step.replaced)
    used = {present.metadata.name, newest.metadata.name, *(_revision(pod) for pod in pods)}
    await history.forget(statefulset.spec.revision_history_limit, used)
    if status.current_revision != present.metadata.name:
        ctx.requeue()  # the update has ended just now: what it replaced may be forgotten


def ordinal_of(pod: Pod) -> int:
    """Return which member a Pod is, -1 for one whose name says nothing."""
    found = _MEMBER.fullmatch(pod.metadata.name)
    return int(found[2]) if found is not None else -1


def _parent(pod: Pod) -> str:
    found = _MEMBER.fullmatch(pod.metadata.name)
    return found[1] if found is not None else ""


def _template(statefulset: StatefulSet) -> dict[str, Any]:
    """Return the Pod template as the server has it, fields that this version does not know included."""
    raw = origin(statefulset)
    whole = to_dict(statefulset) if raw is None else msgspec.json.decode(raw)
    template: dict[str, Any] = whole["spec"]["template"]
    return template


def _revision(pod: Pod) -> str:
    return pod.metadata.labels.get(REVISION_LABEL, "")


def _is_going(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def _runs(pod: Pod) -> bool:
    return phase_of(pod) == "Running" and is_ready(pod)


@dataclass
class _Pass:
    """One look at a StatefulSet and its Pods."""

    statefulset: StatefulSet
    pods: list[Pod]
    present: ControllerRevision
    """What members below the partition are made from."""
    newest: ControllerRevision
    ctx: Context
    members: dict[int, Pod] = field(init=False)
    """The Pods that are wanted and there, by their ordinals."""
    condemned: list[Pod] = field(init=False)
    """The Pods that are there and not wanted, the last one first."""
    replaced: int = 0
    """How many members this pass has taken away for an update."""

    def __post_init__(self) -> None:
        """Tell wanted Pods from others."""
        self.now = self.ctx.now()
        self.claims = Claims(self.statefulset, self.ctx)
        spec = self.statefulset.spec
        self.start = (spec.ordinals.start or 0) if spec.ordinals is not None else 0
        self.wanted = range(self.start, self.start + _replicas(self.statefulset))
        self.least = spec.min_ready_seconds or 0
        self.in_order = spec.pod_management_policy != "Parallel"
        self.members = {ordinal_of(pod): pod for pod in self.pods if ordinal_of(pod) in self.wanted}
        others = [pod for pod in self.pods if ordinal_of(pod) not in self.wanted]
        self.condemned = sorted(others, key=ordinal_of, reverse=True)

    # What has to be done

    async def run(self) -> None:
        """Take the next step: members first, then those that are too many, then the update."""
        if not await self._complete():
            return
        for pod in self.condemned:
            await self.claims.hand_over(pod, ordinal_of(pod), scaled=True)
        if await self._shrink():
            await self._update()

    async def _complete(self) -> bool:
        """See to each member, in their order; tell whether nothing has to be waited for."""
        for ordinal in self.wanted:
            if not await self._see_to(ordinal) and self.in_order:
                return False
        return True

    async def _see_to(self, ordinal: int) -> bool:
        """Bring one member forward; tell whether those behind it may be looked at."""
        pod = self.members.get(ordinal)
        if pod is None:
            await self._make(ordinal)
            return False
        if phase_of(pod) in ("Failed", "Succeeded"):
            if not _is_going(pod):
                await self._delete(pod)
            return False  # its successor can be made when it is gone
        if phase_of(pod) == "Pending":
            await self.claims.ensure(pod.metadata.name, ordinal)
            await self.claims.hand_over(pod, ordinal, scaled=False)
        if self.in_order and (_is_going(pod) or not self._serves(pod)):
            return False
        await self._repair(pod, ordinal)
        return True

    def _serves(self, pod: Pod) -> bool:
        """Tell whether a Pod runs and has been ready for long enough."""
        return _runs(pod) and is_available(pod, self.least, self.now)

    async def _shrink(self) -> bool:
        """Take Pods away that are too many, the last one first; tell whether nothing has to be waited for."""
        unhealthy = self._first_unhealthy()
        for pod in self.condemned:
            if self.in_order:
                if _is_going(pod) or (not self._serves(pod) and pod is not unhealthy):
                    return False
                await self._delete(pod)
                return False
            if not _is_going(pod):
                await self._delete(pod)
        return True

    def _first_unhealthy(self) -> Pod | None:
        """Return the first Pod that is not available: it must not keep the set from getting smaller."""
        for pod in (*(self.members[one] for one in sorted(self.members)), *reversed(self.condemned)):
            if _is_going(pod) or not is_available(pod, self.least, self.now):
                return pod
        return None

    async def _update(self) -> None:
        """Take away the last member that is not of the newest revision, unless one behind it is not back yet."""
        strategy = self.statefulset.spec.update_strategy
        if strategy is not None and strategy.type == "OnDelete":
            return
        for ordinal in reversed(self.wanted[self._partition() :]):
            pod = self.members.get(ordinal)
            if pod is not None and _revision(pod) != self.newest.metadata.name and not _is_going(pod):
                await self._delete(pod)
                self.replaced += 1
                return
            if pod is None or _is_going(pod) or not is_available(pod, self.least, self.now):
                return

    def _partition(self) -> int:
        strategy = self.statefulset.spec.update_strategy
        rolling = strategy.rolling_update if strategy is not None else None
        return (rolling.partition or 0) if rolling is not None else 0

    # Doing

    async def _make(self, ordinal: int) -> None:
        statefulset = self.statefulset
        name = f"{statefulset.metadata.name}-{ordinal}"
        if await self.claims.are_stale(name, ordinal):
            return
        revision = self.present if self._is_below_partition(ordinal) else self.newest
        pod = new_pod(template_of(revision), f"{statefulset.metadata.name}-")
        pod.metadata.name = name
        pod.metadata.namespace = statefulset.metadata.namespace
        pod.metadata.labels |= {REVISION_LABEL: revision.metadata.name, **_identity(name, ordinal)}
        pod.spec.hostname = name
        pod.spec.subdomain = statefulset.spec.service_name
        pod.spec.volumes = self.claims.mounted(pod.spec.volumes or [], ordinal) or None
        with self._told("Create", name):
            await self.claims.ensure(name, ordinal)
            await self.ctx.create(pod)
        await self.claims.hand_over(pod, ordinal, scaled=False)

    def _is_below_partition(self, ordinal: int) -> bool:
        strategy = self.statefulset.spec.update_strategy
        if strategy is not None and strategy.rolling_update is not None:
            return ordinal < self.start + self._partition()
        return _rolls(self.statefulset) and ordinal < self.start + (self.statefulset.status.current_replicas or 0)

    async def _delete(self, pod: Pod) -> None:
        with self._told("Delete", pod.metadata.name):
            await self.ctx.delete(pod)

    async def _repair(self, pod: Pod, ordinal: int) -> None:
        """Give a member back what makes it one, and its claims their owner."""
        wrong = pod.metadata.labels.get(NAME_LABEL) != pod.metadata.name
        fits = self.claims.fit(pod, ordinal)
        if wrong:
            pod.metadata.labels |= _identity(pod.metadata.name, ordinal)
        if not fits:
            await self.claims.ensure(pod.metadata.name, ordinal)
            pod.spec.volumes = self.claims.mounted(pod.spec.volumes or [], ordinal)
        handed = await self.claims.hand_over(pod, ordinal, scaled=False)
        if wrong or not fits:
            with self._told("Update", pod.metadata.name):
                await self.ctx.patch(pod)
        elif handed:
            self._say("Update", pod.metadata.name)

    @contextmanager
    def _told(self, verb: str, name: str) -> Generator[None]:
        """Tell by an Event how it went; raises _Told when it went wrong."""
        try:
            yield
        except Conflict:
            raise  # somebody else was quicker; it is looked at again, and nobody has to know
        except NameConflict as error:
            raise _Told from error  # nobody hears of it, as upstream: whoever has the name may go
        except (ApiError, RetryAfter) as error:
            told = error.message if isinstance(error, ApiError) else error.reason
            words = f"{verb} Pod {name} in StatefulSet {self.statefulset.metadata.name} failed error: {told}"
            self.ctx.record("Warning", f"Failed{verb}", words)
            raise _Told from error
        self._say(verb, name)

    def _say(self, verb: str, name: str) -> None:
        words = f"{verb} Pod {name} in StatefulSet {self.statefulset.metadata.name} successful"
        self.ctx.record("Normal", f"Successful{verb}", words)


def tell(
    statefulset: StatefulSet, pods: Sequence[Pod], present: str, newest: str, ctx: Context, *, replaced: int = 0
) -> None:
    """State what a pass has found: Pods that it has made are seen by the next one, `replaced` ones are gone already.

    `present` and `newest` are the names of the revisions.
    """
    status, least, now = statefulset.status, statefulset.spec.min_ready_seconds or 0, ctx.now()
    living = [pod for pod in pods if not _is_going(pod)]
    ready = [pod for pod in pods if _runs(pod)]
    updated = sum(_revision(pod) == newest for pod in living)
    status.observed_generation = statefulset.metadata.generation
    status.replicas = len(pods)
    status.ready_replicas = len(ready) or None
    status.available_replicas = sum(is_available(pod, least, now) for pod in ready)
    status.updated_replicas = updated or None
    status.current_replicas = sum(_revision(pod) == present for pod in living) - replaced or None
    status.current_revision, status.update_revision = present or None, newest or None
    if _rolls(statefulset) and updated == len(ready) == len(pods) == _replicas(statefulset):
        status.current_replicas = updated or None
        status.current_revision = newest or None
    moments = [available_at(pod, least) for pod in ready if not is_available(pod, least, now)]
    for moment in filter(None, moments):
        ctx.requeue(at=moment)


def _rolls(statefulset: StatefulSet) -> bool:
    """Tell whether Pods are replaced without being deleted by somebody."""
    strategy = statefulset.spec.update_strategy
    return strategy is None or strategy.type == "RollingUpdate"


def _replicas(statefulset: StatefulSet) -> int:
    return 1 if statefulset.spec.replicas is None else statefulset.spec.replicas


def _identity(name: str, ordinal: int) -> dict[str, str]:
    return {NAME_LABEL: name, INDEX_LABEL: str(ordinal)}
