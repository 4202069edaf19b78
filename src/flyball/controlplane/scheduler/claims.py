"""Whether the volumes of a Pod are there: its claims are bound, or nobody can place it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from flyball.cache import Informer
from flyball.client import Client
from flyball.controlplane.scheduler.filters import Refusal
from flyball.controlplane.scheduler.seen import PodSeen
from flyball.errors import FlyballError
from flyball.k8s.storage.v1 import StorageClass

__all__ = ["NO_VOLUME", "has_claims", "trouble_with_claims"]

NO_VOLUME = Refusal(("node(s) didn't find available persistent volumes to bind",))
_UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


class _Spec(msgspec.Struct, rename="camel"):
    volume_name: str = ""
    storage_class_name: str | None = None


class _Status(msgspec.Struct):
    phase: str = "Pending"


class _Metadata(msgspec.Struct, rename="camel"):
    deletion_timestamp: str | None = None


class _Claim(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_read = msgspec.json.Decoder(_Claim).decode


def has_claims(pod: PodSeen) -> bool:
    """Tell whether a Pod has a volume that must be there first."""
    return any(one.persistent_volume_claim is not None or one.ephemeral is not None for one in pod.spec.volumes)


async def trouble_with_claims(client: Client, claims: Informer[Any], pod: PodSeen) -> str | Refusal | None:
    """Return why a Pod cannot be placed: for every node alike, or (`Refusal`) since no node has the volume."""
    later: Refusal | None = None
    for name in _names(pod):
        found = claims.peek(name, pod.metadata.namespace)
        if found is None:
            return f'persistentvolumeclaim "{name}" not found'
        claim = _read(found.raw)
        if claim.status.phase == "Lost":
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
        if claim.metadata.deletion_timestamp:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if claim.spec.volume_name and claim.status.phase == "Bound":
            continue
        if not await _waits_for_consumer(client, claim.spec.storage_class_name or ""):
            return _UNBOUND
        later = NO_VOLUME
    return later


def _names(pod: PodSeen) -> Iterator[str]:
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{pod.metadata.name}-{volume.name}"


async def _waits_for_consumer(client: Client, name: str) -> bool:
    if not name:
        return False
    try:
        found = await client.get(StorageClass, name)
    except FlyballError:
        return False
    return found.volume_binding_mode == "WaitForFirstConsumer"
