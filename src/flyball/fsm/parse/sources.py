"""Where the diagrams of a file are: fences of Markdown, blocks of `@startuml`, or the whole text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from flyball.fsm.model import Position
from flyball.fsm.parse.codes import Report

__all__ = ["Chunk", "find_chunks", "is_markdown"]

_FENCE: Final = re.compile(r" {0,3}(`{3,}+|~{3,}+)\s*([^\s`{,]*)([^`]*)")
_TILDES: Final = re.compile(r" {0,3}(~{3,}+)\s*([^\s{,]*)(.*)")
_START: Final = re.compile(r"\s*@startuml\b\s*(.*)", re.IGNORECASE)
_NAMED: Final = re.compile(r"\(\s*id\s*=\s*([^)]*)\)")
_END: Final = re.compile(r"\s*@enduml\b.*", re.IGNORECASE)
_NAME_ATTRIBUTE: Final = re.compile(r"\b(?:name|title|id)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s,}]+))")
_LANGUAGES: Final = ("plantuml", "puml", "uml")
_STRAY: Final = re.compile(
    r"\s*(?:\[\*\]|[^\W\d]\w*+)\s*-++(?:\[[^\]]*+\])?[a-z]*-*+>\s*(?:\[\*\]|[^\W\d]\w*+)\s*(?::.*)?"
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """The text of one diagram: `first` is the number of its first line, `name` what the file calls it."""

    lines: Sequence[str]
    first: int
    name: str = ""
    attributes: str = ""

    @property
    def position(self) -> Position:
        """Where the diagram begins."""
        return Position(self.first)


def is_markdown(file: str) -> bool:
    """Whether a file is Markdown by its name."""
    return file.lower().endswith((".md", ".markdown"))


def find_chunks(lines: Sequence[str], file: str, report: Report) -> list[Chunk]:
    """The diagrams of a file in their order."""
    if not is_markdown(file):
        return _blocks(Chunk(lines, 1), report)
    found: list[Chunk] = []
    for fence in _fences(lines, report):
        found.extend(_blocks(fence, report))
    return found


def _fences(lines: Sequence[str], report: Report) -> list[Chunk]:
    """The diagrams in the fences of Markdown; fences of other languages are passed over whole."""
    found: list[Chunk] = []
    at = 0
    while at < len(lines):
        opened = _FENCE.fullmatch(lines[at]) or _TILDES.fullmatch(lines[at])
        at += 1
        if opened is None:
            continue
        mark, language, rest = opened.groups()
        end = _closing(lines, at, mark)
        if language.lower() in _LANGUAGES:
            named = _NAME_ATTRIBUTE.search(rest)
            name = next((part for part in named.groups() if part), "") if named else ""
            found.append(Chunk(lines[at:end], min(at + 1, len(lines)), name, rest.strip()))
            if end == len(lines):
                report.add(
                    "E-unclosed-block",
                    Position(at),
                    "the code block that begins here never ends",
                    subject=language.lower(),
                    remedy=f"end it with a line `{mark}`",
                )
        at = end + 1
    return found


def _closing(lines: Sequence[str], at: int, mark: str) -> int:
    """The index of the line that closes a fence, or the number of lines."""
    closing = re.compile(rf" {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}\s*")
    return next((index for index in range(at, len(lines)) if closing.fullmatch(lines[index])), len(lines))


def _blocks(whole: Chunk, report: Report) -> list[Chunk]:
    """The `@startuml` blocks of a text, each a diagram of its own; the whole text when there is none."""
    starts = [index for index, line in enumerate(whole.lines) if _START.fullmatch(line)]
    if not starts:
        return [whole]
    found: list[Chunk] = []
    outside = list(range(starts[0]))
    for start, limit in zip(starts, [*starts[1:], len(whole.lines)], strict=True):
        ends = (index + 1 for index in range(start, limit) if _END.fullmatch(whole.lines[index]))
        end = next(ends, limit)
        outside.extend(range(end, limit))
        match = _START.fullmatch(whole.lines[start])
        name = _block_name(match[1] if match else "") or whole.name
        found.append(Chunk(whole.lines[start:end], whole.first + start, name, whole.attributes))
    for index in outside:
        _stray(whole, index, report)
    return found


def _block_name(text: str) -> str:
    named = _NAMED.fullmatch(text.strip())
    return (named[1] if named else text).strip().strip('"')


def _stray(whole: Chunk, index: int, report: Report) -> None:
    """Warn of a transition outside of every diagram."""
    line = whole.lines[index]
    if _STRAY.fullmatch(line):
        number = whole.first + index
        report.add(
            "W-unknown-line",
            Position(number),
            "this transition stands outside of `@startuml` and `@enduml`; it is ignored",
            subject=str(number),
            remedy="move it into the diagram",
        )
