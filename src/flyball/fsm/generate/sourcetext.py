"""A user's Python file as text that is edited by positions and given back byte for byte.

What `SourceFile` promises:

- `encode(text)` gives the bytes it was made from as long as the text is the one it holds: encoding, byte order mark and
  line ends are the file's own, mixed ones too.
- Nothing is imported, compiled or executed; the file is read with `ast` only.
- A file that cannot be understood raises `SourceProblem` with the place, never anything else.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from dataclasses import dataclass, field

from flyball.errors import FlyballError

__all__ = ["Edit", "SourceFile", "SourceProblem", "apply_edits"]

_NEWLINE = re.compile(r"\r\n|\r|\n")


class SourceProblem(FlyballError):
    """A Python file of the user that cannot be read or changed safely; it is left alone."""

    def __init__(self, file: str, line: int, column: int, reason: str, source_line: str = "") -> None:
        """Name the place (lines and columns count from 1) and the reason."""
        super().__init__(f"{file}:{line}:{column}: {reason}")
        self.file = file
        self.line = line
        self.column = column
        self.reason = reason
        self.source_line = source_line


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the characters from `start` up to `end` with `text`; an insertion when both are equal."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: list[Edit]) -> str:
    """Apply edits that do not overlap; insertions at one place keep the order in which they are given."""
    pieces: list[str] = []
    done = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.start < done:
            raise ValueError(f"edits overlap at character {edit.start}")
        pieces.append(text[done : edit.start])
        pieces.append(edit.text)
        done = edit.end
    pieces.append(text[done:])
    return "".join(pieces)


@dataclass(slots=True)
class SourceFile:
    """One parsed file: its text, its tree and the way from positions of the tree to characters of the text."""

    file: str
    raw: bytes
    text: str
    encoding: str
    tree: ast.Module
    newline: str
    _starts: list[int] = field(default_factory=list)

    @classmethod
    def parse(cls, raw: bytes, file: str) -> SourceFile:
        """Read a file's bytes, or raise `SourceProblem`."""
        encoding = _encoding(raw, file)
        text = _decode(raw, encoding, file)
        tree = _tree(text, file)
        starts = [0, *(match.end() for match in _NEWLINE.finditer(text))]
        return cls(file, raw, text, encoding, tree, _main_newline(text), starts)

    @property
    def line_count(self) -> int:
        """How many lines there are; a text that ends with a line end has an empty last line."""
        return len(self._starts)

    def line(self, number: int) -> str:
        """The text of a line with its line end; lines count from 1."""
        if not 1 <= number <= len(self._starts):
            return ""
        return self.text[self._starts[number - 1] : self.line_start(number + 1)]

    def line_start(self, number: int) -> int:
        """Where a line starts; the line after the last one starts at the end of the text."""
        return self._starts[number - 1] if number <= len(self._starts) else len(self.text)

    def offset(self, line: int, utf8_column: int) -> int:
        """The character that a position of the tree means (`col_offset` counts UTF-8 bytes)."""
        start = self.line_start(line)
        content = self.line(line)
        if content.isascii():
            return start + utf8_column
        return start + len(content.encode("utf-8", "surrogatepass")[:utf8_column].decode("utf-8", "surrogatepass"))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Start and end of a node as characters of the text, decorators not included."""
        end_line = node.end_lineno or node.lineno
        end_column = node.end_col_offset or 0
        return self.offset(node.lineno, node.col_offset), self.offset(end_line, end_column)

    def encode(self, text: str) -> bytes:
        """The bytes of a text in this file's encoding."""
        try:
            return text.encode(self.encoding)
        except UnicodeEncodeError as error:
            shown = text[error.start : error.start + 1]
            raise SourceProblem(
                self.file, 1, 1, f"the file is written in {self.encoding}, which has no {shown!r}; store it as UTF-8"
            ) from error


def _encoding(raw: bytes, file: str) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
    except (SyntaxError, LookupError) as error:
        raise SourceProblem(file, 1, 1, f"cannot tell the encoding: {error}") from error
    return encoding


def _decode(raw: bytes, encoding: str, file: str) -> str:
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise SourceProblem(file, line, 1, f"not valid {encoding}: {error.reason}") from error
    if text.encode(encoding) != raw:
        raise SourceProblem(file, 1, 1, f"the text does not survive a round trip through {encoding}; store it as UTF-8")
    return text


def _tree(text: str, file: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        raise SourceProblem(
            file, error.lineno or 1, error.offset or 1, f"not valid Python: {error.msg}", (error.text or "").rstrip()
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise SourceProblem(file, 1, 1, f"not valid Python: {error or type(error).__name__}") from error


def _main_newline(text: str) -> str:
    found = _NEWLINE.findall(text)
    return max(("\n", "\r\n", "\r"), key=found.count) if found else "\n"
