"""Ready-made index functions: by what objects are looked up often.

An index function takes an object and gives the values under which it is to be found. It is called once per change of
the object, so it may decode it (`view.decode(Pod).spec.node_name`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from flyball.cache.objects import CachedObject

__all__ = ["IndexFunction", "by_controller_uid", "by_label", "by_namespace", "by_owner_uid"]

IndexFunction: TypeAlias = Callable[[CachedObject], Iterable[str]]


def by_namespace(view: CachedObject) -> Iterable[str]:
    """The object's namespace; an object without one is in no namespace."""
    return (view.key[0],) if view.key[0] else ()


def by_label(key: str) -> IndexFunction:
    """Index by the value of one label; objects without it are not found."""

    def labelled(view: CachedObject) -> Iterable[str]:
        value = view.record.labels.get(key)
        return () if value is None else (value,)

    return labelled


def by_controller_uid(view: CachedObject) -> Iterable[str]:
    """The uid of the one owner that is the object's controller."""
    return [owner.uid for owner in view.record.owners if owner.controller and owner.uid]


def by_owner_uid(view: CachedObject) -> Iterable[str]:
    """The uids of all owners."""
    return [owner.uid for owner in view.record.owners if owner.uid]
