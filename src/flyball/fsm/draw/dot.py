"""A machine in the language of Graphviz, for those who have it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flyball.fsm.draw.overlay import Overlay
from flyball.fsm.draw.words import call_text, heading, label_words, state_words
from flyball.fsm.model import FINAL, INITIAL, Diagram, Machine, State, Transition

__all__ = ["to_dot"]

_STEP = "  "


def to_dot(diagram: Diagram, overlay: Overlay | None = None) -> str:
    """The diagram as a digraph; composites are clusters."""
    title = _quoted(heading(diagram))
    lines = [
        f"digraph {title} {{",
        f"{_STEP}label={title} labelloc=t fontsize=18 compound=true",
        f'{_STEP}node [shape=box style="rounded,filled" fillcolor="#eef4fb" color="#4a6d94" fontname="Helvetica"]',
        f'{_STEP}edge [color="#5b6f85" fontname="Helvetica" fontsize=10]',
        *_Writer(overlay or Overlay()).level(diagram.machine, "", _STEP),
        "}",
    ]
    return "\n".join(lines) + "\n"


class _Writer:
    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay

    def level(self, machine: Machine, path: str, indent: str) -> Iterator[str]:
        """The nodes and edges of one level."""
        boot = "".join(f"do / {call_text(call)}\n" for call in machine.initial_do)
        label = f" xlabel={_quoted(boot)}" if boot else ""
        yield f'{indent}{_node(path, INITIAL)} [shape=circle label="" width=0.15 fillcolor="#35506e"{label}]'
        for state in machine.states.values():
            yield from self._state(state, path, indent)
        everything = [*machine.initial, *(one for state in machine.states.values() for one in state.transitions)]
        if any(one.target == FINAL for one in everything):
            yield f'{indent}{_node(path, "end")} [shape=doublecircle label="" width=0.12 fillcolor="#35506e"]'
        for one in everything:
            yield f"{indent}{self._edge(one, machine, path)}"

    def _state(self, state: State, path: str, indent: str) -> Iterator[str]:
        here = _join(path, state.name)
        words = [state.name, *state_words(state)]
        look = ' penwidth=2.5 color="#b7791f"' if self._overlay.is_current(here) else ""
        if state.inner is not None:
            yield f"{indent}subgraph {_quoted(f'cluster_{here}')} {{"
            yield f"{indent}{_STEP}label={_lined(words)} style=rounded labeljust=l{look}"
            yield from self.level(state.inner, here, indent + _STEP)
            yield f"{indent}}}"
        elif state.choice or state.end:
            shape = 'shape=diamond label=""' if state.choice else 'shape=doublecircle label="" width=0.12'
            yield f"{indent}{_node(path, state.name)} [{shape} xlabel={_quoted(state.name)}{look}]"
        else:
            style = ' style="rounded,filled,dashed"' if state.poll else ""
            yield f"{indent}{_node(path, state.name)} [label={_lined(words)}{style}{look}]"

    def _edge(self, one: Transition, machine: Machine, path: str) -> str:
        source, tail = self._end(one.source, machine, path, "ltail")
        target, head = self._end(one.target, machine, path, "lhead")
        if one.target == FINAL:
            target, head = _node(path, "end"), ""
        words = [word.text for word in label_words(one)]
        count = self._overlay.count(path, one)
        if count:
            words.append(f"\u00d7{count}")
        look = [f"label={_lined(words)}"] if words else []
        look += [part for part in (tail, head) if part]
        look += ["style=dashed"] if one.error is not None else ["penwidth=1.6"] if one.is_default else []
        return f"{source} -> {target}" + (f" [{' '.join(look)}]" if look else "")

    @staticmethod
    def _end(name: str, machine: Machine, path: str, side: str) -> tuple[str, str]:
        """The node of an end, and the cluster that an edge to a composite is cut at."""
        state = machine.states.get(name)
        if state is not None and state.inner is not None:
            here = _join(path, name)
            return _node(here, INITIAL), f"{side}={_quoted(f'cluster_{here}')}"
        return _node(path, name), ""


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _node(path: str, name: str) -> str:
    return _quoted(_join(path, name if name != "end" else "[end]"))


def _lined(words: Sequence[str]) -> str:
    return _quoted("\n".join(words))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
