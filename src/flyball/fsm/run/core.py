"""The rules: one run of a machine over its compiled table.

One step: the actions of the present state (or, of a composite, its inside from its initial state), then its guards
in the order written, then exit actions, the transition's action, the entry actions of the target. Three rules on
top:

* an error transition is taken at once, the nearest one outwards from the state that failed;
* an error that no error transition takes is stored, and the guards decide as always;
* a failing transition action or guard leads to the final state of its level, unless an error transition takes it.

`Run.drive` is a coroutine that suspends only where an action does, so that `run_sync` drives the same code by one
`send`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flyball.fsm.run.binding import Op
from flyball.fsm.run.compiled import Edge, Node
from flyball.fsm.run.errors import DeadlineError, Ending, GuardError, MachineError, StepLimitError, StuckError
from flyball.fsm.run.readonly import ReadOnly, watched
from flyball.fsm.run.trace import Trace
from flyball.strict import StrictWarning

if TYPE_CHECKING:
    from flyball.clock import Clock
    from flyball.fsm.run.machine import Machine

__all__ = ["Run"]

_YIELD_MASK = 63
"""The event loop gets a turn at every 64th step."""


class Run:
    """One run; lives as long as `drive()`."""

    __slots__ = (
        "check",
        "clock",
        "deadline",
        "limit",
        "log",
        "logger",
        "machine",
        "notify",
        "since",
        "stay",
        "threads",
        "timeout",
        "trace",
        "view",
        "watching",
        "yields",
    )

    def __init__(
        self,
        machine: Machine[Any, Any],
        trace: Trace,
        *,
        limit: int | None,
        timeout: float | None,
        clock: Clock,
        logger: logging.Logger | logging.LoggerAdapter[Any],
        watching: bool,
        concurrent: bool,
    ) -> None:
        """`concurrent` lets others run between steps and blocking actions run in threads."""
        self.machine = machine
        self.trace = trace
        self.check: Callable[[str], None] = trace.checks.append
        self.limit = limit
        self.clock = clock
        self.timeout = timeout
        self.deadline = None if timeout is None else clock.monotonic() + timeout
        self.logger = logger
        self.log = logger if logger.isEnabledFor(logging.DEBUG) else None
        self.watching = watching
        self.view: Any = ReadOnly(machine, "state") if watching else machine
        self.stay = machine.on_no_transition == "stay"
        self.notify = machine.on_transition
        self.yields = self.threads = concurrent
        self.since = clock.monotonic() if trace.durations is not None else 0.0

    async def drive(self) -> None:
        """Run from the initial state to the final one; raise only what ends a run early."""
        node = self.machine.table.start
        failure: Exception | None = None
        finished = False  # whether the inside or the actions of `node` are behind us
        self.machine.current = node.path
        while True:
            if not finished:
                if node.inner is not None:
                    node = self.descend(node)
                if node.do:
                    failure = await self.perform(node.do, node)
            edge = self.decide(node, failure)
            if edge is None:
                failure, finished = None, False
                self.count(node)
            else:
                node, failure = await self.follow(node, edge)
                finished = failure is not None
                if node.final:
                    if node.parent is None:
                        return
                    node = self.rise(node.parent)
                    finished = True
            if self.yields and not self.trace.steps & _YIELD_MASK:
                await asyncio.sleep(0)

    def decide(self, node: Node, failure: Exception | None) -> Edge | None:
        """The transition to take out of `node`; None to stay."""
        if failure is not None:
            edge = node.quit if isinstance(failure, Ending) else self.caught(node, failure)
            if edge is not None:
                return edge
        checks = self.trace.checks
        before = len(checks)
        try:
            for ask, edge in node.choices:
                if ask(self):
                    return edge
        except GuardError as problem:
            self.fail(problem, node)
            return self.caught(node, problem) or node.abort
        if node.default is not None:
            return node.default
        if self.stay or node.poll:
            return None
        asked = len(checks) - before or len(node.choices)
        raise StuckError(self.machine.table.title, node.path, tuple(checks)[-asked:] if asked else ())

    def caught(self, node: Node | None, failure: Exception) -> Edge | None:
        """The nearest error transition, outwards from `node`, that takes the failure.

        A guard of an error transition that fails itself is the failure from there on; if nothing takes that either,
        the way leads to the final state of the level whose guard it was.
        """
        otherwise: Edge | None = None
        while node is not None:
            try:
                for edge in node.errors:
                    if edge.reacts_to(failure) and (edge.ask is None or edge.ask(self)):
                        return edge
            except GuardError as problem:
                self.fail(problem, node)
                failure, otherwise = problem, node.abort
            node = node.parent
        return otherwise

    async def follow(self, node: Node, edge: Edge) -> tuple[Node, Exception | None]:
        """Leave `node`, which may lie deep inside the edge's source, and enter the target; with it a failed entry
        action.
        """
        inside: Node | None = node
        while True:
            inside, ending = await self.leave(inside, edge.source)
            if ending is not None and edge is not edge.source.quit:
                edge = edge.source.quit
                continue
            if self.log is not None:
                self.log_transition(edge)
            failure = await self.perform(edge.actions, None) if edge.actions else None
            if failure is None:
                break
            self.log_failed_action(edge, failure)
            edge = self.after_failed_action(edge, failure)
        if self.notify is not None:
            self.notify(edge)
        return edge.target, await self.enter(edge.target)

    def after_failed_action(self, edge: Edge, failure: Exception) -> Edge:
        """Where a transition leads whose own action failed."""
        source = edge.source
        if isinstance(failure, Ending):
            return source.quit
        return self.caught(source.parent if edge.error else source, failure) or source.abort

    async def leave(self, node: Node | None, source: Node) -> tuple[Node | None, Ending | None]:
        """Run the exit actions from `node` outwards to `source`; what is active afterwards, and an Ending raised on
        the way.
        """
        ending: Ending | None = None
        while node is not None and node.depth >= source.depth:
            if node.exit:
                failure = await self.perform(node.exit, node)
                if isinstance(failure, Ending):
                    ending = failure
            node = node.parent
        return node, ending

    async def enter(self, node: Node) -> Exception | None:
        """Make `node` the present state; the failure of its entry actions, if any."""
        if not node.final:
            self.count(node)
        self.trace.states.append(node.path)
        self.present(node)
        return await self.perform(node.entry, node) if node.entry else None

    async def perform(self, ops: tuple[Op, ...], node: Node | None) -> Exception | None:
        """Run actions in order until one fails; store its error and return it. `node` is None for transition
        actions.
        """
        machine = self.machine
        called = self.trace.actions.append
        for op in ops:
            called(op.text)
            if self.log is not None and node is not None:
                self.log.debug("executing", extra={"action": op.text, "state": node.path})
            before = machine.state.error
            try:
                if op.thread and self.threads:
                    await asyncio.to_thread(op.call, machine)
                else:
                    value = op.call(machine)
                    if value is not None and hasattr(value, "__await__"):
                        await value
            except StrictWarning:
                raise
            except Ending as ending:
                machine.state.error = None
                machine.take(ending)
                return ending
            except Exception as problem:
                chain(machine.state.error, before)
                keep(machine, problem)
                if node is not None:
                    fields = {"action": op.text, "state": node.path, "error": problem}
                    self.logger.log(machine.error_level, "action failed", extra=fields)
                return problem
            if before is not None and machine.state.error is not before:
                chain(machine.state.error, before)
        return None

    def descend(self, node: Node) -> Node:
        """Into a composite: its initial state."""
        inner = node.inner
        assert inner is not None
        if self.log is not None:
            self.log.debug("entering composite state", extra={"state": node.path, "initial": inner.path})
        self.present(inner)
        return inner

    def rise(self, node: Node) -> Node:
        """Out of a composite whose inside has ended."""
        error = self.machine.state.error
        if error is not None:
            self.logger.log(
                self.machine.error_level, "composite state machine failed", extra={"state": node.path, "error": error}
            )
        if self.log is not None:
            self.log.debug("exiting composite state", extra={"state": node.path})
        self.present(node)
        return node

    def present(self, node: Node) -> None:
        """Note where the machine is."""
        if self.trace.durations is not None:
            now = self.clock.monotonic()
            self.trace.durations.append((self.machine.current, now - self.since))
            self.since = now
        self.machine.current = node.path

    def stopped(self, error: MachineError) -> None:
        """The run has ended early: store why, and how long the last state took."""
        keep(self.machine, error)
        if self.trace.durations is not None:
            self.trace.durations.append((self.machine.current, self.clock.monotonic() - self.since))

    def count(self, node: Node) -> None:
        """One more state is about to be executed: the limits."""
        trace = self.trace
        if self.limit is not None and trace.steps >= self.limit:
            raise StepLimitError(self.machine.table.title, self.limit, tuple(trace.states)[-10:])
        if self.deadline is not None and self.clock.monotonic() >= self.deadline:
            raise DeadlineError(self.machine.table.title, self.timeout or 0.0, self.machine.current)
        trace.steps += 1

    def watched(self, op: Op) -> Any:
        """Ask a guard and report it if it changes something."""
        return watched(op, self.view, self.machine)

    def fail(self, problem: GuardError, node: Node) -> None:
        """Store a guard's error."""
        keep(self.machine, problem)
        self.logger.error("guard failed", extra={"guard": problem.guard, "state": node.path, "error": problem})

    def log_transition(self, edge: Edge) -> None:
        """Say at debug level which transition is taken."""
        assert self.log is not None
        fields = {"current": edge.source.path, "next": edge.target.path}
        if edge.guard:
            self.log.debug("guarded transition", extra={"guard": edge.guard, **fields})
        else:
            self.log.debug("unguarded transition", extra=fields)

    def log_failed_action(self, edge: Edge, failure: Exception) -> None:
        """Say at debug level that a transition's action failed."""
        if self.log is not None and not isinstance(failure, Ending):
            fields = {
                "state": edge.source.path,
                "guard": edge.guard,
                "action": self.trace.actions[-1],
                "error": failure,
            }
            self.log.debug("guarded action failed", extra=fields)


def keep(machine: Machine[Any, Any], error: Exception) -> None:
    """Store an error; the one it replaces becomes its context."""
    chain(error, machine.state.error)
    machine.state.error = error


def chain(error: BaseException | None, previous: BaseException | None) -> None:
    """Hang `previous` at the end of the chain of contexts of `error`, unless it is in it (or the other way round)."""
    if error is None or previous is None or error in _contexts(previous):
        return
    contexts = _contexts(error)
    if previous not in contexts:
        contexts[-1].__context__ = previous


def _contexts(error: BaseException) -> list[BaseException]:
    found = [error]
    while (before := found[-1].__context__) is not None and not any(before is one for one in found):
        found.append(before)
    return found
