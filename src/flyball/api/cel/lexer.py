"""From the text of an expression to its tokens."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["RESERVED", "Token", "tokens_of", "unquoted"]

RESERVED: Final = frozenset(
    {
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    }
)
"""Names that no variable and no function may have."""

_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_TEXT = "|".join(
    [
        r'[rR]"""[\s\S]*?"""',
        r"[rR]'''[\s\S]*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    ]
)
_TOKEN: Final = re.compile(
    rf"""
    (?P<SKIP>[\t\x20\r\n\f]+|//[^\n]*)
    |(?P<BYTES>[bB](?:{_TEXT}))
    |(?P<STRING>{_TEXT})
    |(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])
    |(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/\x20]+`)
    |(?P<OPERATOR>==|!=|<=|>=|&&|\|\||[\[\]{{}}().,\-!?:+*/%<>])
    """,
    re.VERBOSE,
)
_WORDS: Final = frozenset({"true", "false", "null", "in"})
_UNFINISHED: Final = re.compile(
    rf"[rR]?(?:\"(?:{_ESCAPE}|[^\\\"\n\r])*|'(?:{_ESCAPE}|[^\\'\n\r])*)[\s\S]?(?:(?<=\\)[\s\S])?"
)


class Token(NamedTuple):
    """A piece of the text; `kind` is the text itself for operators and words, `<EOF>` at the end."""

    kind: str
    text: str
    at: int


def tokens_of(source: str) -> tuple[list[Token], list[tuple[int, str]]]:
    """Return the tokens, the last of which is the end, and the places and pieces that are none."""
    tokens: list[Token] = []
    bad: list[tuple[int, str]] = []
    at = 0
    while at < len(source):
        found = _TOKEN.match(source, at)
        if found is None:
            piece = _bad_piece(source, at)
            bad.append((at, piece))
            at += len(piece)
            continue
        kind, text = found.lastgroup or "", found[0]
        if kind == "OPERATOR" or text in _WORDS:
            kind = text
        if kind != "SKIP":
            tokens.append(Token(kind, text, at))
        at = found.end()
    tokens.append(Token("<EOF>", "<EOF>", len(source)))
    return tokens, bad


def _bad_piece(source: str, at: int) -> str:
    """Return as much as is reported at once: a half string, or half of an operator with what follows it."""
    if source[at] in "\"'":
        found = _UNFINISHED.match(source, at)
        return found[0] if found else source[at]
    return source[at : at + 2] if source[at] in "=&|" else source[at]


_SIMPLE: Final = dict(zip("abfnrtv\"'\\?`", "\a\b\f\n\r\t\v\"'\\?`", strict=True))


def unquoted(token: str, *, as_bytes: bool = False) -> str | bytes:
    """Return the value of a string literal. Raises `ValueError` with the reason when it has none."""
    text = token.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    quotes = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    text = text[quotes:-quotes]
    if raw or "\\" not in text:
        return text.encode("utf-8", "surrogatepass") if as_bytes else text
    return _bytes_of(text) if as_bytes else re.sub(_ESCAPE, _character, text)


def _character(found: re.Match[str]) -> str:
    letter = found[0][1]
    if letter in _SIMPLE:
        return _SIMPLE[letter]
    code = int(found[0][1:], 8) if letter.isdigit() else int(found[0][2:], 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ValueError("invalid unicode code point")
    return chr(code)


def _bytes_of(text: str) -> bytes:
    made = bytearray()
    end = 0
    for found in re.finditer(_ESCAPE, text):
        made += text[end : found.start()].encode("utf-8", "surrogatepass")
        end = found.end()
        letter = found[0][1]
        if letter in "uU":
            raise ValueError("unable to unescape string")
        if letter in _SIMPLE:
            made += _SIMPLE[letter].encode()
        else:
            made.append(int(found[0][1:], 8) if letter.isdigit() else int(found[0][2:], 16))
    return bytes(made + text[end:].encode("utf-8", "surrogatepass"))
