"""The table as the engine walks it: nodes and edges with bound functions and closures for guards, made once per
class.

Each level of a diagram becomes its states, an initial and a final node; composites know the initial node of their
inside, inner nodes their composite. Nothing here changes after `compile_table`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from flyball.fsm.model import (
    FINAL,
    INITIAL,
    And,
    Call,
    ErrorMatch,
    GuardExpr,
    Machine,
    Not,
    Or,
    State,
    Transition,
    guard_text,
)
from flyball.fsm.run.binding import Binder, Op
from flyball.fsm.run.errors import GuardError, TableError, error_is
from flyball.strict import StrictWarning

__all__ = ["Ask", "Asker", "Edge", "Node", "compile_table"]


class Asker(Protocol):
    """What a guard's closure needs of the run."""

    view: Any
    """What guards get: the machine, or a read-only view of it."""

    def check(self, text: str, /) -> None:
        """Note a guard's answer."""
        ...

    def watched(self, op: Op) -> Any:
        """Ask a guard and report it if it changes something."""
        ...

    watching: bool


Ask = Callable[[Any], bool]


class Edge:
    """One transition: where from and to, what decides it and what runs on the way."""

    __slots__ = ("actions", "ask", "error", "expression", "guard", "machine", "match", "source", "target")

    def __init__(
        self,
        machine: str,
        source: Node,
        target: Node,
        *,
        guard: str = "",
        expression: GuardExpr | None = None,
        ask: Ask | None = None,
        actions: tuple[Op, ...] = (),
        error: bool = False,
        match: tuple[str, ...] = (),
    ) -> None:
        """`guard` is the guard's text; `error` marks an error transition, `match` the names it reacts to (none:
        any).
        """
        self.machine = machine
        self.source = source
        self.target = target
        self.guard = guard
        self.expression = expression
        self.ask = ask
        self.actions = actions
        self.error = error
        self.match = match

    def reacts_to(self, failure: BaseException) -> bool:
        """Whether an error transition is meant for this error; its guard is not asked."""
        return error_is(failure, *self.match)


class Node:
    """One state, or the initial or final pseudo state of a level."""

    __slots__ = (
        "abort",
        "choices",
        "default",
        "depth",
        "do",
        "entry",
        "errors",
        "exit",
        "final",
        "inner",
        "parent",
        "path",
        "poll",
        "quit",
    )

    abort: Edge
    """To the final node of the same level."""
    quit: Edge
    """From the outermost composite around this node (or itself) to the end of the run."""

    def __init__(self, path: str, parent: Node | None, *, final: bool = False) -> None:
        """`path` is unique in the table: `Box/Inner`."""
        self.path = path
        self.parent = parent
        self.depth: int = 1 if parent is None else parent.depth + 1
        self.final = final
        self.poll = False
        self.entry: tuple[Op, ...] = ()
        self.do: tuple[Op, ...] = ()
        self.exit: tuple[Op, ...] = ()
        self.inner: Node | None = None
        self.choices: tuple[tuple[Ask, Edge], ...] = ()
        self.default: Edge | None = None
        self.errors: tuple[Edge, ...] = ()


def compile_table(title: str, machine: Machine, binder: Binder) -> tuple[Node, list[Node]]:
    """The initial node of the whole table, and all nodes."""
    compiler = _Compiler(title, binder)
    start = compiler.level(machine, None)
    return start, compiler.nodes


class _Compiler:
    def __init__(self, title: str, binder: Binder) -> None:
        self.title = title
        self.binder = binder
        self.nodes: list[Node] = []
        self.end: Node | None = None

    def level(self, machine: Machine, parent: Node | None) -> Node:
        final = self.node(FINAL, parent, final=True)
        start = self.node(INITIAL, parent)
        self.end = self.end or final
        states = {name: self.node(name, parent) for name in machine.states}
        for node in (start, final, *states.values()):
            node.abort = Edge(self.title, node, final)
            node.quit = Edge(self.title, node, self.end) if parent is None else parent.quit
        where = f"{parent.path}/{INITIAL}" if parent else INITIAL
        if not machine.initial:
            raise TableError(f"{self.title}: {where} leads nowhere; write a transition from {INITIAL} to a state")
        start.do = self.ops(machine.initial_do, start)
        self.wire(start, machine.initial, states, final)
        for name, state in machine.states.items():
            self.fill(states[name], state, states, final)
        return start

    def node(self, name: str, parent: Node | None, *, final: bool = False) -> Node:
        node = Node(name if parent is None else f"{parent.path}/{name}", parent, final=final)
        self.nodes.append(node)
        return node

    def fill(self, node: Node, state: State, states: dict[str, Node], final: Node) -> None:
        node.poll = state.poll
        node.entry = self.ops(state.entry, node)
        node.exit = self.ops(state.exit, node)
        do = self.ops(state.do, node)
        node.do = () if state.inner is not None else do
        self.wire(node, state.transitions, states, final)
        if state.end:
            node.default = node.abort
        if state.inner is not None:
            node.inner = self.level(state.inner, node)

    def wire(self, node: Node, transitions: tuple[Transition, ...], states: dict[str, Node], final: Node) -> None:
        edges = [(transition, self.edge(node, transition, states, final)) for transition in transitions]
        node.errors = tuple(edge for _, edge in edges if edge.error)
        node.choices = tuple((edge.ask, edge) for _, edge in edges if edge.ask is not None and not edge.error)
        node.default = next((edge for transition, edge in edges if transition.is_default), None)

    def edge(self, node: Node, transition: Transition, states: dict[str, Node], final: Node) -> Edge:
        target = final if transition.target == FINAL else states.get(transition.target)
        if target is None:
            raise TableError(
                f"{self.title}: state {node.path} leads to {transition.target}, which is no state beside it; "
                "a transition stays within its composite"
            )
        return Edge(
            self.title,
            node,
            target,
            guard=_label(transition),
            expression=transition.guard,
            ask=None if transition.guard is None else self.ask(transition.guard, node),
            actions=self.ops(transition.actions, node),
            error=transition.error is not None,
            match=transition.error.names if transition.error is not None else (),
        )

    def ops(self, calls: tuple[Call, ...], node: Node) -> tuple[Op, ...]:
        return tuple(self.binder.bind("action", call, node.path) for call in calls)

    def ask(self, guard: GuardExpr, node: Node) -> Ask:
        match guard:
            case Call():
                return _one(self.binder.bind("guard", guard, node.path), node.path)
            case Not(operand):
                return _none(self.ask(operand, node))
            case And(operands):
                return _every(tuple(self.ask(operand, node) for operand in operands))
            case Or(operands):
                return _any(tuple(self.ask(operand, node) for operand in operands))


def _label(transition: Transition) -> str:
    guard = guard_text(transition.guard) if transition.guard is not None else ""
    if transition.error is None:
        return guard
    return " ".join(part for part in (_error_label(transition.error), f"[{guard}]" if guard else "") if part)


def _error_label(match: ErrorMatch) -> str:
    return f"error({', '.join(match.names)})" if match.names else "error"


def _one(op: Op, state: str) -> Ask:
    call, yes, no = op.call, f"{op.text}=true", f"{op.text}=false"

    def ask(run: Asker) -> bool:
        try:
            value = run.watched(op) if run.watching else call(run.view)
            if value is not True and value is not False:
                value = _truth(value)
        except StrictWarning:
            raise
        except Exception as problem:
            run.check(f"{op.text}=error")
            raise GuardError(op.text, state, problem) from problem
        run.check(yes if value else no)
        return value

    return ask


def _truth(value: object) -> bool:
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError("it returned something to await; guards are plain functions")
    return bool(value)


def _none(operand: Ask) -> Ask:
    return lambda run: not operand(run)


def _every(operands: tuple[Ask, ...]) -> Ask:
    def ask(run: Asker) -> bool:
        for operand in operands:  # noqa: SIM110 - no generator per evaluation
            if not operand(run):
                return False
        return True

    return ask


def _any(operands: tuple[Ask, ...]) -> Ask:
    def ask(run: Asker) -> bool:
        for operand in operands:  # noqa: SIM110 - no generator per evaluation
            if operand(run):
                return True
        return False

    return ask


def all_ops(nodes: list[Node]) -> Iterator[Op]:
    """Every bound action of the table."""
    for node in nodes:
        yield from node.entry
        yield from node.do
        yield from node.exit
        for edge in (*(edge for _, edge in node.choices), *node.errors, *((node.default,) if node.default else ())):
            yield from edge.actions
