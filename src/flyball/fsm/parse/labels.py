"""The little language behind the colon: calls, guards, error matches and transition actions.

::

    label  = [guard] ["::" call | "/" call]  |  "error" ["(" names ")"] ["[" guard "]"] ["::" call | "/" call]
    guard  = or;   or = and {("or" | "||") and};   and = not {("and" | "&&") not};   not = ("not" | "!") not | one
    one    = call | "(" or ")"
    call   = name ["(" [param {"," param}] ")"]

Square brackets around a guard are decoration and may be unbalanced. Parameters are the text between the parentheses,
cut at every comma; where a label holds one call only, they reach to its last closing parenthesis.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from flyball.fsm.model import And, Call, ErrorMatch, GuardExpr, Not, Or
from flyball.fsm.parse.lines import Line

__all__ = ["NAME", "Label", "LabelError", "is_name", "parse_call", "parse_label"]

NAME: Final = r"[^\W\d]\w*+"

_CALL = re.compile(rf"\s*({NAME})\s*(?:\((.*)\))?\s*", re.DOTALL)
_TOKEN = re.compile(rf"\s*(?:({NAME})|(&&|\|\||!|\(|\)))")
_ERROR = re.compile(r"\s*error\b\s*", re.IGNORECASE)
_EVENT = re.compile(rf"\s*{NAME}\s*(?:\([^()]*\)\s*)?\[")
_MORE = re.compile(r"::|\)\s*(?:(?:and|or)\b|&&|\|\||/)")
_OPERATORS = {"and": "and", "&&": "and", "or": "or", "||": "or", "not": "not", "!": "not"}
_DEPTH = 40
_TRIES = 40


class LabelError(Exception):
    """The text behind a colon cannot be understood; `index` is where it stops making sense."""

    def __init__(self, message: str, remedy: str, index: int) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.index = index


@dataclass(frozen=True, slots=True)
class Label:
    """What stands behind the colon of a transition."""

    guard: GuardExpr | None = None
    action: Call | None = None
    error: ErrorMatch | None = None


def is_name(text: str) -> bool:
    """Whether a text can name a state, an action or a guard."""
    return text.isidentifier()


def parse_call(line: Line, start: int, end: int) -> Call | None:
    """The call that fills a part of a line, or None. Parameters reach to the last closing parenthesis."""
    match = _CALL.fullmatch(line.text, start, end)
    if match is None or not is_name(match[1]):
        return None
    return Call(match[1], _params(match[2]), line.position(match.start(1)))


def parse_label(line: Line, start: int, end: int) -> Label:
    """The label that fills a part of a line; raises LabelError."""
    text = line.text
    if not text[start:end].strip():
        raise LabelError("there is nothing behind the colon", "write a guard, or leave the colon out", start)
    match = _ERROR.match(text, start, end)
    found = _error_label(line, match, end) if match else _plain_label(line, start, end)
    if found is not None:
        return found
    raise _explain(line, start, end, is_error=match is not None)


def _plain_label(line: Line, start: int, end: int) -> Label | None:
    """`guard`, `guard :: call`, `guard / call`, `:: call` or `/ call`."""
    label = _cut_at("::", line, start, end)
    if label is not None:
        return label
    guard = _guard(line, start, end)
    if guard is not None:
        return Label(guard)
    label = _cut_at("/", line, start, end)
    if label is not None:
        return label
    guard = _long_call(line, start, end)
    return Label(guard) if guard is not None else None


def _cut_at(separator: str, line: Line, start: int, end: int) -> Label | None:
    """The label cut in two at the first separator where both halves make sense."""
    at = line.text.find(separator, start, end)
    for _ in range(_TRIES):
        if at < 0:
            break
        action = parse_call(line, at + len(separator), end)
        if action is not None:
            if not line.text[start:at].strip():
                return Label(None, action)
            guard = _guard(line, start, at) or _long_call(line, start, at)
            if guard is not None:
                return Label(guard, action)
        at = line.text.find(separator, at + len(separator), end)
    return None


def _error_label(line: Line, match: re.Match[str], end: int) -> Label | None:
    """What follows the word `error`."""
    text, at = line.text, match.end()
    names: tuple[str, ...] = ()
    if text[at:end].startswith("("):
        close = text.find(")", at, end)
        if close < 0:
            return None
        names = _params(text[at + 1 : close])
        at = close + 1
        if not all(re.fullmatch(rf"{NAME}(?:\.{NAME})*", name) for name in names):
            return None
    error = ErrorMatch(names)
    rest = text[at:end].strip()
    if not rest:
        return Label(error=error)
    if not rest.startswith(("[", "::", "/")):
        return None
    label = _plain_label(line, at, end)
    return Label(label.guard, label.action, error) if label else None


def _guard(line: Line, start: int, end: int) -> GuardExpr | None:
    """A guard expression without its decorating brackets, or None."""
    start, end = _undecorated(line.text, start, end)
    for quotes in (True, False):
        parser = _Guard(line, start, end, quotes_protect=quotes)
        try:
            return parser.parse()
        except _NoGuard:
            if '"' not in line.text[start:end]:
                break
    return None


def _long_call(line: Line, start: int, end: int) -> Call | None:
    """One call whose parameters hold parentheses that do not pair."""
    start, end = _undecorated(line.text, start, end)
    if _MORE.search(line.text, start, end):
        return None
    call = parse_call(line, start, end)
    return call if call is not None and call.name not in _OPERATORS else None


def _undecorated(text: str, start: int, end: int) -> tuple[int, int]:
    """The part without blanks and one bracket at either end."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    if start < end and text[start] == "[":
        start += 1
    if start < end and text[end - 1] == "]":
        end -= 1
    return start, end


def _params(content: str | None) -> tuple[str, ...]:
    """The parameters in the text between two parentheses."""
    if not content:
        return ()
    return tuple(piece.strip().strip('"') for piece in content.split(","))


class _NoGuard(Exception):
    """The text is no guard expression."""


class _Guard:
    """Reads one guard expression by recursive descent; every character is looked at a fixed number of times."""

    def __init__(self, line: Line, start: int, end: int, *, quotes_protect: bool) -> None:
        self._line = line
        self._text = line.text
        self._at = start
        self._end = end
        self._quotes = quotes_protect
        self._depth = 0

    def parse(self) -> GuardExpr:
        guard = self._or()
        if self._text[self._at : self._end].strip():
            raise _NoGuard
        return guard

    def _peek(self) -> tuple[str, re.Match[str] | None]:
        match = _TOKEN.match(self._text, self._at, self._end)
        if match is None:
            return "", None
        word = match[1] or match[2]
        return _OPERATORS.get(word, word if match[2] else "name"), match

    def _or(self) -> GuardExpr:
        operands = self._chain("or", self._and)
        return operands[0] if len(operands) == 1 else Or(_flat(Or, operands))

    def _and(self) -> GuardExpr:
        operands = self._chain("and", self._not)
        return operands[0] if len(operands) == 1 else And(_flat(And, operands))

    def _chain(self, operator: str, read: Callable[[], GuardExpr]) -> list[GuardExpr]:
        operands = [read()]
        while True:
            kind, match = self._peek()
            if kind != operator or match is None:
                return operands
            self._at = match.end()
            operands.append(read())

    def _not(self) -> GuardExpr:
        kind, match = self._peek()
        if match is None or kind in ("and", "or", ")"):
            raise _NoGuard
        self._at = match.end()
        if kind == "name":
            return self._call(match)
        self._depth += 1
        if self._depth > _DEPTH:
            raise _NoGuard
        if kind == "not":
            guard: GuardExpr = Not(self._not())
        else:
            guard = self._or()
            kind, match = self._peek()
            if kind != ")" or match is None:
                raise _NoGuard
            self._at = match.end()
        self._depth -= 1
        return guard

    def _call(self, match: re.Match[str]) -> Call:
        name, position = match[1], self._line.position(match.start(1))
        if not is_name(name):
            raise _NoGuard
        at = self._at
        while at < self._end and self._text[at].isspace():
            at += 1
        if at == self._end or self._text[at] != "(":
            return Call(name, (), position)
        close = self._closing(at)
        self._at = close + 1
        return Call(name, _params(self._text[at + 1 : close]), position)

    def _closing(self, at: int) -> int:
        """Where the parenthesis opened at `at` closes."""
        depth, quoted = 0, False
        for index in range(at, self._end):
            char = self._text[index]
            if char == '"' and self._quotes:
                quoted = not quoted
            elif quoted:
                continue
            elif char == "(":
                depth += 1
            elif char == ")":
                depth -= 1
                if depth == 0:
                    return index
        raise _NoGuard


def _flat(kind: type[And] | type[Or], operands: list[GuardExpr]) -> tuple[GuardExpr, ...]:
    """Operands of one operator in one list."""
    flat: list[GuardExpr] = []
    for operand in operands:
        flat.extend(operand.operands if isinstance(operand, kind) else (operand,))
    return tuple(flat)


def _explain(line: Line, start: int, end: int, *, is_error: bool) -> LabelError:
    """Why a label cannot be understood."""
    text = line.text[start:end].strip()
    at = start + len(line.text[start:end]) - len(line.text[start:end].lstrip())
    if is_error:
        return LabelError(
            f"'{text}' is no error transition",
            "write `error`, `error(NotFound, Conflict)` or `error [IsX]`, and `:: Action` behind it",
            at,
        )
    if _EVENT.match(line.text, start, end):
        return LabelError(
            f"'{text}' names an event, and there are no events",
            "put the condition into one guard: `[IsX]`, `[IsX and IsY]`",
            at,
        )
    if text.count("(") != text.count(")"):
        return LabelError(f"the parentheses of '{text}' do not pair", "close what is opened", at)
    return LabelError(
        f"'{text}' is no guard",
        "write `IsX`, `IsX(a, b)`, `not IsX and IsY`, and an action behind `::` or `/`",
        at,
    )
