"""What a diagram means: an immutable table of states, transitions, actions and guards.

Everything the other parts of the room share is defined here. The parser makes it, the checks judge it, the engine
runs it, the generator and the drawings write it down. Nothing here knows of text, files or running machines.

Promises:

* every object is immutable and safe to share between machines, threads and tasks;
* order is meaning: states stand in the order of their first mention, transitions in the order written;
* two objects are equal when they mean the same: positions, original spelling, notes and descriptions do not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, TypeAlias

__all__ = [
    "FINAL",
    "INITIAL",
    "And",
    "Call",
    "Diagram",
    "ErrorMatch",
    "Finding",
    "GuardExpr",
    "Machine",
    "Not",
    "Note",
    "Or",
    "Position",
    "Severity",
    "State",
    "Transition",
    "guard_calls",
    "guard_text",
]

INITIAL = "[*]"
"""The source of an initial transition."""

FINAL = "[*]"
"""The target that ends a machine."""

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a file; line and column count from 1, a tab is one column."""

    line: int
    column: int = 1


NOWHERE = Position(0, 0)


@dataclass(frozen=True, slots=True)
class Call:
    """One use of an action or a guard, with its text parameters."""

    name: str
    params: tuple[str, ...] = ()
    position: Position = field(default=NOWHERE, compare=False)

    @property
    def key(self) -> str:
        """`Name`, or `Name(p1|p2)` with parameters."""
        return f"{self.name}({'|'.join(self.params)})" if self.params else self.name


@dataclass(frozen=True, slots=True)
class Not:
    """True when its operand is false."""

    operand: GuardExpr


@dataclass(frozen=True, slots=True)
class And:
    """True when all operands are; asked from left to right until one is false."""

    operands: tuple[GuardExpr, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """True when one operand is; asked from left to right until one is true."""

    operands: tuple[GuardExpr, ...]


GuardExpr: TypeAlias = Call | Not | And | Or


def guard_calls(guard: GuardExpr | None) -> Iterator[Call]:
    """Every call in a guard, from left to right; none for a default transition."""
    match guard:
        case None:
            return
        case Call():
            yield guard
        case Not(operand):
            yield from guard_calls(operand)
        case And(operands) | Or(operands):
            for operand in operands:
                yield from guard_calls(operand)


def guard_text(guard: GuardExpr) -> str:
    """The guard as people read it: `IsReady and not HasFlag(a|b)`."""
    match guard:
        case Call():
            return guard.key
        case Not(operand):
            inner = guard_text(operand)
            return f"not ({inner})" if isinstance(operand, And | Or) else f"not {inner}"
        case And(operands):
            return " and ".join(f"({guard_text(one)})" if isinstance(one, Or) else guard_text(one) for one in operands)
        case Or(operands):
            return " or ".join(guard_text(one) for one in operands)


@dataclass(frozen=True, slots=True)
class ErrorMatch:
    """What an error transition reacts to: any error, or one whose class name or API reason is in `names`."""

    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Transition:
    """One arrow. Without guard and error it is a default; with `error` it is taken when something failed."""

    source: str
    target: str
    guard: GuardExpr | None = None
    actions: tuple[Call, ...] = ()
    """The transition's action; the language allows one, so this holds none or one."""
    error: ErrorMatch | None = None
    position: Position = field(default=NOWHERE, compare=False)
    text: str = field(default="", compare=False)
    """The line as written, without the blanks around it."""

    @property
    def action(self) -> Call | None:
        """The transition's action, if it has one."""
        return self.actions[0] if self.actions else None

    @property
    def is_default(self) -> bool:
        """Whether it is taken when nothing else is."""
        return self.guard is None and self.error is None

    @property
    def is_guarded(self) -> bool:
        """Whether a guard alone decides it (an error transition is a matter of its own)."""
        return self.guard is not None and self.error is None


@dataclass(frozen=True, slots=True)
class Note:
    """A note of the diagram; `state` is the name it was written for, or None for one that stands alone."""

    text: str
    state: str | None = None
    position: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class State:
    """One state of a machine; with `inner` it is a composite."""

    name: str
    entry: tuple[Call, ...] = ()
    do: tuple[Call, ...] = ()
    exit: tuple[Call, ...] = ()
    transitions: tuple[Transition, ...] = ()
    """In the order written, error transitions among them."""
    inner: Machine | None = None
    poll: bool = False
    """`<<poll>>`: stay and repeat the `do` actions while no transition applies."""
    choice: bool = False
    """`<<choice>>`: a pseudo state that only decides."""
    end: bool = False
    """`<<end>>`: a final state with a name; entering it ends the machine it stands in."""
    description: str = field(default="", compare=False)
    notes: tuple[Note, ...] = field(default=(), compare=False)
    position: Position = field(default=NOWHERE, compare=False)
    lines: tuple[int, ...] = field(default=(), compare=False)
    """The lines that say something of this state."""

    @property
    def default(self) -> Transition | None:
        """The transition taken when no other is: the first default, wherever it stands."""
        return next((one for one in self.transitions if one.is_default), None)

    @property
    def documentation(self) -> str:
        """Description and notes as one text."""
        return "\n".join(part for part in (self.description, *(note.text for note in self.notes)) if part)


@dataclass(frozen=True, slots=True)
class Machine:
    """One level: its states, and how it starts."""

    states: Mapping[str, State]
    initial: tuple[Transition, ...] = ()
    initial_do: tuple[Call, ...] = ()
    """The actions of the initial pseudo state."""
    refused: tuple[Transition, ...] = field(default=(), compare=False)
    """Transitions that cross the border of a composite: errors, never run."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", MappingProxyType(dict(self.states)))

    def __hash__(self) -> int:
        return hash((tuple(self.states), self.initial, self.initial_do))

    def __reduce__(self) -> tuple[type[Machine], tuple[object, ...]]:
        return Machine, (dict(self.states), self.initial, self.initial_do, self.refused)

    def walk(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], State]]:
        """Every state of every level with its path, composites before what they hold."""
        for state in self.states.values():
            here = (*path, state.name)
            yield here, state
            if state.inner is not None:
                yield from state.inner.walk(here)

    def levels(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Machine]]:
        """Every level with the path of its composite; the machine itself comes first, with `()`."""
        yield path, self
        for state in self.states.values():
            if state.inner is not None:
                yield from state.inner.levels((*path, state.name))


@dataclass(frozen=True, slots=True)
class Diagram:
    """One machine with the text it came from."""

    title: str
    """The class name: `TrafficLight`."""
    machine: Machine
    source: str = field(default="", compare=False, repr=False)
    """The diagram's text, lines ended by a line feed."""
    file: str = field(default="", compare=False)
    sha256: str = field(default="", compare=False)
    """Of `source`, in UTF-8."""
    actions: tuple[str, ...] = ()
    """Distinct names, sorted."""
    guards: tuple[str, ...] = ()
    """Distinct names, sorted."""
    states: tuple[str, ...] = ()
    """Distinct names of all levels, sorted; the two pseudo states are among them as InitialState and FinalState."""
    name: str = field(default="", compare=False)
    """The name behind `@startuml` or of the Markdown fence, if any."""
    heading: str = field(default="", compare=False)
    """The title as written."""
    notes: tuple[Note, ...] = field(default=(), compare=False)
    """Notes that belong to no state."""
    sound: bool = field(default=True, compare=False)
    """Whether every line was understood and every block is closed; else the graph is not judged."""
    position: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to say about a diagram, with its place and what to do about it."""

    code: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 1
    source_line: str = ""
    subject: str = ""
    """The state or name it speaks of; for E-syntax the line number."""
    remedy: str = ""
    severity: Severity = "error"
    lines: tuple[int, ...] = field(default=(), compare=False)
    """All lines that speak of the subject; an ignore comment before any of them counts."""

    @property
    def key(self) -> str:
        """`CODE:subject`, as in the JSON of `flyball fsm model`."""
        return f"{self.code}:{self.subject}"

    def as_error(self) -> Finding:
        """The same finding with the weight of an error (`--strict`)."""
        return replace(self, severity="error")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.code}: {self.message}"
