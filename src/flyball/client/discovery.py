"""What the server serves: from kinds to addresses and back.

Newer servers tell everything in two answers (aggregated discovery), older ones in one answer per group and version;
both are read, and the second way is taken when the first is not offered. What was learned is kept until somebody asks
for a kind that is not among it: then the server is asked again, once for all who wait.

A group whose server is down does not hide the others: it is listed in `failed`, and named when one of its kinds is
asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import msgspec

from flyball.api import ResourceType
from flyball.client.refusals import UnknownKind
from flyball.errors import ApiError, NotAcceptable, NotFound, malformed

if TYPE_CHECKING:
    from flyball.client.session import Session

__all__ = ["Discovery", "ServedKind"]

_AGGREGATED = ",".join(
    [
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        "application/json",
    ]
)


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A kind that the server serves: its address, and what can be done with it."""

    resource: ResourceType
    verbs: frozenset[str]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Known:
    """One reading of the server's kinds, in the server's order of preference."""

    kinds: dict[tuple[str, str], ServedKind] = field(default_factory=dict[tuple[str, str], ServedKind])
    failed: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, served: ServedKind) -> None:
        self.kinds.setdefault((served.resource.api_version, served.resource.kind), served)


class Discovery:
    """The server's kinds, read when first needed; see the module's text."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: _Known | None = None
        self._told: dict[tuple[str, str], ResourceType] = {}
        self._lock = asyncio.Lock()

    def learn(self, resource: ResourceType) -> None:
        """Remember an address that the program itself gave: no need to ask for it."""
        self._told[resource.api_version, resource.kind] = resource

    async def resource(self, api_version: str, kind: str) -> ResourceType:
        """The address of a kind; raises `UnknownKind` when the server, asked again, does not serve it."""
        told = self._told.get((api_version, kind))
        if told is not None:
            return told
        found = await self._look(lambda known: known.kinds.get((api_version, kind)))
        if found is not None:
            return found.resource
        raise self._unknown(api_version, kind)

    async def find(self, name: str) -> ServedKind:
        """A kind as people name it: `pods`, `po`, `Pod`, `deployments.apps`, `deployments.v1.apps`."""
        found = await self._look(lambda known: _by_name(known.kinds.values(), name))
        if found is None:
            raise UnknownKind(f"{self._session.transport.host} serves nothing called {name!r}{self._failures()}")
        return found

    async def kinds(self) -> list[ServedKind]:
        """Everything that is served, in the server's order."""
        known = self._known or await self._read_again(None)
        return list(known.kinds.values())

    @property
    def failed(self) -> dict[str, str]:
        """Group-versions that could not be read, and why."""
        return dict(self._known.failed) if self._known else {}

    async def refresh(self) -> None:
        """Ask the server again, whatever is known."""
        await self._read_again(self._known)

    async def _look(self, search: Callable[[_Known], ServedKind | None]) -> ServedKind | None:
        known = self._known
        found = search(known) if known is not None else None
        return found or search(await self._read_again(known))

    async def _read_again(self, seen: _Known | None) -> _Known:
        """Read it anew, unless somebody else did since `seen`."""
        async with self._lock:
            if self._known is None or self._known is seen:
                self._known = await _Reader(self._session).read()
            return self._known

    def _unknown(self, api_version: str, kind: str) -> UnknownKind:
        known = self._known.kinds if self._known else {}
        others = sorted(version for version, name in known if name == kind)
        hint = f"; it serves {kind} as {', '.join(others)}" if others else ""
        return UnknownKind(
            f"{self._session.transport.host} does not serve {api_version} {kind}{hint or self._failures()}; "
            "check apiVersion and kind, or install the CustomResourceDefinition"
        )

    def _failures(self) -> str:
        if not self.failed:
            return ""
        return "; could not be read: " + ", ".join(f"{group} ({why})" for group, why in sorted(self.failed.items()))


def _by_name(kinds: Iterable[ServedKind], name: str) -> ServedKind | None:
    word, _, rest = name.lower().partition(".")
    for served in kinds:
        resource = served.resource
        names = {resource.plural, resource.singular, resource.kind.lower(), *served.short_names}
        homes = {"", resource.group, resource.version, f"{resource.version}.{resource.group}".rstrip(".")}
        if word in names and rest in homes:
            return served
    return None


class _Resource(msgspec.Struct, rename="camel"):
    """A resource, of a legacy list (`name`) or of an aggregated one (`resource`)."""

    name: str = ""
    resource: str = ""
    kind: str = ""
    response_kind: _Gvk | None = None
    namespaced: bool = False
    scope: str = ""
    singular_name: str = ""
    singular_resource: str = ""
    verbs: list[str] | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None
    subresources: list[_Sub] | None = None


class _Gvk(msgspec.Struct):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Sub(msgspec.Struct):
    subresource: str = ""


class _Meta(msgspec.Struct):
    name: str = ""


class _Version(msgspec.Struct, rename="camel"):
    version: str = ""
    group_version: str = ""
    freshness: str = ""
    resources: list[_Resource] | None = None


class _Group(msgspec.Struct, rename="camel"):
    name: str = ""
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    versions: list[_Version] | None = None


class _Aggregated(msgspec.Struct):
    kind: str = ""
    items: list[_Group] | None = None


class _Legacy(msgspec.Struct):
    """`APIVersions`, `APIGroupList` or `APIResourceList`."""

    kind: str = ""
    versions: list[str] | None = None
    groups: list[_Group] | None = None
    resources: list[_Resource] | None = None


_S = TypeVar("_S")


class _Reader:
    """One reading of all kinds."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known = _Known()

    async def read(self) -> _Known:
        for root in ("/api", "/apis"):
            body = await self._get(root, _AGGREGATED)
            if body is None:
                continue
            answer = self._decode(body, _Aggregated)
            if answer.kind == "APIGroupDiscoveryList":
                self._take_groups(answer.items or [])
            else:
                await self._walk(self._decode(body, _Legacy))
        return self._known

    async def _get(self, path: str, accept: str) -> bytes | None:
        request = self._session.request("GET", path, action="read the server's kinds", accept=accept)
        try:
            return await self._session.call(request)
        except NotFound:
            return None
        except NotAcceptable:
            if accept == "application/json":
                raise
            return await self._get(path, "application/json")

    def _decode(self, body: bytes, type_: type[_S]) -> _S:
        try:
            return msgspec.json.decode(body, type=type_)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            host = self._session.transport.host
            raise malformed({}, body, action="read the server's kinds", host=host, cause=str(error)) from error

    def _take_groups(self, groups: list[_Group]) -> None:
        for group in groups:
            for version in group.versions or []:
                name = group.metadata.name
                if version.freshness == "Stale":
                    self._known.failed[f"{name}/{version.version}"] = "its server does not answer now"
                for resource in version.resources or []:
                    self._take_aggregated(name, version.version, resource)

    def _take_aggregated(self, group: str, version: str, found: _Resource) -> None:
        if found.response_kind is None or not found.response_kind.kind:
            return
        subresources = frozenset(sub.subresource for sub in found.subresources or [])
        kind, namespaced = found.response_kind.kind, found.scope == "Namespaced"
        self._add(group, version, kind, found.resource, found.singular_resource, namespaced, found, subresources)

    async def _walk(self, answer: _Legacy) -> None:
        paths = [(f"/api/{version}", "", version) for version in answer.versions or []]
        for group in answer.groups or []:
            paths += [(f"/apis/{group.name}/{v.version}", group.name, v.version) for v in group.versions or []]
        bodies = await asyncio.gather(*(self._try(path) for path, _, _ in paths))
        for (_, group_name, version), body in zip(paths, bodies, strict=True):
            if body is not None:
                self._take_legacy(group_name, version, self._decode(body, _Legacy).resources or [])

    async def _try(self, path: str) -> bytes | None:
        try:
            return await self._get(path, "application/json")
        except ApiError as error:
            self._known.failed[path.removeprefix("/apis/")] = error.message or f"HTTP {error.code}"
            return None

    def _take_legacy(self, group: str, version: str, resources: list[_Resource]) -> None:
        under: dict[str, set[str]] = {}
        for found in resources:
            parent, _, subresource = found.name.partition("/")
            if subresource:
                under.setdefault(parent, set()).add(subresource)
        for found in resources:
            if "/" not in found.name:
                subresources = frozenset(under.get(found.name, ()))
                self._add(
                    group, version, found.kind, found.name, found.singular_name, found.namespaced, found, subresources
                )

    def _add(
        self,
        group: str,
        version: str,
        kind: str,
        plural: str,
        singular: str,
        namespaced: bool,
        found: _Resource,
        subresources: frozenset[str],
    ) -> None:
        resource = ResourceType(
            group=group,
            version=version,
            kind=kind,
            plural=plural,
            namespaced=namespaced,
            singular=singular or kind.lower(),
        )
        self._known.add(
            ServedKind(
                resource,
                frozenset(found.verbs or ()),
                tuple(found.short_names or ()),
                tuple(found.categories or ()),
                subresources,
            )
        )
