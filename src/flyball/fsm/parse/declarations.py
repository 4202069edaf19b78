"""What a line says of one state: `state X`, `X: do / Load(a)`, `X: some words`."""

from __future__ import annotations

import re
from typing import Final, Literal, cast

from flyball.fsm.model import INITIAL
from flyball.fsm.parse.arrows import check_params
from flyball.fsm.parse.codes import Report
from flyball.fsm.parse.labels import NAME, is_name, parse_call
from flyball.fsm.parse.lines import Line
from flyball.fsm.parse.statements import Behaviour, Close, Declaration, Described, Statement, Unknown

__all__ = ["is_behaviour", "read_behaviour", "read_declaration"]

_STATE: Final = re.compile(r"\s*state(?=\s|$)(?!\s*(?::|<?-))\s*")
_WHO: Final = (
    re.compile(rf'"(?P<text>[^"]*)"\s*as\s+(?P<name>{NAME})'),
    re.compile(rf'(?P<name>{NAME})\s+as\s+"(?P<text>[^"]*)"'),
    re.compile(rf"(?P<text>{NAME})\s+as\s+(?P<name>{NAME})"),
    re.compile(rf"(?P<name>{NAME})"),
)
_STEREOTYPE: Final = re.compile(r"\s*<<\s*([^<>]*?)\s*>>")
_STYLE: Final = re.compile(r"\s*(\[\[[^\]]*\]\]|\$[^\s{:]+|##?(?:\[\w+\])?[^\s{:]*)")
_REFUSED: Final = {
    "fork": "parallel paths",
    "join": "parallel paths",
    "history": "history",
    "history*": "history",
    "start": "a second initial state; write `[*]`",
    "entrypoint": "entry points",
    "exitpoint": "exit points",
    "inputpin": "pins",
    "outputpin": "pins",
    "expansioninput": "expansion nodes",
    "expansionoutput": "expansion nodes",
    "timeout": "time limits",
    "retry": "repetition",
}
_COLON: Final = re.compile(rf"\s*(\[\*\]|{NAME})\s*:")
_KIND: Final = re.compile(r"\s*(do|entry|exit)\s*/", re.IGNORECASE)
_EVENT: Final = re.compile(rf"\s*({NAME})\s*/\s*{NAME}\s*(?:\(.*\))?\s*", re.DOTALL)
_CALL_LIKE: Final = re.compile(rf"\s*{NAME}\(")


def read_declaration(line: Line, report: Report) -> list[Statement]:
    """The declaration of a line, and what it says behind a colon; nothing for a line that is none."""
    head = _STATE.match(line.text)
    if head is None:
        return []
    at = head.end()
    who = next((found for found in (pattern.match(line.text, at) for pattern in _WHO) if found), None)
    if who is None or not is_name(who["name"]):
        return [_syntax(line, report, "a declaration names a state", 'write `state X`, or `state "Some words" as X`')]
    stereotypes, styles, at = _decorations(line.text, who.end())
    rest = line.text[at:].strip()
    place = line.position(who.start("name"))
    supported = _supported(stereotypes, line, who["name"], report)
    text = _raw(line, *who.span("text")).strip() if "text" in who.groupdict() else ""
    opens = rest in ("{", "{}") or re.fullmatch(r"\{\s*\}", rest) is not None
    declaration = Declaration(place, who["name"], text, stereotypes, styles, opens, line.raw, supported)
    if opens:
        return [declaration] if rest == "{" else [declaration, Close(line.position(at), line.raw)]
    if rest.startswith(":"):
        return [declaration, *_behind_colon(line, who["name"], line.text.index(":", at) + 1, report)]
    if rest:
        if "[H" in rest:
            report.add("E-unsupported", place, "a machine keeps no history", subject=who["name"])
            return [Unknown(line.start(), (line.raw,))]
        return [
            _syntax(
                line, report, f"'{rest}' behind the name is not understood", "write `state X <<choice>>` or `state X {`"
            )
        ]
    return [declaration]


def is_behaviour(line: Line) -> bool:
    """Whether a line is a name and a colon."""
    return _COLON.match(line.text) is not None


def read_behaviour(line: Line, report: Report) -> list[Statement]:
    """The action or description of a line; nothing for a line that has no name and colon."""
    match = _COLON.match(line.text)
    if match is None or (match[1] != INITIAL and not is_name(match[1])):
        return []
    return _behind_colon(line, match[1], match.end(), report)


def _behind_colon(line: Line, state: str, start: int, report: Report) -> list[Statement]:
    text, end = line.text, len(line.text)
    at = line.start()
    kind = _KIND.match(text, start)
    call = parse_call(line, kind.end() if kind else start, end)
    if call is not None:
        name = cast("Literal['entry', 'do', 'exit']", kind[1].lower() if kind else "do")
        check_params(line, [call], report)
        if kind is None:
            report.add(
                "I-action",
                at,
                f"{call.name} is an action of {state}",
                subject=state,
                remedy=f"write `{state}: do / {call.name}` to say so; a description has several words",
            )
        raw = line.raw[call.position.column - 1 :].strip()
        return [Behaviour(at, state, name, call, kind is not None, raw, line.raw)]
    words = text[start:].split()
    if kind:
        return [_syntax(line, report, f"'{text[kind.end() :].strip()}' is no action", "write `X: do / Load(a, b)`")]
    if _EVENT.fullmatch(text, start, end):
        return [
            _syntax(
                line,
                report,
                f"'{text[start:].strip()}' names an event, and there are no events",
                "use do, entry or exit",
            )
        ]
    if state != INITIAL and len(words) > 1 and not _CALL_LIKE.match(text, start):
        described = _raw(line, start, end).strip()
        return [Described(at, state, described, line.raw)]
    message = f"'{text[start:].strip()}' is no action" if words else "there is nothing behind the colon"
    return [_syntax(line, report, message, f"write `{state}: do / Load(a, b)`")]


def _decorations(text: str, at: int) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """Stereotypes, styles, and where they end."""
    stereotypes: list[str] = []
    styles: list[str] = []
    while True:
        if match := _STEREOTYPE.match(text, at):
            stereotypes.append(match[1])
        elif match := _STYLE.match(text, at):
            styles.append(match[1])
        else:
            return tuple(stereotypes), tuple(styles), at
        at = match.end()


def _supported(stereotypes: tuple[str, ...], line: Line, state: str, report: Report) -> bool:
    for stereotype in stereotypes:
        word = (stereotype.lower().split() or [""])[0]
        if word in _REFUSED:
            report.add(
                "E-unsupported",
                line.start(),
                f"<<{stereotype}>>: {_REFUSED[word]} cannot be run yet",
                subject=state,
                remedy="<<choice>>, <<end>> and <<poll>> are supported",
            )
            return False
    return True


def _raw(line: Line, start: int, end: int) -> str:
    """A part of a line with its line breaks."""
    first = line.position(start - 1).column if start else 0
    return line.raw[first : line.position(end).column - 1].replace("\\n", "\n")


def _syntax(line: Line, report: Report, message: str, remedy: str) -> Statement:
    report.syntax(line.start(), message, remedy)
    return Unknown(line.start(), (line.raw,))
