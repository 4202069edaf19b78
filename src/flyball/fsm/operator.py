"""A machine as the body of an operator: what its context and extended state hold, and what its end means.

============================================  =======================================================
the run ended                                 the reconciler answers
============================================  =======================================================
without an error                              `state.result`: `Done` unless an action set another
``raise Requeue(after=t)``                    ``Result.after(t)``
``raise Stop()``                              `Done`
with a stored `Permanent`                     raises it: it is a `TerminalError`, no retry
with any other stored error                   raises it: retried with back-off, or as its class asks for
stuck, over the step limit or the deadline    raises that error: retried with back-off
============================================  =======================================================

An error always wins over a result: an action that handles one calls ``m.clear_error()`` and then sets the result.

`fsm_controller(Machine, Kind, owns=[Job])` is the whole controller: one machine per pass, none of them kept.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeVar

from flyball.client.kinds import Kind, kind_from
from flyball.controller import Context, Controller, Done, Owns, Request, Result, Watches, controller
from flyball.controller.sources import AnyKind
from flyball.fsm.run.compiled import Edge
from flyball.fsm.run.errors import Ending, MachineError, Requeue
from flyball.fsm.run.machine import Machine, TransitionHook
from flyball.fsm.run.state import AppContext, ResultState

if TYPE_CHECKING:
    from flyball.client.client import Client

__all__ = ["Done", "OperatorContext", "OperatorState", "Recorder", "Result", "fsm_controller", "reconcile_once"]

T = TypeVar("T")


class _NotGiven:
    """Stands where a context was made without a client or recorder; using it says what is missing."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise MachineError(
            f"the machine's context has no {self._what}; pass one: OperatorContext(logger, client, recorder, ctx)"
        )

    def __repr__(self) -> str:
        return f"<no {self._what}>"


_NO_CLIENT: Any = _NotGiven("client")
_NO_RECORDER: Any = _NotGiven("recorder")
_NO_PASS: Any = _NotGiven("pass of a controller")


@dataclass(slots=True)
class OperatorContext(AppContext):
    """What actions of an operator need: logger, client, recorder, clock; and the pass, in a controller."""

    client: Client = _NO_CLIENT
    recorder: Any = _NO_RECORDER
    ctx: Context = _NO_PASS
    """The context of the pass, given by a controller: `ctx.load`, cached reads, writes that are known to the cache."""


@dataclass(slots=True)
class OperatorState(ResultState[Result], Generic[T]):
    """The extended state of a machine that reconciles objects of class `T`."""

    result: Result = Done
    """What the run answers if no error is stored at its end."""
    resource_name: str = ""
    """The name of the object to reconcile."""
    instance: T | None = None
    """The object, once an action has loaded it; None until then, and when there is none."""
    namespace: str | None = None
    """The namespace of the object; None for kinds without."""

    @property
    def loaded(self) -> T:
        """The object, where it must have been loaded."""
        if self.instance is None:
            raise MachineError(f"no action has loaded {self.resource_name or 'the object'} yet, or it is gone")
        return self.instance

    def begin(self) -> None:
        """Empty error and result; everything else stays."""
        self.error = None
        self.result = Done

    def answer(self) -> Result:
        """The result."""
        return self.result

    def end(self, ending: Ending) -> None:
        """Take the result of a `Requeue` or `Stop`."""
        self.result = Result.after(ending.after) if isinstance(ending, Requeue) else Done


async def reconcile_once(
    machine: type[Machine[Any, OperatorState[T]]],
    context: OperatorContext,
    name: str,
    namespace: str | None = None,
    *,
    deadline: float | None = None,
) -> Result:
    """One pass over one object with a machine of its own: its result, or its error raised."""
    one = machine(context=context)
    one.state.resource_name = name
    one.state.namespace = namespace
    return await one.run(timeout=deadline)


class Recorder:
    """Records Events about the object of one machine: `m.context.recorder.record("Normal", "Started", "it runs")`."""

    def __init__(self, ctx: Context, kind: AnyKind) -> None:
        """For one pass."""
        self._ctx = ctx
        self._kind: Kind[Any] = kind_from(kind)

    def record(
        self, type: Literal["Normal", "Warning"], reason: str, message: str, *, about: Any = None, action: str = ""
    ) -> None:
        """Tell people; about the machine's object, as the cache has it, unless another one is given."""
        if about is None:
            request, running = self._ctx.request, self._ctx.running
            found = running.primary.peek(request.name, request.namespace)
            if found is None:
                return
            about = found.read_as(self._kind)
        self._ctx.record(type, reason, message, about=about, action=action)


def fsm_controller(
    machine: type[Machine[Any, Any]],
    kind: AnyKind,
    *,
    owns: Sequence[AnyKind | Owns] = (),
    watches: Sequence[Watches] = (),
    **options: Any,
) -> Controller[Any]:
    """A controller whose reconciler is a machine: a new one for each pass, which loads its object by itself.

    `await m.context.ctx.load(Kind)` does that: from then on children get their owner, and the status of the object is
    written as that of any reconciler. `options` are those of `controller`. The machine's context gets logger, client,
    recorder, clock and the pass's own context; `m.state.resource_name` and `m.state.namespace` say which object it is
    about. `reconcile_timeout` is the deadline of the run. Steps are counted by
    `fsm_transitions_total{machine,from,to,guard}`.
    """
    wanted: dict[str, Any] = {"raw": True, **options}
    return controller(kind, owns=owns, watches=watches, **wanted)(_Runner(machine, kind))


class _Runner:
    """One machine per pass."""

    def __init__(self, machine: type[Machine[Any, Any]], kind: AnyKind) -> None:
        self._machine = machine
        self._kind = kind

    async def reconcile(self, request: Request, ctx: Context, /) -> Result | None:
        one = self._machine(context=self._context(ctx))
        one.on_transition = self._counter(ctx, one.on_transition)
        one.error_level = logging.DEBUG
        one.state.resource_name = request.name
        one.state.namespace = request.namespace
        answer: Result | None = await one.run()
        return answer

    def _context(self, ctx: Context) -> OperatorContext:
        kinds: tuple[Any, Any] = self._machine._arguments  # pyright: ignore[reportPrivateUsage]
        made = kinds[0] if isinstance(kinds[0], type) and issubclass(kinds[0], OperatorContext) else OperatorContext
        runtime = ctx.running.runtime
        context: OperatorContext = made(
            logger=ctx.log, client=runtime.client, recorder=Recorder(ctx, self._kind), clock=runtime.clock
        )
        context.ctx = ctx
        return context

    def _counter(self, ctx: Context, known: TransitionHook | None) -> TransitionHook:
        metrics = ctx.running.runtime.metrics

        def taken(edge: Edge) -> None:
            labels = {
                "machine": edge.machine,
                "from": edge.source.path,
                "to": edge.target.path,
                "guard": edge.guard or "",
            }
            metrics.counter("fsm_transitions_total", **labels)
            if known is not None:
                known(edge)

        return taken
