"""Which lines belong to a function, and whether anybody has touched it since it was generated."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from flyball.fsm.generate.marked import Marked
from flyball.fsm.generate.sourcetext import SourceFile
from flyball.fsm.generate.stubs import FileShape

__all__ = ["Region", "is_untouched", "region_of", "removal"]


@dataclass(frozen=True, slots=True)
class Region:
    """The lines of a function from its first decorator to its last comment, counted from 1, both ends included."""

    first: int
    last: int


def region_of(source: SourceFile, node: ast.stmt) -> Region:
    """The lines of a function at the top of the module."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(one.lineno for one in decorators)])
    floor = _end_before(source, node)
    if decorators:
        while first > floor + 1 and not source.line(first).lstrip().startswith("@"):
            first -= 1
    last = node.end_lineno or node.lineno
    return Region(first, _last_comment(source, last))


def is_untouched(source: SourceFile, shape: FileShape, marked: Marked) -> bool:
    """Whether a marked function is exactly what was generated, so that it may be replaced or removed."""
    if not marked.direct or not _plain_marker(source, marked):
        return False
    region = region_of(source, marked.node)
    return shape.is_stub(marked.name, marked.node, list(_comments(source, region)))


def removal(source: SourceFile, node: ast.stmt) -> tuple[int, int]:
    """The characters that go with a function: its lines, the comments attached to it, two blank lines before."""
    region = region_of(source, node)
    floor = _end_before(source, node)
    first = region.first
    while first - 1 > max(floor, _header(source)) and source.line(first - 1).startswith("#"):
        first -= 1
    for _ in range(2):
        if first - 1 > floor and first > 1 and source.line(first - 1).strip("\r\n") == "":
            first -= 1
    return source.line_start(first), source.line_start(region.last + 1)


def _plain_marker(source: SourceFile, marked: Marked) -> bool:
    """The marker has one argument, a literal, and stands on a line of its own that starts with it."""
    for decorator in marked.node.decorator_list:
        line = source.line(decorator.lineno)
        if not line.startswith("@") or decorator.col_offset != 1:
            return False
        if isinstance(decorator, ast.Call) and marked.literal in decorator.args:
            if len(decorator.args) != 1 or decorator.keywords:
                return False
        elif len(marked.node.decorator_list) == 1:
            return False
    return not marked.node.col_offset


def _comments(source: SourceFile, region: Region) -> Iterator[str]:
    text = source.text[source.line_start(region.first) : source.line_start(region.last + 1)]
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.rstrip()


def _last_comment(source: SourceFile, last: int) -> int:
    """Indented comments behind the last statement of a function belong to it."""
    number = last + 1
    while number <= source.line_count:
        line = source.line(number)
        if line.strip() and not (line[0] in " \t" and line.lstrip().startswith("#")):
            break
        if line.strip():
            last = number
        if number == source.line_count:
            break
        number += 1
    return last


def _end_before(source: SourceFile, node: ast.stmt) -> int:
    """The last line of the statement before a function; 0 if there is none."""
    end = 0
    for other in source.tree.body:
        if other is node:
            return end
        end = max(end, other.end_lineno or other.lineno)
    return end


def _header(source: SourceFile) -> int:
    """The last line of a `#!` or encoding line at the top."""
    header = 0
    for number in (1, 2):
        line = source.line(number)
        if line.startswith("#") and ("coding" in line or (number == 1 and line.startswith("#!"))):
            header = number
    return header
