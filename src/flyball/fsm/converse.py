"""A simulation that asks a person: the value of each guard, and (if wanted) whether each action fails.

Going back replays all answers but the last on a fresh machine, which is right because nothing else decides a run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flyball.fsm import model
from flyball.fsm.run.compiled import Edge
from flyball.fsm.run.machine import Machine, OnNoTransition
from flyball.fsm.run.state import AppContext, AppState
from flyball.fsm.simulate import SimulatedFailure, Simulation, result_of, stage

__all__ = ["Conversation", "converse"]

_YES, _NO = {"y", "yes", "true", "1"}, {"", "n", "no", "false", "0"}
_HELP = "y: true, n or Enter: false, b: take the last answer back, p: the path so far, q: stop"


@dataclass(frozen=True, slots=True)
class Conversation:
    """How to talk: `ask` returns the answer to a question, or None at the end of the input."""

    ask: Callable[[str], str | None]
    tell: Callable[[str], None]
    failing: bool = False
    """Whether to ask for each action if it fails."""


class _Leave(BaseException):
    """Out of the run at once: no error of the machine."""


class _Quit(_Leave):
    """The person has had enough."""


class _Back(_Leave):
    """The last answer is taken back."""


def converse(
    diagram: model.Diagram, talk: Conversation, *, policy: OnNoTransition = "error", step_limit: int | None = 1000
) -> Simulation:
    """Run a diagram by a person's answers; what it did until its end, or until the person stopped (`stop` is then
    ``quit``).
    """
    given: list[bool] = []
    while True:
        person = _Person(talk, given)
        player = stage(diagram, person, policy=policy, step_limit=step_limit, on_transition=person.moved)
        person.player = player
        try:
            player.settle_sync()
        except _Back:
            del given[-1:]
            continue
        except _Quit:
            seen = result_of(player)
            return Simulation(seen.path, seen.actions, seen.checks, seen.error, "quit")
        return result_of(player)


class _Person:
    """The answers of a person, the old ones first."""

    def __init__(self, talk: Conversation, given: list[bool]) -> None:
        self.talk = talk
        self.given = given
        self.used = 0
        self.player: Machine[AppContext, AppState] | None = None

    def guard(self, name: str, params: tuple[str, ...], state: str) -> bool:
        return self.decide(f"{state}: {model.Call(name, params).key}? [y/N] ")

    def action(self, name: str, params: tuple[str, ...], state: str) -> Exception | None:
        use = model.Call(name, params).key
        if self.talk.failing:
            return SimulatedFailure(name) if self.decide(f"{state}: does {use} fail? [y/N] ") else None
        self.say(f"  do {use}")
        return None

    def moved(self, edge: Edge) -> None:
        guard = f"  [{edge.guard}]" if edge.guard else ""
        self.say(f"{edge.source.path} -> {edge.target.path}{guard}")

    def say(self, line: str) -> None:
        if self.used >= len(self.given):
            self.talk.tell(line)

    def decide(self, question: str) -> bool:
        if self.used < len(self.given):
            self.used += 1
            return self.given[self.used - 1]
        value = self.answer(question)
        self.given.append(value)
        self.used += 1
        return value

    def answer(self, question: str) -> bool:
        while True:
            line = self.talk.ask(question)
            word = None if line is None else line.strip().lower()
            if word is None or word in ("q", "quit"):
                raise _Quit
            if word in ("b", "back"):
                raise _Back
            if word in _YES or word in _NO:
                return word in _YES
            self.talk.tell(self.path() if word in ("p", "path") else _HELP)

    def path(self) -> str:
        states = self.player.trace.states if self.player is not None else ()
        return f"path: {', '.join(states) or '-'}"
