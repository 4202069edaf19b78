"""The machine: one object per run (or several runs one after the other) over the table of its class."""

# ruff: noqa: ASYNC109 - a run has a deadline, which is more than cancelling it

from __future__ import annotations

import asyncio
import logging
import types
from collections.abc import Callable, Coroutine
from types import EllipsisType
from typing import Any, ClassVar, Generic, Literal, TypeGuard, TypeVar, cast, get_args, get_origin, overload

from flyball import strict
from flyball.clock import Clock, RealClock
from flyball.fsm.model import INITIAL
from flyball.fsm.run.compiled import Edge
from flyball.fsm.run.core import Run
from flyball.fsm.run.errors import BusyError, DeadlineError, Ending, Requeue, StepLimitError, StuckError, error_is
from flyball.fsm.run.state import AppContext, AppState, ResultState
from flyball.fsm.run.table import Table
from flyball.fsm.run.trace import LIMIT, Outcome, Trace

__all__ = ["Machine", "OnNoTransition", "TransitionHook", "machine_type"]

C = TypeVar("C", bound=AppContext, covariant=True)
S = TypeVar("S", bound=AppState, covariant=True)
S2 = TypeVar("S2", bound=AppState)
C2 = TypeVar("C2", bound=AppContext)
R = TypeVar("R")

OnNoTransition = Literal["error", "stay"]
TransitionHook = Callable[[Edge], None]
Limit = int | EllipsisType | None
"""A step limit; ... for the machine's own, None for none."""

_EARLY_ENDS = (StuckError, StepLimitError, DeadlineError)


class Machine(Generic[C, S]):
    """What all machines can do; a generated class adds its table.

    Promises: the table is shared and never changes; one run at a time per object; a run starts with error and
    result empty and everything else as it was; it ends in the final state, with `StuckError`, `StepLimitError` or
    `DeadlineError`, or by a cancellation, which leaves the machine where it was.
    """

    table: ClassVar[Table]
    max_steps: int | None = 1000
    """How many states a run may execute, inner ones and repeats included; None for no limit."""
    on_no_transition: OnNoTransition = "error"
    """What happens in a state where no transition applies: the run ends, or ("stay") the state's `do` actions are
    repeated.
    """
    on_transition: TransitionHook | None = None
    """Called at each transition taken with its edge (`machine`, `source.path`, `target.path`, `guard`): metrics,
    pictures.
    """
    timed: bool = False
    """Whether traces hold durations."""
    debug: bool | None = None
    """Whether guards get a read-only view and are watched; None: when strict mode is on (tests, FLYBALL_DEBUG)."""

    error_level: int = logging.ERROR
    """The level of the lines about failing actions and composites; a controller, which reports what is left of an
    error by itself, sets it to DEBUG.
    """

    _arguments: ClassVar[tuple[Any, Any]] = (AppContext, AppState)
    """The classes of context and extended state; type variables where a subclass leaves them open."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__dict__.get("__orig_bases__", ()):
            origin = get_origin(base)
            if origin is Machine:
                cls._arguments = get_args(base)
            elif isinstance(origin, type) and issubclass(origin, Machine):
                given = dict(zip(getattr(origin, "__parameters__", ()), get_args(base), strict=False))
                context, state = origin._arguments
                cls._arguments = given.get(context, context), given.get(state, state)

    def __init__(
        self,
        context: C | None = None,
        state: S | None = None,
        *,
        max_steps: Limit = ...,
        on_no_transition: OnNoTransition | None = None,
        on_transition: TransitionHook | None = None,
        timed: bool | None = None,
        debug: bool | None = None,
    ) -> None:
        """Context and extended state are made when not given; the options default to those of the class."""
        kinds = self._arguments
        self.context: C = kinds[0]() if context is None else context
        self.state: S = kinds[1]() if state is None else state
        self.current: str = INITIAL
        self._running = False
        self._trace = _NOT_RUN
        self._result: object = None
        if max_steps is not ...:
            self.max_steps = max_steps
        if on_no_transition is not None:
            self.on_no_transition = on_no_transition
        if on_transition is not None:
            self.on_transition = on_transition
        if timed is not None:
            self.timed = timed
        if debug is not None:
            self.debug = debug

    def __repr__(self) -> str:
        return f"<{self.table.title} in {self.current}>"

    # -- for actions and guards ----------------------------------------------------------------------------------------

    def has_error(self, *names: str) -> bool:
        """Whether an error is stored and, with names, whether one is its class (or a base class) or its API reason."""
        return error_is(self.state.error, *names)

    def clear_error(self) -> None:
        """Forget the stored error: it is handled."""
        self.state.error = None

    @property
    def logger(self) -> logging.Logger | logging.LoggerAdapter[Any]:
        """The context's logger."""
        return self.context.logger

    @property
    def trace(self) -> Trace:
        """The record of the present or the last run."""
        return self._trace

    # -- runs ----------------------------------------------------------------------------------------------------------

    @overload
    async def run(  # type: ignore[overload-overlap]
        self: Machine[Any, ResultState[R]], *, timeout: float | None = None, max_steps: Limit = ...
    ) -> R: ...
    @overload
    async def run(self: Machine[Any, S2], *, timeout: float | None = None, max_steps: Limit = ...) -> S2: ...
    async def run(self, *, timeout: float | None = None, max_steps: Limit = ...) -> object:
        """Run to the end; raise the stored error if there is one, else return the result (operator) or the extended
        state.

        `timeout` is a deadline in seconds: it is looked at between steps and cancels an action that is under way.
        """
        await self.settle(timeout=timeout, max_steps=max_steps)
        return self._answer()

    @overload
    def run_sync(  # type: ignore[overload-overlap]
        self: Machine[Any, ResultState[R]], *, timeout: float | None = None, max_steps: Limit = ...
    ) -> R: ...
    @overload
    def run_sync(self: Machine[Any, S2], *, timeout: float | None = None, max_steps: Limit = ...) -> S2: ...
    def run_sync(self, *, timeout: float | None = None, max_steps: Limit = ...) -> object:
        """`run()` without an event loop, for machines whose actions are all plain functions.

        The deadline is looked at between steps only; actions marked `thread=True` run in the calling thread.
        """
        self.settle_sync(timeout=timeout, max_steps=max_steps)
        return self._answer()

    async def settle(self, *, timeout: float | None = None, max_steps: Limit = ...) -> Outcome[Any]:
        """`run()` that tells everything and raises nothing but cancellation and `BusyError`."""
        run = self._begin(timeout, max_steps, concurrent=True)
        try:
            if timeout is None:
                await run.drive()
            else:
                await self._within(run, timeout)
        except _EARLY_ENDS as error:
            run.stopped(error)
        finally:
            self._running = False
        return self.outcome()

    def settle_sync(self, *, timeout: float | None = None, max_steps: Limit = ...) -> Outcome[Any]:
        """`run_sync()` that tells everything and raises nothing but `BusyError`, and `TableError` for async actions."""
        self.table.refuse_async()
        run = self._begin(timeout, max_steps, concurrent=False)
        try:
            _finish(run.drive())
        except _EARLY_ENDS as error:
            run.stopped(error)
        finally:
            self._running = False
        return self.outcome()

    def outcome(self) -> Outcome[Any]:
        """How the last run ended: (result, error, trace). The result of a machine without one is its extended state."""
        return Outcome(self._result_now(), self.state.error, self._trace)

    def take(self, ending: Ending) -> None:
        """Store what a `Requeue` or `Stop` says."""
        state: AppState = self.state
        if _answers(state):
            state.end(ending)
        else:
            self._result = ending if isinstance(ending, Requeue) else None

    @property
    def requeue(self) -> Requeue | None:
        """Of a machine without a result: the `Requeue` that ended its last run, if one did."""
        return self._result if isinstance(self._result, Requeue) else None

    def _begin(self, timeout: float | None, max_steps: Limit, *, concurrent: bool) -> Run:
        if self._running:
            raise BusyError(
                f"{self.table.title} is running (in {self.current}); make one object for each run at a time"
            )
        limit = self.max_steps if max_steps is ... else max_steps
        self._result = None
        self.state.begin()
        self._trace = Trace(LIMIT if limit is None else None, timed=self.timed)
        run = Run(
            self,
            self._trace,
            limit=limit,
            timeout=timeout,
            clock=self.context.clock,
            logger=self.context.logger,
            watching=strict.enabled() if self.debug is None else self.debug,
            concurrent=concurrent,
        )
        self._running = True
        return run

    async def _within(self, run: Run, seconds: float) -> None:
        real = isinstance(run.clock, RealClock)
        scope = asyncio.timeout(seconds if real else None)
        alarm = None if real else asyncio.create_task(_ring(scope, run.clock, seconds))
        try:
            async with scope:
                await run.drive()
        except TimeoutError:
            if not scope.expired():
                raise
            raise DeadlineError(self.table.title, seconds, self.current) from None
        finally:
            if alarm is not None:
                alarm.cancel()

    def _answer(self) -> object:
        if self.state.error is not None:
            raise self.state.error
        return self._result_now()

    def _result_now(self) -> object:
        state: AppState = self.state
        return state.answer() if _answers(state) else state


def machine_type(table: Table, context: type[C2], state: type[S2], **options: Any) -> type[Machine[C2, S2]]:
    """A machine class made at run time; `options` are class attributes such as `max_steps`."""
    bases = (Machine[context, state],)  # type: ignore[valid-type]
    made = types.new_class(table.title, bases, {}, lambda space: space.update({"table": table, **options}))
    return cast("type[Machine[C2, S2]]", made)


async def _ring(scope: asyncio.Timeout, clock: Clock, seconds: float) -> None:
    """Let a deadline strike by another clock than the event loop's."""
    await clock.sleep(seconds)
    scope.reschedule(asyncio.get_running_loop().time())


def _answers(state: AppState) -> TypeGuard[ResultState[Any]]:
    return isinstance(state, ResultState)


def _finish(coroutine: Coroutine[Any, Any, None]) -> None:
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()
    raise TypeError("an action suspended in run_sync(); only plain functions may be called without an event loop")


_NOT_RUN = Trace()
