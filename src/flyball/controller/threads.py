"""Reconcilers that are plain functions: they run in a thread, with a context whose verbs wait.

The event loop goes on meanwhile. What Python cannot do is end a thread; so a deadline, or the end of the process,
means:

- the context is closed: from then on each of its verbs raises `PassOver`, and nothing is written any more;
- the key stays in work until the function has returned, so it never runs twice at once; then the pass counts as failed;
- when the process stops and its grace is over, the thread is left alone; it does not keep the process alive.
"""

from __future__ import annotations

import asyncio
import builtins
import contextvars
import threading
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from flyball.api import DynamicObject, Model, PartialObjectMetadata, Resource
from flyball.client import Patch, Ref
from flyball.client.arguments import Propagation
from flyball.client.kinds import Kind
from flyball.client.selectors import FieldQuery, LabelQuery
from flyball.controller.request import Request
from flyball.controller.workspace import SyncWorkspace
from flyball.errors import FlyballError

if TYPE_CHECKING:
    from flyball.controller.context import Context
    from flyball.controller.events import EventType
    from flyball.controller.live import LiveReader
    from flyball.controller.logs import PassLogger
    from flyball.controller.reconciler import Step

__all__ = ["SyncContext", "SyncLiveReader", "in_thread"]

T = TypeVar("T")
R = TypeVar("R", bound=Resource)
W = TypeVar("W", bound=Resource | DynamicObject)
D = TypeVar("D", bound=Model)

_AnyKind = type[R] | Kind[R]


async def in_thread(step: Step, subject: Any, ctx: Context, *, abandon: Callable[[], bool]) -> Any:
    """Run a plain function in a thread of its own; `abandon` tells whether it need not be waited for."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()
    waiting = SyncContext(ctx, loop)

    def tell(result: Any, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(result)
        elif isinstance(error, StopIteration):
            answer.set_exception(RuntimeError("the reconciler raised StopIteration"))
        else:
            answer.set_exception(error)

    def work() -> None:
        result, failure = None, None
        try:
            result = step.function(subject, waiting)
        except BaseException as error:
            failure = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, result, failure)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name=f"flyball {ctx.request}", daemon=True).start()
    try:
        return await asyncio.shield(answer)
    except asyncio.CancelledError:
        ctx.close("its time was up")
        while not answer.done() and not abandon():
            await asyncio.wait([answer])
        if answer.done():
            answer.exception()
        raise


class SyncContext:
    """`Context` for plain functions: the same verbs with the same meaning; each waits for its answer."""

    def __init__(self, ctx: Context, loop: asyncio.AbstractEventLoop) -> None:
        """Over the asynchronous one."""
        self._ctx = ctx
        self._loop = loop
        self.live = SyncLiveReader(ctx.live, self._wait)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    @property
    def request(self) -> Request:
        """Which object the pass is about."""
        return self._ctx.request

    @property
    def reason(self) -> str:
        """Why the pass runs, for people."""
        return self._ctx.reason

    @property
    def deleting(self) -> bool:
        """Whether the object is being deleted."""
        return self._ctx.deleting

    @property
    def log(self) -> PassLogger:
        """The logger of this pass."""
        return self._ctx.log

    def now(self) -> datetime:
        """The time of day."""
        return self._ctx.now()

    def count(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        """Add to a number of the operator's own."""
        self._ctx.count(name, value, **labels)

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        """One more observation."""
        self._ctx.observe(name, value, **labels)

    def measure(self, name: str, value: float) -> None:
        """A number about the pass's object."""
        self._loop.call_soon_threadsafe(self._ctx.measure, name, value)

    def load(self, kind: type[R]) -> R | None:
        """The pass's own object, for a raw reconciler."""
        return self._wait(self._ctx.load(kind))

    def get(self, kind: _AnyKind[R], name: str, namespace: str | None = None) -> R | None:
        """An object from the cache."""
        return self._wait(self._ctx.get(cast("type[R]", kind), name, namespace))

    def list(
        self, kind: _AnyKind[R], *, namespace: str | None = None, labels: LabelQuery | None = None
    ) -> builtins.list[R]:
        """Objects from the cache."""
        return self._wait(self._ctx.list(cast("type[R]", kind), namespace=namespace, labels=labels))

    def owned(self, kind: _AnyKind[R]) -> builtins.list[R]:
        """The children of this kind."""
        return self._wait(self._ctx.owned(cast("type[R]", kind)))

    def apply(self, obj: W, *, force: bool = True, owner: bool | None = None) -> W:
        """Make a child be as said here."""
        return self._wait(self._ctx.apply(obj, force=force, owner=owner))

    def create(self, obj: W, *, owner: bool | None = None) -> W:
        """Make a new child."""
        return self._wait(self._ctx.create(obj, owner=owner))

    @overload
    def patch(self, obj: Ref[T], patch: Patch, *, subresource: str | None = None, guard: bool | None = None) -> T: ...
    @overload
    def patch(
        self, obj: W, patch: Patch | None = None, *, subresource: str | None = None, guard: bool | None = None
    ) -> W: ...
    def patch(
        self, obj: Any, patch: Patch | None = None, *, subresource: str | None = None, guard: bool | None = None
    ) -> Any:
        """Change parts of an object."""
        return self._wait(self._ctx.patch(obj, patch, subresource=subresource, guard=guard))

    def delete(
        self,
        obj: Resource | DynamicObject | PartialObjectMetadata,
        *,
        propagation: Propagation = "Background",
        guard: bool = False,
        grace_period: int | None = None,
    ) -> None:
        """Delete the very object that was read."""
        self._wait(self._ctx.delete(obj, propagation=propagation, guard=guard, grace_period=grace_period))

    def workspace(self, data: type[D]) -> SyncWorkspace[D]:
        """The notebook of the pass's object."""
        return SyncWorkspace(self._wait(self._ctx.workspace(data)), self._wait)

    def record(self, type: EventType, reason: str, message: str, *, about: Any = None, action: str = "") -> None:
        """Tell people by an Event."""
        self._loop.call_soon_threadsafe(lambda: self._ctx.record(type, reason, message, about=about, action=action))

    def report(self, error: FlyballError) -> None:
        """Tell of something that is wrong; the pass does not fail."""
        self._ctx.report(error)

    def write_status(self) -> bool:
        """Write the status now, if it differs."""
        return self._wait(self._ctx.write_status())

    def requeue(self, *, after: timedelta | float | None = None, at: datetime | None = None) -> None:
        """Run again at a time, or earlier if something happens."""
        self._ctx.requeue(after=after, at=at)


class SyncLiveReader:
    """`ctx.live` for plain functions."""

    def __init__(self, live: LiveReader, wait: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        """Over the asynchronous one."""
        self._live = live
        self._wait = wait

    def get(self, kind: _AnyKind[R], name: str, namespace: str | None = None) -> R | None:
        """An object as it is now."""
        found: R | None = self._wait(self._live.get(cast("type[R]", kind), name, namespace))
        return found

    def list(
        self,
        kind: _AnyKind[R],
        *,
        namespace: str | None = None,
        labels: LabelQuery | None = None,
        fields: FieldQuery | None = None,
    ) -> builtins.list[R]:
        """Objects as they are now."""
        found: builtins.list[R] = self._wait(
            self._live.list(cast("type[R]", kind), namespace=namespace, labels=labels, fields=fields)
        )
        return found
