"""The front of the parser: a text with all its diagrams, and the choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flyball.errors import FlyballError
from flyball.fsm.model import Diagram, Finding, Position
from flyball.fsm.parse.builder import build
from flyball.fsm.parse.codes import Report, silenced
from flyball.fsm.parse.lines import split_lines
from flyball.fsm.parse.reader import read
from flyball.fsm.parse.sources import find_chunks
from flyball.fsm.parse.statements import Statement

__all__ = ["DiagramError", "Document", "ParseResult", "load", "parse_text"]


class DiagramError(FlyballError):
    """A file holds no diagram, not the one asked for, or one with errors; `findings` are those errors."""

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


@dataclass(frozen=True, slots=True)
class Document:
    """One diagram with its lines and what the parser has to say about it."""

    diagram: Diagram
    statements: tuple[Statement, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class ParseResult:
    """All diagrams of a text. `findings` holds those of the diagrams too."""

    documents: tuple[Document, ...]
    findings: tuple[Finding, ...]
    lines: tuple[str, ...]
    file: str = ""

    @property
    def diagrams(self) -> tuple[Diagram, ...]:
        """The diagrams in the order of the text."""
        return tuple(one.diagram for one in self.documents)

    def select(self, which: str | int | None = None) -> ParseResult:
        """The diagrams asked for, with their findings: by name, title or index (from 1), or `all`.

        Without a choice it is the first, and a warning names each of the others.
        """
        if which == "all" or (which is None and len(self.documents) < 2):
            return self
        chosen = [self.documents[0]] if which is None else [self._find(str(which))]
        others = [one for one in self.documents if one not in chosen]
        of_others = {id(finding) for one in others for finding in one.findings}
        findings = [one for one in self.findings if id(one) not in of_others]
        if which is None:
            findings += self._unused(others)
        findings.sort(key=lambda one: (one.line, one.column))
        return ParseResult(tuple(chosen), tuple(findings), self.lines, self.file)

    def split(self) -> list[ParseResult]:
        """One result for each diagram; what is said of the file as a whole stays with the first."""
        of_diagrams = {id(finding) for one in self.documents for finding in one.findings}
        parts: list[ParseResult] = []
        for one in self.documents:
            own = {id(finding) for finding in one.findings}
            mine = [one for one in self.findings if id(one) in own or (not parts and id(one) not in of_diagrams)]
            parts.append(ParseResult((one,), tuple(mine), self.lines, self.file))
        return parts or [self]

    def _find(self, which: str) -> Document:
        for key in (_by_name, _by_title, _by_heading):
            found = [one for one in self.documents if key(one) == which]
            if found:
                return found[0]
        if which.isdecimal() and 1 <= int(which) <= len(self.documents):
            return self.documents[int(which) - 1]
        known = ", ".join(_name_of(one.diagram, index) for index, one in enumerate(self.documents, 1))
        raise DiagramError(f"{self.file}: there is no diagram '{which}'; there are: {known or 'none'}")

    def _unused(self, others: list[Document]) -> list[Finding]:
        report = Report(self.file, self.lines)
        for one in others:
            name = _name_of(one.diagram, self.documents.index(one) + 1)
            report.add(
                "W-more-diagrams",
                one.diagram.position,
                f"the diagram {name} is not used",
                subject=name,
                remedy=f"choose it with --diagram {name}, or all of them with --diagram all",
            )
        return silenced(report.findings, self.lines)


def parse_text(text: str, file: str = "") -> ParseResult:
    """All diagrams of a text; never raises because of what the text says.

    `file` is its name: it stands in the findings, and `.md` or `.markdown` at its end means Markdown.
    """
    lines = split_lines(text)
    outer = Report(file, lines)
    documents = [_document(chunk.lines, chunk.first, chunk.name, file) for chunk in find_chunks(lines, file, outer)]
    if not documents:
        outer.add(
            "E-no-title",
            Position(1),
            "there is no diagram in this file",
            subject="title",
            remedy="put it between a line ```plantuml and a line ```",
        )
    findings = outer.result() + [finding for one in documents for finding in one.findings]
    findings.sort(key=lambda one: (one.line, one.column))
    return ParseResult(tuple(documents), tuple(findings), tuple(lines), file)


def load(path: str | Path, diagram: str | int | None = None) -> ParseResult:
    """The diagrams of a file, chosen as by `ParseResult.select`; raises OSError and DiagramError."""
    file = Path(path)
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DiagramError(f"{path}: not a text in UTF-8 (byte {error.start}): save it in that encoding") from error
    return parse_text(text, str(path)).select(diagram)


def _document(lines: Sequence[str], first: int, name: str, file: str) -> Document:
    report = Report(file, lines, first)
    statements = read(lines, first, report)
    diagram = build(statements, lines, Position(first), name, report)
    return Document(diagram, tuple(statements), tuple(report.result()))


def _by_name(one: Document) -> str:
    return one.diagram.name


def _by_title(one: Document) -> str:
    return one.diagram.title


def _by_heading(one: Document) -> str:
    return one.diagram.heading


def _name_of(diagram: Diagram, index: int) -> str:
    return diagram.title or diagram.name or str(index)
