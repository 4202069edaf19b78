"""What a diagram wants from the user's files: one function for each action and guard, with the places that use it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from flyball.fsm.generate.names import Kind
from flyball.fsm.model import Call, Diagram, Machine, Transition, guard_calls

__all__ = ["Use", "Wanted", "uses", "wanted"]


@dataclass(frozen=True, slots=True)
class Use:
    """One place of the diagram that names an action or guard."""

    kind: Kind
    call: Call
    state: str
    """The path of the state: `Box/Inner`; `[*]` for the initial pseudo state."""
    slot: str
    """entry, do, exit, guard or transition."""
    index: int
    """Which of its slot: the number of the call, or of the transition."""
    target: str = ""
    """Where the transition leads; empty for the calls of a state."""
    operand: int = 0
    """Which call of a combined guard."""

    @property
    def place(self) -> tuple[str, str, str, int, int]:
        """Where it stands, whatever it is called."""
        return (self.state, self.slot, self.target, self.index, self.operand)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One action or guard with all its uses, in the order of the diagram."""

    kind: Kind
    name: str
    uses: tuple[Use, ...]

    @property
    def params(self) -> tuple[tuple[str, ...], ...]:
        """The distinct parameter lists, in the order of the diagram."""
        return tuple(dict.fromkeys(use.call.params for use in self.uses))


def wanted(diagram: Diagram, kind: Kind) -> list[Wanted]:
    """Everything of one kind, in alphabetical order."""
    found: dict[str, list[Use]] = {}
    for use in uses(diagram):
        if use.kind == kind:
            found.setdefault(use.call.name, []).append(use)
    return [Wanted(kind, name, tuple(found[name])) for name in sorted(found)]


def uses(diagram: Diagram) -> Iterator[Use]:
    """Every use of an action or guard, in the order of the diagram."""
    yield from _machine_uses(diagram.machine, ())


def _machine_uses(machine: Machine, path: tuple[str, ...]) -> Iterator[Use]:
    start = "/".join((*path, "[*]"))
    for index, call in enumerate(machine.initial_do):
        yield Use("action", call, start, "do", index)
    yield from _transition_uses(start, machine.initial)
    for state in machine.states.values():
        here = "/".join((*path, state.name))
        for slot, calls in (("entry", state.entry), ("do", state.do), ("exit", state.exit)):
            for index, call in enumerate(calls):
                yield Use("action", call, here, slot, index)
        yield from _transition_uses(here, state.transitions)
        if state.inner is not None:
            yield from _machine_uses(state.inner, (*path, state.name))


def _transition_uses(state: str, transitions: tuple[Transition, ...]) -> Iterator[Use]:
    for index, transition in enumerate(transitions):
        for operand, call in enumerate(guard_calls(transition.guard)):
            yield Use("guard", call, state, "guard", index, transition.target, operand)
        for call in transition.actions:
            yield Use("action", call, state, "transition", index, transition.target)
