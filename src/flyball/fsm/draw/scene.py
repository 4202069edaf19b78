"""A diagram as shapes with places: composites are laid out first and stand as boxes in the level around them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from flyball.fsm.draw.layered import Box, Link, layout
from flyball.fsm.draw.measure import shortened, text_width, wrapped
from flyball.fsm.draw.overlay import Overlay
from flyball.fsm.draw.words import Word, label_words, state_words
from flyball.fsm.model import FINAL, INITIAL, Machine, State, Transition

__all__ = ["ACTION", "LABEL", "LINE", "NAME", "Arrow", "Figure", "Scene", "scene"]

NAME, ACTION, LABEL = 13.0, 11.5, 11.0
"""Sizes of text."""
LINE = 1.32
"""The height of a line of text, in its size."""
_INITIAL, _FINAL = "\x00initial", "\x00final"
_PAD = 18.0
_LOOP = 26.0

Kind = Literal["choice", "composite", "end", "final", "initial", "state"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A state or pseudo state: its middle, its size and what it says."""

    kind: Kind
    x: float
    y: float
    width: float
    height: float
    name: str = ""
    lines: tuple[str, ...] = ()
    current: bool = False
    poll: bool = False
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Arrow:
    """A transition: the points where it is vertical, or four points of a loop, and its label."""

    points: tuple[tuple[float, float], ...]
    loop: bool = False
    words: tuple[Word, ...] = ()
    label: tuple[float, float] = (0.0, 0.0)
    kind: Literal["default", "error", "guard"] = "default"
    taken: bool | None = None
    """Whether a trace took it; None without a trace."""


@dataclass(slots=True)
class Scene:
    """Everything that is drawn, composites before what they hold; places begin at 0."""

    width: float = 0.0
    height: float = 0.0
    figures: list[Figure] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)

    def place(self, other: Scene, x: float, y: float) -> None:
        """Take over the shapes of another scene, moved."""
        self.figures += [replace(one, x=one.x + x, y=one.y + y) for one in other.figures]
        for one in other.arrows:
            points = tuple((px + x, py + y) for px, py in one.points)
            self.arrows.append(replace(one, points=points, label=(one.label[0] + x, one.label[1] + y)))


class _Shape(NamedTuple):
    """A figure that has no place yet; `wide` says how far what is beside it reaches to the right."""

    figure: Figure
    inner: Scene | None
    header: float
    wide: float


def scene(machine: Machine, overlay: Overlay | None = None) -> Scene:
    """The shapes of a machine."""
    return _Level(machine, "", overlay or Overlay()).scene()


class _Level:
    def __init__(self, machine: Machine, path: str, overlay: Overlay) -> None:
        self._machine = machine
        self._path = path
        self._overlay = overlay
        self._words: dict[int, tuple[Word, ...]] = {}
        self._counts: dict[int, int | None] = {}

    def scene(self) -> Scene:
        transitions = self._transitions()
        shapes = {_INITIAL: self._initial()} if self._machine.initial or self._machine.initial_do else {}
        for name, state in self._machine.states.items():
            shapes[name] = self._state(state)
        if any(one.target == FINAL for one in transitions):
            shapes[_FINAL] = _Shape(Figure("final", 0, 0, 20, 20), None, 0, 0)
        links = [one for one in transitions if not _is_loop(one)]
        found = layout(
            [Box(key, one.figure.width / 2, one.figure.height, one.wide) for key, one in shapes.items()],
            [self._link(one) for one in links],
        )
        whole = Scene(found.width, found.height)
        for key, shape in shapes.items():
            self._put(whole, shape, *found.boxes[key])
        for transition, route in zip(links, found.routes, strict=True):
            whole.arrows.append(self._arrow(transition, tuple(route.points), route.label or (0.0, 0.0)))
        for name in self._machine.states:
            self._loops(whole, name, shapes[name], *found.boxes[name])
        return whole

    def _transitions(self) -> list[Transition]:
        """All transitions of the level, with their words and counts worked out."""
        found: list[Transition] = []
        for siblings in (self._machine.initial, *(state.transitions for state in self._machine.states.values())):
            for one in siblings:
                count = self._overlay.count(self._path, one)
                shared = sum(other.target == one.target for other in siblings) > 1
                self._counts[id(one)] = count
                self._words[id(one)] = _label(one, count, shared=shared)
                found.append(one)
        return found

    # ------------------------------------------------------------------------------------------ figures

    def _initial(self) -> _Shape:
        lines = tuple(f"do / {call.key}" for call in self._machine.initial_do)
        wide = max((text_width(line, ACTION) for line in lines), default=-8.0) + 8.0
        return _Shape(Figure("initial", 0, 0, 16, max(16.0, len(lines) * ACTION * LINE), lines=lines), None, 0, wide)

    def _state(self, state: State) -> _Shape:
        path = f"{self._path}/{state.name}" if self._path else state.name
        wide = self._loop_width(state)
        base = Figure(
            "state", 0, 0, 0, 0, state.name, poll=state.poll, hint=state.documentation,
            current=self._overlay.is_current(path),
        )  # fmt: skip
        if state.inner is not None:
            return self._composite(state, state.inner, path, base, wide)
        if state.end or state.choice:
            kind: Kind = "end" if state.end else "choice"
            figure = replace(base, kind=kind, width=22.0, height=22.0)
            return _Shape(figure, None, 0, max(wide, text_width(state.name, LABEL) + 12))
        lines = tuple(shortened(line, 44) for line in state_words(state))
        width = max([text_width(state.name, NAME, bold=True), *(text_width(line, ACTION) for line in lines)]) + 26
        height = NAME * LINE + 14 + (len(lines) * ACTION * LINE + 7 if lines else 0)
        return _Shape(replace(base, width=max(width, 64.0), height=height, lines=lines), None, 0, wide)

    def _composite(self, state: State, machine: Machine, path: str, base: Figure, wide: float) -> _Shape:
        inner = _Level(machine, path, self._overlay).scene()
        lines = tuple(shortened(line, 60) for line in state_words(state))
        header = NAME * LINE + 12 + (len(lines) * ACTION * LINE + 6 if lines else 0)
        least = max([text_width(state.name, NAME, bold=True), *(text_width(line, ACTION) for line in lines)]) + 30
        width = max(inner.width + 2 * _PAD, least)
        figure = replace(base, kind="composite", width=width, height=inner.height + header + 2 * _PAD, lines=lines)
        return _Shape(figure, inner, header, wide)

    def _put(self, whole: Scene, shape: _Shape, x: float, y: float) -> None:
        whole.figures.append(replace(shape.figure, x=x, y=y))
        if shape.inner is not None:
            left = x - shape.inner.width / 2
            whole.place(shape.inner, left, y - shape.figure.height / 2 + shape.header + _PAD)

    # ------------------------------------------------------------------------------------------ arrows

    def _link(self, transition: Transition) -> Link:
        words = self._words[id(transition)]
        source = _INITIAL if transition.source == INITIAL else transition.source
        target = _FINAL if transition.target == FINAL else transition.target
        bundle = "error" if transition.error is not None else "other"
        weight = 4.0 if transition.is_default else 1.0
        height = len(words) * LABEL * LINE + (6 if words else 0)
        return Link(source, target, _words_width(words), height, bundle, weight)

    def _arrow(
        self,
        one: Transition,
        points: tuple[tuple[float, float], ...],
        label: tuple[float, float],
        *,
        loop: bool = False,
    ) -> Arrow:
        kind: Literal["default", "error", "guard"] = "guard"
        if one.error is not None:
            kind = "error"
        elif one.guard is None:
            kind = "default"
        count = self._counts[id(one)]
        return Arrow(points, loop, self._words[id(one)], label, kind, None if count is None else count > 0)

    def _loop_width(self, state: State) -> float:
        loops = [one for one in state.transitions if _is_loop(one)]
        return max((_words_width(self._words[id(one)]) + _LOOP + 12 for one in loops), default=0.0)

    def _loops(self, whole: Scene, name: str, shape: _Shape, x: float, y: float) -> None:
        """Loops leave a state on its right side and come back there, one below the other."""
        loops = [one for one in self._machine.states[name].transitions if _is_loop(one)]
        step = min(20.0, (shape.figure.height - 8) / max(len(loops), 1))
        right = x + shape.figure.width / 2
        for index, one in enumerate(loops):
            middle = y + (index - (len(loops) - 1) / 2) * step
            low, high = middle - step * 0.36, middle + step * 0.36
            points = ((right, low), (right + _LOOP, low - 5), (right + _LOOP, high + 5), (right, high))
            whole.arrows.append(self._arrow(one, points, (right + _LOOP, middle), loop=True))


def _is_loop(transition: Transition) -> bool:
    return transition.source == transition.target and transition.source != INITIAL


def _label(transition: Transition, count: int | None, *, shared: bool) -> tuple[Word, ...]:
    """The words beside a transition; a count that several transitions share says so."""
    words = [
        Word(shortened(line, 40), word.style) for word in label_words(transition) for line in wrapped(word.text, 26)
    ]
    if count:
        words.append(Word(f"\u00d7{count} together" if shared else f"\u00d7{count}", "hits"))
    return tuple(words)


def _words_width(words: tuple[Word, ...]) -> float:
    return max((text_width(word.text, LABEL, bold=word.style == "hits") for word in words), default=0.0)
