"""Deployments: one ReplicaSet per version of the template, and the way from the old ones to the new one."""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from flyball.api import to_dict
from flyball.controller import Context, controller
from flyball.k8s.apps.v1 import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet, ReplicaSetSpec
from flyball.k8s.core.v1 import PodTemplateSpec
from flyball.k8s.meta.v1 import LabelSelector, ObjectMeta

__all__ = ["HASH_LABEL", "deployments", "resolve_rolling", "template_hash"]

HASH_LABEL = "pod-template-hash"
_REVISION = "deployment.kubernetes.io/revision"
_DESIRED = "deployment.kubernetes.io/desired-replicas"
_MAXIMUM = "deployment.kubernetes.io/max-replicas"
_DONE, _UNDER_WAY, _LATE = "NewReplicaSetAvailable", "ReplicaSetUpdated", "ProgressDeadlineExceeded"
_NOT_COPIED = frozenset({"kubectl.kubernetes.io/last-applied-configuration", _REVISION, _DESIRED, _MAXIMUM})
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


@controller(Deployment, owns=[ReplicaSet], name="deployment-controller", error_condition=None, max_concurrent=5)
async def deployments(deployment: Deployment, ctx: Context) -> None:
    """Bring the newest template into service, step by step, and tell how far it is."""
    rollout = _Rollout(deployment, await ctx.owned(ReplicaSet), ctx)
    await rollout.step()
    _tell(deployment, rollout.sets, ctx)


def template_hash(template: PodTemplateSpec, collisions: int = 0) -> str:
    """Return the name of a version of a template: stable, ten harmless characters."""
    bare = _without_hash(template)
    digest = hashlib.sha256(repr((bare, collisions)).encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:10])


def _without_hash(template: PodTemplateSpec) -> object:
    plain = to_dict(template)
    labels = plain.get("metadata", {}).get("labels")
    if labels:
        labels.pop(HASH_LABEL, None)
    return _sorted(plain)


def _sorted(value: object) -> object:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def resolve_rolling(surge: int | str | None, unavailable: int | str | None, replicas: int) -> tuple[int, int]:
    """Return how many Pods may be too many and too few; never both zero. Surplus is rounded up, lack down."""
    most, least = _share(surge, replicas, math.ceil), _share(unavailable, replicas, math.floor)
    return (most, 1) if most == 0 and least == 0 else (most, least)


def _share(value: int | str | None, of: int, rounding: Callable[[float], int]) -> int:
    text = "25%" if value is None else value
    return text if isinstance(text, int) else rounding(int(text.rstrip("%")) * of / 100)


def _wanted(replica_set: ReplicaSet) -> int:
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas


def _available(replica_set: ReplicaSet) -> int:
    return replica_set.status.available_replicas or 0


def _total(sets: Iterable[ReplicaSet]) -> int:
    return sum(map(_wanted, sets))


def _newest_of(deployment: Deployment, sets: Iterable[ReplicaSet]) -> ReplicaSet | None:
    """Find the ReplicaSet of the present template."""
    wanted = _without_hash(deployment.spec.template)
    for replica_set in sets:
        template = replica_set.spec.template
        if template is not None and _without_hash(template) == wanted:
            return replica_set
    return None


def _limits_of(deployment: Deployment) -> tuple[int, int]:
    """Return how many Pods of this Deployment may be too many and too few."""
    replicas = 1 if deployment.spec.replicas is None else deployment.spec.replicas
    strategy = deployment.spec.strategy
    rolling = strategy.rolling_update if strategy is not None else None
    if rolling is None:
        return resolve_rolling(None, None, replicas)
    return resolve_rolling(rolling.max_surge, rolling.max_unavailable, replicas)


@dataclass
class _Rollout:
    """One step on the way to the newest template."""

    deployment: Deployment
    sets: list[ReplicaSet]
    ctx: Context

    @property
    def replicas(self) -> int:
        return 1 if self.deployment.spec.replicas is None else self.deployment.spec.replicas

    async def step(self) -> None:
        newest = _newest_of(self.deployment, self.sets)
        if self.deployment.spec.paused:
            await self._scale_paused(newest)
            return
        strategy = self.deployment.spec.strategy
        if strategy is not None and strategy.type == "Recreate":
            await self._recreate(newest)
        else:
            await self._roll(newest or await self._make(self._first_size()))
        await self._forget_history()

    def _others(self, newest: ReplicaSet | None) -> list[ReplicaSet]:
        return [one for one in self.sets if newest is None or one.metadata.uid != newest.metadata.uid]

    def _limits(self) -> tuple[int, int]:
        return _limits_of(self.deployment)

    def _first_size(self) -> int:
        surge, _ = self._limits()
        room = self.replicas + surge - _total(self.sets)
        return max(min(self.replicas, room), 0)

    async def _make(self, replicas: int) -> ReplicaSet:
        deployment = self.deployment
        template = copy.deepcopy(deployment.spec.template)
        name = template_hash(template, deployment.status.collision_count or 0)
        if template.metadata is None:
            template.metadata = ObjectMeta()
        template.metadata.labels = {**template.metadata.labels, HASH_LABEL: name}
        selector = copy.deepcopy(deployment.spec.selector)
        selector.match_labels = {**(selector.match_labels or {}), HASH_LABEL: name}
        made = await self.ctx.create(
            ReplicaSet(
                metadata=ObjectMeta(
                    name=f"{deployment.metadata.name}-{name}",
                    labels=dict(template.metadata.labels),
                    annotations=self._annotations(self._next_revision()),
                ),
                spec=ReplicaSetSpec(
                    replicas=replicas,
                    min_ready_seconds=deployment.spec.min_ready_seconds,
                    selector=LabelSelector(
                        match_labels=selector.match_labels, match_expressions=selector.match_expressions
                    ),
                    template=template,
                ),
            )
        )
        self.sets = [*self.sets, made]
        if replicas:
            self._told("up", made, 0, replicas)
        return made

    def _annotations(self, revision: int) -> dict[str, str]:
        """Return what a ReplicaSet carries: its revision and sizes, and what people wrote onto the Deployment."""
        surge, _ = self._limits()
        own = {_REVISION: str(revision), _DESIRED: str(self.replicas), _MAXIMUM: str(self.replicas + surge)}
        given = self.deployment.metadata.annotations.items()
        return {**{name: text for name, text in given if name not in _NOT_COPIED}, **own}

    def _next_revision(self) -> int:
        return max((int(one.metadata.annotations.get(_REVISION, "0")) for one in self.sets), default=0) + 1

    def _told(self, way: str, replica_set: ReplicaSet, before: int, after: int) -> None:
        message = f"Scaled {way} replica set {replica_set.metadata.name} from {before} to {after}"
        self.ctx.record("Normal", "ScalingReplicaSet", message)

    async def _scale(self, replica_set: ReplicaSet, replicas: int) -> None:
        before = _wanted(replica_set)
        if before == replicas:
            return
        replica_set.spec.replicas = replicas
        changed = await self.ctx.patch(replica_set)
        self.sets = [changed if one.metadata.uid == changed.metadata.uid else one for one in self.sets]
        self._told("up" if replicas > before else "down", replica_set, before, replicas)

    async def _scale_paused(self, newest: ReplicaSet | None) -> None:
        """Follow the wanted number although the template waits: the set that works, or the newest, takes it."""
        active = [one for one in self.sets if _wanted(one)]
        target = active[0] if len(active) == 1 else newest
        if target is not None:
            await self._scale(target, self.replicas)

    async def _recreate(self, newest: ReplicaSet | None) -> None:
        others = self._others(newest)
        for replica_set in others:
            await self._scale(replica_set, 0)
        if any(one.status.replicas for one in others):
            return
        if newest is None:
            await self._make(self.replicas)
        else:
            await self._scale(newest, self.replicas)

    async def _roll(self, newest: ReplicaSet) -> None:
        await self._renew_revision(newest)
        surge, unavailable = self._limits()
        if await self._grow(newest, surge):
            return
        newest = next(one for one in self.sets if one.metadata.uid == newest.metadata.uid)
        await self._shrink(newest, self.replicas - unavailable)

    async def _renew_revision(self, newest: ReplicaSet) -> None:
        """Give a template that is taken up again the newest revision."""
        own = int(newest.metadata.annotations.get(_REVISION, "0"))
        latest = max((int(one.metadata.annotations.get(_REVISION, "0")) for one in self._others(newest)), default=0)
        wanted = self._annotations(own if own > latest else latest + 1)
        if not wanted.items() <= newest.metadata.annotations.items():
            newest.metadata.annotations = {**newest.metadata.annotations, **wanted}
            changed = await self.ctx.patch(newest)
            self.sets = [changed if one.metadata.uid == changed.metadata.uid else one for one in self.sets]
        if self.deployment.metadata.annotations.get(_REVISION) != wanted[_REVISION]:
            self.deployment.metadata.annotations = {
                **self.deployment.metadata.annotations,
                _REVISION: wanted[_REVISION],
            }
            await self.ctx.patch(self.deployment)

    async def _grow(self, newest: ReplicaSet, surge: int) -> bool:
        present = _wanted(newest)
        if present > self.replicas:
            await self._scale(newest, self.replicas)
            return True
        room = self.replicas + surge - _total(self.sets)
        more = min(room, self.replicas - present)
        if more <= 0:
            return False
        await self._scale(newest, present + more)
        return True

    async def _shrink(self, newest: ReplicaSet, least: int) -> None:
        """Take away old Pods: first those that do not work, then as many as availability allows."""
        spare = _total(self.sets) - least - (_wanted(newest) - _available(newest))
        if spare <= 0:
            return
        for replica_set in sorted(self._others(newest), key=_created):
            idle = max(_wanted(replica_set) - _available(replica_set), 0)
            taken = min(idle, max(spare, 0))
            if taken:
                await self._scale(replica_set, _wanted(replica_set) - taken)
                spare -= taken
        spare = min(spare, sum(map(_available, self.sets)) - least)
        for replica_set in sorted(self._others(newest), key=_created):
            taken = min(_wanted(replica_set), max(spare, 0))
            if taken:
                await self._scale(replica_set, _wanted(replica_set) - taken)
                spare -= taken

    async def _forget_history(self) -> None:
        limit = self.deployment.spec.revision_history_limit
        newest = _newest_of(self.deployment, self.sets)
        idle = [one for one in self._others(newest) if not _wanted(one) and not one.status.replicas]
        surplus = len(idle) - (10 if limit is None else limit)
        for replica_set in sorted(idle, key=_revision)[: max(surplus, 0)]:
            await self.ctx.delete(replica_set)
            self.sets = [one for one in self.sets if one.metadata.uid != replica_set.metadata.uid]


def _created(replica_set: ReplicaSet) -> float:
    created = replica_set.metadata.creation_timestamp
    return created.timestamp() if created is not None else 0.0


def _revision(replica_set: ReplicaSet) -> int:
    return int(replica_set.metadata.annotations.get(_REVISION, "0"))


def _tell(deployment: Deployment, sets: list[ReplicaSet], ctx: Context) -> None:
    status = deployment.status
    before = _Progress.of(status)
    status.observed_generation = deployment.metadata.generation
    wanted = 1 if deployment.spec.replicas is None else deployment.spec.replicas
    newest = _newest_of(deployment, sets)
    total = sum(one.status.replicas or 0 for one in sets)
    available = sum(map(_available, sets))
    status.replicas = total or None
    status.updated_replicas = (newest.status.replicas if newest is not None else 0) or None
    status.ready_replicas = sum(one.status.ready_replicas or 0 for one in sets) or None
    status.available_replicas = available or None
    status.unavailable_replicas = max(max(total, wanted) - available, 0) or None
    _tell_availability(deployment, available >= wanted - _limits_of(deployment)[1], ctx)
    if deployment.spec.paused:
        _set(deployment, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", ctx.now())
    elif newest is not None:
        done = (status.updated_replicas or 0) == wanted == total and available >= wanted
        _tell_progress(deployment, newest.metadata.name, done, _Progress.of(status).is_beyond(before), ctx)


@dataclass(frozen=True, slots=True)
class _Progress:
    """How far a rollout is."""

    updated: int
    old: int
    ready: int
    available: int

    @classmethod
    def of(cls, status: DeploymentStatus) -> _Progress:
        updated = status.updated_replicas or 0
        old = (status.replicas or 0) - updated
        return cls(updated, old, status.ready_replicas or 0, status.available_replicas or 0)

    def is_beyond(self, before: _Progress) -> bool:
        return (
            self.updated > before.updated
            or self.old < before.old
            or self.ready > before.ready
            or self.available > before.available
        )


def _tell_availability(deployment: Deployment, enough: bool, ctx: Context) -> None:
    word, reason = ("True", "MinimumReplicasAvailable") if enough else ("False", "MinimumReplicasUnavailable")
    message = f"Deployment {'has' if enough else 'does not have'} minimum availability."
    _set(deployment, "Available", word, reason, message, ctx.now())


def _tell_progress(deployment: Deployment, name: str, done: bool, moved: bool, ctx: Context) -> None:
    """Say how a rollout goes: done, on its way, or without any progress for too long."""
    status, now = deployment.status, ctx.now()
    found = next((one for one in status.conditions or () if one.type == "Progressing"), None)
    if done:
        message = f'ReplicaSet "{name}" has successfully progressed.'
        _set(deployment, "Progressing", "True", _DONE, message, now)
        return
    if found is not None and f'"{name}"' in (found.message or ""):
        if found.reason == _DONE and status.replicas == status.updated_replicas:
            return  # the rollout has succeeded; that Pods are missing since then is another matter
        if not moved and found.reason == _LATE:
            return
        if not moved and found.reason == _UNDER_WAY and _is_late(deployment, found, ctx):
            late = f'ReplicaSet "{name}" has timed out progressing.'
            _set(deployment, "Progressing", "False", _LATE, late, now)
            return
    under_way = f'ReplicaSet "{name}" is progressing.'
    _set(deployment, "Progressing", "True", _UNDER_WAY, under_way, now, renew=moved)
    deadline = deployment.spec.progress_deadline_seconds
    if deadline is not None:
        since = found.last_update_time if found is not None else None
        ctx.requeue(at=(since or now) + timedelta(seconds=deadline))


def _is_late(deployment: Deployment, found: DeploymentCondition, ctx: Context) -> bool:
    seconds, since = deployment.spec.progress_deadline_seconds, found.last_update_time
    return seconds is not None and since is not None and ctx.now() >= since + timedelta(seconds=seconds)


def _set(
    deployment: Deployment, type_: str, word: str, reason: str, message: str, now: datetime, *, renew: bool = False
) -> None:
    """State a condition; `renew` also tells that it was stated now when nothing else is new."""
    moment = now.replace(microsecond=0)
    conditions = deployment.status.conditions or []
    found = next((one for one in conditions if one.type == type_), None)
    if found is None:
        found = DeploymentCondition(type=type_, status=word, last_transition_time=moment, last_update_time=moment)
        conditions = [*conditions, found]
        deployment.status.conditions = conditions
    if not renew and (found.status, found.reason, found.message) == (word, reason, message):
        return
    if found.status != word:
        found.last_transition_time = moment
    found.last_update_time = moment
    found.status, found.reason, found.message = word, reason, message
