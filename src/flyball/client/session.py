"""What all verbs share: the way of a request to the server and of its answer back.

A `Session` knows the transport, the interceptors, the client-wide options and the server's kinds. It turns refusals
into errors, hands warnings on, and finds addresses. It knows nothing of single verbs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from flyball.api import ResourceType
from flyball.client.arguments import FieldValidation, WriteArgs
from flyball.client.interceptors import chain
from flyball.client.kinds import ALL_NAMESPACES, GroupVersionKind, Kind, Ref, address
from flyball.client.refusals import RefusedRequest
from flyball.client.server_warnings import LogWarnings, OnWarning, parse_warnings, warning_values
from flyball.client.transport import HttpRequest, HttpResponse, Interceptor, Transport
from flyball.errors import error_from, malformed

__all__ = ["Options", "Query", "Session", "Target"]

T = TypeVar("T")

Query = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Options:
    """What holds for every request of a client, unless a call says otherwise."""

    dry_run: bool = False
    field_validation: FieldValidation | None = None
    field_manager: str | None = None
    timeout: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Target(Generic[T]):
    """A kind with its address found, and the namespace and name meant."""

    kind: Kind[T]
    resource: ResourceType
    namespace: str | None
    name: str | None = None

    def path(self, subresource: str | None = None) -> str:
        """The address; refuses names that would lead elsewhere."""
        return address(self.resource, self.namespace, self.name, subresource)

    @property
    def words(self) -> str:
        """Kind and name for a sentence: `Deployment default/demo`, `Pod in default`, `Pod in all namespaces`."""
        if self.name is not None:
            return f"{self.resource.kind} {self.namespace}/{self.name}" if self.namespace else self._plain
        if not self.resource.namespaced:
            return self.resource.kind
        return f"{self.resource.kind} in {self.namespace or 'all namespaces'}"

    @property
    def _plain(self) -> str:
        return f"{self.resource.kind} {self.name}"


class Session:
    """The way to one API server; see the module's text."""

    def __init__(
        self,
        transport: Transport,
        *,
        namespace: str,
        options: Options,
        interceptors: Sequence[Interceptor] = (),
        on_warning: OnWarning | None = None,
    ) -> None:
        # Discovery asks the server through this very session.
        from flyball.client.discovery import Discovery

        self.transport = transport
        self.namespace = namespace
        self.options = options
        self.discovery = Discovery(self)
        self._on_warning = on_warning or LogWarnings()
        self.interceptors = tuple(interceptors)
        self._send = chain(transport.send, interceptors)

    async def open(self, request: HttpRequest) -> HttpResponse:
        """Send; the answer's body is not read yet, and it is no refusal. The caller reads or closes it."""
        response = await self._send(request)
        try:
            for warning in parse_warnings(warning_values(response.headers), request.action):
                self._on_warning(warning)
        except BaseException:
            await response.close()
            raise
        if response.status >= 300:
            raise await self._refusal(response, request)
        return response

    async def _refusal(self, response: HttpResponse, request: HttpRequest) -> Exception:
        try:
            body = await response.read()
        finally:
            await response.close()
        return error_from(response.status, response.headers, body, action=request.action, host=self.transport.host)

    async def call(self, request: HttpRequest) -> bytes:
        """Send and read the whole answer."""
        response = await self.open(request)
        try:
            return await response.read()
        finally:
            await response.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        action: str,
        query: Query = (),
        accept: str = "application/json",
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
        upgrade: tuple[str, ...] = (),
    ) -> HttpRequest:
        """A request with the headers and the time-out of this client."""
        headers = {**self.options.headers, "Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        patience = timeout if timeout is not None else self.options.timeout
        return HttpRequest(method, path, query, headers, body, patience, action, upgrade)

    def read(self, target: Target[T], raw: bytes, action: str) -> T:
        """One object of an answer, made anew from its bytes."""
        try:
            if raw[:1] != b"{" and raw.lstrip()[:1] != b"{":
                raise msgspec.DecodeError("an object was expected")
            return target.kind.read(raw, target.resource)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise malformed({}, raw, action=action, host=self.transport.host, cause=str(error)) from error

    async def resource(self, kind: Kind[Any]) -> ResourceType:
        """The address of a kind: known, or asked of the server's discovery."""
        if isinstance(kind.source, GroupVersionKind):
            return await self.discovery.resource(kind.source.api_version, kind.source.kind)
        self.discovery.learn(kind.source)
        return kind.source

    async def one(self, ref: Ref[T], namespace: str | None = None) -> Target[T]:
        """Where one object lives."""
        resource = await self.resource(ref.kind)
        where = self.namespace_of(resource, ref.namespace, namespace)
        if where == ALL_NAMESPACES:
            raise RefusedRequest(f"{resource.kind} {ref.name}: an object lives in one namespace, not in '*'")
        return Target(ref.kind, resource, where, ref.name)

    async def collection(self, kind: Kind[T], namespace: str | None) -> Target[T]:
        """Where the objects of a kind live: in one namespace, or (`"*"`) in all."""
        resource = await self.resource(kind)
        where = self.namespace_of(resource, None, namespace)
        return Target(kind, resource, None if where == ALL_NAMESPACES else where)

    def namespace_of(self, resource: ResourceType, of_object: str | None, given: str | None) -> str | None:
        """The namespace given, else the object's, else the client's own; None for a kind without namespaces."""
        if not resource.namespaced:
            if (given or of_object) in (None, "", ALL_NAMESPACES):
                return None
            raise RefusedRequest(
                f"{resource.kind} does not live in namespaces, but namespace {given or of_object!r} was given; "
                "leave it out"
            )
        if given and of_object and given != of_object:
            raise RefusedRequest(
                f"{resource.kind}: the object's namespace is {of_object!r}, but {given!r} was given; "
                "leave one of them out"
            )
        return given or of_object or self.namespace

    def write_query(self, args: WriteArgs, *, force: bool = False) -> Query:
        """The parameters that every write carries, in alphabetical order."""
        pairs = (
            ("dryRun", "All" if self.dry(args.get("dry_run")) else None),
            ("fieldManager", args.get("field_manager") or self.options.field_manager),
            ("fieldValidation", args.get("field_validation") or self.options.field_validation),
            ("force", "true" if force else None),
        )
        return tuple((name, value) for name, value in pairs if value is not None)

    def dry(self, asked: bool | None) -> bool:
        """Whether a write must not reach storage; a client made with `dry_run=True` cannot be talked out of it."""
        return self.options.dry_run or bool(asked)
