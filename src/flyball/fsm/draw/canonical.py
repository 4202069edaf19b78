"""The canonical form of a diagram's text: one way to write each line, the order and all comments and notes kept.

Only the form changes: blanks, brackets, `do /`, the spelling of guards, the direction of reverse arrows, indentation,
blank lines. What the text means is compared before and after; a text that would mean something else is refused. Line
ends, the byte order mark and everything outside of the diagrams stay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from flyball.fsm.model import And, Call, Diagram, GuardExpr, Not, Or
from flyball.fsm.parse import DiagramError, Document, ParseResult, parse_text
from flyball.fsm.parse.codes import UNSOUND
from flyball.fsm.parse.labels import Label, LabelError, parse_call, parse_label
from flyball.fsm.parse.lines import Line
from flyball.fsm.parse.statements import (
    Arrow,
    Behaviour,
    Blank,
    Close,
    Comment,
    Declaration,
    Described,
    Layout,
    Marker,
    NoteLink,
    NoteText,
    Statement,
    Title,
    Unknown,
)

__all__ = ["canonical_lines", "document_text", "format_text"]

_STEP = "  "


def format_text(text: str, file: str = "") -> str:
    """The text with every diagram in its canonical form; raises DiagramError when part of it is not understood."""
    result = parse_text(text, file)
    errors = [one for one in result.findings if one.code in UNSOUND]
    if errors:
        raise DiagramError(f"{errors[0]}; nothing is written (flyball fsm lint tells all)", errors)
    formatted = _spliced(result, _line_end(text), bom=text.startswith("\ufeff"))
    again = parse_text(formatted, file)
    if [_meaning(one) for one in again.diagrams] != [_meaning(one) for one in result.diagrams]:
        raise DiagramError(f"{file}: the canonical form would mean something else; nothing is written")
    return formatted


def _meaning(diagram: Diagram) -> tuple[object, ...]:
    """Everything that the canonical form must not change, the order of the states among it."""
    order = [path for path, _ in diagram.machine.walk()]
    texts = [(state.description, state.notes) for _, state in diagram.machine.walk()]
    return diagram, order, texts, diagram.notes


def canonical_lines(statements: Sequence[Statement]) -> list[str]:
    """The lines of one diagram in canonical form."""
    lines: list[str] = []
    depth = 0
    opened = True
    for statement in statements:
        if isinstance(statement, Blank):
            if not opened and lines and lines[-1]:
                lines.append("")
            continue
        if isinstance(statement, Close):
            depth = max(depth - 1, 0)
            while lines and not lines[-1]:
                lines.pop()
        lines.extend(f"{_STEP * depth}{line}" if line else "" for line in _written(statement))
        opened = isinstance(statement, Declaration) and statement.opens
        depth += opened
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _spliced(result: ParseResult, end: str, *, bom: bool) -> str:
    """The lines of the file with those of each diagram replaced."""
    lines = list(result.lines)
    for document in reversed(result.documents):
        if not document.diagram.source:
            continue
        first = document.diagram.position.line - 1
        last = first + document.diagram.source.count("\n") + 1
        indent = _indent(lines, first)
        new = [f"{indent}{line}" if line else "" for line in canonical_lines(document.statements)]
        if last == len(lines):
            new.append("")
        lines[first:last] = new
    return ("\ufeff" if bom else "") + end.join(lines)


def _line_end(text: str) -> str:
    found = re.search(r"\r\n|\r|\n", text)
    return found[0] if found else "\n"


def _indent(lines: Sequence[str], first: int) -> str:
    """How far the Markdown fence in front of a diagram is indented."""
    fence = re.match(r"( {1,3})(?:```|~~~)", lines[first - 1]) if first else None
    return fence[1] if fence else ""


def _written(statement: Statement) -> list[str]:
    """The lines of one statement, without indentation."""
    match statement:
        case Title():
            return [f"title {statement.text}"] if len(statement.lines) == 1 else _block(statement.lines)
        case Arrow():
            return [_arrow(statement)]
        case Behaviour():
            return [f"{statement.state}: {statement.kind} / {_call(statement.call, statement.text)}"]
        case Described():
            return [f"{statement.state}: {_escaped(statement.text)}"]
        case Declaration():
            return [_declaration(statement)]
        case Close():
            return ["}"]
        case NoteText() | Layout() | Unknown() | Marker():
            return _block(statement.lines)
        case Comment(lines=lines):
            return [line.rstrip() if index else line.strip() for index, line in enumerate(lines)]
        case NoteLink():
            return [statement.raw.strip()]
        case Blank():
            return [""]


def _block(lines: Sequence[str]) -> list[str]:
    """A block of lines: its first and last at the margin, the rest one step to the right, as it was among itself."""
    if len(lines) == 1:
        return [lines[0].strip()]
    inner = [_spaced(line.rstrip()) for line in lines[1:-1]]
    margin = min((len(line) - len(line.lstrip()) for line in inner if line), default=0)
    return [lines[0].strip(), *(f"{_STEP}{line[margin:]}" if line else "" for line in inner), lines[-1].strip()]


def _spaced(line: str) -> str:
    """The line with blanks for the tabs it begins with."""
    text = line.lstrip()
    return line[: len(line) - len(text)].expandtabs(4) + text


def _declaration(one: Declaration) -> str:
    name = f'"{_escaped(one.text)}" as {one.state}' if one.text else one.state
    parts = [f"state {name}", *(f"<<{word}>>" for word in one.stereotypes), *one.styles, *(["{"] if one.opens else [])]
    return " ".join(parts)


def _escaped(text: str) -> str:
    return text.replace("\n", "\\n")


def _arrow(one: Arrow) -> str:
    if one.source == "title":
        return one.raw.strip()
    label = _label(one)
    return f"{one.source} {_forward(one)} {one.target}" + (f": {label}" if label else "")


def _forward(one: Arrow) -> str:
    """The arrow; a reverse one is turned round and loses its direction, which was that of the reverse one."""
    if not one.reverse:
        return one.arrow
    styles = "".join(re.findall(r"\[[^\]]*\]", one.arrow))
    return f"-{styles}->"


def _label(one: Arrow) -> str:
    """The label in canonical form, or as written when it holds line breaks or parameters that need it."""
    if one.label is None:
        return ""
    written = one.label_text
    if "\\n" in written:
        return written
    text = _label_text(one.label)
    try:
        line = Line(1, text)
        same = parse_label(line, 0, len(line.text)) == one.label
    except LabelError:
        same = False
    return text if same else written


def _label_text(label: Label) -> str:
    parts: list[str] = []
    if label.error is not None:
        names = f"({', '.join(label.error.names)})" if label.error.names else ""
        parts.append(f"error{names}")
    if label.guard is not None:
        guard = _guard(label.guard)
        parts.append(f"[{guard}]" if label.error is not None else guard)
    if label.action is not None:
        parts.append(f":: {_use(label.action)}")
    return " ".join(parts)


def _guard(guard: GuardExpr) -> str:
    match guard:
        case Call():
            return _use(guard)
        case Not(operand):
            return f"not ({_guard(operand)})" if isinstance(operand, And | Or) else f"not {_guard(operand)}"
        case And(operands):
            return " and ".join(f"({_guard(one)})" if isinstance(one, Or) else _guard(one) for one in operands)
        case Or(operands):
            return " or ".join(_guard(one) for one in operands)


def _use(call: Call) -> str:
    if not call.params:
        return call.name
    params = [f'"{one}"' if one != one.strip() else one for one in call.params]
    return f"{call.name}({', '.join(params) or ' '})"


def _call(call: Call, written: str) -> str:
    """A call in canonical form, or as written when its parameters need it."""
    if "\\n" in written:
        return written
    text = _use(call)
    line = Line(1, text)
    return text if parse_call(line, 0, len(line.text)) == call else written


def document_text(document: Document) -> str:
    """One diagram in canonical form, with `@startuml` and `@enduml` around it."""
    lines = canonical_lines(document.statements)
    if not any(isinstance(one, Marker) and one.start for one in document.statements):
        lines = ["@startuml", "", *lines]
    if not any(isinstance(one, Marker) and not one.start for one in document.statements):
        lines = [*lines, "", "@enduml"]
    return "\n".join(lines) + "\n"
