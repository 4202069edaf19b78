"""What control loops read: the stored objects, as an informer would show them, and who owns whom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec

from flyball.api import DynamicObject, ResourceType
from flyball.client import Ref, ref
from flyball.controlplane.apiserver.kinds import Kind, Kinds
from flyball.controlplane.apiserver.store import Entry, Key, Store

__all__ = ["Meta", "Ownership", "Reference", "View", "resource_type"]


class Reference(msgspec.Struct, frozen=True, rename="camel"):
    """What an object says of one of its owners."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    block_owner_deletion: bool | None = None


class Meta(msgspec.Struct, rename="camel"):
    """The metadata that loops decide by."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[Reference, ...] = ()


class _Object(msgspec.Struct):
    metadata: Meta


_decode = msgspec.json.Decoder(_Object).decode


class Owner(NamedTuple):
    """Whom a reference means, and whether there is such an object."""

    reference: Reference
    meta: Meta | None
    misplaced: bool = False
    """Whether the reference crosses from a cluster-scoped object into a namespace, which it may not."""


@dataclass(slots=True)
class View:
    """Reads from the store of a server."""

    store: Store
    kinds: Kinds

    def meta(self, key: Key) -> Meta | None:
        """Return the metadata of an object, if it is there."""
        entry = self.store.get(key)
        return None if entry is None else _decode(entry.body).metadata

    def whole(self, key: Key) -> dict[str, Any] | None:
        """Return a whole object without its kind, if it is there."""
        entry = self.store.get(key)
        return None if entry is None else msgspec.json.decode(entry.body)

    def kind_of(self, resource: str) -> Kind | None:
        """Return a kind by the name of its storage."""
        plural, _, group = resource.partition(".")
        return self.kinds.preferred(group, plural)

    def ref(self, key: Key, meta: Meta) -> Ref[DynamicObject]:
        """Name an object, in the version that was seen, for the verbs of a client."""
        kind = self.kind_of(key.resource)
        if kind is None:
            raise LookupError(f"{key.resource} is not served any more")
        found = ref(resource_type(kind), key.name, namespace=key.namespace or None)
        return replace(found, uid=meta.uid, resource_version=meta.resource_version)

    def entries(self) -> Iterator[Entry]:
        """Give everything that is stored."""
        for resource in self.store.resources():
            yield from self.store.listing(resource).entries

    def owner(self, reference: Reference, dependent: Key) -> Owner | None:
        """Look for the owner that an object names; None when its kind is not served, so that nobody can know."""
        kind = self.kinds.by_kind(reference.api_version, reference.kind)
        if kind is None:
            return None
        if kind.namespaced and not dependent.namespace:
            return Owner(reference, None, misplaced=True)
        namespace = dependent.namespace if kind.namespaced else ""
        meta = self.meta(Key(kind.storage, namespace, reference.name))
        return Owner(reference, meta if meta is not None and meta.uid == reference.uid else None)


def resource_type(kind: Kind) -> ResourceType:
    """Return the names of a served kind as a client takes them."""
    return ResourceType(kind.group, kind.version, kind.kind, kind.plural, kind.namespaced)


class Ownership:
    """Knows the dependents of each object by its uid. It is told of each change, and can start again from nothing."""

    def __init__(self) -> None:
        """Know of nobody."""
        self._uids: dict[Key, str] = {}
        self._owners: dict[Key, tuple[Reference, ...]] = {}
        self._dependents: dict[str, dict[Key, None]] = {}

    def clear(self) -> None:
        """Forget everything."""
        self._uids.clear()
        self._owners.clear()
        self._dependents.clear()

    def note(self, key: Key, entry: Entry | None) -> str:
        """Take the present state of an object; return the uid of the one that is not there any more, if any."""
        before = self._uids.get(key, "")
        if entry is None:
            self._uids.pop(key, None)
        else:
            self._uids[key] = entry.uid
        owned = entry is not None and b'"ownerReferences"' in entry.body
        self._own(key, _decode(entry.body).metadata.owner_references if entry is not None and owned else ())
        return before if entry is None or before != entry.uid else ""

    def _own(self, key: Key, references: tuple[Reference, ...]) -> None:
        for old in self._owners.pop(key, ()):
            known = self._dependents.get(old.uid)
            if known is not None:
                known.pop(key, None)
                if not known:
                    del self._dependents[old.uid]
        if references:
            self._owners[key] = references
        for new in references:
            self._dependents.setdefault(new.uid, {})[key] = None

    def dependents(self, uid: str) -> list[Key]:
        """Name the objects that name this one as an owner."""
        return list(self._dependents.get(uid, ()))

    def references(self, key: Key) -> tuple[Reference, ...]:
        """Return the owners that an object names."""
        return self._owners.get(key, ())
