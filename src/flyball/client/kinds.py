"""The one door: what a verb may be asked for, and in which form the answers come back.

| given as `kind` | answers are | the address comes from |
|---|---|---|
| a class, `Deployment` | objects of that class | the class |
| `dynamic("apps/v1", "Deployment")` | `DynamicObject` | the server's discovery |
| a `ResourceType` | `DynamicObject` | the resource type |
| `metadata_of(X)`, X any of the above | `PartialObjectMetadata`: the server sends nothing else | X |
| `raw_of(X)` | `bytes`, the JSON as received | X |

All of them are turned into a `Kind[T]`, and the verbs know nothing else. An object leads back to its kind by its class,
or by its `apiVersion` and `kind`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast, overload
from urllib.parse import quote

import msgspec

from flyball.api import DynamicObject, PartialObjectMetadata, Resource, ResourceType, decode
from flyball.client.refusals import RefusedRequest, UnregisteredKind

__all__ = [
    "ALL_NAMESPACES",
    "GroupVersionKind",
    "Kind",
    "Ref",
    "dynamic",
    "kind_from",
    "kind_of",
    "metadata_of",
    "raw_of",
    "ref",
    "ref_of",
]

T = TypeVar("T")
R = TypeVar("R", bound=Resource)

ALL_NAMESPACES = "*"
"""As `namespace` of list, watch: every namespace."""

_JSON = "application/json"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@dataclass(frozen=True, slots=True)
class GroupVersionKind:
    """A kind by its names; its address is known after discovery."""

    api_version: str
    kind: str


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A kind of the server and the form of its answers; made by `dynamic`, `metadata_of` or `raw_of`."""

    source: ResourceType | GroupVersionKind
    read: Callable[[bytes, ResourceType], T]
    accept: str = _JSON
    list_accept: str = _JSON

    @property
    def word(self) -> str:
        """The kind's name, for messages."""
        return self.source.kind


AnyKind = type[R] | Kind[T] | ResourceType


def dynamic(api_version: str, kind: str) -> Kind[DynamicObject]:
    """A kind without a class, by the names that stand in a manifest: `dynamic("apps/v1", "Deployment")`."""
    return Kind(GroupVersionKind(api_version, kind), _read_dynamic)


def metadata_of(kind: type[Resource] | Kind[Any] | ResourceType) -> Kind[PartialObjectMetadata]:
    """The same kind, of which only the metadata is sent; the objects' `kind` is that of the whole object."""
    return Kind(_source(kind), _read_metadata, f"{_METADATA},{_JSON}", f"{_METADATA_LIST},{_JSON}")


def raw_of(kind: type[Resource] | Kind[Any] | ResourceType) -> Kind[bytes]:
    """The same kind, answers not decoded: for stores and proxies."""
    known = kind if isinstance(kind, Kind) else None
    accepts = (known.accept, known.list_accept) if known else (_JSON, _JSON)
    return Kind(_source(kind), _read_raw, *accepts)


def _read_dynamic(raw: bytes, resource: ResourceType) -> DynamicObject:
    return decode(DynamicObject, raw)


def _read_metadata(raw: bytes, resource: ResourceType) -> PartialObjectMetadata:
    found = decode(PartialObjectMetadata, raw)
    found.api_version, found.kind = resource.api_version, resource.kind
    return found


def _read_raw(raw: bytes, resource: ResourceType) -> bytes:
    return raw


@dataclass(frozen=True, slots=True)
class _As(Generic[T]):
    cls: type[T]

    def __call__(self, raw: bytes, resource: ResourceType) -> T:
        return decode(self.cls, raw)


def _typed(cls: type[R]) -> Kind[R]:
    return Kind(resource_type_of(cls), _As(cls))


def resource_type_of(cls: type[Any]) -> ResourceType:
    """The kind that a class stands for; raises `UnregisteredKind` when it stands for none."""
    found = getattr(cls, "resource_type", None)
    if not isinstance(found, ResourceType):
        name = getattr(cls, "__name__", repr(cls))
        raise UnregisteredKind(
            f"{name} stands for no Kubernetes kind, so there is nowhere to send it; "
            f'write `class {name}(Resource, group="...", version="...")`, or use dynamic("group/version", "Kind")'
        )
    return found


def _source(kind: type[Resource] | Kind[Any] | ResourceType) -> ResourceType | GroupVersionKind:
    if isinstance(kind, Kind):
        return kind.source
    return kind if isinstance(kind, ResourceType) else resource_type_of(kind)


@overload
def kind_from(given: type[R]) -> Kind[R]: ...
@overload
def kind_from(given: Kind[T]) -> Kind[T]: ...
@overload
def kind_from(given: ResourceType) -> Kind[DynamicObject]: ...
@overload
def kind_from(given: type[R] | Kind[T] | ResourceType) -> Kind[R] | Kind[T] | Kind[DynamicObject]: ...
def kind_from(given: type[Any] | Kind[Any] | ResourceType) -> Kind[Any]:
    """What the caller gave as kind, in the one form that the verbs know."""
    if isinstance(given, Kind):
        return given
    if isinstance(given, ResourceType):
        return Kind(given, _read_dynamic)
    return _typed(given)


def kind_of(obj: T) -> Kind[T]:
    """The kind of an object in hand."""
    if isinstance(obj, DynamicObject):
        return cast("Kind[T]", dynamic(*_names(obj.api_version, obj.kind)))
    if isinstance(obj, PartialObjectMetadata):
        return cast("Kind[T]", metadata_of(dynamic(*_names(obj.api_version, obj.kind))))
    return cast("Kind[T]", _typed(type(cast("Resource", obj))))


def _names(api_version: str | None, kind: str | None) -> tuple[str, str]:
    if not api_version or not kind:
        raise RefusedRequest("the object has no apiVersion or no kind, so there is nowhere to send it; set both")
    return api_version, kind


@dataclass(frozen=True, slots=True)
class Ref(Generic[T]):
    """An object by its address, without having read it; made by `ref`."""

    kind: Kind[T]
    name: str
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


@overload
def ref(kind: type[R], name: str, *, namespace: str | None = None) -> Ref[R]: ...
@overload
def ref(kind: Kind[T], name: str, *, namespace: str | None = None) -> Ref[T]: ...
@overload
def ref(kind: ResourceType, name: str, *, namespace: str | None = None) -> Ref[DynamicObject]: ...
def ref(kind: type[Any] | Kind[Any] | ResourceType, name: str, *, namespace: str | None = None) -> Ref[Any]:
    """Name an object for the verbs that need no more: patch, delete, scale, evict, logs."""
    return Ref(kind_from(kind), name, namespace)


def ref_of(obj: T) -> Ref[T]:
    """Where an object in hand lives, and which one it is."""
    metadata: Any = obj.metadata  # type: ignore[attr-defined]
    return Ref(
        kind_of(obj),
        _given(metadata.name) or "",
        _given(metadata.namespace),
        _given(metadata.uid),
        _given(metadata.resource_version),
    )


def _given(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def address(resource: ResourceType, namespace: str | None, name: str | None, subresource: str | None) -> str:
    """The path of an object or a collection; refuses what would lead to another place than the caller means."""
    for what, segment in (("name", name), ("namespace", namespace), ("subresource", subresource)):
        if segment is not None:
            check_segment(what, segment, resource.kind)
    quoted = [quote(part, safe=":@!$&'()*+,;=~") if part is not None else None for part in (namespace, name)]
    return resource.path(quoted[0], quoted[1], subresource)


def check_segment(what: str, segment: str, kind: str) -> None:
    """Refuse what cannot be one segment of a path: `/` and `%` anywhere, `.` and `..`, the empty text."""
    if not segment:
        raise RefusedRequest(f"{kind}: the {what} is empty; give the object a {what}")
    bad = "/%" if what != "subresource" else "%?#"
    if segment in {".", ".."} or ".." in segment.split("/") or any(c in bad or ord(c) < 32 for c in segment):
        raise RefusedRequest(
            f"{kind}: {what} {segment!r} cannot be part of an address (no '/', '%', '.' or '..'); nothing was sent"
        )


def encode_json(value: Any) -> bytes:
    """JSON of plain values and of anything msgspec knows."""
    return msgspec.json.encode(value)
