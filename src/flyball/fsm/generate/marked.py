"""Finds the functions that a user's file marks as an action or guard, or as the test of one.

A marker is a decorator called with a literal text: `@action("Load")`, `@fsm.guard("IsReady")`,
`@covers_action("Load")`. The text is the identity, the name of the function is free. The file is read with `ast`,
never imported, so a marker whose text is not a literal cannot be read; it is reported instead of guessed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from flyball.fsm.generate.names import Kind

__all__ = ["Bindings", "Function", "Marked", "Scan", "scan"]

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_NAMING = (ast.MatchAs, ast.MatchStar, ast.ExceptHandler)


@dataclass(frozen=True, slots=True)
class Marked:
    """One marker on one function."""

    kind: Kind
    name: str
    node: Function
    literal: ast.Constant
    """The text of the marker, with its place in the file."""
    direct: bool
    """Whether the function stands at the top of the module, not inside an `if` or `try` there."""

    @property
    def never_fails(self) -> bool:
        """Whether the marker says `fails=False`."""
        calls = [one for one in self.node.decorator_list if isinstance(one, ast.Call)]
        return any(
            word.arg == "fails" and isinstance(word.value, ast.Constant) and word.value.value is False
            for one in calls
            for word in one.keywords
        )

    @property
    def function(self) -> str:
        """The function's name in Python."""
        return self.node.name


@dataclass(frozen=True, slots=True)
class Origin:
    """What a module level name was imported as; the module is empty for a name made in the file itself."""

    module: str
    name: str | None = None

    @property
    def local(self) -> bool:
        """Whether the file makes the name itself."""
        return not self.module


@dataclass(slots=True)
class Bindings:
    """The names that a module binds at its top level, and where they come from."""

    names: dict[str, Origin] = field(default_factory=dict)
    future_annotations: bool = False

    @classmethod
    def of(cls, tree: ast.Module) -> Bindings:
        """Collect the names, those bound inside `if`, `try`, `with` and loops of the top level too."""
        found = cls()
        for statement in _reachable(tree.body):
            found._take(statement)
        return found

    def name_for(self, module: str, name: str | None) -> str | None:
        """How the file calls what `from module import name` (or `import module`) brings, or None."""
        for bound, origin in self.names.items():
            if origin.module == module and origin.name == name:
                return bound
        if name is None:
            return None
        return next((f"{bound}.{name}" for bound, origin in self.names.items() if _is_module(origin, module)), None)

    def _take(self, node: ast.stmt) -> None:
        match node:
            case ast.Import():
                for alias in node.names:
                    self.names[alias.asname or alias.name.partition(".")[0]] = Origin(
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    )
            case ast.ImportFrom():
                module = "." * node.level + (node.module or "")
                self.future_annotations |= module == "__future__" and any(a.name == "annotations" for a in node.names)
                for alias in node.names:
                    self.names[alias.asname or alias.name] = Origin(module, alias.name)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.names[node.name] = Origin("")
            case _:
                for name in _stored(node):
                    self.names[name] = Origin("")


def _is_module(origin: Origin, module: str) -> bool:
    if origin.name is None:
        return origin.module == module
    joined = f"{origin.module}{origin.name}" if origin.module.endswith(".") else f"{origin.module}.{origin.name}"
    return not origin.local and joined == module


@dataclass(frozen=True, slots=True)
class Scan:
    """What a file marks: functions the machine can use, markers it cannot read, functions it cannot reach."""

    marked: tuple[Marked, ...]
    unreadable: tuple[ast.expr, ...]
    hidden: tuple[Marked, ...]
    """Marked functions inside a function or class."""


def scan(tree: ast.Module, words: Mapping[str, Kind], bindings: Bindings) -> Scan:
    """Find all markers of a module; `words` says which decorators are markers, and of what."""
    marked: list[Marked] = []
    unreadable: list[ast.expr] = []
    reachable: set[int] = set()
    top = {id(node) for node in tree.body}
    for node in _reachable(tree.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            reachable.add(id(node))
            for decorator in node.decorator_list:
                found = _marker(decorator, words, bindings)
                if found is None:
                    continue
                kind, literal = found
                if literal is None:
                    unreadable.append(decorator)
                else:
                    marked.append(Marked(kind, str(literal.value), node, literal, id(node) in top))
    hidden = tuple(_hidden(tree, reachable, words, bindings))
    return Scan(tuple(marked), tuple(unreadable), hidden)


def _hidden(tree: ast.Module, reachable: set[int], words: Mapping[str, Kind], bindings: Bindings) -> Iterator[Marked]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and id(node) not in reachable:
            for decorator in node.decorator_list:
                found = _marker(decorator, words, bindings)
                if found is not None and found[1] is not None:
                    yield Marked(found[0], str(found[1].value), node, found[1], direct=False)


def _marker(
    decorator: ast.expr, words: Mapping[str, Kind], bindings: Bindings
) -> tuple[Kind, ast.Constant | None] | None:
    if not isinstance(decorator, ast.Call):
        return None
    word = _word(decorator.func, bindings)
    if word is None or word not in words:
        return None
    given = decorator.args[:1] or [one.value for one in decorator.keywords if one.arg == "name"]
    literal = given[0] if given else None
    if isinstance(literal, ast.Constant) and isinstance(literal.value, str):
        return words[word], literal
    return words[word], None


def _word(function: ast.expr, bindings: Bindings) -> str | None:
    """The marker's own name, whatever the file calls it; None for something of another library."""
    root = function
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name):
        return None
    origin = bindings.names.get(root.id)
    if isinstance(function, ast.Attribute):
        return None if origin and _foreign(origin) else function.attr
    if origin is None or origin.local:
        return root.id
    return None if _foreign(origin) else origin.name


def _foreign(origin: Origin) -> bool:
    root = origin.module.partition(".")[0]
    return not origin.local and bool(root) and root not in ("flyball", "pytest")


def _reachable(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run at import: the top level and the blocks in it, not functions and classes."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.stmt):
                yield from _reachable([child])
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                yield from _reachable(child.body)


def _stored(statement: ast.stmt) -> Iterator[str]:
    """Names that a statement assigns, in whatever way."""
    for node in _own_nodes(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, _NAMING) and node.name:
            yield node.name


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            continue
        yield child
        yield from _own_nodes(child)
