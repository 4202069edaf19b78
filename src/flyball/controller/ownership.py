"""Ownership: whose child an object is.

Children carry a complete controller reference to their owner, so that Kubernetes removes them with it and their
changes wake the owner's controller. An object has one controller at most; who finds another one there leaves the
object alone.
"""

from __future__ import annotations

from typing import Any

from flyball.api import DynamicObject, OwnerReference, Resource, ResourceType, to_dict
from flyball.client.kinds import kind_of
from flyball.errors import FlyballError

__all__ = [
    "AlreadyOwnedError",
    "NameConflict",
    "NotOwnable",
    "controller_of",
    "describe",
    "is_controlled_by",
    "may_own",
    "owner_reference",
    "set_controller",
]


class NotOwnable(FlyballError, ValueError):
    """The owner cannot own this object."""


class AlreadyOwnedError(FlyballError):
    """The object has another controller."""


class NameConflict(FlyballError):
    """An object that is not ours has the name that our child should have; it is left alone."""

    def __init__(self, child: str, owner: str) -> None:
        """Name the child, and who has it now."""
        super().__init__(
            f"{child} is there already and belongs to {owner}, so it is left alone; "
            "remove or rename it, or give the child another name"
        )
        self.child = child
        self.owner = owner


def describe(obj: Any) -> str:
    """`Deployment default/demo`, for sentences."""
    metadata = obj.metadata
    name = metadata.name or "(no name)"
    return f"{obj.kind} {metadata.namespace}/{name}" if metadata.namespace else f"{obj.kind} {name}"


def owner_reference(owner: Any, *, controller: bool = True) -> OwnerReference:
    """A complete reference to an owner; apiVersion and kind are those of its class, not what the object says."""
    source = kind_of(owner).source
    if not owner.metadata.uid:
        raise NotOwnable(f"{describe(owner)} has no uid, so it cannot own anything; read it from the server first")
    return OwnerReference(
        api_version=source.api_version,
        kind=source.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=controller or None,
        block_owner_deletion=True,
    )


def controller_of(obj: Any) -> OwnerReference | None:
    """The one owner that is marked as controller."""
    for owner in obj.metadata.owner_references:
        if isinstance(owner, OwnerReference):
            if owner.controller:
                return owner
        elif owner.get("controller"):
            return _typed(owner)
    return None


def _typed(plain: dict[str, Any]) -> OwnerReference:
    return OwnerReference(
        api_version=plain.get("apiVersion", ""),
        kind=plain.get("kind", ""),
        name=plain.get("name", ""),
        uid=plain.get("uid", ""),
        controller=plain.get("controller"),
        block_owner_deletion=plain.get("blockOwnerDeletion"),
    )


def is_controlled_by(child: Any, owner: Any) -> bool:
    """Whether this very owner (its uid is compared) is the controller of the child."""
    found = controller_of(child)
    return found is not None and bool(found.uid) and found.uid == owner.metadata.uid


def may_own(owner: Any, owner_namespaced: bool, child: Any, child_namespaced: bool) -> bool:
    """Whether Kubernetes allows the reference: an owner in a namespace owns only within that namespace."""
    if not owner_namespaced:
        return True
    return child_namespaced and child.metadata.namespace in (None, "", owner.metadata.namespace)


def set_controller(owner: Any, child: Resource | DynamicObject) -> None:
    """Make `owner` the controller of `child`.

    `NotOwnable` for an owner without uid or in another namespace; `AlreadyOwnedError` when another one is the
    controller.
    """
    reference = owner_reference(owner)
    namespaced = _is_namespaced(owner)
    if not may_own(owner, namespaced, child, _is_namespaced(child)):
        where = child.metadata.namespace or "the whole cluster"
        raise NotOwnable(
            f"{describe(owner)} cannot own {describe(child)}: an owner in a namespace owns only objects of that "
            f"namespace, and this one is in {where}; put it into {owner.metadata.namespace}, or use a finalizer"
        )
    present = controller_of(child)
    if present is not None and present.uid != reference.uid:
        raise AlreadyOwnedError(
            f"{describe(child)} is controlled by {present.kind} {present.name} (uid {present.uid}), "
            f"so {describe(owner)} cannot control it; use another name"
        )
    others: list[Any] = [one for one in child.metadata.owner_references if _uid(one) != reference.uid]
    if isinstance(child, DynamicObject):
        child.metadata.owner_references[:] = [*others, to_dict(reference)]
    else:
        child.metadata.owner_references = [*others, reference]


def _uid(reference: Any) -> str:
    return str(reference.get("uid", "")) if isinstance(reference, dict) else str(reference.uid)


def _is_namespaced(obj: Any) -> bool:
    source = kind_of(obj).source
    if isinstance(source, ResourceType):
        return source.namespaced
    return bool(obj.metadata.namespace)
