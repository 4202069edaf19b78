"""A machine for a terminal: every state as a box with the ways out of it, in the order somebody meets them."""

from __future__ import annotations

from collections.abc import Iterator
from unicodedata import east_asian_width

from flyball.fsm.draw.overlay import Overlay
from flyball.fsm.draw.words import call_text, heading, label_words, state_words
from flyball.fsm.model import FINAL, Diagram, Machine, State, Transition

__all__ = ["to_plain"]

_END = "\u25c9"
_BEGIN = "\u25cf"
_HERE = "\u25b6"
_RULE = "\u2500"


def to_plain(diagram: Diagram, overlay: Overlay | None = None) -> str:
    """The diagram as text with line-drawing characters."""
    lines = [heading(diagram), ""]
    lines.extend(_level(diagram.machine, "", overlay or Overlay()))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _level(machine: Machine, path: str, overlay: Overlay) -> Iterator[str]:
    actions = "".join(f" {call_text(call)}" for call in machine.initial_do)
    yield f"{_BEGIN}{actions}"
    yield from _ways(machine.initial, path, overlay, "")
    for state in _met(machine):
        yield ""
        yield from _state(state, f"{path}/{state.name}" if path else state.name, path, overlay)


def _met(machine: Machine) -> list[State]:
    """The states in the order of a walk from the beginning, then those that no way leads to."""
    found: dict[str, State] = {}
    for start in (*(one.target for one in machine.initial), *machine.states):
        waiting = [start]
        while waiting:
            state = machine.states.get(waiting.pop())
            if state is not None and state.name not in found:
                found[state.name] = state
                waiting.extend(one.target for one in reversed(state.transitions))
    return list(found.values())


def _state(state: State, path: str, level: str, overlay: Overlay) -> Iterator[str]:
    marks = [word for word, said in (("choice", state.choice), ("end", state.end), ("poll", state.poll)) if said]
    name = f"{_HERE} {state.name}" if overlay.is_current(path) else state.name
    content = [" ".join([name, *(f"<<{mark}>>" for mark in marks)]), *state_words(state)]
    if state.inner is not None:
        content += ["", *_level(state.inner, path, overlay)]
    width = max(map(_cells, content))
    yield "\u250c" + _RULE * (width + 2) + "\u2510"
    for line in content:
        yield f"\u2502 {line}{' ' * (width - _cells(line))} \u2502"
    foot = "\u252c" if state.transitions else "\u2500"
    yield f"\u2514\u2500{foot}" + _RULE * width + "\u2518"
    yield from _ways(state.transitions, level, overlay, "  ")


def _ways(transitions: tuple[Transition, ...], level: str, overlay: Overlay, indent: str) -> Iterator[str]:
    for index, one in enumerate(transitions):
        words = [word.text for word in label_words(one)]
        count = overlay.count(level, one)
        if count is not None:
            words.append(f"(\u00d7{count})")
        corner = "\u2514" if index == len(transitions) - 1 else "\u251c"
        label = f" {' '.join(words)} " if words else ""
        target = _END if one.target == FINAL else one.target
        yield f"{indent}{corner}\u2500{label}\u2500> {target}"


def _cells(text: str) -> int:
    """How many cells a text takes in a terminal."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)
