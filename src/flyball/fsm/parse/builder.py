"""From statements to the model: states in the order of their first mention, each with what was said of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from flyball.fsm.model import (
    FINAL,
    INITIAL,
    Call,
    Diagram,
    Machine,
    Note,
    Position,
    State,
    Transition,
    guard_calls,
)
from flyball.fsm.parse.codes import UNSOUND, Report
from flyball.fsm.parse.scopes import (
    FINAL_NAME,
    INITIAL_NAME,
    Scope,
    build_scopes,
    is_final,
    is_initial,
)
from flyball.fsm.parse.statements import (
    Arrow,
    Behaviour,
    Declaration,
    Described,
    NoteLink,
    NoteText,
    Statement,
)
from flyball.fsm.parse.titles import find_title

__all__ = ["build"]


def build(statements: list[Statement], source: Sequence[str], at: Position, name: str, report: Report) -> Diagram:
    """The diagram that the statements make; what is wrong with them goes into the report."""
    top, _, outer = build_scopes(statements, at, report)
    title, heading = find_title(outer, name, at, report)
    notes = _Notes()
    machine = _Level(top, notes, report).machine()
    text = "\n".join(source)
    return Diagram(
        title=title,
        machine=machine,
        source=text,
        file=report.file,
        sha256=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        actions=tuple(sorted({call.name for call in _actions(machine)})),
        guards=tuple(sorted({call.name for call in _guards(machine)})),
        states=tuple(sorted({INITIAL_NAME, FINAL_NAME, *(state.name for _, state in machine.walk())})),
        name=name,
        heading=heading,
        notes=tuple(notes.free),
        position=at,
        sound=not any(one.code in UNSOUND for one in report.findings),
    )


def _transitions(machine: Machine) -> Iterable[Transition]:
    for _, level in machine.levels():
        yield from level.initial
        for state in level.states.values():
            yield from state.transitions


def _actions(machine: Machine) -> Iterable[Call]:
    for _, level in machine.levels():
        yield from level.initial_do
        for state in level.states.values():
            yield from (*state.entry, *state.do, *state.exit)
    for transition in _transitions(machine):
        yield from transition.actions


def _guards(machine: Machine) -> Iterable[Call]:
    for transition in _transitions(machine):
        yield from guard_calls(transition.guard)


@dataclass(slots=True)
class _Notes:
    """Notes that found no state, and those that have a name by which a later line may give them one."""

    free: list[Note] = field(default_factory=list)
    named: dict[str, NoteText] = field(default_factory=dict)


@dataclass(slots=True)
class _Draft:
    """A state while it is being read."""

    name: str
    position: Position
    actions: dict[str, list[Call]] = field(default_factory=lambda: {"entry": [], "do": [], "exit": []})
    transitions: list[Transition] = field(default_factory=list)
    marks: set[str] = field(default_factory=set)
    texts: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def finished(self, inner: Machine | None) -> State:
        """The state as it is from now on."""
        return State(
            name=self.name,
            entry=tuple(self.actions["entry"]),
            do=tuple(self.actions["do"]),
            exit=tuple(self.actions["exit"]),
            transitions=tuple(self.transitions),
            inner=inner,
            poll="poll" in self.marks,
            choice="choice" in self.marks,
            end="end" in self.marks,
            description="\n".join(self.texts),
            notes=tuple(self.notes),
            position=self.position,
            lines=tuple(dict.fromkeys(self.lines)),
        )


class _Level:
    """Builds one level, and those inside it."""

    def __init__(self, scope: Scope, notes: _Notes, report: Report) -> None:
        self._scope = scope
        self._notes = notes
        self._report = report
        self._drafts: dict[str, _Draft] = {}
        self._initial: list[Transition] = []
        self._initial_do: list[Call] = []
        self._last: str | None = None
        self._choices: list[Behaviour] = []

    def machine(self) -> Machine:
        """The machine of this level."""
        for one in self._scope.said:
            match one:
                case Arrow():
                    self._arrow(one)
                case Behaviour():
                    self._behaviour(one)
                case Declaration():
                    self._declaration(one)
                case Described():
                    self._draft(one.state, one.position).texts.append(one.text)
                    self._last = one.state
                case NoteText() | NoteLink():
                    pass
        self._attach_notes()
        self._check_pseudo_states()
        states: dict[str, State] = {}
        for name, draft in self._drafts.items():
            scope = self._scope.inner.get(name)
            inner = _Level(scope, self._notes, self._report).machine() if scope else None
            states[name] = draft.finished(inner)
        refused = tuple(_transition(one) for one in self._scope.refused)
        return Machine(states, tuple(self._initial), tuple(self._initial_do), refused)

    def _draft(self, name: str, at: Position) -> _Draft:
        draft = self._drafts.get(name)
        if draft is None:
            draft = self._drafts[name] = _Draft(name, at)
        draft.lines.append(at.line)
        return draft

    def _reserved(self, name: str, at: Position) -> None:
        if name in (INITIAL_NAME, FINAL_NAME):
            self._report.add(
                "W-reserved-name",
                at,
                f"{name} is the internal name of a pseudo state",
                subject=name,
                remedy="write `[*]`",
            )

    # ------------------------------------------------------------------------------------------- statements

    def _arrow(self, arrow: Arrow) -> None:
        self._reserved(arrow.source, arrow.source_at)
        self._reserved(arrow.target, arrow.target_at)
        transition = _transition(arrow)
        if arrow.source == FINAL_NAME:
            self._final_actions(arrow.source, arrow.source_at, "no transition leaves the final state")
            return
        if self._loops(arrow):
            self._report.add(
                "E-initial-loop",
                arrow.target_at,
                f"{arrow.source} --> {arrow.target} leads back to the initial pseudo state",
                subject=arrow.source if arrow.source != INITIAL_NAME else INITIAL,
                remedy="lead to a state",
            )
            if not is_initial(arrow.source):
                return
        if is_initial(arrow.source):
            self._initial.append(transition)
        else:
            self._draft(arrow.source, arrow.source_at).transitions.append(transition)
            self._last = arrow.source
        if transition.target != FINAL:
            draft = self._draft(arrow.target, arrow.target_at)
            draft.lines.pop()
            self._last = arrow.target

    @staticmethod
    def _loops(arrow: Arrow) -> bool:
        return arrow.target == INITIAL_NAME or (is_initial(arrow.source) and arrow.target == INITIAL)

    def _behaviour(self, one: Behaviour) -> None:
        self._reserved(one.state, one.position)
        if one.state == FINAL_NAME:
            self._final_actions(one.state, one.position, f"the action {one.call.name} of the final state is never run")
        elif is_initial(one.state):
            if one.kind == "do":
                self._initial_do.append(one.call)
            else:
                self._report.syntax(
                    one.position, f"the initial pseudo state has no {one.kind} actions", "write `[*]: do / Boot`"
                )
        else:
            self._draft(one.state, one.position).actions[one.kind].append(one.call)
            self._choices.append(one)
            self._last = one.state

    def _declaration(self, one: Declaration) -> None:
        self._reserved(one.state, one.position)
        if one.state in (INITIAL_NAME, FINAL_NAME):
            if one.opens:
                self._report.syntax(one.position, f"{one.state} cannot be a composite", "choose another name")
            return
        if not one.supported:
            return
        draft = self._draft(one.state, one.position)
        draft.marks.update(word.lower() for word in one.stereotypes)
        if one.text:
            draft.texts.append(one.text)
        self._last = one.state

    # ------------------------------------------------------------------------------------------- pseudo states

    def _check_pseudo_states(self) -> None:
        for draft in self._drafts.values():
            if "end" not in draft.marks:
                continue
            if draft.transitions:
                at = draft.transitions[0].position
                self._final_actions(draft.name, at, f"no transition leaves the final state {draft.name}")
            elif any(draft.actions.values()):
                at = next(call for calls in draft.actions.values() for call in calls).position
                self._final_actions(draft.name, at, f"the actions of the final state {draft.name} are never run")
            elif draft.name in self._scope.inner:
                self._final_actions(draft.name, draft.position, f"the final state {draft.name} cannot be a composite")
        for one in self._choices:
            if "choice" in self._drafts[one.state].marks:
                self._report.syntax(
                    one.position,
                    f"the choice {one.state} has an action; a choice only decides",
                    "move the action to a transition or a state before it",
                )

    def _final_actions(self, subject: str, at: Position, message: str) -> None:
        self._report.add(
            "E-final-actions", at, message, subject=subject, remedy="do the work in a state that leads to `[*]`"
        )

    # ------------------------------------------------------------------------------------------- notes

    def _attach_notes(self) -> None:
        last: str | None = None
        for one in self._scope.said:
            match one:
                case NoteText():
                    if one.alias:
                        self._notes.named[one.alias] = one
                    name = one.state if one.state else last if one.attached else None
                    self._attach(Note(one.text, name, one.position))
                case NoteLink():
                    self._link(one)
                case Arrow():
                    ends = [name for name in (one.source, one.target) if name in self._drafts]
                    last = ends[-1] if ends else last
                case Behaviour() | Declaration() | Described():
                    last = one.state

    def _attach(self, note: Note) -> None:
        draft = self._drafts.get(note.state) if note.state else None
        if draft is None:
            self._notes.free.append(note)
        else:
            draft.notes.append(note)

    def _link(self, link: NoteLink) -> None:
        note = self._notes.named.get(link.alias)
        draft = self._drafts.get(link.state)
        if note is None or draft is None:
            return
        found = Note(note.text, link.state, note.position)
        self._notes.free = [one for one in self._notes.free if one.position != note.position]
        draft.notes.append(found)


def _transition(arrow: Arrow) -> Transition:
    label = arrow.label
    return Transition(
        source=INITIAL if is_initial(arrow.source) else arrow.source,
        target=FINAL if is_final(arrow.target) else arrow.target,
        guard=label.guard if label else None,
        actions=(label.action,) if label and label.action else (),
        error=label.error if label else None,
        position=arrow.position,
        text=arrow.raw.strip(),
    )
