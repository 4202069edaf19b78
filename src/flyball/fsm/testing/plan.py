"""Plans the rehearsals of a diagram: every transition by its shortest way, and every action that can fail.

The planner reads the diagram's model and nothing of the engine, so that a rehearsal compares two independent readings
of the rules. A way is a sequence of events (a state entered, an action called, a guard answered); ways are joined,
never run.

At each level the shortest ways from the start and to the end are found once; a composite costs what its inside costs.
A state that only an error transition leads to is reached by letting an action of the source fail.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from flyball.fsm.model import FINAL, Call, Machine, State, Transition, guard_calls, guard_text
from flyball.fsm.testing.events import INJECTED, Case, Event, Events, answers, calls, case_of, fail, matches, state

__all__ = ["Plan", "plan"]

START = ""
"""The initial pseudo state of a level; its name in diagrams is that of the final one."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The rehearsals of one diagram."""

    transitions: list[Case]
    failures: list[Case]
    uncovered: list[str]
    """Transitions that no run can take: unreachable states, second defaults, shadowed error transitions."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One way out of a state that stands ready to decide, or out of one in which something has failed."""

    source: str
    target: str
    transition: Transition | None
    leave: Events
    """Everything between the decision and the target's entry."""
    failing: Events | None = None
    """For an error transition: how the source is entered instead, so that something fails in it."""


def plan(machine: Machine) -> Plan:
    """All rehearsals, in the order of the diagram."""
    return _Planner(machine).plan()


@dataclass
class Level:
    """One machine of the nest: its states, its edges, and the shortest ways."""

    machine: Machine
    path: tuple[str, ...] = ()
    parent: Level | None = None
    composite: str = ""
    inner: dict[str, Level] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, one in self.machine.states.items():
            if one.inner is not None:
                self.inner[name] = Level(one.inner, (*self.path, name), self, name)

    def levels(self) -> Iterator[Level]:
        """This level and all inside it."""
        yield self
        for one in self.inner.values():
            yield from one.levels()

    def label(self, name: str) -> str:
        """The path of a state."""
        return "/".join((*self.path, name))

    # -- entering and leaving ------------------------------------------------------------------------------------------

    def enter(self, name: str) -> Events | None:
        """Enter a state and do what it does; None for a composite whose inside never ends."""
        here = (state((*self.path, name)),)
        if name == FINAL:
            return here
        one = self.machine.states[name]
        entered = (*here, *calls(one.entry))
        if name not in self.inner:
            return (*entered, *calls(one.do))
        through = self.inner[name].through
        return None if through is None else (*entered, *through)

    @cached_property
    def start(self) -> Events:
        """What the initial pseudo state does."""
        return calls(self.machine.initial_do)

    @cached_property
    def through(self) -> Events | None:
        """The shortest whole run of this level."""
        way = self.ways.get(FINAL)
        return None if way is None else (*self.start, *way)

    @cached_property
    def edges(self) -> dict[str, list[Edge]]:
        """The edges out of each state, in the order in which they are decided."""
        found = {START: list(self._plain(START, self.machine.initial, ()))}
        for name, one in self.machine.states.items():
            found[name] = [*self._plain(name, one.transitions, one.exit), *self._error_edges(one)]
            if one.end:
                found[name].append(Edge(name, FINAL, None, calls(one.exit)))
        return found

    def _plain(self, name: str, transitions: tuple[Transition, ...], leaving: tuple[Call, ...]) -> Iterator[Edge]:
        refused: Events = ()
        for one in transitions:
            if one.is_guarded:
                asked = (*refused, *answers(one.guard, True))
                yield Edge(name, one.target, one, (*asked, *calls(leaving), *calls(one.actions)))
                refused = (*refused, *answers(one.guard, False))
        default = next((one for one in transitions if one.is_default), None)
        if default is not None:
            yield Edge(name, default.target, default, (*refused, *calls(leaving), *calls(default.actions)))

    def _error_edges(self, one: State) -> Iterator[Edge]:
        for transition in one.transitions:
            if transition.error is None:
                continue
            error = transition.error.names[0] if transition.error.names else INJECTED
            asked = self.asked_before(one, transition, error)
            failing = None if asked is None else self._fail_in(one, error)
            if asked is not None and failing is not None:
                leave = (*asked, *calls(one.exit), *calls(transition.actions))
                yield Edge(one.name, transition.target, transition, leave, failing)

    @staticmethod
    def asked_before(one: State, wanted: Transition, error: str) -> Events | None:
        """The guards asked until an error transition is taken; None when an earlier one takes the error for certain."""
        asked: Events = ()
        for other in one.transitions:
            if other is wanted:
                return (*asked, *answers(other.guard, True))
            if other.error is not None and matches(other.error.names, error):
                if other.guard is None:
                    return None
                asked = (*asked, *answers(other.guard, False))
        return None

    def _fail_in(self, one: State, error: str) -> Events | None:
        """Enter a state so that something fails in it which its own error transitions catch first."""
        here: Events = (state((*self.path, one.name)),)
        if one.entry:
            return (*here, fail(one.entry[0], error))
        if one.name in self.inner:
            inside = self.inner[one.name].fail_inside(error)
            return None if inside is None else (*here, *inside)
        if one.do:
            return (*here, fail(one.do[0], error))
        asked = next((call for other in one.transitions if other.is_guarded for call in guard_calls(other.guard)), None)
        if asked is None or error != INJECTED:
            return None
        return (*here, Event("check", f"{asked.key}=error"))

    def fail_inside(self, error: str) -> Events | None:
        """Run into a failure that nothing at this level catches, and leave the states around it."""
        if self.machine.initial_do:
            return (fail(self.machine.initial_do[0], error),)
        for name in self.machine.states:
            one = self.machine.states[name]
            before = self.before.get(name)
            caught = any(t.error is not None and matches(t.error.names, error) for t in one.transitions)
            if before is None or caught:
                continue
            failing = self._fail_in(one, error)
            if failing is not None and all(event.kind != "check" for event in failing):
                return (*self.start, *before, *failing, *calls(one.exit))
        return None

    # -- shortest ways -------------------------------------------------------------------------------------------------

    @cached_property
    def _found(self) -> tuple[dict[str, Events], dict[str, Events]]:
        """Dijkstra from the initial state: ways that end ready in a state, and ways that end just before its entry."""
        ways: dict[str, Events] = {START: ()}
        before: dict[str, Events] = {}
        done: set[tuple[str, bool]] = set()
        queue: list[tuple[int, int, str, bool, Events]] = [(0, 0, START, False, ())]
        count = 0
        while queue:
            cost, _, name, ended, events = heapq.heappop(queue)
            if (name, ended) in done:
                continue
            done.add((name, ended))
            if ended:
                ways[FINAL] = events
                continue
            if name != START:
                ways[name] = events
            for target, leave in self._onward(name, events):
                if target != FINAL:
                    before.setdefault(target, leave)
                entered = self.enter(target)
                if entered is not None:
                    count += 1
                    steps = sum(1 for event in entered if event.kind == "state")
                    item = (cost + steps, count, target, target == FINAL, (*leave, *entered))
                    heapq.heappush(queue, item)
        return ways, before

    def _onward(self, name: str, events: Events) -> Iterator[tuple[str, Events]]:
        for edge in self.edges.get(name, []):
            if edge.failing is None:
                yield edge.target, (*events, *edge.leave)
            else:
                start = self.before_entry(name, events)
                if start is not None:
                    yield edge.target, (*start, *edge.failing, *edge.leave)

    def before_entry(self, name: str, events: Events) -> Events | None:
        """Cut a way that ends ready in a state back to the moment before that state was entered."""
        entered = self.enter(name)
        if entered is None or not events:
            return None
        return events[: len(events) - len(entered)]

    @property
    def ways(self) -> dict[str, Events]:
        """The shortest way from the start of this level to each state, ready to decide (to FINAL: its end)."""
        return self._found[0]

    @property
    def before(self) -> dict[str, Events]:
        """The shortest way to the moment before a state is entered."""
        return self._found[1]

    @cached_property
    def homeward(self) -> dict[str, Events]:
        """The shortest way from each state, ready to decide, to the end of this level."""
        home: dict[str, tuple[int, Events]] = {FINAL: (0, ())}
        changed = True
        arrivals = {name: self.enter(name) for name in (*self.machine.states, FINAL)}
        while changed:
            changed = False
            for name in reversed([START, *self.machine.states]):
                for edge in self.edges.get(name, []):
                    entered = arrivals.get(edge.target)
                    rest = home.get(edge.target)
                    if entered is None or rest is None or edge.failing is not None:
                        continue
                    cost = rest[0] + sum(1 for event in entered if event.kind == "state")
                    if name not in home or cost < home[name][0]:
                        home[name] = (cost, (*edge.leave, *entered, *rest[1]))
                        changed = True
        return {name: events for name, (_, events) in home.items()}


class _Planner:
    def __init__(self, machine: Machine) -> None:
        self.root = Level(machine)

    def plan(self) -> Plan:
        found = Plan([], [], [])
        for level in self.root.levels():
            for name, edges in level.edges.items():
                taken = self._transitions(level, name, edges, found)
                own = level.machine.initial if name == START else level.machine.states[name].transitions
                found.uncovered.extend(_label(level, one) for one in own if id(one) not in taken)
                found.failures.extend(self._failures(level, name, edges))
        return found

    def _transitions(self, level: Level, name: str, edges: list[Edge], found: Plan) -> set[int]:
        taken: set[int] = set()
        for edge in edges:
            start = self._to(level, name, failing=edge.failing)
            if start is None or edge.transition is None:
                continue
            taken.add(id(edge.transition))
            found.transitions.append(
                self._case(_label(level, edge.transition), (*start, *edge.leave), level, edge.target)
            )
        return taken

    def _case(self, name: str, events: Events, level: Level, target: str) -> Case:
        """Go on from a target to the end of the run."""
        entered = level.enter(target)
        rest = None if entered is None else self._home(level, target)
        if entered is None or rest is None:
            return case_of(name, (*events, state((*level.path, target))), open=True)
        return case_of(name, (*events, *entered, *rest))

    def _to(self, level: Level, name: str, *, failing: Events | None = None) -> Events | None:
        """From the start of the run to a state, ready to decide (or with a failure in it)."""
        outside: Events | None = ()
        if level.parent is not None:
            outside = self._into(level)
        if outside is None:
            return None
        if name == START:
            return (*outside, *level.start)
        way = (level.ways if failing is None else level.before).get(name)
        if way is None:
            return None
        return (*outside, *level.start, *way, *(failing or ()))

    def _into(self, level: Level) -> Events | None:
        """From the start of the run to the initial pseudo state of a composite."""
        assert level.parent is not None
        parent, name = level.parent, level.composite
        before = parent.before.get(name)
        around = () if parent.parent is None else self._into(parent)
        if before is None or around is None:
            return None
        entry = calls(parent.machine.states[name].entry)
        return (*around, *parent.start, *before, state((*parent.path, name)), *entry)

    def _home(self, level: Level, name: str) -> Events | None:
        """From a state that is ready to decide to the end of the run."""
        way = level.homeward.get(name)
        if way is None or level.parent is None:
            return way
        rest = self._home(level.parent, level.composite)
        return None if rest is None else (*way, *rest)

    # -- failures ------------------------------------------------------------------------------------------------------

    def _failures(self, level: Level, name: str, edges: list[Edge]) -> Iterator[Case]:
        if name == START:
            return
        one = level.machine.states[name]
        before = self._to(level, name, failing=())
        if before is None:
            return
        here = (*before, state((*level.path, name)))
        acted: Events = here
        inside = () if name in level.inner else one.do
        for place, action in enumerate((*one.entry, *inside)):
            where = "entry" if place < len(one.entry) else "do"
            events = (*acted, fail(action))
            yield self._after(f"{level.label(name)}: {where} {action.key} fails", events, level, one)
            acted = (*acted, *calls((action,)))
        for edge in edges:
            if edge.transition is not None and edge.transition.actions and edge.failing is None:
                yield from self._failing_transition(level, one, edge)

    def _after(self, name: str, events: Events, level: Level, one: State) -> Case:
        """What follows an action of a state that failed."""
        caught = self._caught(events, level, one)
        if caught is not None:
            events, level, target = caught
            return self._case(name, events, level, target)
        edge = _error_guarded(level.edges[one.name])
        if edge is None:
            return case_of(name, events, open=True)
        return self._case(name, (*events, *edge.leave), level, edge.target)

    def _caught(self, events: Events, level: Level | None, one: State | None) -> tuple[Events, Level, str] | None:
        """The nearest error transition, outwards, with the exits on the way and its action."""
        asked: Events = ()
        left: Events = ()
        while level is not None and one is not None:
            left = (*left, *calls(one.exit))
            for transition in one.transitions:
                if transition.error is not None and matches(transition.error.names, INJECTED):
                    asked = (*asked, *answers(transition.guard, True))
                    return (*events, *asked, *left, *calls(transition.actions)), level, transition.target
            one = level.parent.machine.states[level.composite] if level.parent is not None else None
            level = level.parent
        return None

    def _failing_transition(self, level: Level, one: State, edge: Edge) -> Iterator[Case]:
        start = self._to(level, one.name)
        if start is None or edge.transition is None:
            return
        done = len(edge.leave) - len(edge.transition.actions)
        action = edge.transition.actions[0]
        events = (*start, *edge.leave[:done], fail(action))
        name = f"{_label(level, edge.transition)}: {action.key} fails"
        caught = self._caught(events, level, one)
        if caught is None:
            yield self._case(name, events, level, FINAL)
            return
        events, outer, target = caught
        again = len(calls(one.exit))
        if again:
            events = _without_second_exit(events, len((*start, *edge.leave[:done])) + 1, one)
        yield self._case(name, events, outer, target)


def _without_second_exit(events: Events, place: int, one: State) -> Events:
    """A state is left once: the exits in front of a failed transition action are not repeated."""
    rest = list(events[place:])
    for action in one.exit:
        rest.remove(Event("action", action.key))
    return (*events[:place], *rest)


def _error_guarded(edges: list[Edge]) -> Edge | None:
    """Where a state leads after a failure that is only stored: by a guard that looks at errors, else by default."""
    plain = [
        edge for edge in edges if edge.failing is None and (edge.transition is None or edge.transition.error is None)
    ]
    for edge in plain:
        guard = None if edge.transition is None else edge.transition.guard
        if isinstance(guard, Call) and guard.name == "IsError":
            return edge
    return next((edge for edge in reversed(plain) if edge.transition is None or edge.transition.is_default), None) or (
        plain[0] if plain else None
    )


def _label(level: Level, one: Transition) -> str:
    parts = [f"{level.label(one.source)} to {one.target}"]
    if one.error is not None:
        parts.append("error" + (f"({', '.join(one.error.names)})" if one.error.names else ""))
    if one.guard is not None:
        parts.append(f"[{guard_text(one.guard)}]" if one.error is not None else guard_text(one.guard))
    return parts[0] if len(parts) == 1 else f"{parts[0]}: {' '.join(parts[1:])}"
