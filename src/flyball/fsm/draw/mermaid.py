"""A machine as a Mermaid state diagram, and a Mermaid state diagram as PlantUML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from flyball.fsm.draw.words import call_text, heading, label_words, state_words
from flyball.fsm.model import FINAL, INITIAL, Diagram, Machine, State, Transition

__all__ = ["from_mermaid", "is_mermaid", "mermaid_sources", "to_mermaid"]

_STEP = "    "
_OURS = "%% flyball:"
"""Begins a comment that says what Mermaid has no words for."""
_SUFFIX = "state"
_RESERVED: Final = frozenset(
    {"as", "class", "classDef", "click", "default", "direction", "end", "note", "state", "style"}
)


def to_mermaid(diagram: Diagram) -> str:
    """The diagram in Mermaid's language; a state shows its actions below its name."""
    title = heading(diagram).replace('"', "'")
    writer = _Writer(diagram.machine)
    lines = ["---", f'title: "{title}"', "---", "stateDiagram-v2", *writer.level(diagram.machine, (), _STEP)]
    return "\n".join(lines) + "\n"


class _Writer:
    """Mermaid has one space of names for all levels, so a name that stands in several gets the path as its id."""

    def __init__(self, machine: Machine) -> None:
        names = [state.name for _, state in machine.walk()]
        self._several = {name for name in names if names.count(name) > 1} | (_RESERVED & set(names))

    def level(self, machine: Machine, path: tuple[str, ...], indent: str) -> Iterator[str]:
        for call in machine.initial_do:
            yield f"{indent}{_OURS} [*]: do / {call_text(call)}"
        for one in machine.initial:
            yield f"{indent}{self._arrow(one, path)}"
        for state in machine.states.values():
            yield from self._state(state, path, indent)

    def _state(self, state: State, path: tuple[str, ...], indent: str) -> Iterator[str]:
        name = self._id(state.name, path)
        for mark, said in (("choice", state.choice), ("end", state.end), ("poll", state.poll)):
            if said:
                yield f"{indent}{'' if mark == 'choice' else f'{_OURS} '}state {name} <<{mark}>>"
        words = list(state_words(state))
        if name != state.name:
            yield f'{indent}state "{state.name}" as {name}'
        elif words:
            yield f"{indent}{name}: {_text(name)}"
        for word in words:
            yield f"{indent}{name}: {_text(word)}"
        if state.inner is not None:
            yield f"{indent}state {name} {{"
            yield from self.level(state.inner, (*path, state.name), indent + _STEP)
            yield f"{indent}}}"
        for one in state.transitions:
            yield f"{indent}{self._arrow(one, path)}"
        if state.documentation:
            yield f"{indent}note right of {name}"
            for line in state.documentation.split("\n"):
                yield f"{indent}{_STEP}{_text(line)}"
            yield f"{indent}end note"

    def _arrow(self, one: Transition, path: tuple[str, ...]) -> str:
        source = INITIAL if one.source == INITIAL else self._id(one.source, path)
        target = FINAL if one.target == FINAL else self._id(one.target, path)
        label = " ".join(word.text for word in label_words(one))
        return f"{source} --> {target}" + (f": {_text(label)}" if label else "")

    def _id(self, name: str, path: tuple[str, ...]) -> str:
        return "_".join((*path, name, _SUFFIX)) if name in self._several else name


def _text(text: str) -> str:
    """A text in which nothing is Mermaid's."""
    return re.sub("[#;:]", lambda match: f"#{ord(match[0])};", text)


# ---------------------------------------------------------------------------------------------- from Mermaid

_HEADER: Final = re.compile(r"\s*stateDiagram(?:-v2)?\s*", re.IGNORECASE)
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})\s*mermaid\b.*", re.IGNORECASE)
_TITLE: Final = re.compile(r"\s*(?:title|accTitle)\s*:\s*(.*?)\s*", re.IGNORECASE)
_ENTITY: Final = re.compile(r"#(\d+|quot|amp|lt|gt);")
_ENTITIES: Final = {"quot": '"', "amp": "&", "lt": "<", "gt": ">"}
_STYLE: Final = re.compile(r"\s*(?:classDef|class|style|click|accDescr|hide empty description)\b.*")
_DIRECTION: Final = re.compile(r"\s*direction\s+(\w+)\s*")
_CLASS: Final = re.compile(r":::[\w-]+")
_NAMED: Final = re.compile(r"\s*([^\s:\-{]+)\s*:\s*(.*?)\s*")
_RENAMED: Final = re.compile(r'state "(\w+)" as (\w+)\n')
_BREAK: Final = re.compile(r"<br\s*/?>")


def is_mermaid(text: str) -> bool:
    """Whether a text is one Mermaid state diagram."""
    lines = [line for line in _without_front(text.split("\n"))[0] if line.strip() and not line.strip().startswith("%%")]
    return bool(lines) and _HEADER.fullmatch(lines[0]) is not None


def mermaid_sources(text: str) -> list[str]:
    """The Mermaid state diagrams in the fences of a Markdown text."""
    found: list[str] = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        fence = _FENCE.fullmatch(lines[at])
        at += 1
        if fence is None:
            continue
        end = next((index for index in range(at, len(lines)) if lines[index].strip() == fence[1]), len(lines))
        source = "\n".join(lines[at:end])
        if is_mermaid(source):
            found.append(source)
        at = end + 1
    return found


def from_mermaid(text: str, title: str = "") -> str:
    """A Mermaid state diagram in the language of this package; `title` is taken when it has none.

    What has no meaning there (classes, styles) becomes a comment. Labels are read as guards and actions, so free text
    on an arrow is reported by the checks of the result.
    """
    lines, found = _without_front(_own_names(text.replace("\r\n", "\n")).split("\n"))
    body: list[str] = []
    depth = 0
    for line in lines:
        named = _TITLE.fullmatch(line)
        if named and line.strip().lower().startswith("acctitle"):
            found = found or named[1]
            continue
        body.extend(_translated(line, top=depth == 0))
        depth += line.strip().endswith("{") - (line.strip() == "}")
    return "\n".join(["@startuml", "", f"title {found or title}", *_trimmed(body), "", "@enduml"]) + "\n"


def _own_names(text: str) -> str:
    """The text with the names that `to_mermaid` had to make longer as they were."""
    for name, key in _RENAMED.findall(text):
        if key.endswith(f"{name}_{_SUFFIX}"):
            text = text.replace(f'state "{name}" as {key}\n', "\n")
            text = re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", name, text)
    return text


def _without_front(lines: list[str]) -> tuple[list[str], str]:
    """The lines behind the front matter, and the title in it."""
    start = next((index for index, line in enumerate(lines) if line.strip()), len(lines))
    if start < len(lines) and lines[start].strip() == "---":
        end = next((index for index in range(start + 1, len(lines)) if lines[index].strip() == "---"), None)
        if end is not None:
            titles = [match[1].strip("\"'") for match in map(_TITLE.fullmatch, lines[start:end]) if match]
            return lines[end + 1 :], titles[0] if titles else ""
    return lines, ""


def _translated(line: str, *, top: bool) -> Iterator[str]:
    if _HEADER.fullmatch(line):
        return
    if line.strip().startswith(_OURS):
        yield line.strip().removeprefix(_OURS).strip()
    elif line.strip().startswith("%%"):
        yield f"' {line.strip().lstrip('%').strip()}"
    elif direction := _DIRECTION.fullmatch(line):
        if top and direction[1] in ("LR", "RL"):
            yield "left to right direction"
    elif _STYLE.fullmatch(line):
        yield f"' {line.strip()}"
    else:
        line = _decoded(_BREAK.sub(r"\\n", _CLASS.sub("", line)))
        named = _NAMED.fullmatch(line)
        if named is None or named[1] != named[2]:
            yield line


def _decoded(text: str) -> str:
    def char(match: re.Match[str]) -> str:
        code = match[1]
        return _ENTITIES[code] if code in _ENTITIES else chr(int(code)) if int(code) < 0x110000 else match[0]

    return _ENTITY.sub(char, text)


def _trimmed(lines: list[str]) -> list[str]:
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return lines
