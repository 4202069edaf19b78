"""`@controller`: a reconciler and what wakes it, before it runs anywhere.

A `Controller` is a description. `bind(runtime)` makes a running one of it; one description can be bound many times (a
test's cluster, a process of its own).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from flyball.api import Resource
from flyball.client.kinds import Kind, kind_from
from flyball.controller.failures import seconds_of
from flyball.controller.finalizers import Finalizer, default_finalizer
from flyball.controller.predicates import Predicate
from flyball.controller.queue import Backoff
from flyball.controller.reconciler import NotAReconciler, Reconciler, Step, SyncReconciler, step_of
from flyball.controller.request import Request, Result
from flyball.controller.sources import AnyKind, Channel, For, Owns, Source, Watches

if TYPE_CHECKING:
    from flyball.controller.context import Context
    from flyball.controller.limits import RateLimit
    from flyball.controller.running import RunningController
    from flyball.controller.runtime import ControllerRuntime
    from flyball.controller.threads import SyncContext

__all__ = ["Controller", "Decorator", "Options", "controller"]

T = TypeVar("T")
R = TypeVar("R", bound=Resource)
F = TypeVar("F", bound=Callable[..., Any])

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a controller works; see `controller` for what each means."""

    max_concurrent: int = 1
    raw: bool = False
    reconcile_timeout: float | None = None
    error_condition: str | None = "Degraded"
    conditions: Sequence[str] = ()
    events_on: Sequence[str] = ()
    write_budget: int | None = None
    resync: float | None = None
    backoff: Backoff = field(default_factory=Backoff)
    rate_limiter: RateLimit | None = None
    debounce: float = 0.0
    while_deleting: bool = False


class Controller(Generic[T]):
    """A reconciler with its kind, its sources and its options; made by `@controller`."""

    def __init__(
        self,
        kind: Kind[T],
        name: str,
        sources: Sequence[Source],
        channels: Sequence[Channel[Any]],
        options: Options,
        reconciler: Any,
    ) -> None:
        """Check what was decorated."""
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"controller name {name!r}: it names metrics, logs and owned fields; "
                "use up to 63 small letters, digits, dashes and dots"
            )
        self.kind = kind
        self.name = name
        self.sources = tuple(sources)
        self.channels = tuple(channels)
        self.options = options
        self.step, self.target = step_of(reconciler)
        self.reconciler = reconciler
        self.finalizers: list[Finalizer] = []
        if callable(getattr(self.target, "finalize", None)):
            self._add_finalizer(default_finalizer(kind, name), self.target.finalize)

    def __repr__(self) -> str:
        """Name and kind."""
        return f"<controller {self.name} of {self.kind.word}>"

    def __call__(self, *args: Any) -> Any:
        """Call the reconciler itself: what was decorated can still be called, in a test for example."""
        return self.step(*args)

    @overload
    def finalize(self, given: F) -> F: ...
    @overload
    def finalize(self, given: str | None = None) -> Callable[[F], F]: ...
    def finalize(self, given: Any = None) -> Any:
        """Run this function before an object may vanish: `@reconcile.finalize`, or with a name of its own.

        The finalizer is set before anything else is done for an object. When its deletion is asked for, the function
        runs, again and again, until it ends without an error and without a `Result` that waits; then the finalizer is
        taken away. Several named ones run in the order of their definition.
        """
        if callable(given):
            self._add_finalizer(default_finalizer(self.kind, self.name), given)
            return given

        def decorate(function: F) -> F:
            self._add_finalizer(given or default_finalizer(self.kind, self.name), function)
            return function

        return decorate

    def _add_finalizer(self, name: str, function: Callable[..., Any]) -> None:
        if self.options.raw:
            raise NotAReconciler(f"controller {self.name}: a raw reconciler deals with deletion itself; drop raw=True")
        if any(one.name == name for one in self.finalizers):
            raise ValueError(
                f"controller {self.name}: there are two finalizers {name!r}; "
                'name each: @reconcile.finalize("example.org/bucket")'
            )
        self.finalizers.append(Finalizer(name, Step(function, "the finalizer")))

    def bind(self, runtime: ControllerRuntime) -> RunningController[T]:
        """A controller that runs with the shared parts of a process."""
        from flyball.controller.running import RunningController

        return RunningController(self, runtime)


class Decorator(Generic[T]):
    """What `controller(...)` answers; put it before a function or a class, or call it with an object."""

    def __init__(self, make: Callable[[Any], Controller[T]]) -> None:
        """`make` makes the controller of what is decorated."""
        self._make = make

    @overload
    def __call__(self, reconciler: Callable[[T, Context], Awaitable[Result | None]]) -> Controller[T]: ...
    @overload
    def __call__(self, reconciler: Callable[[T, SyncContext], Result | None]) -> Controller[T]: ...
    @overload
    def __call__(self, reconciler: Callable[[Request, Context], Awaitable[Result | None]]) -> Controller[T]: ...
    @overload
    def __call__(self, reconciler: Callable[[Request, SyncContext], Result | None]) -> Controller[T]: ...
    @overload
    def __call__(self, reconciler: Reconciler[T]) -> Controller[T]: ...
    @overload
    def __call__(self, reconciler: SyncReconciler[T]) -> Controller[T]: ...
    @overload
    def __call__(self, reconciler: type[Any]) -> Controller[T]: ...
    def __call__(self, reconciler: Any) -> Controller[T]:
        """Make the controller."""
        return self._make(reconciler)


@overload
def controller(
    kind: type[R],
    *,
    owns: Sequence[AnyKind | Owns] = (),
    watches: Sequence[Watches] = (),
    channels: Sequence[Channel[Any]] = (),
    name: str | None = None,
    predicates: Sequence[Predicate] = (),
    namespace: str | None = None,
    labels: str | Mapping[str, str] | None = None,
    max_concurrent: int = 1,
    raw: bool = False,
    reconcile_timeout: timedelta | float | None = None,
    error_condition: str | None = ...,
    conditions: Sequence[str] = (),
    events_on: Sequence[str] = (),
    write_budget: int | None = None,
    resync: timedelta | float | None = None,
    backoff: Backoff | None = None,
    rate_limiter: RateLimit | None = None,
    debounce: timedelta | float = 0.0,
    while_deleting: bool = False,
) -> Decorator[R]: ...
@overload
def controller(
    kind: AnyKind,
    *,
    owns: Sequence[AnyKind | Owns] = (),
    watches: Sequence[Watches] = (),
    channels: Sequence[Channel[Any]] = (),
    name: str | None = None,
    predicates: Sequence[Predicate] = (),
    namespace: str | None = None,
    labels: str | Mapping[str, str] | None = None,
    max_concurrent: int = 1,
    raw: bool = False,
    reconcile_timeout: timedelta | float | None = None,
    error_condition: str | None = ...,
    conditions: Sequence[str] = (),
    events_on: Sequence[str] = (),
    write_budget: int | None = None,
    resync: timedelta | float | None = None,
    backoff: Backoff | None = None,
    rate_limiter: RateLimit | None = None,
    debounce: timedelta | float = 0.0,
    while_deleting: bool = False,
) -> Decorator[Any]: ...
def controller(
    kind: Any,
    *,
    owns: Sequence[AnyKind | Owns] = (),
    watches: Sequence[Watches] = (),
    channels: Sequence[Channel[Any]] = (),
    name: str | None = None,
    predicates: Sequence[Predicate] = (),
    namespace: str | None = None,
    labels: str | Mapping[str, str] | None = None,
    max_concurrent: int = 1,
    raw: bool = False,
    reconcile_timeout: timedelta | float | None = None,
    error_condition: str | None = "",
    conditions: Sequence[str] = (),
    events_on: Sequence[str] = (),
    write_budget: int | None = None,
    resync: timedelta | float | None = None,
    backoff: Backoff | None = None,
    rate_limiter: RateLimit | None = None,
    debounce: timedelta | float = 0.0,
    while_deleting: bool = False,
) -> Decorator[Any]:
    """Make a controller of a reconciler: `@controller(MyOwnShell, owns=[Deployment])`.

    What wakes it: `kind` (under `predicates`, in `namespace`, with `labels`), what it `owns`, what it `watches`, its
    `channels`. Every `resync` it looks at all objects again (default: never).

    How it runs: `name` (default: the kind in small letters) is its field manager and names metrics and logs;
    `max_concurrent` objects at once; a pass over `reconcile_timeout` (default none) is cancelled and counts as failed;
    `backoff`, `rate_limiter` and `debounce` are per object; `raw` reconcilers get the `Request` and read for
    themselves. With `while_deleting` the reconciler is also called for an object that is being deleted and waits for
    other people's finalizers (`ctx.deleting` tells), to go on telling its status.

    What it says: an error is told by the condition `error_condition` (default `Degraded`; None: by events only; of a
    raw reconciler: None), the `conditions` it owns are always all there, a change of those in `events_on` is an Event.
    `write_budget` is the number of changes a pass may make before it is reported; default: not counted.
    """
    wanted = kind_from(kind)
    primary = For(kind, predicates=predicates, namespace=namespace, labels=labels)
    sources = [primary, *(one if isinstance(one, Owns) else Owns(one) for one in owns), *watches]
    if max_concurrent < 1:
        raise ValueError(f"max_concurrent={max_concurrent}: at least one object at a time; leave it out for one")
    told = error_condition if error_condition != "" else (None if raw else "Degraded")
    options = Options(
        max_concurrent=max_concurrent,
        raw=raw,
        reconcile_timeout=_seconds(reconcile_timeout),
        error_condition=told,
        conditions=tuple(conditions),
        events_on=tuple(events_on),
        write_budget=write_budget,
        resync=_seconds(resync),
        backoff=backoff or Backoff(),
        rate_limiter=rate_limiter,
        debounce=seconds_of(debounce),
        while_deleting=while_deleting,
    )
    called = name or wanted.word.lower()
    return Decorator(lambda reconciler: Controller(wanted, called, sources, channels, options, reconciler))


def _seconds(value: timedelta | float | None) -> float | None:
    return None if value is None else seconds_of(value)
