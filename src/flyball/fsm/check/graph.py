"""The graph of one level: can it begin, can every state be reached and left, can it end?

A transition that was refused for crossing a border says that there is more than the graph shows. Its source is no dead
end, and a level where such a source can be reached is not blamed for what lies behind it.
"""

from __future__ import annotations

from flyball.fsm.model import FINAL, INITIAL, Machine, Position, State
from flyball.fsm.parse.codes import Report

__all__ = ["judge_graph"]


def judge_graph(level: Machine, name: str, at: Position, report: Report) -> None:
    """Judge one level; `name` is its composite's, or `[*]` for the outermost one."""
    leaving = {one.source for one in level.refused}
    if not level.initial and INITIAL not in leaving:
        _no_initial(name, at, report)
        return
    reached = _reachable(level)
    doubtful = bool(leaving & {INITIAL, *reached})
    dead = [state for state in level.states.values() if state.name in reached and _is_dead_end(state, leaving)]
    for state in dead:
        _dead_end(state, report)
    ends = FINAL in reached or any(state.end for state in level.states.values() if state.name in reached)
    if not ends and not dead and not doubtful:
        _no_final(name, at, report)
    if not doubtful:
        for state in level.states.values():
            if state.name not in reached:
                _unreachable(state, name, report)
    for cycle in _cycles(level):
        _cycle(cycle, report)


def _reachable(level: Machine) -> set[str]:
    """The names that a way from the initial pseudo state leads to; `[*]` among them if the level can end."""
    reached: set[str] = set()
    waiting = [one.target for one in level.initial]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        state = level.states.get(name)
        if state is not None:
            waiting.extend(one.target for one in state.transitions)
    return reached


def _is_dead_end(state: State, leaving: set[str]) -> bool:
    return not state.transitions and not state.end and state.name not in leaving


def _cycles(level: Machine) -> list[list[State]]:
    """The cycles of states that have nothing but a default, each once, beginning with the state declared first."""
    following = {
        state.name: default.target
        for state in level.states.values()
        if (default := state.default) is not None and all(one.is_default for one in state.transitions)
    }
    found: list[list[State]] = []
    done: set[str] = set()
    for start in following:
        way: dict[str, None] = {}
        name = start
        while name in following and name not in done and name not in way:
            way[name] = None
            name = following[name]
        if name in way:
            names = list(way)
            cycle = set(names[names.index(name) :])
            found.append([state for state in level.states.values() if state.name in cycle])
        done.update(way)
    return found


def _no_initial(name: str, at: Position, report: Report) -> None:
    where = "the machine" if name == INITIAL else f"the composite {name}"
    report.add(
        "E-no-initial",
        at,
        f"{where} has no initial transition",
        subject=name,
        remedy="add `[*] --> X` for its first state",
    )


def _no_final(name: str, at: Position, report: Report) -> None:
    where = "the machine" if name == INITIAL else f"the composite {name}"
    report.add(
        "E-no-final",
        at,
        f"{where} never ends: no way leads to `[*]`",
        subject=name,
        remedy="add `X --> [*]` for its last state",
    )


def _dead_end(state: State, report: Report) -> None:
    report.add(
        "E-dead-end",
        state.position,
        f"no transition leaves {state.name}",
        subject=state.name,
        remedy=f"add `{state.name} --> [*]`, or declare `state {state.name} <<end>>`",
        lines=state.lines,
    )


def _unreachable(state: State, name: str, report: Report) -> None:
    where = "" if name == INITIAL else f" inside {name}"
    report.add(
        "W-unreachable",
        state.position,
        f"no way leads to {state.name}{where}",
        subject=state.name,
        remedy="add a transition to it, or delete it",
        lines=state.lines,
    )


def _cycle(cycle: list[State], report: Report) -> None:
    names = " --> ".join(state.name for state in (*cycle, cycle[0]))
    first = cycle[0]
    report.add(
        "W-cycle-without-exit",
        first.position,
        f"{names}: no state of this cycle has a guard, it is never left",
        subject=first.name,
        remedy="give one of them a guarded transition out of the cycle",
        lines=first.lines,
    )
