"""Every simple path through a machine, with the guard values that lead along it.

A path is simple when it enters no state twice. It is written as simulations write theirs: inner states as
``Box/Inner``, ends as ``[*]`` and ``Box/[*]``. Where a state can fail and an error transition is in reach, the way
along it is a path too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from flyball.fsm import model
from flyball.fsm.run.compiled import Edge, Node
from flyball.fsm.run.table import Table
from flyball.fsm.simulate import table_of

__all__ = ["Condition", "Path", "Paths", "find_paths"]

COUNTED = 100_000
"""How many paths beyond the limit are counted."""

LOOKED_AT = 2_000_000
"""How many transitions are tried in all before the search gives up."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What must hold in a state: the value of a guard (the whole of a combined one), or that something fails
    (`error`).
    """

    state: str
    guard: str
    value: bool

    def __str__(self) -> str:
        return f"{self.guard}={'true' if self.value else 'false'}"


@dataclass(frozen=True, slots=True)
class Path:
    """One way from the start to the end."""

    states: tuple[str, ...]
    conditions: tuple[Condition, ...]

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"path": list(self.states), "guards": [asdict(condition) for condition in self.conditions]}


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths found, and how many there are besides."""

    title: str
    paths: tuple[Path, ...]
    left_out: int
    """Counted, but not kept."""
    complete: bool
    """Whether all were counted; otherwise there may be more than `left_out`."""

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "title": self.title,
            "paths": [path.as_dict() for path in self.paths],
            "left_out": self.left_out,
            "complete": self.complete,
        }


def find_paths(machine: model.Diagram | Table, limit: int = 100) -> Paths:
    """The first `limit` simple paths in the order of the diagram's lines, and the number of the others."""
    table = machine if isinstance(machine, Table) else table_of(machine)
    search = _Search(table.start)
    kept: list[Path] = []
    left_out = 0
    for path in search.paths():
        if len(kept) < limit:
            kept.append(path)
        elif left_out < COUNTED:
            left_out += 1
        else:
            return Paths(table.title, tuple(kept), left_out, complete=False)
    return Paths(table.title, tuple(kept), left_out, complete=not search.gave_up)


Move = tuple[tuple[Condition, ...], Edge]
Wanted = tuple[model.GuardExpr, bool]
Values = dict[str, bool]


@dataclass(slots=True)
class _Frame:
    """One open choice of the search: the moves not tried yet, and how much of the path lies before it."""

    moves: Iterator[Move]
    states: int
    conditions: int


class _Search:
    """Depth first, without recursion: diagrams may be long."""

    def __init__(self, start: Node) -> None:
        self.start = start
        self.gave_up = False

    def paths(self) -> Iterator[Path]:
        states: list[str] = []
        conditions: list[Condition] = []
        entered: set[str] = set()
        stack = [_Frame(_moves(self.start), 0, 0)]
        tried = 0
        while stack:
            frame = stack[-1]
            _cut(states, conditions, entered, frame)
            move = next(frame.moves, None)
            if move is None:
                stack.pop()
                continue
            tried += 1
            if tried > LOOKED_AT:
                self.gave_up = True
                return
            needed, edge = move
            if edge.target.path in entered:
                continue
            states.append(edge.target.path)
            conditions.extend(needed)
            if edge.target.final and edge.target.parent is None:
                yield Path(tuple(states), tuple(conditions))
                continue
            entered.update(() if edge.target.final else (edge.target.path,))
            stack.append(_Frame(_moves(_present(edge.target)), len(states), len(conditions)))


def _cut(states: list[str], conditions: list[Condition], entered: set[str], frame: _Frame) -> None:
    entered.difference_update(states[frame.states :])
    del states[frame.states :]
    del conditions[frame.conditions :]


def _present(node: Node) -> Node:
    """The node whose transitions come next after entering `node`."""
    if node.final:
        assert node.parent is not None
        return node.parent
    return node.inner or node


def _moves(node: Node) -> Iterator[Move]:
    yield from _error_moves(node)
    asked: list[Wanted] = []
    for _, edge in node.choices:
        assert edge.expression is not None
        yield from _move(node, (), [*asked, (edge.expression, True)], edge)
        asked.append((edge.expression, False))
    if node.default is not None:
        yield from _move(node, (), asked, node.default)


def _error_moves(node: Node) -> Iterator[Move]:
    """The error transitions in reach of a state that can fail, the nearest first."""
    asked: list[Wanted] = []
    other: list[str] = []  # names that the failure must not have
    at: Node | None = node if _can_fail(node) else None
    while at is not None:
        for edge in at.errors:
            label = f"error({', '.join(edge.match)})" if edge.match else "error"
            if label not in other:
                events = (*(Condition(node.path, name, False) for name in other), Condition(node.path, label, True))
                wanted = asked if edge.expression is None else [*asked, (edge.expression, True)]
                yield from _move(node, events, wanted, edge)
            if edge.expression is not None:
                asked.append((edge.expression, False))
            elif not edge.match:
                return
            else:
                other.append(label)
        at = at.parent


def _can_fail(node: Node) -> bool:
    if node.inner is not None:
        return False
    entry = node.entry or (node.parent is not None and node.parent.inner is node and node.parent.entry)
    return bool(node.do or entry or node.choices)


def _move(node: Node, events: tuple[Condition, ...], wanted: list[Wanted], edge: Edge) -> Iterator[Move]:
    """The edge with the first values that lead along it; nothing when no values do."""
    values = next(_solve(wanted, {}), None)
    if values is not None:
        yield (*events, *(Condition(node.path, name, value) for name, value in values.items())), edge


def _solve(wanted: list[Wanted], given: Values) -> Iterator[Values]:
    """Values of the single guards that give each expression its wanted value; those that decide earliest come first."""
    if not wanted:
        yield given
        return
    (guard, value), rest = wanted[0], wanted[1:]
    match guard:
        case model.Call():
            if given.get(guard.key, value) is value:
                yield from _solve(rest, {**given, guard.key: value})
        case model.Not(operand):
            yield from _solve([(operand, not value), *rest], given)
        case model.And(operands) | model.Or(operands):
            deciding = isinstance(guard, model.Or)
            if value is not deciding:
                yield from _solve([*((operand, value) for operand in operands), *rest], given)
                return
            for place, operand in enumerate(operands):
                before = [(one, not deciding) for one in operands[:place]]
                yield from _solve([*before, (operand, deciding), *rest], given)
