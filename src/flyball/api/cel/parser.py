"""From tokens to the tree of an expression; the grammar is that of the CEL specification, macros are expanded here."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Final, NoReturn

from flyball.api.cel.errors import CompileError, Issue
from flyball.api.cel.lexer import RESERVED, Token, tokens_of, unquoted
from flyball.api.cel.macros import Macro, MacroError
from flyball.api.cel.nodes import Call, Entry, Ident, ListNode, Literal, MapNode, Node, Select, Struct
from flyball.api.cel.values import Uint

__all__ = ["DEEPEST", "LONGEST", "Places", "parse"]

DEEPEST: Final = 250
"""How deep expressions may be nested."""
LONGEST: Final = 100_000
"""How many characters an expression may have."""

_MOST_ISSUES = 100
_PRIMARY = (
    "'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER"
)
_STARTS = frozenset(
    {
        "[",
        "{",
        "(",
        ".",
        "-",
        "!",
        "true",
        "false",
        "null",
        "NUM_FLOAT",
        "NUM_INT",
        "NUM_UINT",
        "STRING",
        "BYTES",
        "IDENTIFIER",
    }
)
_ARGUMENT = _PRIMARY.replace("'(', ", "'(', ')', ", 1)
_LEVELS: Final = {
    "||": 1,
    "&&": 2,
    **dict.fromkeys(("<", "<=", ">=", ">", "==", "!=", "in"), 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/", "%"), 5),
}
_LOGIC: Final = frozenset({"||", "&&"})
_NAMES: Final = {"in": "@in"}


class Places:
    """Turns offsets into lines and columns."""

    def __init__(self, source: str) -> None:
        """Find the lines."""
        self._starts = [0, *(at + 1 for at, character in enumerate(source) if character == "\n")]

    def issue(self, at: int, message: str) -> Issue:
        """Make an issue of an offset."""
        line = bisect_right(self._starts, at)
        return Issue(line, at - self._starts[line - 1] + 1, message)


def parse(source: str, macros: Mapping[tuple[str, int, bool], Macro]) -> Node:
    """Parse an expression. Raises `CompileError`."""
    if len(source) > LONGEST:
        words = f"expression code point size exceeds limit: size: {len(source)}, limit {LONGEST}"
        raise CompileError([Issue(-1, 0, words)], source)
    parser = _Parser(source, macros)
    try:
        return parser.whole()
    except _Stop:
        raise CompileError(parser.issues, source) from None
    except RecursionError:
        raise CompileError([_too_deep()], source) from None


def _too_deep() -> Issue:
    return Issue(-1, 0, f"expression recursion limit exceeded: {DEEPEST}")


class _Stop(Exception):
    """Nothing can be said about the rest."""


class _Parser:
    def __init__(self, source: str, macros: Mapping[tuple[str, int, bool], Macro]) -> None:
        self._macros = macros
        self._places = Places(source)
        self.issues: list[Issue] = []
        self._tokens, bad = tokens_of(source)
        for at, piece in bad[:_MOST_ISSUES]:
            self._report(at, f"Syntax error: token recognition error at: '{_shown(piece)}'")
        self._next = 0
        self._nesting = 0
        self._indexing = False

    def whole(self) -> Node:
        node = self._expression()
        token = self._tokens[self._next]
        if token.kind != "<EOF>":
            last = self._tokens[self._next + 1].kind == "<EOF>"
            self._fail(token, f"{'extraneous' if last else 'mismatched'} input '{token.text}' expecting <EOF>")
        if self.issues:
            raise _Stop
        return node

    # --- tokens -------------------------------------------------------------------------------------------------------

    def _report(self, at: int, message: str) -> None:
        self.issues.append(self._places.issue(at, message))

    def _fail(self, token: Token, message: str) -> NoReturn:
        self._report(token.at, f"Syntax error: {message}")
        raise _Stop

    def _unexpected(self, expected: str) -> NoReturn:
        token = self._tokens[self._next]
        self._fail(token, f"mismatched input '{token.text}' expecting {expected}")

    def _no_operand(self) -> NoReturn:
        """Say that an expression was expected; a token too many is told apart from one that is wrong."""
        token = self._tokens[self._next]
        after = self._tokens[min(self._next + 1, len(self._tokens) - 1)]
        before = self._tokens[self._next - 1].kind if self._next else ""
        extra = after.kind in _STARTS if token.kind != "<EOF>" else before == "!"
        expected = _PRIMARY.replace("'!', ", "'!', '?', ", 1) if before == "[" and self._indexing else _PRIMARY
        self._fail(token, f"{'extraneous' if extra else 'mismatched'} input '{token.text}' expecting {{{expected}}}")

    def _peek(self) -> str:
        return self._tokens[self._next].kind

    def _take(self, kind: str) -> Token | None:
        token = self._tokens[self._next]
        if token.kind != kind:
            return None
        self._next += 1
        return token

    def _close(self, kind: str, expected: str, *, missing: bool = False) -> None:
        if self._take(kind) is None:
            if missing:
                token = self._tokens[self._next]
                self._fail(token, f"missing '{kind}' at '{token.text}'")
            self._unexpected(expected)

    # --- expressions --------------------------------------------------------------------------------------------------

    def _expression(self) -> Node:
        self._nesting += 1
        if self._nesting > DEEPEST:
            self.issues = [_too_deep()]
            raise _Stop
        node = self._operators(1)
        question = self._take("?")
        if question is not None:
            yes = self._operators(1)
            self._close(":", "':'")
            node = self._call(question.at, "_?_:_", [node, yes, self._expression()])
        self._nesting -= 1
        return node

    def _operators(self, level: int) -> Node:
        """Parse operands and the operators between them that bind at least so strongly."""
        left = self._operand()
        while (found := _LEVELS.get(self._peek(), 0)) >= level:
            token = self._tokens[self._next]
            terms = [left]
            while self._take(token.kind) is not None:
                terms.append(self._operators(found + 1))
                if token.kind not in _LOGIC:
                    break
            left = self._call(token.at, _NAMES.get(token.kind, f"_{token.kind}_"), terms)
        return left

    def _operand(self) -> Node:
        """Parse signs, a primary, and what follows it; parentheses here, so that nesting them takes little stack."""
        operator = self._peek()
        signs = 0
        first = self._tokens[self._next]
        if operator == "!" or (operator == "-" and not self._is_signed_number()):
            while self._take(operator) is not None:
                signs += 1
        if self._take("(") is not None:
            node = self._expression()
            self._close(")", "", missing=True)
        else:
            node = self._primary()
        while True:
            if (token := self._take(".")) is not None:
                node = self._selected(node, token)
            elif (token := self._take("[")) is not None:
                node = self._indexed(node, token)
            elif self._peek() == "{" and (name := _qualified(node)) is not None:
                node = self._message(name)
            else:
                return self._call(first.at, f"{operator}_", [node]) if signs % 2 else node

    def _is_signed_number(self) -> bool:
        return self._tokens[self._next + 1].kind in ("NUM_INT", "NUM_FLOAT")

    def _indexed(self, operand: Node, opening: Token) -> Node:
        optional = self._take("?") is not None
        self._indexing = not optional
        index = self._expression()
        self._close("]", "']'", missing=True)
        return self._call(opening.at, "_[?_]" if optional else "_[_]", [operand, index])

    def _selected(self, operand: Node, dot: Token) -> Node:
        optional = self._take("?") is not None
        if self._peek() == "ESC_IDENTIFIER":
            self._report(self._tokens[self._next].at, "unsupported syntax: '`'")
            raise _Stop
        name = self._take("IDENTIFIER")
        if name is None:
            token = self._tokens[self._next]
            if token.kind in ("true", "false", "null"):
                self._unexpected("IDENTIFIER")
            shown = "" if token.kind == "<EOF>" else token.text
            self._fail(token, f"no viable alternative at input '.{shown}'")
        if optional:
            return self._call(dot.at, "_?._", [operand, Literal(name.at, "string", name.text)])
        opening = self._take("(")
        if opening is not None:
            return self._called(opening.at, name.text, operand, self._arguments())
        return self._deep(Select(dot.at, operand, name.text))

    def _arguments(self) -> list[Node]:
        if self._take(")") is not None:
            return []
        if self._peek() == "<EOF>":
            self._unexpected(f"{{{_ARGUMENT}}}")
        found = [self._expression()]
        while self._take(",") is not None:
            found.append(self._expression())
        self._close(")", "{')', ','}")
        return found

    def _primary(self) -> Node:
        token = self._tokens[self._next]
        self._next += 1
        match token.kind:
            case "IDENTIFIER":
                return self._named(token, token.text, token.at)
            case ".":
                name = self._take("IDENTIFIER")
                if name is None:
                    self._fail(self._tokens[self._next], "no viable alternative at input '.'")
                return self._named(name, f".{name.text}", token.at)
            case "[":
                return self._list(token)
            case "{":
                return self._map(token)
            case "-":
                number = self._tokens[self._next]
                if number.kind in ("NUM_INT", "NUM_FLOAT"):
                    self._next += 1
                    return self._literal(number._replace(text=f"-{number.text}", at=token.at))
            case _:
                return self._literal(token)
        self._next -= 1
        return self._no_operand()

    def _literal(self, token: Token) -> Node:
        kind, text, at = token
        try:
            match kind:
                case "NUM_INT":
                    return Literal(at, "int", _integer(text, -(2**63), 2**63))
                case "NUM_UINT":
                    return Literal(at, "uint", Uint(_integer(text[:-1], 0, 2**64)))
                case "NUM_FLOAT":
                    return Literal(at, "double", _double(text))
                case "STRING":
                    return Literal(at, "string", unquoted(text))
                case "BYTES":
                    return Literal(at, "bytes", unquoted(text[1:], as_bytes=True))
                case "true" | "false":
                    return Literal(at, "bool", kind == "true")
                case "null":
                    return Literal(at, "null", None)
                case _:
                    self._next -= 1
                    return self._no_operand()
        except ValueError as error:
            names = {"NUM_INT": "invalid int literal", "NUM_UINT": "invalid uint literal"}
            self._report(at, names.get(kind, "invalid double literal" if kind == "NUM_FLOAT" else str(error)))
            return Literal(at, "null", None)

    def _named(self, name: Token, full: str, at: int) -> Node:
        if name.text in RESERVED:
            self._report(at, f"reserved identifier: {name.text}")
        opening = self._take("(")
        if opening is None:
            return Ident(name.at, full)
        return self._called(opening.at, full, None, self._arguments())

    def _list(self, opening: Token) -> Node:
        items: list[Node] = []
        optional: set[int] = set()
        while self._peek() not in ("]", ","):
            if self._take("?") is not None:
                optional.add(len(items))
            items.append(self._expression())
            if self._take(",") is None:
                self._close("]", "{']', ','}")
                return self._deep(ListNode(opening.at, items, frozenset(optional)))
        if not items:
            self._take(",")
        self._close("]", "']'")
        return self._deep(ListNode(opening.at, items, frozenset(optional)))

    def _map(self, opening: Token) -> Node:
        return self._deep(MapNode(opening.at, self._entries(fields=False)))

    def _message(self, name: str) -> Node:
        opening = self._tokens[self._next]
        self._next += 1
        return self._deep(Struct(opening.at, name, self._entries(fields=True)))

    def _entries(self, *, fields: bool) -> list[Entry]:
        entries: list[Entry] = []
        while self._peek() not in ("}", ","):
            optional = self._take("?") is not None
            key = self._field_name() if fields else self._expression()
            colon = self._tokens[self._next]
            if colon.kind not in (":", "}", "<EOF>", ","):
                self._fail(colon, f"missing ':' at '{colon.text}'")
            self._close(":", "':'")
            entries.append(Entry(colon.at, key, self._expression(), optional))
            if self._take(",") is None:
                self._close("}", "{'}', ','}")
                return entries
        if not entries:
            self._take(",")
        self._close("}", "'}'")
        return entries

    def _field_name(self) -> Node:
        name = self._take("IDENTIFIER")
        if name is None:
            self._unexpected("{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}")
        return Literal(name.at, "string", name.text)

    # --- nodes --------------------------------------------------------------------------------------------------------

    def _deep(self, node: Node) -> Node:
        if node.depth > DEEPEST:
            self.issues = [_too_deep()]
            raise _Stop
        return node

    def _call(self, at: int, name: str, args: list[Node]) -> Node:
        return self._deep(Call(at, name, args))

    def _called(self, at: int, name: str, target: Node | None, args: list[Node]) -> Node:
        macro = self._macros.get((name, len(args), target is not None))
        if macro is not None:
            try:
                expanded = macro(at, target, args)
            except MacroError as error:
                self._report(error.at, str(error))
                return Literal(at, "null", None)
            if expanded is not None:
                return self._deep(expanded)
        return self._deep(Call(at, name, args, target))


def _qualified(node: Node) -> str | None:
    """Return `a.b.c` when a node is just that."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.test:
        parts.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(parts)]) if isinstance(node, Ident) else None


def _integer(text: str, low: int, high: int) -> int:
    if len(text) > 70:
        text = text[:2] + text[2:].lstrip("0")
        if len(text) > 70:
            raise ValueError
    value = int(text, 16 if "x" in text else 10)
    if not low <= value < high:
        raise ValueError
    return value


def _double(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError
    return value


def _shown(piece: str) -> str:
    return piece.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
