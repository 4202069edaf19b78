"""Which addresses a custom kind has: those that it has not are no part of the API at all, or name nothing in it."""

from __future__ import annotations

from flyball.controlplane.apiserver.kinds import Kind, Kinds
from flyball.controlplane.apiserver.request import Place
from flyball.controlplane.apiserver.status import not_found

__all__ = ["is_no_address", "is_unknown"]


def is_unknown(kinds: Kinds, place: Place) -> bool:
    """Tell whether a place would be in a group of custom kinds, and is not a resource there."""
    known = kinds.of(place.group, place.version)
    return not any(kind.builtin or kind.plural == place.resource for kind in known)


def is_no_address(kind: Kind, place: Place, method: str) -> bool:
    """Tell whether the scope of a custom kind rules an address out. Raises NotFound for a part that it has not."""
    if kind.builtin:
        return False
    across = method in ("GET", "HEAD") and not place.name
    if bool(place.namespace) != kind.namespaced and not (kind.namespaced and across):
        return True
    if place.subresource and not kind.has(place.subresource):
        raise not_found(kind.plural, kind.group, place.name)
    return False
