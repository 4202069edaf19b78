"""Claims that a Pod uses, and volumes that a claim has, do not go under their users' hands.

The API server puts a finalizer on each of them when it is made. Somebody has to take it off again, or nothing of
these kinds could ever be deleted.
"""

from __future__ import annotations

from typing import Final

from flyball.controller import Context, Result, Watches, controller
from flyball.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod

__all__ = ["claims", "volumes"]

_LOOK_AGAIN: Final = 60.0
"""So often it is looked at again what is still in use, although its end is an event that wakes earlier."""


def _claims_of(pod: Pod) -> list[str]:
    """Name the claims of a Pod."""
    sources = [one.persistent_volume_claim for one in pod.spec.volumes or ()]
    return [one.claim_name for one in sources if one is not None]


@controller(
    PersistentVolumeClaim,
    watches=[Watches(Pod, _claims_of)],
    name="persistentvolumeclaim-protection-controller",
    error_condition=None,
)
async def claims(claim: PersistentVolumeClaim, ctx: Context) -> None:
    """Keep the finalizer on a claim: that is all it needs while nobody deletes it."""


@claims.finalize("kubernetes.io/pvc-protection")
async def release_claim(claim: PersistentVolumeClaim, ctx: Context) -> Result | None:
    """Let a claim go when no Pod on a node has it, whatever has become of that Pod."""
    for pod in await ctx.live.list(Pod):
        if pod.spec.node_name and claim.metadata.name in _claims_of(pod):
            return Result.after(_LOOK_AGAIN)
    return None


@controller(PersistentVolume, name="persistentvolume-protection-controller", error_condition=None)
async def volumes(volume: PersistentVolume, ctx: Context) -> None:
    """Keep the finalizer on a volume."""


@volumes.finalize("kubernetes.io/pv-protection")
async def release_volume(volume: PersistentVolume, ctx: Context) -> Result | None:
    """Let a volume go when it is bound to no claim."""
    return Result.after(_LOOK_AGAIN) if volume.status.phase == "Bound" else None
