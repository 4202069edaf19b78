"""The client for programs without an event loop: scripts, notebooks, the console.

    from flyball.sync import Client

    with Client() as client:
        for pod in client.list(Pod, namespace="shop"):
            print(pod.metadata.name)

There is one implementation. Each `Client` here owns a `flyball.client.Client` and a thread with an event loop; a call
is handed to that loop and waited for. So it works where a loop is already running (a notebook), and from any number
of threads at once. Arguments, answers and errors are those of the asynchronous client; instead of objects that can be
awaited or iterated there are two methods:

| asynchronous | here |
|---|---|
| `await client.list(Pod)` | `client.list(Pod)` |
| `async for pod in client.list(Pod)` | `for pod in client.iterate(Pod)` |
| `await client.logs("web-0")` | `client.logs("web-0")` |
| `async for line in client.logs("web-0", follow=True)` | `for line in client.follow_logs("web-0")` |
| `await client.exec("web-0", ["ls"])` | `client.exec("web-0", ["ls"])` |
| `async with client.exec("web-0", ["sh"]) as shell` | `with client.open_exec("web-0", ["sh"]) as shell` |
| `async with client.attach("web-0") as process` | `with client.attach("web-0") as process` |
| `async with client.port_forward("db-0", 5432) as local` | `with client.port_forward("db-0", 5432) as local` |

Ctrl-C while waiting cancels the request. `on_warning`, interceptors and the like are called in the client's thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, TypeVar, Unpack, overload

from flyball import client as asynchronous
from flyball.api import DynamicObject, Resource, ResourceType
from flyball.client.arguments import (
    CollectionArgs,
    DeleteArgs,
    FieldValidation,
    ListArgs,
    ReadArgs,
    WatchArgs,
    WriteArgs,
)
from flyball.client.blocking import BlockingPortForward, BlockingProcess
from flyball.client.client import Addressed, O, R, T, W
from flyball.client.config import ClusterConfig
from flyball.client.discovery import ServedKind
from flyball.client.kinds import Kind, Ref
from flyball.client.listing import ListResult
from flyball.client.patches import Patch
from flyball.client.processes import ExecResult
from flyball.client.refusals import RefusedRequest
from flyball.client.retry import Retry
from flyball.client.server_warnings import OnWarning
from flyball.client.subresources import ScaleState, Token
from flyball.client.transport import Interceptor, Transport
from flyball.client.watch import WatchEvent

__all__ = ["Client"]

A = TypeVar("A")

_END: Any = object()


class Client:
    """`flyball.client.Client`, waiting for each answer; see the module's text. Close it, or use it in `with`."""

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
        self._client = asynchronous.Client(
            config,
            transport=transport,
            namespace=namespace,
            dry_run=dry_run,
            field_validation=field_validation,
            field_manager=field_manager,
            timeout=timeout,
            on_warning=on_warning,
            retry=retry,
            interceptors=interceptors,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="flyball-client", daemon=True)
        self._thread.start()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end the thread; may be called twice."""
        if self._loop.is_closed():
            return
        self._wait(self._client.aclose())
        self._wait(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def host(self) -> str:
        """Where the server is."""
        return self._client.host

    @property
    def namespace(self) -> str:
        """Where objects live of which nobody says where."""
        return self._client.namespace

    @property
    def field_manager(self) -> str | None:
        """Who owns what is applied."""
        return self._client.field_manager

    def kinds(self) -> Sequence[ServedKind]:
        """Everything that the server serves."""
        return self._wait(self._client.discovery.kinds())

    def find(self, name: str) -> ServedKind:
        """A kind as people name it: `pods`, `po`, `deployments.apps`."""
        return self._wait(self._client.discovery.find(name))

    @overload
    def get(self, kind: type[R], name: str, **args: Unpack[ReadArgs]) -> R: ...
    @overload
    def get(self, kind: Kind[T], name: str, **args: Unpack[ReadArgs]) -> T: ...
    @overload
    def get(self, kind: ResourceType, name: str, **args: Unpack[ReadArgs]) -> DynamicObject: ...
    def get(self, kind: Any, name: str, **args: Unpack[ReadArgs]) -> Any:
        """Read one object; `NotFound` when it is not there."""
        return self._wait(self._client.get(kind, name, **args))

    @overload
    def list(self, kind: type[R], **args: Unpack[ListArgs]) -> ListResult[R]: ...
    @overload
    def list(self, kind: Kind[T], **args: Unpack[ListArgs]) -> ListResult[T]: ...
    @overload
    def list(self, kind: ResourceType, **args: Unpack[ListArgs]) -> ListResult[DynamicObject]: ...
    def list(self, kind: Any, **args: Unpack[ListArgs]) -> ListResult[Any]:
        """Read all objects of a kind."""

        async def whole() -> ListResult[Any]:
            return await self._client.list(kind, **args)

        return self._wait(whole())

    @overload
    def iterate(self, kind: type[R], **args: Unpack[ListArgs]) -> Iterator[R]: ...
    @overload
    def iterate(self, kind: Kind[T], **args: Unpack[ListArgs]) -> Iterator[T]: ...
    @overload
    def iterate(self, kind: ResourceType, **args: Unpack[ListArgs]) -> Iterator[DynamicObject]: ...
    def iterate(self, kind: Any, **args: Unpack[ListArgs]) -> Iterator[Any]:
        """Read all objects of a kind, one page in memory at a time."""
        return self._each(aiter(self._client.list(kind, **args)))

    @overload
    def watch(self, kind: type[R], **args: Unpack[WatchArgs]) -> Iterator[WatchEvent[R]]: ...
    @overload
    def watch(self, kind: Kind[T], **args: Unpack[WatchArgs]) -> Iterator[WatchEvent[T]]: ...
    @overload
    def watch(self, kind: ResourceType, **args: Unpack[WatchArgs]) -> Iterator[WatchEvent[DynamicObject]]: ...
    def watch(self, kind: Any, **args: Unpack[WatchArgs]) -> Iterator[WatchEvent[Any]]:
        """Follow changes over one connection, until the server ends it or the iterator is closed."""
        return self._each(aiter(self._client.watch(kind, **args)))

    def create(self, obj: W, **args: Unpack[WriteArgs]) -> W:
        """Make a new object; returns it as the server stored it, as every write does."""
        return self._wait(self._client.create(obj, **args))

    def update(self, obj: W, *, subresource: str | None = None, replace: bool = False, **args: Unpack[WriteArgs]) -> W:
        """Put the whole object in place of the version that was read."""
        return self._wait(self._client.update(obj, subresource=subresource, replace=replace, **args))

    def apply(
        self,
        obj: W,
        *,
        force: bool = False,
        subresource: str | None = None,
        of: type[Resource] | Kind[Any] | ResourceType | None = None,
        **args: Unpack[WriteArgs],
    ) -> W:
        """Server-side apply: these fields, and no others, are mine."""
        return self._wait(self._client.apply(obj, force=force, subresource=subresource, of=of, **args))

    @overload
    def patch(
        self,
        obj: Ref[T],
        patch: Patch,
        *,
        subresource: str | None = None,
        guard: bool | None = None,
        **args: Unpack[WriteArgs],
    ) -> T: ...
    @overload
    def patch(
        self,
        obj: O,
        patch: Patch | None = None,
        *,
        subresource: str | None = None,
        guard: bool | None = None,
        **args: Unpack[WriteArgs],
    ) -> O: ...
    def patch(
        self,
        obj: Any,
        patch: Patch | None = None,
        *,
        subresource: str | None = None,
        guard: bool | None = None,
        **args: Unpack[WriteArgs],
    ) -> Any:
        """Change parts of an object: by a patch, or (without one) by what was changed in `obj` since it was read."""
        return self._wait(self._client.patch(obj, patch, subresource=subresource, guard=guard, **args))

    @overload
    def delete(self, kind: type[R], name: str, **args: Unpack[DeleteArgs]) -> R | None: ...
    @overload
    def delete(self, kind: Kind[T], name: str, **args: Unpack[DeleteArgs]) -> T | None: ...
    @overload
    def delete(self, kind: ResourceType, name: str, **args: Unpack[DeleteArgs]) -> DynamicObject | None: ...
    @overload
    def delete(self, kind: Ref[T], **args: Unpack[DeleteArgs]) -> T | None: ...
    @overload
    def delete(self, kind: O, **args: Unpack[DeleteArgs]) -> O | None: ...
    def delete(self, kind: Any, name: str | None = None, **args: Unpack[DeleteArgs]) -> Any:
        """Delete an object: by kind and name, or the very object that was read."""
        given: Any = (kind,) if name is None else (kind, name)
        return self._wait(self._client.delete(*given, **args))

    @overload
    def delete_collection(self, kind: type[R], **args: Unpack[CollectionArgs]) -> ListResult[R]: ...
    @overload
    def delete_collection(self, kind: Kind[T], **args: Unpack[CollectionArgs]) -> ListResult[T]: ...
    @overload
    def delete_collection(self, kind: ResourceType, **args: Unpack[CollectionArgs]) -> ListResult[DynamicObject]: ...
    def delete_collection(self, kind: Any, **args: Unpack[CollectionArgs]) -> ListResult[Any]:
        """Delete all objects of a kind in one namespace that the selectors select; returns them."""
        return self._wait(self._client.delete_collection(kind, **args))

    @overload
    def scale(self, target: Addressed, *, replicas: int | None = None, **args: Unpack[WriteArgs]) -> ScaleState: ...
    @overload
    def scale(
        self,
        target: type[Resource] | Kind[Any] | ResourceType,
        name: str,
        *,
        namespace: str | None = None,
        replicas: int | None = None,
        **args: Unpack[WriteArgs],
    ) -> ScaleState: ...
    def scale(
        self,
        target: Any,
        name: str | None = None,
        *,
        namespace: str | None = None,
        replicas: int | None = None,
        **args: Unpack[WriteArgs],
    ) -> ScaleState:
        """Read how many replicas are wanted, or (with `replicas`) want another number."""
        given: Any = (target,) if name is None else (target, name)
        return self._wait(self._client.scale(*given, namespace=namespace, replicas=replicas, **args))

    def evict(
        self,
        pod: Addressed | str,
        *,
        namespace: str | None = None,
        grace_period: int | None = None,
        **args: Unpack[WriteArgs],
    ) -> None:
        """End a pod as a drain does."""
        self._wait(self._client.evict(pod, namespace=namespace, grace_period=grace_period, **args))

    def bind(self, pod: Addressed | str, node: str, *, namespace: str | None = None, **args: Unpack[WriteArgs]) -> None:
        """Put a pod onto a node, as a scheduler does."""
        self._wait(self._client.bind(pod, node, namespace=namespace, **args))

    def token(
        self,
        account: Addressed | str,
        *,
        namespace: str | None = None,
        audiences: Sequence[str] = (),
        expires_in: timedelta | None = None,
        **args: Unpack[WriteArgs],
    ) -> Token:
        """A token with which to act as a service account."""
        return self._wait(
            self._client.token(account, namespace=namespace, audiences=audiences, expires_in=expires_in, **args)
        )

    def logs(
        self,
        pod: Addressed | str,
        *,
        namespace: str | None = None,
        container: str | None = None,
        previous: bool = False,
        since: timedelta | datetime | None = None,
        tail: int | None = None,
        timestamps: bool = False,
        limit_bytes: int | None = None,
        timeout: float | None = None,
    ) -> str:
        """What a container wrote until now."""

        async def text() -> str:
            return await self._client.logs(
                pod,
                namespace=namespace,
                container=container,
                previous=previous,
                since=since,
                tail=tail,
                timestamps=timestamps,
                limit_bytes=limit_bytes,
                timeout=timeout,
            )

        return self._wait(text())

    def follow_logs(
        self,
        pod: Addressed | str,
        *,
        namespace: str | None = None,
        container: str | None = None,
        since: timedelta | datetime | None = None,
        tail: int | None = None,
        timestamps: bool = False,
        timeout: float | None = None,
    ) -> Iterator[str]:
        """What a container writes, line by line, until it ends or the iterator is closed."""
        lines = self._client.logs(
            pod,
            namespace=namespace,
            container=container,
            follow=True,
            since=since,
            tail=tail,
            timestamps=timestamps,
            timeout=timeout,
        )
        return self._each(aiter(lines))

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
    ) -> ExecResult:
        """Run a command in a container to its end."""

        async def run() -> ExecResult:
            return await self._client.exec(
                pod,
                command,
                namespace=namespace,
                container=container,
                stdin=stdin,
                tty=tty,
                check=check,
                timeout=timeout,
            )

        return self._wait(run())

    def open_exec(
        self,
        pod: Addressed | str,
        command: Sequence[str],
        *,
        namespace: str | None = None,
        container: str | None = None,
        stdin: bytes | str | bool = False,
        tty: bool = False,
        timeout: float | None = None,
    ) -> BlockingProcess:
        """Run a command in a container and talk with it: `with client.open_exec(...) as process`."""
        made = self._client.exec(
            pod, command, namespace=namespace, container=container, stdin=stdin, tty=tty, timeout=timeout
        )
        return BlockingProcess(made, self._wait)

    def attach(
        self,
        pod: Addressed | str,
        *,
        namespace: str | None = None,
        container: str | None = None,
        stdin: bytes | str | bool = False,
        tty: bool = False,
        timeout: float | None = None,
    ) -> BlockingProcess:
        """Join the process that a container runs: `with client.attach(...) as process`."""
        made = self._client.attach(pod, namespace=namespace, container=container, stdin=stdin, tty=tty, timeout=timeout)
        return BlockingProcess(made, self._wait)

    def port_forward(
        self,
        pod: Addressed | str,
        port: int,
        *,
        namespace: str | None = None,
        local: int = 0,
        timeout: float | None = None,
    ) -> BlockingPortForward:
        """Listen on a local port that leads to one of a pod: `with client.port_forward("db-0", 5432) as local`."""
        made = self._client.port_forward(pod, port, namespace=namespace, local=local, timeout=timeout)
        return BlockingPortForward(made, self._wait)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        accept: str = "application/json, */*",
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> bytes:
        """Any other request: `client.request("GET", "/version")`."""
        return self._wait(
            self._client.request(
                method, path, query=query, body=body, accept=accept, content_type=content_type, timeout=timeout
            )
        )

    def _wait(self, work: Coroutine[Any, Any, A]) -> A:
        if self._loop.is_closed() or threading.current_thread() is self._thread:
            work.close()
            raise RefusedRequest(
                "this client is closed; make a new one"
                if self._loop.is_closed()
                else "this is the client's own thread, which cannot wait for itself; use flyball.client there"
            )
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _each(self, source: AsyncIterator[A]) -> Iterator[A]:
        async def following() -> A:
            return await anext(source, _END)

        async def close() -> None:
            await source.aclose()  # type: ignore[attr-defined]  # all our sources are generators

        try:
            while (item := self._wait(following())) is not _END:
                yield item
        finally:
            if not self._loop.is_closed():
                self._wait(close())
