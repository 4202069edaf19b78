"""The client: every verb of the API, for typed, dynamic and metadata-only objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, TypeVar, Unpack, overload

from flyball.api import DynamicObject, PartialObjectMetadata, Resource, ResourceType
from flyball.client import subresources, verbs
from flyball.client.arguments import (
    CollectionArgs,
    DeleteArgs,
    FieldValidation,
    ListArgs,
    ReadArgs,
    WatchArgs,
    WriteArgs,
)
from flyball.client.config import ClusterConfig, load_config
from flyball.client.discovery import Discovery
from flyball.client.forwarding import PortForward
from flyball.client.http_transport import HttpTransport
from flyball.client.kinds import Kind, Ref, kind_from, ref_of
from flyball.client.listing import Listing, ListResult
from flyball.client.logs import Logs, log_query
from flyball.client.patches import Patch
from flyball.client.processes import Exec
from flyball.client.retry import Retry
from flyball.client.selectors import FieldQuery, LabelQuery, field_text, label_text
from flyball.client.server_warnings import OnWarning
from flyball.client.session import Options, Session
from flyball.client.subresources import ScaleState, Token
from flyball.client.transport import Interceptor, Transport
from flyball.client.watch import Watch

__all__ = ["Client"]

T = TypeVar("T")
R = TypeVar("R", bound=Resource)
O = TypeVar("O", bound=Resource | DynamicObject | PartialObjectMetadata)  # noqa: E741
W = TypeVar("W", bound=Resource | DynamicObject)

Addressed = Resource | DynamicObject | PartialObjectMetadata | Ref[Any]
_GivenKind = type[Resource] | Kind[Any] | ResourceType


class Client:
    """Reaches one API server.

    `Client()` goes where kubectl would go. It may be used as `async with`, or closed by `aclose()`; any number of
    tasks may share it.

    Options hold for every request, unless a call says otherwise: `namespace` (where objects without one live; default:
    the configuration's), `dry_run` (nothing reaches storage, whatever is called), `field_validation`, `field_manager`
    (who owns what is applied), `timeout` (seconds of silence), `on_warning` (called with every `ServerWarning`;
    default: each text is logged once). `retry` is the outermost interceptor (None: no repeats); `interceptors` see
    every try.
    """

    def __init__(
        self,
        config: ClusterConfig | None = None,
        *,
        transport: Transport | None = None,
        namespace: str | None = None,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        field_manager: str | None = None,
        timeout: float | None = None,
        on_warning: OnWarning | None = None,
        retry: Interceptor | type[Retry] | None = Retry,
        interceptors: Sequence[Interceptor] = (),
    ) -> None:
        if transport is None:
            config = config or load_config()
            transport = HttpTransport(config)
        repeat = Retry() if isinstance(retry, type) else retry
        self._session = Session(
            transport,
            namespace=namespace or (config.namespace if config else "default"),
            options=Options(dry_run, field_validation, field_manager, timeout),
            interceptors=[*([repeat] if repeat else []), *interceptors],
            on_warning=on_warning,
        )

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; requests under way fail."""
        await self._session.transport.close()

    @property
    def host(self) -> str:
        """Where the server is."""
        return self._session.transport.host

    @property
    def namespace(self) -> str:
        """Where objects live of which nobody says where."""
        return self._session.namespace

    @property
    def field_manager(self) -> str | None:
        """Who owns what is applied."""
        return self._session.options.field_manager

    @property
    def discovery(self) -> Discovery:
        """The kinds that the server serves."""
        return self._session.discovery

    # -- reading ---------------------------------------------------------------------------------------------------

    @overload
    async def get(self, kind: type[R], name: str, **args: Unpack[ReadArgs]) -> R: ...
    @overload
    async def get(self, kind: Kind[T], name: str, **args: Unpack[ReadArgs]) -> T: ...
    @overload
    async def get(self, kind: ResourceType, name: str, **args: Unpack[ReadArgs]) -> DynamicObject: ...
    async def get(self, kind: Any, name: str, **args: Unpack[ReadArgs]) -> Any:
        """Read one object; `NotFound` when it is not there."""
        return await verbs.get(self._session, Ref(kind_from(kind), name, args.get("namespace")), args)

    @overload
    def list(self, kind: type[R], **args: Unpack[ListArgs]) -> Listing[R]: ...
    @overload
    def list(self, kind: Kind[T], **args: Unpack[ListArgs]) -> Listing[T]: ...
    @overload
    def list(self, kind: ResourceType, **args: Unpack[ListArgs]) -> Listing[DynamicObject]: ...
    def list(self, kind: Any, **args: Unpack[ListArgs]) -> Listing[Any]:
        """Read many: `await` for a `ListResult` of all, `async for` for one page in memory at a time."""
        query = _selection(args.get("labels"), args.get("fields"))
        if version := args.get("resource_version"):
            query += (("resourceVersion", version),)
        if match := args.get("resource_version_match"):
            query += (("resourceVersionMatch", match),)
        size = args.get("page_size", 500)
        return Listing(self._session, kind_from(kind), args.get("namespace"), query, size, args.get("timeout"))

    @overload
    def watch(self, kind: type[R], **args: Unpack[WatchArgs]) -> Watch[R]: ...
    @overload
    def watch(self, kind: Kind[T], **args: Unpack[WatchArgs]) -> Watch[T]: ...
    @overload
    def watch(self, kind: ResourceType, **args: Unpack[WatchArgs]) -> Watch[DynamicObject]: ...
    def watch(self, kind: Any, **args: Unpack[WatchArgs]) -> Watch[Any]:
        """Follow changes over one connection, until the server ends it; see `flyball.client.watch`.

        `timeout` is the time after which the server ends the stream (default: 5 to 10 minutes, by chance).
        """
        return Watch(
            self._session,
            kind_from(kind),
            namespace=args.get("namespace"),
            query=_selection(args.get("labels"), args.get("fields")),
            resource_version=args.get("resource_version"),
            bookmarks=args.get("bookmarks", False),
            send_initial_events=args.get("send_initial_events", False),
            timeout=args.get("timeout"),
            inactivity=args.get("inactivity"),
        )

    # -- writing ---------------------------------------------------------------------------------------------------

    async def create(self, obj: W, **args: Unpack[WriteArgs]) -> W:
        """Make a new object; returns it as the server stored it, as every write does."""
        return await verbs.create(self._session, obj, args)

    async def update(
        self, obj: W, *, subresource: str | None = None, replace: bool = False, **args: Unpack[WriteArgs]
    ) -> W:
        """Put the whole object in place of the version that was read; `Conflict` when there is a newer one.

        Fields that its class does not know are sent back as they came. An object that was not read is refused, unless
        `replace` says that everything it does not mention shall go.
        """
        return await verbs.update(self._session, obj, subresource, replace, args)

    async def apply(
        self,
        obj: W,
        *,
        force: bool = False,
        subresource: str | None = None,
        of: type[Resource] | Kind[Any] | ResourceType | None = None,
        **args: Unpack[WriteArgs],
    ) -> W:
        """Server-side apply: these fields, and no others, are mine.

        Creates the object when it is not there. Fields applied before and not now are given up. `Conflict` names who
        owns a field that should change; `force` takes it. With `subresource`, that part is applied; `of` is the kind
        it belongs to where the body is of another kind (a Scale).
        """
        return await verbs.apply(self._session, obj, force, subresource, of, args)

    @overload
    async def patch(
        self,
        obj: Ref[T],
        patch: Patch,
        *,
        subresource: str | None = None,
        guard: bool | None = None,
        **args: Unpack[WriteArgs],
    ) -> T: ...
    @overload
    async def patch(
        self,
        obj: O,
        patch: Patch | None = None,
        *,
        subresource: str | None = None,
        guard: bool | None = None,
        **args: Unpack[WriteArgs],
    ) -> O: ...
    async def patch(
        self,
        obj: Any,
        patch: Patch | None = None,
        *,
        subresource: str | None = None,
        guard: bool | None = None,
        **args: Unpack[WriteArgs],
    ) -> Any:
        """Change parts of an object: by a patch, or (without one) by what was changed in `obj` since it was read.

        With `guard` the answer is `Conflict` when the object is no longer the one that was read: the default for a
        difference, and not for a patch. A difference without changes sends nothing.
        """
        return await verbs.patch(self._session, obj, patch, subresource, guard, args)

    @overload
    async def delete(self, kind: type[R], name: str, **args: Unpack[DeleteArgs]) -> R | None: ...
    @overload
    async def delete(self, kind: Kind[T], name: str, **args: Unpack[DeleteArgs]) -> T | None: ...
    @overload
    async def delete(self, kind: ResourceType, name: str, **args: Unpack[DeleteArgs]) -> DynamicObject | None: ...
    @overload
    async def delete(self, kind: Ref[T], **args: Unpack[DeleteArgs]) -> T | None: ...
    @overload
    async def delete(self, kind: O, **args: Unpack[DeleteArgs]) -> O | None: ...
    async def delete(self, kind: Any, name: str | None = None, **args: Unpack[DeleteArgs]) -> Any:
        """Delete an object: by kind and name, or the very object that was read (its uid is sent along).

        Returns None when it is gone, and the object when it only was marked for deletion: its finalizers, or its
        grace period, come first.
        """
        found = _addressed(kind) if name is None else Ref(kind_from(kind), name)
        return await verbs.delete(self._session, found, args)

    @overload
    async def delete_collection(self, kind: type[R], **args: Unpack[CollectionArgs]) -> ListResult[R]: ...
    @overload
    async def delete_collection(self, kind: Kind[T], **args: Unpack[CollectionArgs]) -> ListResult[T]: ...
    @overload
    async def delete_collection(
        self, kind: ResourceType, **args: Unpack[CollectionArgs]
    ) -> ListResult[DynamicObject]: ...
    async def delete_collection(self, kind: Any, **args: Unpack[CollectionArgs]) -> ListResult[Any]:
        """Delete all objects of a kind in one namespace that the selectors select; returns them."""
        query = _selection(args.get("labels"), args.get("fields"))
        return await verbs.delete_collection(self._session, kind_from(kind), query, args)

    # -- what can be done with an object ------------------------------------------------------------------------------

    @overload
    async def scale(
        self, target: Addressed, *, replicas: int | None = None, **args: Unpack[WriteArgs]
    ) -> ScaleState: ...
    @overload
    async def scale(
        self,
        target: _GivenKind,
        name: str,
        *,
        namespace: str | None = None,
        replicas: int | None = None,
        **args: Unpack[WriteArgs],
    ) -> ScaleState: ...
    async def scale(
        self,
        target: Any,
        name: str | None = None,
        *,
        namespace: str | None = None,
        replicas: int | None = None,
        **args: Unpack[WriteArgs],
    ) -> ScaleState:
        """Read how many replicas are wanted, or (with `replicas`) want another number."""
        found = _addressed(target) if name is None else Ref(kind_from(target), name)
        place = await self._session.one(found, namespace)
        if replicas is None:
            return await subresources.get_scale(self._session, place, args)
        return await subresources.set_scale(self._session, place, replicas, args)

    async def evict(
        self,
        pod: Addressed | str,
        *,
        namespace: str | None = None,
        grace_period: int | None = None,
        **args: Unpack[WriteArgs],
    ) -> None:
        """End a pod as a drain does; `TooManyRequests` when its disruption budget does not allow it now."""
        found = subresources.pods(pod) if isinstance(pod, str) else _addressed(pod)
        place = await self._session.one(found, namespace)
        await subresources.evict(self._session, place, found.uid, grace_period, args)

    async def bind(
        self, pod: Addressed | str, node: str, *, namespace: str | None = None, **args: Unpack[WriteArgs]
    ) -> None:
        """Put a pod onto a node, as a scheduler does."""
        found = subresources.pods(pod) if isinstance(pod, str) else _addressed(pod)
        place = await self._session.one(found, namespace)
        await subresources.bind(self._session, place, node, args)

    async def token(
        self,
        account: Addressed | str,
        *,
        namespace: str | None = None,
        audiences: Sequence[str] = (),
        expires_in: timedelta | None = None,
        **args: Unpack[WriteArgs],
    ) -> Token:
        """A token with which to act as a service account (at least ten minutes; default an hour)."""
        found = subresources.service_accounts(account) if isinstance(account, str) else _addressed(account)
        place = await self._session.one(found, namespace)
        return await subresources.request_token(self._session, place, audiences, expires_in, args)

    def logs(
        self,
        pod: Addressed | str,
        *,
        namespace: str | None = None,
        container: str | None = None,
        follow: bool = False,
        previous: bool = False,
        since: timedelta | datetime | None = None,
        tail: int | None = None,
        timestamps: bool = False,
        limit_bytes: int | None = None,
        timeout: float | None = None,
    ) -> Logs:
        """What a container wrote: `await` for the text, `async for` for lines (with `follow`, until it ends)."""
        query = log_query(
            container=container,
            follow=follow,
            previous=previous,
            since=since,
            tail=tail,
            timestamps=timestamps,
            limit_bytes=limit_bytes,
        )
        found = subresources.pods(pod) if isinstance(pod, str) else _addressed(pod)
        return Logs(self._session, found, namespace, query, timeout)

    def exec(
        self,
        pod: Addressed | str,
        command: Sequence[str],
        *,
        namespace: str | None = None,
        container: str | None = None,
        stdin: bytes | str | bool = False,
        tty: bool = False,
        check: bool = False,
        timeout: float | None = None,
    ) -> Exec:
        """Run a command in a container: `await` for its end, `async with` to talk with it; see `processes`.

        `stdin` is what it reads, and then the end of its input; or True in `async with`, where `write` and `finish`
        do that. With `check`, another exit code than 0 raises `CommandFailed`. `timeout` is for the connection to come
        about; a command may run as long as it likes.
        """
        found = subresources.pods(pod) if isinstance(pod, str) else _addressed(pod)
        return Exec(
            self._session,
            found,
            namespace,
            command=command,
            container=container,
            stdin=stdin,
            tty=tty,
            check=check,
            timeout=timeout,
        )

    def attach(
        self,
        pod: Addressed | str,
        *,
        namespace: str | None = None,
        container: str | None = None,
        stdin: bytes | str | bool = False,
        tty: bool = False,
        timeout: float | None = None,
    ) -> Exec:
        """Join the process that a container runs: `async with` to talk with it, `await` for all it writes to its end.

        `stdin` and `tty` must be what the container itself has.
        """
        found = subresources.pods(pod) if isinstance(pod, str) else _addressed(pod)
        return Exec(
            self._session,
            found,
            namespace,
            command=None,
            container=container,
            stdin=stdin,
            tty=tty,
            check=False,
            timeout=timeout,
        )

    def port_forward(
        self,
        pod: Addressed | str,
        port: int,
        *,
        namespace: str | None = None,
        local: int = 0,
        timeout: float | None = None,
    ) -> PortForward:
        """Connect to a port of a pod: `await` for one connection, `async with` for a local port; see `forwarding`.

        `local` is the port to listen on, on loopback; default: a free one.
        """
        found = subresources.pods(pod) if isinstance(pod, str) else _addressed(pod)
        return PortForward(self._session, found, namespace, port, local, timeout)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        accept: str = "application/json, */*",
        content_type: str = "application/json",
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> bytes:
        """Any other request: `await client.request("GET", "/version")`. A dry-run client stays one."""
        pairs = dict(query or {})
        if method not in {"GET", "HEAD"} and self._session.options.dry_run:
            pairs["dryRun"] = "All"
        request = self._session.request(
            method,
            path,
            action=f"{method} {path}",
            query=tuple(pairs.items()),
            accept=accept,
            body=body,
            content_type=content_type,
            timeout=timeout,
        )
        return await self._session.call(request)


def _selection(labels: LabelQuery | None, fields: FieldQuery | None) -> tuple[tuple[str, str], ...]:
    pairs = (("fieldSelector", field_text(fields)), ("labelSelector", label_text(labels)))
    return tuple((name, text) for name, text in pairs if text)


def _addressed(target: Any) -> Ref[Any]:
    return target if isinstance(target, Ref) else ref_of(target)
