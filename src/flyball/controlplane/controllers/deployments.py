"""Deployments: one ReplicaSet per version of the template, and the way from the old ones to the new one.

rolling             how many Pods there may be
deployment_status   what is told of it
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from flyball.api import find_condition, to_dict
from flyball.client import MergePatch, ref
from flyball.client.kinds import kind_of
from flyball.controller import Context, controller, is_controlled_by
from flyball.controller.predicates import resource_version_changed
from flyball.controlplane.controllers import deployment_status as telling
from flyball.controlplane.controllers.claiming import Adopts, claim
from flyball.controlplane.controllers.rolling import Limits, Size, resolve_rolling, share_out
from flyball.controlplane.controllers.setbacks import Setbacks
from flyball.errors import ApiError, Conflict
from flyball.k8s.apps.v1 import Deployment, ReplicaSet, ReplicaSetSpec
from flyball.k8s.core.v1 import PodTemplateSpec
from flyball.k8s.meta.v1 import LabelSelector, ObjectMeta

__all__ = ["HASH_LABEL", "deployments", "resolve_rolling", "template_hash"]

HASH_LABEL: Final = "pod-template-hash"
_REVISION: Final = "deployment.kubernetes.io/revision"
_HISTORY: Final = "deployment.kubernetes.io/revision-history"
_DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
_MAXIMUM: Final = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED: Final = frozenset(
    {
        "deprecated.deployment.rollback.to",
        "kubectl.kubernetes.io/last-applied-configuration",
        _REVISION,
        _HISTORY,
        _DESIRED,
        _MAXIMUM,
    }
)
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_NAME: Final = 253
_LONGEST_HISTORY: Final = 2000
_NO_LIMIT: Final = 2**31 - 1
_setbacks: Final = Setbacks()


@controller(
    Deployment,
    owns=[ReplicaSet],
    watches=[Adopts(ReplicaSet)],
    predicates=[resource_version_changed],
    name="deployment-controller",
    error_condition=None,
    max_concurrent=5,
    while_deleting=True,
)
async def deployments(deployment: Deployment, ctx: Context) -> None:
    """Bring the newest template into service, step by step, and tell how far it is."""
    sets = sorted(await claim(ReplicaSet, deployment, deployment.spec.selector, ctx), key=_created)
    rollout = _Rollout(deployment, sets, ctx)
    if not ctx.deleting:
        telling.tell_pause(deployment, ctx.now())
    try:
        await rollout.step()
    except _NotMade:
        _setbacks.again(deployment.metadata.uid, ctx)
    else:
        _setbacks.over(deployment.metadata.uid)


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


def _wanted(replica_set: ReplicaSet) -> int:
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas


def _available(replica_set: ReplicaSet) -> int:
    return replica_set.status.available_replicas or 0


def _total(sets: Iterable[ReplicaSet]) -> int:
    return sum(map(_wanted, sets))


def _created(replica_set: ReplicaSet) -> tuple[datetime, str]:
    created = replica_set.metadata.creation_timestamp
    assert created is not None
    return created, replica_set.metadata.name


def _number(replica_set: ReplicaSet, annotation: str) -> int | None:
    text = replica_set.metadata.annotations.get(annotation, "")
    return int(text) if text.isdecimal() else None


def _revision(replica_set: ReplicaSet) -> int:
    return _number(replica_set, _REVISION) or 0


class _NotMade(Exception):
    """The ReplicaSet of the newest template could not be made; it was told, and has to be tried again."""


@dataclass
class _Rollout:
    """One step on the way to the newest template."""

    deployment: Deployment
    sets: list[ReplicaSet]
    """The oldest first."""
    ctx: Context
    limits: Limits = field(init=False)
    newest: ReplicaSet | None = field(init=False)
    """The set of the present template."""

    def __post_init__(self) -> None:
        """Find the set of the present template."""
        self.limits = Limits.of(self.deployment)
        wanted = _without_hash(self.deployment.spec.template)
        same = (one for one in self.sets if one.spec.template and _without_hash(one.spec.template) == wanted)
        self.newest = next(same, None)

    @property
    def others(self) -> list[ReplicaSet]:
        """The sets of other templates, the oldest first."""
        return [one for one in self.sets if self.newest is None or one.metadata.uid != self.newest.metadata.uid]

    async def step(self) -> None:
        """Take the next step, and tell how far it is."""
        strategy = self.deployment.spec.strategy
        await self._renew()
        if self.ctx.deleting:
            self._tell_numbers()
        elif self.deployment.spec.paused or self._is_scaled():
            await self._scale_all()
            if self.deployment.spec.paused:
                await self._forget_history()
            self._tell_numbers()
        elif strategy is not None and strategy.type == "Recreate":
            await self._recreate()
        else:
            await self._roll()

    def _tell_numbers(self) -> None:
        telling.tell_numbers(self.deployment, self.sets, self.newest, self.ctx.now())

    def _tell(self) -> None:
        before = telling.is_complete(self.deployment)
        telling.tell(self.deployment, self.sets, self.newest, self.ctx)
        if telling.is_complete(self.deployment) and not before:
            self.ctx.requeue()  # the rollout has ended just now: its history can be looked at

    # The set of the present template

    async def _renew(self) -> None:
        """Let the set of the present template carry the newest revision, and what is written onto the Deployment."""
        newest = self.newest
        if newest is None:
            return
        annotations = self._annotations_of(newest)
        least = self.deployment.spec.min_ready_seconds
        if annotations != newest.metadata.annotations or newest.spec.min_ready_seconds != least:
            newest.metadata.annotations, newest.spec.min_ready_seconds = annotations, least
            newest = await self._put(newest)
        await self._say_revision(newest.metadata.annotations.get(_REVISION, ""))
        if telling.has_deadline(self.deployment) and self._progressing() is None:
            self._state(telling.FOUND, f'Found new replica set "{newest.metadata.name}"')

    def _progressing(self) -> object:
        return find_condition(self.deployment.status.conditions, telling.PROGRESSING)

    def _state(self, reason: str, message: str, word: str = "True") -> None:
        if telling.has_deadline(self.deployment):
            telling.state(self.deployment, telling.PROGRESSING, word, reason, message, self.ctx.now())

    def _annotations_of(self, newest: ReplicaSet) -> dict[str, str]:
        """Return what the set carries from now on: a revision above all others, and the history of its own."""
        present, own = newest.metadata.annotations, _revision(newest)
        annotations = {**present, **self._given()}
        latest = max(map(_revision, self.others), default=0) + 1
        if own < latest and present.get(_REVISION, "0").isdecimal():
            annotations[_REVISION] = str(latest)
            if _REVISION in present:
                annotations[_HISTORY] = _longer(present.get(_HISTORY, ""), present[_REVISION])
        return annotations

    def _given(self) -> dict[str, str]:
        """Return what people wrote onto the Deployment."""
        given = self.deployment.metadata.annotations
        return {name: text for name, text in given.items() if name not in _NOT_COPIED}

    def _sizes(self) -> dict[str, str]:
        return {_DESIRED: str(self.limits.replicas), _MAXIMUM: str(self.limits.most)}

    async def _say_revision(self, revision: str) -> None:
        """Write the revision onto the Deployment, as a part of its status: it is no new wish."""
        metadata = self.deployment.metadata
        if not revision or metadata.annotations.get(_REVISION) == revision:
            return
        metadata.annotations = {**metadata.annotations, _REVISION: revision}
        runtime, base = self.ctx.running.runtime, metadata.resource_version
        place = ref(Deployment, metadata.name, namespace=metadata.namespace)
        change = MergePatch({"metadata": {"annotations": {_REVISION: revision}, "resourceVersion": base}})
        with runtime.cache.writing(kind_of(self.deployment), metadata.name, metadata.namespace, base=base) as write:
            answer = await runtime.client.patch(
                place, change, subresource="status", field_manager=self.ctx.running.field_manager
            )
            write.done(answer)
            self.ctx.own_write(answer, base)

    async def _made(self) -> ReplicaSet:
        """Return the set of the present template; make it if it is not there."""
        if self.newest is None:
            self.newest = await self._make()
        return self.newest

    async def _make(self) -> ReplicaSet:
        name, labels, present = await self._free_name()
        if present is not None:
            self.sets = [*self.sets, present]
            return present
        deployment = self.deployment
        template = copy.deepcopy(deployment.spec.template)
        if template.metadata is None:
            template.metadata = ObjectMeta()
        template.metadata.labels = {**template.metadata.labels, **labels}
        selector = deployment.spec.selector
        replicas = self._first_size()
        revision = str(max(map(_revision, self.sets), default=0) + 1)
        wanted = ReplicaSet(
            metadata=ObjectMeta(
                name=name,
                labels=dict(template.metadata.labels),
                annotations={**self._given(), _REVISION: revision, **self._sizes()},
            ),
            spec=ReplicaSetSpec(
                replicas=replicas,
                min_ready_seconds=deployment.spec.min_ready_seconds,
                selector=LabelSelector(
                    match_labels={**(selector.match_labels or {}), **labels},
                    match_expressions=copy.deepcopy(selector.match_expressions),
                ),
                template=template,
            ),
        )
        try:
            made = await self.ctx.create(wanted)
        except Conflict:
            raise
        except ApiError as error:
            if any(one.get("reason") == "NamespaceTerminating" for one in error.causes):
                raise
            message = f'Failed to create new replica set "{name}": {error.message}'
            self._state(telling.CREATE_ERROR, message, "False")
            self.ctx.record("Warning", telling.CREATE_ERROR, message)
            raise _NotMade from error
        self.sets = [*self.sets, made]
        if replicas:
            self._told("up", made, 0, replicas)
        await self._say_revision(revision)
        self._state(telling.MADE, f'Created new replica set "{name}"')
        return made

    async def _free_name(self) -> tuple[str, dict[str, str], ReplicaSet | None]:
        """Return a name that nobody has, and the labels that go with it; each that is taken counts as a collision.

        A set that is ours and was made a moment ago comes along: the cache may not know it yet.
        """
        deployment = self.deployment
        while True:
            label = template_hash(deployment.spec.template, deployment.status.collision_count or 0)
            name, labels = f"{deployment.metadata.name[: _LONGEST_NAME - 1 - len(label)]}-{label}", {HASH_LABEL: label}
            taken = await self.ctx.live.get(ReplicaSet, name)
            if taken is None:
                return name, labels, None
            same = taken.spec.template is not None and _without_hash(taken.spec.template) == _without_hash(
                deployment.spec.template
            )
            if same and is_controlled_by(taken, deployment):
                return name, labels, taken
            deployment.status.collision_count = (deployment.status.collision_count or 0) + 1

    def _first_size(self) -> int:
        room = self.limits.most - _total(self.sets)
        return max(min(self.limits.replicas, room), 0)

    # Sizes

    def _told(self, way: str, replica_set: ReplicaSet, before: int, after: int) -> None:
        message = f"Scaled {way} replica set {replica_set.metadata.name} from {before} to {after}"
        self.ctx.record("Normal", "ScalingReplicaSet", message)

    async def _put(self, replica_set: ReplicaSet) -> ReplicaSet:
        """Write what was changed in a set."""
        changed = await self.ctx.patch(replica_set)
        self.sets = [changed if one.metadata.uid == changed.metadata.uid else one for one in self.sets]
        if self.newest is not None and self.newest.metadata.uid == changed.metadata.uid:
            self.newest = changed
        return changed

    async def _scale(self, replica_set: ReplicaSet, replicas: int, *, note: bool = False) -> bool:
        """Give a set its size; `note` also writes onto it what the size was made from when it has the size already."""
        before, sizes = _wanted(replica_set), self._sizes()
        if before == replicas and not (note and not sizes.items() <= replica_set.metadata.annotations.items()):
            return False
        replica_set.spec.replicas = replicas
        replica_set.metadata.annotations = {**replica_set.metadata.annotations, **sizes}
        await self._put(replica_set)
        if before == replicas:
            return False
        self._told("up" if replicas > before else "down", replica_set, before, replicas)
        return True

    def _is_scaled(self) -> bool:
        """Tell whether somebody wants another number since the sets got their sizes."""
        active = [one for one in self.sets if _wanted(one) > 0]
        return any(_number(one, _DESIRED) not in (None, self.limits.replicas) for one in active)

    async def _scale_all(self) -> None:
        """Follow a new number without going on with the rollout."""
        active = [one for one in self.sets if _wanted(one) > 0]
        if len(active) <= 1:
            target = active[0] if active else self.newest or (self.sets[-1] if self.sets else None)
            if target is not None:
                await self._scale(target, self.limits.replicas)
            return
        if self._is_saturated():
            for one in self.others:
                if _wanted(one):
                    await self._scale(one, 0)
            return
        strategy = self.deployment.spec.strategy
        if strategy is not None and strategy.type == "Recreate":
            return
        sizes = [
            Size(one.metadata.name, _wanted(one), one.metadata.creation_timestamp, _number(one, _MAXIMUM))
            for one in active
        ]
        for name, size in share_out(sizes, self.limits, self.deployment.status.replicas or 0).items():
            await self._scale(next(one for one in self.sets if one.metadata.name == name), size, note=True)

    def _is_saturated(self) -> bool:
        newest, replicas = self.newest, self.limits.replicas
        return (
            newest is not None and (_wanted(newest), _number(newest, _DESIRED), _available(newest)) == (replicas,) * 3
        )

    # Strategies

    async def _recreate(self) -> None:
        """Let the old Pods go, all of them, before the first new one is made."""
        shrunk = [await self._scale(one, 0) for one in self.others]
        going = any(one.status.replicas or one.status.terminating_replicas for one in self.others)
        if not any(shrunk) and not going:
            await self._scale(await self._made(), self.limits.replicas)
            await self._finish()
        self._tell()

    async def _roll(self) -> None:
        """Make as many new Pods as there is room for; else take away as many old ones as can be missed."""
        newest = await self._made()
        if not await self._grow(newest) and not await self._shrink(newest):
            await self._finish()
        self._tell()

    async def _finish(self) -> None:
        if telling.is_complete(self.deployment):
            await self._forget_history()

    async def _grow(self, newest: ReplicaSet) -> bool:
        present, replicas = _wanted(newest), self.limits.replicas
        if present > replicas:
            return await self._scale(newest, replicas)
        room = max(self.limits.most - _total(self.sets), 0)
        return await self._scale(newest, present + min(room, replicas - present))

    async def _shrink(self, newest: ReplicaSet) -> bool:
        """Take away old Pods: first those that do not work, then as many as availability allows."""
        if not _total(self.others):
            return False
        spare = _total(self.sets) - self.limits.least - (_wanted(newest) - _available(newest))
        if spare <= 0:
            return False
        taken = await self._take(spare, lambda one: _wanted(one) - _available(one))
        spare = sum(min(_available(one), _wanted(one)) for one in self.sets) - self.limits.least
        taken += await self._take(spare, _wanted)
        return taken > 0

    async def _take(self, spare: int, of: Callable[[ReplicaSet], int]) -> int:
        taken = 0
        for one in self.others:
            share = min(spare - taken, of(one), _wanted(one))
            if share > 0:
                await self._scale(one, _wanted(one) - share)
                taken += share
        return taken

    async def _forget_history(self) -> None:
        """Delete the oldest sets that have no Pods, so that not more than the limit are left."""
        limit = self.deployment.spec.revision_history_limit
        if limit is None or limit == _NO_LIMIT:
            return
        kept = [one for one in self.others if one.metadata.deletion_timestamp is None]
        for one in sorted(kept, key=lambda one: (_revision(one), *_created(one)))[: max(len(kept) - limit, 0)]:
            status = one.status
            behind = (one.metadata.generation or 0) > (status.observed_generation or 0)
            if not (_wanted(one) or status.replicas or behind):
                await self.ctx.delete(one)


def _longer(history: str, revision: str) -> str:
    """Add a revision to a history; the oldest ones go when it gets too long."""
    revisions = [*(history.split(",") if history else ()), revision]
    while len(revisions) > 1 and len(",".join(revisions)) > _LONGEST_HISTORY:
        del revisions[0]
    return ",".join(revisions)
