"""The findings by code, and the report that collects them with their place in the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from flyball.fsm.model import Finding, Position, Severity

__all__ = ["CODES", "UNSOUND", "Report", "silenced"]

CODES: dict[str, str] = {
    "E-no-title": "no usable title",
    "E-bad-title": "the title holds no identifier",
    "E-no-initial": "no transition from the initial pseudo state",
    "E-no-final": "no final state can be reached",
    "E-dead-end": "a reachable state without outgoing transition",
    "E-crosses-border": "a transition over the border of a composite",
    "E-syntax": "a line that looks like behaviour and cannot be understood",
    "E-unclosed-block": "a block that never ends",
    "E-unopened-block": "the end of a block that never began",
    "E-unsupported": "a part of PlantUML that has no meaning here yet",
    "E-initial-loop": "a transition from the initial pseudo state to itself",
    "E-final-actions": "actions or transitions on a final state",
    "E-duplicate-composite": "two blocks for one state",
    "W-unreachable": "a state that no path from the initial state reaches",
    "W-not-exhaustive": "guarded transitions and no default",
    "W-default-not-last": "a default written before guarded transitions",
    "W-second-default": "more than one default in a state",
    "W-shadowed": "a transition that an earlier one of its state always precedes",
    "W-cycle-without-exit": "a cycle of default transitions without a guard",
    "W-unhandled-error": "a failing action that nothing reacts to",
    "W-composite-do": "do actions on a composite, which are never run",
    "W-reserved-name": "a pseudo state written by its internal name",
    "W-more-diagrams": "further diagrams that are not used",
    "W-unknown-line": "a line that is neither layout nor behaviour",
    "W-param": "a parameter that is not what it seems",
    "W-title": "a title that had to be changed or guessed",
    "E-signature": "a function that cannot take what the diagram passes",
    "I-missing": "an action or guard without a function",
    "I-stub": "a function that nobody has implemented yet",
    "I-action": "one word behind a colon is an action",
    "I-title": "a title that a later one replaces",
}
"""Every code with what it stands for."""

UNSOUND = frozenset({"E-syntax", "E-unclosed-block", "E-unopened-block", "E-unsupported", "E-duplicate-composite"})
"""Codes that say that part of the text was not understood."""

_SEVERITY: dict[str, Severity] = {"E": "error", "W": "warning", "I": "info"}
_IGNORE = re.compile(r"\s*(?:'|<!--)\s*fsm:\s*ignore\b(.*)", re.IGNORECASE)
_CODE = re.compile(r"[WI]-[a-z-]*[a-z]")


class Report:
    """Collects the findings of one text. `first` is the number of its first line in the file."""

    def __init__(self, file: str, lines: Sequence[str], first: int = 1) -> None:
        self.file = file
        self.findings: list[Finding] = []
        self._lines = lines
        self._first = first

    def add(
        self, code: str, at: Position, message: str, *, subject: str, remedy: str = "", lines: Iterable[int] = ()
    ) -> None:
        """Add one finding; its source line is looked up."""
        self.findings.append(
            Finding(
                code=code,
                message=message,
                file=self.file,
                line=at.line,
                column=at.column,
                source_line=self.line(at.line),
                subject=subject,
                remedy=remedy,
                severity=_SEVERITY[code[0]],
                lines=tuple(lines),
            )
        )

    def syntax(self, at: Position, message: str, remedy: str = "") -> None:
        """Add an E-syntax; its subject is the line number."""
        self.add("E-syntax", at, message, subject=str(at.line), remedy=remedy)

    def line(self, number: int) -> str:
        """The text of a line, empty when there is none of that number."""
        index = number - self._first
        return self._lines[index] if 0 <= index < len(self._lines) else ""

    def result(self) -> list[Finding]:
        """The findings in the order of the text, without those that a comment silences."""
        return sorted(silenced(self.findings, self._lines, self._first), key=lambda one: (one.line, one.column))


def silenced(findings: Iterable[Finding], lines: Sequence[str], first: int = 1) -> list[Finding]:
    """The findings without those that an ``' fsm: ignore W-code`` on the line before silences. Errors stay."""
    ignores = _ignores(lines, first)
    if not ignores:
        return list(findings)
    return [one for one in findings if not any(one.code in ignores.get(at, ()) for at in (one.line, *one.lines))]


def _ignores(lines: Sequence[str], first: int) -> dict[int, set[str]]:
    """The codes to ignore by the line they are ignored on; several comments above a line add up."""
    found: dict[int, set[str]] = {}
    pending: set[str] = set()
    for number, line in enumerate(lines, first):
        match = _IGNORE.match(line)
        if match:
            pending |= set(_CODE.findall(match[1]))
        elif pending and not line.lstrip().startswith(("'", "/'")):
            found[number] = pending
            pending = set()
    return found
