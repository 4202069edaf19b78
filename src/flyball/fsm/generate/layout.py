"""Python expressions as text that a formatter leaves alone, whatever its line length.

What fits into 88 columns stands on one line. What does not is opened: one element on a line, each followed by a
comma, which formatters with longer lines keep as it is. Only brackets that may end with a comma are used for that;
never a tuple of one.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["WIDTH", "Group", "Node", "call", "docstring", "listing", "lists", "mapping", "quoted", "render"]

WIDTH = 88
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True, slots=True)
class Group:
    """Something in brackets: `prefix(a, b)`, `[a, b]`, `{a: b}`."""

    open: str
    items: tuple[Node, ...]
    close: str
    key: str = ""
    """What stands before the whole: `name=` or `"key": `."""


Node = str | Group


def render(node: Node, indent: int = 0, before: int = 0, after: int = 1) -> str:
    """The text of a node that starts behind `before` characters of its line, with `after` characters behind it."""
    flat = _flat(node)
    if isinstance(node, str) or not node.items or indent + before + len(flat) + after <= WIDTH:
        return flat
    inner = " " * (indent + 4)
    lines = [f"{inner}{render(item, indent + 4)},\n" for item in node.items]
    return f"{node.key}{node.open}\n{''.join(lines)}{' ' * indent}{node.close}"


def _flat(node: Node) -> str:
    if isinstance(node, str):
        return node
    return f"{node.key}{node.open}{', '.join(_flat(item) for item in node.items)}{node.close}"


def call(function: str, *arguments: Node, key: str = "") -> Group:
    """`function(arguments)`."""
    return Group(f"{function}(", arguments, ")", key)


def listing(items: Iterable[Node], key: str = "") -> Group:
    """`[items]`."""
    return Group("[", tuple(items), "]", key)


def mapping(items: Iterable[tuple[str, str]], key: str = "") -> Group:
    """`{"key": value}`; the values are expressions."""
    return Group("{", tuple(f"{quoted(name)}: {value}" for name, value in items), "}", key)


def lists(rows: Iterable[Sequence[str]]) -> Group:
    """A list of lists of texts."""
    return listing(listing(quoted(text) for text in row) for row in rows)


def quoted(text: str) -> str:
    """A string literal as formatters write it: double quotes unless single ones save escapes; odd ones escaped."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    return quote + "".join(_escaped(char, quote) for char in text) + quote


def _escaped(char: str, quote: str) -> str:
    if char == quote:
        return f"\\{char}"
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def docstring(summary: str, rest: str = "", indent: int = 4) -> str:
    """A docstring literal without its indentation; `rest` is a paragraph of its own."""
    summary, rest = _plain(summary), _plain(rest)
    space = " " * indent
    if not rest and indent + len(summary) + 6 <= WIDTH:
        return f'"""{summary}"""'
    lines = textwrap.wrap(rest, WIDTH - indent, break_long_words=False, break_on_hyphens=False)
    body = "".join(f"{space}{line}\n" for line in lines)
    return f'"""{summary}\n\n{body}{space}"""' if rest else f'"""{summary}\n{space}"""'


def _plain(text: str) -> str:
    """Text that can stand between triple quotes."""
    return text.replace("\\", "/").replace('"', "'")
