"""Which level each name of a diagram belongs to, and which transitions cross a border.

A composite has names of its own: the same name may stand in several composites for different states. A name belongs to
the level it is written in, unless nothing there makes it a state of its own and another level does: then the
transition reaches over a border.

A level makes a name its own by saying something of it (a declaration, an action, a description, a block), by starting
there, or by transitions both into and out of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from flyball.fsm.model import INITIAL, Position
from flyball.fsm.parse.codes import Report
from flyball.fsm.parse.statements import (
    Arrow,
    Behaviour,
    Close,
    Declaration,
    Described,
    NoteLink,
    NoteText,
    Statement,
    Title,
)

__all__ = ["FINAL_NAME", "INITIAL_NAME", "Scope", "build_scopes", "is_final", "is_initial"]

INITIAL_NAME = "InitialState"
FINAL_NAME = "FinalState"
_DEEPEST = 60

Said = Arrow | Behaviour | Declaration | Described | NoteLink | NoteText


def is_initial(name: str) -> bool:
    """Whether the source of a transition, or the owner of an action, is the initial pseudo state."""
    return name in (INITIAL, INITIAL_NAME)


def is_final(name: str) -> bool:
    """Whether the target of a transition is the final pseudo state."""
    return name in (INITIAL, FINAL_NAME)


@dataclass(slots=True, eq=False)
class Scope:
    """One level while it is being read."""

    name: str
    """The composite's; empty at top level."""
    opened: Position
    parent: Scope | None = None
    said: list[Said] = field(default_factory=list)
    """What the level says, in order; declarations of composites are among it."""
    inner: dict[str, Scope] = field(default_factory=dict)
    refused: list[Arrow] = field(default_factory=list)
    """Transitions that cross a border."""

    def walk(self) -> Iterator[Scope]:
        """This level and all below it."""
        yield self
        for scope in self.inner.values():
            yield from scope.walk()


def build_scopes(statements: list[Statement], at: Position, report: Report) -> tuple[Scope, bool, list[Statement]]:
    """The levels of a diagram, whether its blocks are sound, and the statements that count for the whole diagram."""
    builder = _Blocks(at, report)
    for statement in statements:
        builder.take(statement)
    builder.finish()
    _refuse_crossing(builder.top, report)
    return builder.top, builder.sound, builder.outer


class _Blocks:
    """Pairs the braces."""

    def __init__(self, at: Position, report: Report) -> None:
        self.top = Scope("", at)
        self.sound = True
        self.outer: list[Statement] = []
        self._report = report
        self._open: list[tuple[Scope, Position, str]] = []
        self._here = self.top
        self._too_deep = 0

    def take(self, statement: Statement) -> None:
        """Put one statement where it belongs."""
        match statement:
            case Declaration(opens=True):
                self._begin(statement)
            case Close():
                self._end(statement)
            case Arrow() | Behaviour() | Declaration() | Described() | NoteLink() | NoteText():
                if not self._too_deep:
                    self._here.said.append(statement)
            case Title() if self._here is not self.top:
                pass
            case _:
                self.outer.append(statement)

    def finish(self) -> None:
        """Report the blocks that are still open."""
        for scope, at, _ in self._open:
            self.sound = False
            self._report.add(
                "E-unclosed-block",
                at,
                f"the block of {scope.name} never ends",
                subject=scope.name,
                remedy="close it with a line `}`",
            )

    def _begin(self, statement: Declaration) -> None:
        name, at = statement.state, statement.position
        if self._too_deep or len(self._open) >= _DEEPEST:
            if not self._too_deep:
                self.sound = False
                self._report.add(
                    "E-unsupported", at, f"{name}: more than {_DEEPEST} blocks in each other", subject=name
                )
            self._too_deep += 1
            return
        self._here.said.append(statement)
        scope = self._here.inner.get(name)
        if scope is not None:
            self.sound = False
            self._report.add(
                "E-duplicate-composite",
                at,
                f"{name} has a block already, in line {scope.opened.line}",
                subject=name,
                remedy="put everything into one block",
            )
        else:
            scope = self._here.inner[name] = Scope(name, at, self._here)
        self._open.append((scope, at, name))
        self._here = scope

    def _end(self, statement: Close) -> None:
        if self._too_deep:
            self._too_deep -= 1
        elif self._open:
            scope, _, _ = self._open.pop()
            self._here = scope.parent or self.top
        else:
            self.sound = False
            self._report.add(
                "E-unopened-block",
                statement.position,
                "this brace closes nothing",
                subject=str(statement.position.line),
                remedy="delete it, or open the block with `state X {`",
            )


@dataclass(slots=True)
class _Evidence:
    """What a level knows of a name."""

    said: bool = False
    source: bool = False
    target: bool = False

    @property
    def own(self) -> bool:
        return self.said or (self.source and self.target)


def _evidence(scope: Scope) -> dict[str, _Evidence]:
    found: dict[str, _Evidence] = {}
    for one in scope.said:
        match one:
            case Arrow() if one.source != one.target:
                if not is_initial(one.source):
                    found.setdefault(one.source, _Evidence()).source = True
                if not is_final(one.target):
                    found.setdefault(one.target, _Evidence()).target = True
            case Behaviour() | Declaration() | Described():
                found.setdefault(one.state, _Evidence()).said = True
            case _:
                pass
    return found


def _refuse_crossing(top: Scope, report: Report) -> None:
    """Move the transitions that cross a border from what a level says to what it refuses."""
    scopes = list(top.walk())
    if len(scopes) == 1:
        return
    evidence = {id(scope): _evidence(scope) for scope in scopes}
    owners: dict[str, int] = {}
    for known in evidence.values():
        for name, one in known.items():
            owners[name] = owners.get(name, 0) + one.own
    for scope in scopes:
        known = evidence[id(scope)]
        foreign = {name for name, one in known.items() if not one.own and owners[name]}
        if foreign:
            _refuse(scope, foreign, report)


def _refuse(scope: Scope, foreign: set[str], report: Report) -> None:
    kept: list[Said] = []
    for one in scope.said:
        crossing = _crossing(one, foreign) if isinstance(one, Arrow) else None
        if crossing is None or not isinstance(one, Arrow):
            kept.append(one)
            continue
        name, at = crossing
        scope.refused.append(one)
        where = f"inside {scope.name}" if scope.name else "at the top level"
        report.add(
            "E-crosses-border",
            at,
            f"{one.source} --> {one.target}: {name} is no state {where}",
            subject=name,
            remedy="lead to `[*]` inside, and decide outside with a guard where to go on",
        )
    scope.said = kept


def _crossing(arrow: Arrow, foreign: set[str]) -> tuple[str, Position] | None:
    if arrow.target in foreign and not is_final(arrow.target):
        return arrow.target, arrow.target_at
    if arrow.source in foreign and not is_initial(arrow.source):
        return arrow.source, arrow.source_at
    return None
