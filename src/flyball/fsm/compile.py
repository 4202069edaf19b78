"""One call from a file to a diagram with all that is to say about it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from flyball.fsm.check import check
from flyball.fsm.model import Diagram, Finding
from flyball.fsm.parse import DiagramError, ParseResult, load, parse_text

__all__ = ["compile_file", "compile_text", "judged"]


def compile_file(
    path: str | Path, diagram: str | int | None = None, strict: bool = False, *, infallible: Collection[str] = ()
) -> tuple[Diagram | None, list[Finding]]:
    """Parse and check one diagram of a file.

    The diagram is there even when there are errors among the findings (`severity == "error"`), so that it can be
    looked at; it must not be run then. None means that the file holds no diagram. `strict` turns warnings into errors.
    Raises OSError when the file cannot be read, DiagramError when it has no such diagram.
    """
    return _first(load(path, diagram), strict, infallible)


def compile_text(
    text: str,
    file: str = "",
    diagram: str | int | None = None,
    strict: bool = False,
    *,
    infallible: Collection[str] = (),
) -> tuple[Diagram | None, list[Finding]]:
    """The same for a text; `file` is its name for messages, and decides by its ending whether it is Markdown."""
    return _first(parse_text(text, file).select(diagram), strict, infallible)


def judged(result: ParseResult, strict: bool = False, *, infallible: Collection[str] = ()) -> list[Finding]:
    """The findings of the parser and of the checks for all diagrams of a result, in the order of the text."""
    findings = list(result.findings)
    for diagram in result.diagrams:
        findings.extend(check(diagram, infallible=infallible))
    findings.sort(key=lambda one: (one.line, one.column))
    return [one.as_error() if strict and one.severity == "warning" else one for one in findings]


def _first(result: ParseResult, strict: bool, infallible: Collection[str]) -> tuple[Diagram | None, list[Finding]]:
    if len(result.documents) > 1:
        raise DiagramError(f"{result.file}: one diagram is wanted here; choose it by name, title or index")
    return (result.diagrams[0] if result.diagrams else None), judged(result, strict, infallible=infallible)
