"""From lines to statements: what each line of a diagram is, tried in a fixed order.

1. blank lines, comments, `@startuml`, closing braces, the preprocessor and regions;
2. the title, notes, and arrows, which may begin with any word;
3. declarations, layout, and whatever is behind a colon;
4. what looks like behaviour and was not understood (E-syntax), and the rest (W-unknown-line).

Each line is looked at once, by expressions that cannot backtrack over it, so the time is proportional to the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from flyball.fsm.model import Position
from flyball.fsm.parse import arrows, declarations, layout, notes
from flyball.fsm.parse.codes import Report
from flyball.fsm.parse.labels import NAME, is_name
from flyball.fsm.parse.lines import Line
from flyball.fsm.parse.statements import (
    Blank,
    Close,
    Comment,
    Layout,
    Marker,
    NoteLink,
    NoteText,
    Statement,
    Title,
    Unknown,
)

__all__ = ["read"]

_MARKER: Final = re.compile(r"\s*@(start|end)uml\b.*", re.IGNORECASE)
_TITLE: Final = re.compile(r"\s*title\s+(\S.*)")
_DIRECTIVE: Final = re.compile(r"\s*(![^\s(=]*)")
_REGION: Final = re.compile(r"\s*(--++|\|\|++)\s*")
_LINK: Final = re.compile(rf"\s*({NAME})\s*<?(?:\.++|-++)>?\s*({NAME})\s*")
_BEHAVIOUR: Final = re.compile(rf"\s*(?:{NAME}|\[\*\])\s*(?::|\S*[<>])")
_ODD_NAME: Final = re.compile(r"\s*([\w.\-]*\w)[.\-]*+\s*(?::|<?-++[^\s>]*>|>)")


def read(lines: Sequence[str], first: int, report: Report) -> list[Statement]:
    """The statements of a diagram; `first` is the number of its first line in the file."""
    return _Reader(lines, first, report).read()


class _Reader:
    def __init__(self, lines: Sequence[str], first: int, report: Report) -> None:
        self._lines = lines
        self._first = first
        self._report = report
        self._statements: list[Statement] = []
        self._at = 0
        self._missing: set[str] = set()
        self._aliases: set[str] = set()

    def read(self) -> list[Statement]:
        while self._at < len(self._lines):
            line = Line(self._first + self._at, self._lines[self._at])
            self._at += 1
            self._line(line)
        return self._statements

    def _line(self, line: Line) -> None:
        line = self._without_comments(line)
        if not line.stripped:
            return
        if not self._simple(line) and not self._behaviour(line):
            self._not_understood(line)

    # ------------------------------------------------------------------------------------------- comments

    def _without_comments(self, line: Line) -> Line:
        """The line without comments; what is left may be empty, and then everything has been kept already."""
        if not line.stripped:
            self._statements.append(Blank(line.position(0)))
        while line.raw.lstrip().startswith("/'"):
            line = self._block_comment(line)
        if line.raw.lstrip().startswith("'"):
            self._statements.append(Comment(line.start(), (line.raw.strip(),)))
            return Line(line.number, "")
        end = len(line.raw.rstrip())
        if line.raw.endswith("'/", 0, end):
            start = line.raw.rfind("/'", 0, end - 2)
            if start > 0 and "'/" not in line.raw[start + 2 : end - 2]:
                self._statements.append(Comment(Position(line.number, start + 1), (line.raw[start:end],)))
                return Line(line.number, line.raw[:start])
        return line

    def _block_comment(self, line: Line) -> Line:
        """The line behind the block comments it begins with; they have become blanks."""
        raw, start = line.raw, line.raw.index("/'")
        while raw.startswith("/'", start):
            at = Position(line.number, start + 1)
            end = raw.find("'/", start + 2)
            if end < 0:
                return self._long_comment(line, at)
            self._statements.append(Comment(at, (raw[start : end + 2],)))
            start = len(raw) - len(raw[end + 2 :].lstrip()) if raw[end + 2 : end + 3].isspace() else end + 2
        return Line(line.number, " " * start + raw[start:])

    def _long_comment(self, line: Line, at: Position) -> Line:
        """The rest of the line that ends a comment of several lines."""
        last = self._find(lambda text: "'/" in text, "comment")
        taken = self._take(last)
        first = line.raw[at.column - 1 :]
        if last is None:
            self._unclosed(at, "comment", "end the comment with `'/`")
            self._statements.append(Comment(at, (first, *taken)))
            return Line(line.number, "")
        raw = taken[-1]
        end = raw.index("'/") + 2
        self._statements.append(Comment(at, (first, *taken[:-1], raw[:end])))
        return Line(line.number + len(taken), " " * end + raw[end:])

    # ------------------------------------------------------------------------------------------- lines

    def _simple(self, line: Line) -> bool:
        """Lines that are known by their first characters."""
        text, at = line.text, line.start()
        if line.stripped == "}":
            self._statements.append(Close(at, line.raw))
        elif marker := _MARKER.fullmatch(text):
            self._statements.append(Marker(at, (line.raw,), start=marker[1].lower() == "start"))
        elif region := _REGION.fullmatch(text):
            self._refuse(
                line, region[1], "regions run side by side, which a machine cannot do yet", "draw one after the other"
            )
        elif title := _TITLE.fullmatch(text):
            self._statements.append(Title(at, title[1].strip(), (line.raw,)))
        elif (directive := _DIRECTIVE.match(text)) and not layout.is_layout(text):
            self._refuse(line, directive[1], "the preprocessor is not supported", "write out what it would insert")
        else:
            return self._note(line)
        return True

    def _behaviour(self, line: Line) -> bool:
        """Transitions, declarations, actions and descriptions; layout, unless it is used as a name."""
        if self._aliases and self._note_link(line):
            return True
        found = arrows.read_arrow(line, self._report)
        if not found:
            found = declarations.read_declaration(line, self._report)
        if not found and layout.is_layout(line.text) and not declarations.is_behaviour(line):
            return self._layout(line)
        if not found:
            found = declarations.read_behaviour(line, self._report)
        self._statements.extend(found)
        return bool(found)

    def _not_understood(self, line: Line) -> None:
        at = line.start()
        if layout.is_layout(line.text):
            self._statements.append(Layout(at, (line.raw,)))
            return
        odd = _ODD_NAME.match(line.text)
        if odd and not is_name(odd[1]):
            self._report.syntax(
                at, f"'{odd[1]}' is no name", "names are letters, digits and _, no digit first; no dots, no dashes"
            )
        elif _BEHAVIOUR.match(line.text) or _arrow_like(line):
            self._report.syntax(
                at, f"'{line.stripped}' is no transition and no action", "write `A --> B: IsX :: Do`, `A: do / Do`"
            )
        else:
            self._report.add(
                "W-unknown-line",
                at,
                f"'{line.stripped}' is neither layout nor behaviour; it is ignored",
                subject=str(line.number),
                remedy="delete it, or make it a comment with a leading '",
            )
        self._statements.append(Unknown(at, (line.raw,)))

    def _refuse(self, line: Line, subject: str, message: str, remedy: str) -> None:
        self._report.add("E-unsupported", line.start(), f"{subject}: {message}", subject=subject, remedy=remedy)
        self._statements.append(Unknown(line.start(), (line.raw,)))

    # ------------------------------------------------------------------------------------------- blocks

    def _note(self, line: Line) -> bool:
        start = notes.note_start(line.raw)
        if start is None:
            return False
        at, text = line.start(), start.text
        lines: tuple[str, ...] = (line.raw,)
        if text is None:
            last = self._find(notes.is_note_end, "note")
            taken = self._take(last)
            lines = (line.raw, *taken)
            if last is None:
                self._unclosed(at, "note", "end the note with `end note`, or write `note left of X : text`")
            text = "\n".join(one.strip() for one in (taken if last is None else taken[:-1])).strip()
        if start.alias:
            self._aliases.add(start.alias)
        self._statements.append(
            NoteText(at, lines, text.replace("\\n", "\n"), start.state, start.attached, start.alias)
        )
        return True

    def _note_link(self, line: Line) -> bool:
        """A line from or to a note that has a name."""
        match = _LINK.fullmatch(line.text)
        if match is None or not self._aliases & {match[1], match[2]}:
            return False
        alias, state = (match[1], match[2]) if match[1] in self._aliases else (match[2], match[1])
        self._statements.append(NoteLink(line.start(), alias, state, line.raw))
        return True

    def _layout(self, line: Line) -> bool:
        block = layout.layout_block(line.text)
        at = line.start()
        if block is None:
            self._statements.append(Layout(at, (line.raw,)))
            return True
        last = self._pairing_brace() if block.end is None else self._find_end(block.end, block.name)
        if last is None and not block.required:
            self._statements.append(Layout(at, (line.raw,)))
            return True
        taken = self._take(last)
        if last is None:
            ending = "}" if block.end is None else "</style>" if block.name == "style" else f"end {block.name}"
            self._unclosed(at, block.name, f"end it with `{ending}`")
        if block.name == "title":
            text = " ".join(one.strip() for one in (taken if last is None else taken[:-1])).strip()
            self._statements.append(Title(at, text, (line.raw, *taken)))
        else:
            self._statements.append(Layout(at, (line.raw, *taken)))
        return True

    def _unclosed(self, at: Position, name: str, remedy: str) -> None:
        self._report.add("E-unclosed-block", at, f"the {name} that begins here never ends", subject=name, remedy=remedy)

    def _find_end(self, end: re.Pattern[str], name: str) -> int | None:
        return self._find(lambda text: end.fullmatch(text) is not None, name)

    def _find(self, ends: Callable[[str], bool], name: str) -> int | None:
        """The index of the line that ends a block, or None. What is not there is looked for only once."""
        if name in self._missing:
            return None
        for index in range(self._at, len(self._lines)):
            if ends(self._lines[index]):
                return index
        self._missing.add(name)
        return None

    def _pairing_brace(self) -> int | None:
        depth = 1
        for index in range(self._at, len(self._lines)):
            text = self._lines[index].strip()
            depth += text.endswith("{") - (text == "}")
            if depth == 0:
                return index
        return None

    def _take(self, last: int | None) -> list[str]:
        """The lines up to the end of a block; all but a closing `@enduml` when it has none."""
        end = len(self._lines) if last is None else last + 1
        if last is None and end > self._at and _MARKER.fullmatch(self._lines[end - 1]):
            end -= 1
        taken = list(self._lines[self._at : end])
        self._at = end
        return taken


def _arrow_like(line: Line) -> bool:
    """Whether a line that begins like behaviour holds an arrow somewhere."""
    if not line.stripped[0].isidentifier() and line.stripped[0] not in '["':
        return False
    return any(("-" in word and (">" in word or "<" in word)) for word in line.stripped.split())
