"""What goes wrong with an expression: it cannot be compiled, it has no value, or it is too expensive."""

from __future__ import annotations

from dataclasses import dataclass

from flyball.errors import FlyballError

__all__ = ["CelError", "CompileError", "CostExceeded", "EvalError", "Issue"]

_LONGEST_LINE = 16384


class CelError(FlyballError):
    """An expression cannot be used."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong with the text of an expression; the column is 1-based, in characters."""

    line: int
    column: int
    message: str

    def shown(self, source: str) -> str:
        """Tell it with the line that it is about, and a mark below the place."""
        head = f"ERROR: <input>:{self.line}:{self.column}: {self.message}"
        lines = source.split("\n")
        if not 1 <= self.line <= len(lines) or len(lines[self.line - 1].encode("utf-8", "replace")) > _LONGEST_LINE:
            return head
        text = lines[self.line - 1].replace("\t", " ")
        before = text[: self.column - 1]
        dots = "".join("\uff0e" if character > "\x7f" else "." for character in before)
        mark = "\uff3e" if text[self.column - 1 : self.column] > "\x7f" else "^"
        return f"{head}\n | {text}\n | {dots}{mark}"


class CompileError(CelError):
    """An expression is not well formed, or not well typed; the message shows every place."""

    def __init__(self, issues: list[Issue], source: str) -> None:
        """Keep the issues, in the order of the text."""
        self.issues = sorted(issues, key=lambda issue: (issue.line, issue.column))
        self.source = source
        super().__init__("\n".join(issue.shown(source) for issue in self.issues))


class EvalError(CelError):
    """An expression has no value for what it was asked about: a missing key, an overflow, a division by zero."""

    cost: int = 0
    """What the evaluation had cost until then."""


class CostExceeded(CelError):
    """The evaluation was stopped, because it had cost more than it may."""

    def __init__(self) -> None:
        """Use the words of an API server."""
        super().__init__("operation cancelled: actual cost limit exceeded")
