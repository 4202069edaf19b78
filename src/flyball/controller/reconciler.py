"""What an author writes, and how it is called.

Four forms, one thing: `await call(obj_or_request, ctx)` gives the answer of the pass.

| written as | called with |
|---|---|
| `async def f(obj, ctx)` | the object, `Context` |
| `def f(obj, ctx)` | the same in a thread of its own, `SyncContext` |
| a class, or an object, with a method `reconcile` of either kind | the same |
| any of the first three with `raw=True` | the `Request` instead of the object |
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from flyball.controller.request import Result

if TYPE_CHECKING:
    from flyball.controller.context import Context
    from flyball.controller.threads import SyncContext

__all__ = ["NotAReconciler", "Reconciler", "Step", "SyncReconciler", "step_of"]

T = TypeVar("T", contravariant=True)


class NotAReconciler(TypeError):
    """What was decorated cannot be called as a reconciler."""


class Reconciler(Protocol[T]):
    """Makes the world what one object asks for. Called with what is, never with what happened.

    Any object with this method will do. Called twice in the same world, it changes nothing the second time. A method
    `finalize` of the same form makes the controller hold the object's deletion until it has succeeded.
    """

    async def reconcile(self, obj: T, ctx: Context, /) -> Result | None:
        """One pass: look at what is, change what differs, put what was seen into `obj.status`."""
        ...


class SyncReconciler(Protocol[T]):
    """The same as a plain method: it runs in a thread, with a context whose verbs wait."""

    def reconcile(self, obj: T, ctx: SyncContext, /) -> Result | None:
        """One pass."""
        ...


class Step:
    """A function of the author's, and whether it needs a thread."""

    __slots__ = ("code", "function", "in_thread")

    def __init__(self, function: Callable[..., Any], words: str) -> None:
        """Check that it can be called with two arguments."""
        try:
            inspect.signature(function).bind(None, None)
        except TypeError as error:
            raise NotAReconciler(
                f"{words} {getattr(function, '__qualname__', function)!r} cannot be called with (obj, ctx): {error}; "
                "write async def reconcile(obj, ctx)"
            ) from None
        self.function = function
        self.in_thread = not _is_async(function)
        self.code: Callable[..., Any] = inspect.unwrap(function)

    def __call__(self, subject: Any, ctx: Any) -> Awaitable[Any]:
        """Call it."""
        answer: Awaitable[Any] = self.function(subject, ctx)
        return answer


def _is_async(function: Any) -> bool:
    unwrapped = inspect.unwrap(function)
    while hasattr(unwrapped, "func"):
        unwrapped = unwrapped.func
    return inspect.iscoroutinefunction(unwrapped) or inspect.iscoroutinefunction(
        getattr(unwrapped, "__call__", None)  # noqa: B004 - looks at it, does not ask whether it is there
    )


def step_of(given: Any) -> tuple[Step, Any]:
    """The step of what was decorated, and the object that it belongs to (None for a plain function)."""
    target = given
    if isinstance(given, type):
        try:
            target = given()
        except TypeError as error:
            raise NotAReconciler(
                f"{given.__name__} cannot be made without arguments: {error}; decorate an object of it: "
                f"controller(Kind)({given.__name__}(...))"
            ) from None
    method = getattr(target, "reconcile", None)
    if method is not None:
        return Step(method, "the method"), target
    if callable(target):
        return Step(target, "the function"), target if not inspect.isroutine(target) else None
    raise NotAReconciler(
        f"{type(target).__name__} is neither a function nor has it a method reconcile(obj, ctx); give it one"
    )


def check_answer(answer: Any) -> Result | None:
    """A Result or None; anything else is a mistake of the author's."""
    if answer is None or isinstance(answer, Result):
        return answer
    raise TypeError(
        f"the reconciler answered {answer!r:.100}; "
        "answer nothing, Done, Result.after(...), Result.at(...) or Result.now()"
    )
