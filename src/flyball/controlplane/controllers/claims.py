"""The PersistentVolumeClaims of a StatefulSet: one for each template and Pod, kept or given away to be deleted.

A claim outlives its Pod, so it is not the Pod's child as other things are. Who owns it says when it goes, and that
follows from the policy of the set:

| `whenScaled` | `whenDeleted` | owner of the claim of a Pod that is wanted | of one that is scaled away |
|---|---|---|---|
| Retain | Retain | nobody | nobody |
| Retain | Delete | the set | the set |
| Delete | Retain | nobody | the Pod |
| Delete | Delete | the set | the Pod |

The garbage collector does the rest. A claim with another controller is left to that one, and an Event says so.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from flyball.api import OwnerReference
from flyball.controller import Context, owner_reference
from flyball.errors import AlreadyExists, ApiError, RetryAfter
from flyball.k8s.apps.v1 import StatefulSet
from flyball.k8s.core.v1 import PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, Volume
from flyball.k8s.meta.v1 import ObjectMeta

__all__ = ["Claims", "claim_name"]

_AGAIN: Final = 5.0
_RETAIN, _DELETE = "Retain", "Delete"


def claim_name(template: str, statefulset: str, ordinal: int) -> str:
    """Return the name of a claim."""
    return f"{template}-{statefulset}-{ordinal}"


@dataclass(frozen=True)
class Claims:
    """The claims of one StatefulSet during one pass."""

    owner: StatefulSet
    ctx: Context

    def wanted(self, ordinal: int) -> Iterator[PersistentVolumeClaim]:
        """Make the claims that a Pod needs."""
        metadata, spec = self.owner.metadata, self.owner.spec
        for template in spec.volume_claim_templates or ():
            given = template.metadata
            claim = PersistentVolumeClaim(
                metadata=ObjectMeta(
                    name=claim_name(given.name, metadata.name, ordinal),
                    namespace=metadata.namespace,
                    labels={**given.labels, **(spec.selector.match_labels or {})},
                    annotations=dict(given.annotations),
                    finalizers=list(given.finalizers),
                )
            )
            claim.spec = copy.deepcopy(template.spec)
            yield claim

    def mounted(self, volumes: list[Volume], ordinal: int) -> list[Volume]:
        """Return the volumes of a Pod with its claims in them; a volume of a template's name gives way."""
        name = self.owner.metadata.name
        templates = [one.metadata.name for one in self.owner.spec.volume_claim_templates or ()]
        claims = [
            Volume(
                name=one,
                persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim_name(one, name, ordinal)),
            )
            for one in templates
        ]
        return [*claims, *(one for one in volumes if one.name not in templates)]

    def fit(self, pod: Pod, ordinal: int) -> bool:
        """Tell whether a Pod has the volumes of its claims."""
        sources = {one.name: one.persistent_volume_claim for one in pod.spec.volumes or ()}
        for template in self.owner.spec.volume_claim_templates or ():
            name, source = template.metadata.name, sources.get(template.metadata.name)
            if source is None or source.claim_name != claim_name(name, self.owner.metadata.name, ordinal):
                return False
        return True

    async def ensure(self, pod: str, ordinal: int) -> None:
        """Make the claims of a Pod that are missing; RetryAfter when that fails, or while one is being deleted."""
        for claim in self.wanted(ordinal):
            present = await self._read(claim.metadata.name)
            if present is None:
                await self._make(claim, pod)
            elif present.metadata.deletion_timestamp is not None:
                raise RetryAfter(_AGAIN, f"pvc {claim.metadata.name} is being deleted")

    async def _make(self, claim: PersistentVolumeClaim, pod: str) -> None:
        words = f"Create Claim {claim.metadata.name}"
        try:
            await self.ctx.create(claim, owner=False)
        except AlreadyExists:
            return
        except ApiError as error:
            told = f"{words} for Pod {pod} in StatefulSet {self.owner.metadata.name} failed error: {error.message}"
            self.ctx.record("Warning", "FailedCreate", told)
            raise RetryAfter(_AGAIN, f"failed to create PVC {claim.metadata.name}: {error.message}") from error
        told = f"{words} Pod {pod} in StatefulSet {self.owner.metadata.name} success"
        self.ctx.record("Normal", "SuccessfulCreate", told)

    async def are_stale(self, pod: str, ordinal: int) -> bool:
        """Tell whether a claim still goes with an earlier Pod of this name, so that the new one has to wait."""
        if self._policy()[0] == _RETAIN:
            return False
        for claim in self.wanted(ordinal):
            present = await self._read(claim.metadata.name)
            if present is not None and any(
                one.kind == "Pod" and one.name == pod for one in present.metadata.owner_references
            ):
                return True
        return False

    async def hand_over(self, pod: Pod, ordinal: int, *, scaled: bool) -> bool:
        """Give the claims of a Pod the owner that the policy says; tell whether anything had to be changed."""
        changed = False
        for claim in self.wanted(ordinal):
            present = await self._read(claim.metadata.name)
            if present is None:
                continue
            references = self._references(present, pod, scaled=scaled)
            if references is not None:
                present.metadata.owner_references = references
                await self.ctx.patch(present)
                changed = True
        return changed

    def _references(self, claim: PersistentVolumeClaim, pod: Pod, *, scaled: bool) -> list[OwnerReference] | None:
        """Return the owners that a claim should have, None when it has them or is left alone."""
        present, uids = claim.metadata.owner_references, {self.owner.metadata.uid, pod.metadata.uid} - {""}
        if any(self._means(one, pod) and one.uid not in uids for one in present):
            return None  # of an earlier set or Pod of that name: the garbage collector decides
        others = [one for one in present if not self._means(one, pod)]
        scaling, deletion = self._policy()
        owned = (scaling, deletion) != (_RETAIN, _RETAIN)
        if owned and any(one.controller for one in others):
            told = (
                f"PersistentVolumeClaim {claim.metadata.name} has a conflicting OwnerReference that acts as a manging "
                "controller, the retention policy is ignored for this claim"
            )
            self.ctx.record("Warning", "ConflictingController", told)
            return others if len(others) < len(present) else None
        wanted = list(others)
        if scaling == _DELETE and scaled:
            wanted.append(owner_reference(pod))
        elif deletion == _DELETE:
            wanted.append(owner_reference(self.owner))
        now = {(one.uid, bool(one.controller)) for one in present}
        then = {(one.uid, bool(one.controller)) for one in others} | {(one.uid, True) for one in wanted[len(others) :]}
        return None if now == then else wanted

    def _means(self, reference: OwnerReference, pod: Pod) -> bool:
        """Tell whether an owner has the name of the set or the Pod."""
        ours = {("apps/v1", "StatefulSet", self.owner.metadata.name), ("v1", "Pod", pod.metadata.name)}
        return (reference.api_version, reference.kind, reference.name) in ours

    def _policy(self) -> tuple[str, str]:
        """Return what happens to claims when their Pod is scaled away, and when the set is deleted."""
        policy = self.owner.spec.persistent_volume_claim_retention_policy
        if policy is None:
            return _RETAIN, _RETAIN
        return policy.when_scaled or _RETAIN, policy.when_deleted or _RETAIN

    async def _read(self, name: str) -> PersistentVolumeClaim | None:
        return await self.ctx.get(PersistentVolumeClaim, name)
