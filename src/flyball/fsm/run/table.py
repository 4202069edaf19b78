"""The table of a machine class: what the diagram says, bound to the user's functions and compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flyball.fsm import model
from flyball.fsm.run import words
from flyball.fsm.run.binding import Binder
from flyball.fsm.run.compiled import all_ops, compile_table
from flyball.fsm.run.errors import TableError

__all__ = ["Table"]

Functions = Mapping[str, Callable[..., Any]]
Maker = Callable[[str], Callable[..., Any]]


class Table:
    """Immutable once built; shared by all machines of a class.

    Building it checks everything that can be checked before a run: that each name used is bound and each bound name
    used, that markers agree, that parameters fit, that targets exist.
    """

    __slots__ = ("actions", "guards", "machine", "nodes", "start", "title", "waits")

    def __init__(
        self,
        title: str,
        *,
        initial: Iterable[model.Transition],
        states: Iterable[model.State],
        initial_do: Iterable[model.Call] = (),
        actions: Functions,
        guards: Functions,
    ) -> None:
        """Take states and functions as `flyball.fsm.run` describes."""
        self._build(title, words.machine(initial, states, initial_do), actions, guards)

    @classmethod
    def of(cls, title: str, machine: model.Machine, *, actions: Functions, guards: Functions) -> Table:
        """The table of a parsed diagram: `Table.of(diagram.title, diagram.machine, ...)`."""
        table = cls.__new__(cls)
        table._build(title, machine, actions, guards)
        return table

    def rebound(self, *, actions: Maker | None = None, guards: Maker | None = None) -> Table:
        """The same table over other functions, made by name: for simulation and tests."""
        return Table.of(
            self.title,
            self.machine,
            actions=self.actions if actions is None else {name: actions(name) for name in self.actions},
            guards=self.guards if guards is None else {name: guards(name) for name in self.guards},
        )

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all states, composites before their insides, without pseudo states."""
        return tuple("/".join(path) for path, _ in self.machine.walk())

    def _build(self, title: str, machine: model.Machine, actions: Functions, guards: Functions) -> None:
        binder = Binder(title, actions, guards)
        self.title = title
        self.machine = machine
        self.actions: Functions = dict(actions)
        self.guards: Functions = dict(guards)
        self.start, self.nodes = compile_table(title, machine, binder)
        binder.refuse_unused()
        self.waits = tuple(sorted({op.name for op in all_ops(self.nodes) if op.waits}))
        """The actions that are coroutine functions, sorted."""

    def refuse_async(self) -> None:
        """Raise when an action must be awaited."""
        if self.waits:
            raise TableError(
                f"{self.title}.run_sync: the actions {', '.join(self.waits)} are async; use `await machine.run()`"
            )
