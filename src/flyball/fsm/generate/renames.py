"""Renames of actions and guards: in the diagram, in the user's files; and proposals where one is likely."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from flyball.errors import FlyballError
from flyball.fsm.generate.layout import quoted
from flyball.fsm.generate.marked import Bindings, Marked, scan
from flyball.fsm.generate.names import Kind
from flyball.fsm.generate.sourcetext import Edit, SourceFile, apply_edits
from flyball.fsm.generate.stubs import FileShape
from flyball.fsm.generate.wanted import uses
from flyball.fsm.model import Diagram

__all__ = ["Rename", "RenameError", "likely_renames", "parse_rename", "rename_in_diagram", "rename_in_file"]

_DEF = re.compile(r"(?:async[ \t\\\r\n]+)?def[ \t\\\r\n]+")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_HELPERS = {"action": "run_action", "guard": "ask_guard"}


class RenameError(FlyballError):
    """A rename that cannot be carried out; nothing has changed."""


@dataclass(frozen=True, slots=True)
class Rename:
    """One name becomes another."""

    kind: Kind
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.old}={self.new}"


def parse_rename(text: str) -> tuple[Kind | None, str, str]:
    """`guard:Old=New` or `Old=New`; the kind is None where it is not given."""
    names, equals, new = text.partition("=")
    kind, colon, old = names.rpartition(":")
    if not equals or not old.isidentifier() or not new.isidentifier() or old == new:
        raise RenameError(f"cannot read the rename {text!r}; write Old=New, action:Old=New or guard:Old=New")
    if colon and kind not in ("action", "guard"):
        raise RenameError(f"cannot read the rename {text!r}: {kind!r} is neither action nor guard")
    return ("action" if kind == "action" else "guard" if kind == "guard" else None), old, new


def likely_renames(old: Diagram, new: Diagram) -> Iterator[Rename]:
    """Where exactly one name of a kind is gone and exactly one stands in its places."""
    kinds: tuple[Kind, ...] = ("action", "guard")
    for kind in kinds:
        before, after = _places(old, kind), _places(new, kind)
        gone, come = sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys())
        if len(gone) == len(come) == 1 and before[gone[0]] == after[come[0]]:
            yield Rename(kind, gone[0], come[0])


def _places(diagram: Diagram, kind: Kind) -> dict[str, set[tuple[str, str, str, int, int]]]:
    found: dict[str, set[tuple[str, str, str, int, int]]] = {}
    for use in uses(diagram):
        if use.kind == kind:
            found.setdefault(use.call.name, set()).add(use.place)
    return found


def rename_in_diagram(text: str, diagram: Diagram, rename: Rename) -> str:
    """The text of a diagram's file with every use renamed; `text` has its line ends as they are."""
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
    edits: dict[int, Edit] = {}
    for use in uses(diagram):
        if use.kind == rename.kind and use.call.name == rename.old:
            position = use.call.position
            start = starts[position.line - 1] + position.column - 1
            if text[start : start + len(rename.old)] != rename.old:
                raise RenameError(
                    f"cannot find {rename.old} in line {position.line} of the diagram; rename it there by hand"
                )
            edits[start] = Edit(start, start + len(rename.old), rename.new)
    return apply_edits(text, list(edits.values()))


def rename_in_file(
    raw: bytes, file: str, shape: FileShape, renames: Iterable[Rename], functions: Mapping[str, str] | None = None
) -> bytes:
    """A user's file with markers renamed, and functions too where they have the default name.

    `functions` says which functions of actions.py and guards.py have got another name: `actions.load` and the like
    follow.
    """
    for rename in renames:
        source = SourceFile.parse(raw, file)
        edits = {edit.start: edit for edit in _edits(source, shape, rename)}
        edits.update((edit.start, edit) for edit in _attribute_edits(source, functions or {}))
        raw = source.encode(apply_edits(source.text, list(edits.values())))
    return raw


def _edits(source: SourceFile, shape: FileShape, rename: Rename) -> Iterator[Edit]:
    if rename.kind in shape.words.values():
        bindings = Bindings.of(source.tree)
        found = scan(source.tree, shape.words, bindings).marked
        if any(one.name == rename.new for one in found) and any(one.name == rename.old for one in found):
            raise RenameError(
                f"{source.file}: cannot rename {rename}: {rename.new} is there already; keep one of the two"
            )
        for one in found:
            if one.name == rename.old:
                yield Edit(*source.span(one.literal), quoted(rename.new))
                yield from _function_edits(source, shape, rename, one, bindings)
    yield from _helper_edits(source, rename)


def _function_edits(
    source: SourceFile, shape: FileShape, rename: Rename, one: Marked, bindings: Bindings
) -> Iterator[Edit]:
    old, new = shape.default_name(rename.old), shape.default_name(rename.new)
    if one.function != old or old == new or new in bindings.names or _shadowed(source.tree, old, one):
        return
    start = source.offset(one.node.lineno, one.node.col_offset)
    head = _DEF.match(source.text, start)
    if head is None or not source.text.startswith(old, head.end()):
        return
    yield Edit(head.end(), head.end() + len(old), new)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and node.id == old:
            start, end = source.span(node)
            if source.text[start:end] == old:
                yield Edit(start, end, new)


def _shadowed(tree: ast.Module, name: str, one: Marked) -> bool:
    """Whether something else in the file has the function's name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg == name:
            return True
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, _DEFINITIONS) and node is not one.node and node.name == name:
            return True
        if isinstance(node, ast.alias) and name in (node.asname, node.name):
            return True
        if isinstance(node, ast.Global | ast.Nonlocal) and name in node.names:
            return True
    return False


def _attribute_edits(source: SourceFile, functions: Mapping[str, str]) -> Iterator[Edit]:
    """`actions.load` where that function is called otherwise now."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            new = functions.get(f"{node.value.id}.{node.attr}")
            _, end = source.span(node)
            if new is not None and source.text[end - len(node.attr) : end] == node.attr:
                yield Edit(end - len(node.attr), end, new)


def _helper_edits(source: SourceFile, rename: Rename) -> Iterator[Edit]:
    """`run_action(machine, "Old")` in tests."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call) or len(node.args) < 2:
            continue
        word = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        literal = node.args[1]
        if word == _HELPERS[rename.kind] and isinstance(literal, ast.Constant) and literal.value == rename.old:
            yield Edit(*source.span(literal), quoted(rename.new))
