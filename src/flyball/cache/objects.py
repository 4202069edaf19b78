"""An object in the cache: its bytes and a small record of its metadata."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar, overload

import msgspec

from flyball.api import DynamicObject, Resource, ResourceType
from flyball.api.rawlist import RawObject
from flyball.client.kinds import Kind, kind_from

__all__ = ["CachedObject", "Key", "is_newer", "key_of"]

T = TypeVar("T")
R = TypeVar("R", bound=Resource)

Key: TypeAlias = tuple[str | None, str]
"""Namespace (None for a kind without namespaces) and name."""


class CachedObject(msgspec.Struct, frozen=True, gc=False, eq=False):
    """One version of an object as the server sent it, compact.

    It cannot be changed, so it is handed out without copies; `decode` makes a new object of the reader's own each time.
    Two are equal only if they are the same one.
    """

    key: Key
    record: RawObject
    """What stores, indexes and predicates look at: name, namespace, uid, generation, labels, owners, finalizers."""
    resource: ResourceType
    """The kind, with its address."""
    whole: bool = True
    """False when parts were left out before it was stored: then it cannot be written back whole."""

    @property
    def raw(self) -> bytes:
        """The JSON as received, less what the cache was told to leave out (`managedFields` at least)."""
        return self.record.data

    @property
    def name(self) -> str:
        """The name."""
        return self.record.name

    @property
    def namespace(self) -> str | None:
        """The namespace; None for a kind without namespaces."""
        return self.key[0]

    @property
    def uid(self) -> str:
        """What tells this object from others that had or will have its name."""
        return self.record.uid

    @property
    def resource_version(self) -> str:
        """Which version of the object this is."""
        return self.record.resource_version

    @overload
    def decode(self, kind: type[R]) -> R: ...
    @overload
    def decode(self, kind: Kind[T]) -> T: ...
    @overload
    def decode(self, kind: ResourceType) -> DynamicObject: ...
    def decode(self, kind: Any) -> Any:
        """A new object of this version, in the form asked for: a class, `dynamic(...)`, `metadata_of(...)`.

        Of an object that is not whole, `client.update` refuses the result: it would drop what was left out.
        """
        return self.read_as(kind_from(kind))

    def read_as(self, kind: Kind[T]) -> T:
        """The same for a kind in the one form that verbs know: the quickest way."""
        found = kind.read(_with_names(self.record.data, self.resource), self.resource)
        if not self.whole:
            vars(found).pop("_origin", None)
        return found

    def plain(self) -> dict[str, Any]:
        """The object as plain dicts and lists, new ones."""
        found: dict[str, Any] = msgspec.json.decode(_with_names(self.record.data, self.resource))
        return found

    def __repr__(self) -> str:
        where = f"{self.key[0]}/{self.key[1]}" if self.key[0] else self.key[1]
        return f"<{self.resource.kind} {where} at {self.resource_version or '?'}>"


def key_of(record: RawObject) -> Key:
    """Under which key a store keeps it."""
    return (record.namespace or None, record.name)


_decode_names: Callable[[bytes], Any] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_NAMELESS: Final = (b'{"metadata":', b'{"kind":', b'{"apiVersion":')
_names: dict[ResourceType, bytes] = {}


def _with_names(raw: bytes, resource: ResourceType) -> bytes:
    """The bytes with `apiVersion` and `kind`, which servers leave out within lists of built-in kinds."""
    if not raw.startswith(_NAMELESS[0]):
        if raw.startswith(_NAMELESS[1:]):
            return raw
        if "kind" in _decode_names(raw):
            return raw
    names = _names.get(resource)
    if names is None:
        text = msgspec.json.encode({"apiVersion": resource.api_version, "kind": resource.kind})
        names = _names[resource] = text[:-1] + b","
    return names + raw[1:]


def is_newer(one: str, other: str) -> bool | None:
    """Whether version `one` came after version `other`; None when they cannot be compared.

    Versions of Kubernetes' own storage are numbers that grow; an aggregated server may have others.
    """
    if one == other:
        return False
    if one.isdecimal() and other.isdecimal():
        return (len(one), one) > (len(other), other)
    return None
