"""Lists and objects in the raw form: compact bytes and a small record of their metadata.

This is what a cache holds. Decoding a list this way touches each byte about twice and builds no object but the record,
which makes it several times quicker than any decoder of whole objects; an object is decoded when somebody reads it.

Promises:

- the bytes are those of the server, less `managedFields` (unless asked for): nothing else is dropped, moved or changed;
- an object in the raw form does not refer to the buffer of the list, so that keeping one does not keep them all;
- equal labels and equal owners are one object in memory, and none of them can be changed;
- what a server may send is accepted: `null` anywhere, unknown fields, any order, any white space.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import Raw, Struct
from msgspec.json import Decoder, Encoder

__all__ = ["Owner", "RawList", "RawObject", "RawReader"]


class Owner(Struct, gc=False, frozen=True, rename="camel"):
    """An owner reference, as far as a cache needs it."""

    api_version: str | None = None
    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    controller: bool | None = None


class RawObject(Struct, gc=False, frozen=True, kw_only=False):
    """An object as its bytes, with the metadata that stores, indexes and predicates look at.

    Times are text as received; `labels` and `owners` are empty when there are none.
    """

    data: bytes
    name: str
    namespace: str
    uid: str
    resource_version: str
    generation: int
    deletion_timestamp: str | None
    labels: Mapping[str, str]
    finalizers: list[str] | None
    owners: tuple[Owner, ...]


class RawList(Struct, gc=False, frozen=True):
    """A list in the raw form.

    `kind` and `api_version` are those of the list: the items of a list of built-in kinds carry none of their own.
    """

    api_version: str
    kind: str
    resource_version: str
    continue_: str
    remaining: int | None
    items: list[RawObject]


class _ListMeta(Struct, gc=False, rename="camel"):
    resource_version: str | None = None
    continue_: str | None = None
    remaining_item_count: int | None = None


class _List(Struct, gc=False, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    metadata: _ListMeta | None = None
    items: list[Raw] | None = None


class _Metadata(Struct, gc=False, rename="camel"):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    deletion_timestamp: str | None = None
    labels: Raw = Raw()
    finalizers: list[str] | None = None
    owner_references: Raw = Raw()
    managed_fields: Raw = Raw()


class _Item(Struct, gc=False):
    metadata: _Metadata | None = None


_NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})
_METADATA: Final = b'"metadata":'
_KEY: Final = b'"managedFields":'
_COMMA: Final = ord(",")
_OPEN: Final = ord("{")
_CLOSE: Final = ord("}")
_MEMORY: Final = 10_000
"""How many distinct maps of labels, and lists of owners, a reader remembers before it begins anew."""

_decode_list = Decoder(_List).decode
_decode_item = Decoder(_Item).decode
_decode_labels = Decoder(dict[str, str] | None).decode
_decode_owners = Decoder(tuple[Owner, ...] | None).decode
_decode_members = Decoder(dict[str, Raw]).decode
_encode = Encoder().encode


class RawReader:
    """Reads lists and objects of one kind; it remembers labels and owners, which many objects have in common."""

    def __init__(self, *, keep_managed_fields: bool = False) -> None:
        self._keep = keep_managed_fields
        self._labels: dict[bytes, Mapping[str, str]] = {}
        self._owners: dict[bytes, tuple[Owner, ...]] = {}
        self._namespaces: dict[str, str] = {}

    def list(self, body: bytes) -> RawList:
        """The answer to a list request. Raises `msgspec.DecodeError` when it is no list."""
        answer = _decode_list(body)
        meta = answer.metadata or _ListMeta()
        return RawList(
            api_version=answer.api_version or "",
            kind=answer.kind or "",
            resource_version=meta.resource_version or "",
            continue_=meta.continue_ or "",
            remaining=meta.remaining_item_count,
            items=[self.object(item) for item in answer.items or ()],
        )

    def object(self, body: bytes | Raw) -> RawObject:
        """One object. Raises `msgspec.DecodeError` when it is none."""
        found = _decode_item(body).metadata or _Metadata()
        data = bytes(body)
        if found.managed_fields and not self._keep:
            data = _without_managed_fields(data, found.managed_fields)
        namespace = found.namespace or ""
        return RawObject(
            data,
            found.name or "",
            self._namespaces.setdefault(namespace, namespace),
            found.uid or "",
            found.resource_version or "",
            found.generation or 0,
            found.deletion_timestamp,
            self._shared_labels(found.labels) if found.labels else _NO_LABELS,
            found.finalizers,
            self._shared_owners(found.owner_references) if found.owner_references else (),
        )

    def _shared_labels(self, raw: Raw) -> Mapping[str, str]:
        text = bytes(raw)
        labels = self._labels.get(text)
        if labels is None:
            _forget_when_full(self._labels)
            labels = self._labels[text] = MappingProxyType(_decode_labels(text) or {})
        return labels

    def _shared_owners(self, raw: Raw) -> tuple[Owner, ...]:
        text = bytes(raw)
        owners = self._owners.get(text)
        if owners is None:
            _forget_when_full(self._owners)
            owners = self._owners[text] = _decode_owners(text) or ()
        return owners


def _forget_when_full(memory: dict[bytes, Any]) -> None:
    if len(memory) >= _MEMORY:
        memory.clear()


def _without_managed_fields(data: bytes, fields: Raw) -> bytes:
    """`data` less the member `"managedFields": fields` of its metadata.

    The quick way is taken when nothing but scalars stand before the metadata and the first `"managedFields":` has the
    very value that the decoder found: the quotes of a key inside a string are escaped, so it is the member itself.
    """
    opening = data.find(b"{", 1)
    key = data.find(_KEY, opening)
    start = key + len(_KEY)
    if key < 0 or not data.startswith(fields, start) or not data.endswith(_METADATA, 0, opening):
        return _without_managed_fields_slowly(data)
    end = start + len(memoryview(fields))
    if data[key - 1] == _COMMA:
        key -= 1
    elif data[end] == _COMMA:
        end += 1
    elif data[key - 1] != _OPEN or data[end] != _CLOSE:
        return _without_managed_fields_slowly(data)
    view = memoryview(data)
    return b"".join((view[:key], view[end:]))


def _without_managed_fields_slowly(data: bytes) -> bytes:
    members = _decode_members(data)
    metadata = _decode_members(members["metadata"])
    del metadata["managedFields"]
    members["metadata"] = Raw(_encode(metadata))
    return _encode(members)
