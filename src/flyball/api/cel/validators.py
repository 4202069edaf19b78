"""What is refused in expressions that are well typed: constants that no function takes, and mixed literals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flyball.api.cel.errors import CompileError, EvalError, Issue
from flyball.api.cel.nodes import Call, Fold, ListNode, Literal, MapNode, Node, Select
from flyball.api.cel.overloads import accepts
from flyball.api.cel.parser import Places
from flyball.api.cel.strings import clauses, refusal
from flyball.api.cel.types import Type, shown
from flyball.api.structural.patterns import PatternError, compile_pattern

__all__ = ["validate"]


def validate(root: Node, source: str) -> None:
    """Check a tree that has types. Raises `CompileError`."""
    places = Places(source)
    issues: list[Issue] = []
    for node, exempt in _walk(root):
        for at, words in _found(node, exempt):
            issues.append(places.issue(at, words))
    if issues:
        raise CompileError(issues, source)


def _walk(root: Node) -> Iterator[tuple[Node, bool]]:
    """Go through all nodes, twice where they stand in two places; `exempt` are those in a call of `format`."""
    todo: list[tuple[Node, bool]] = [(root, False)]
    visits: dict[int, int] = {}
    while todo:
        node, exempt = todo.pop()
        visits[id(node)] = count = visits.get(id(node), 0) + 1
        if count > 2:
            continue
        yield node, exempt
        match node:
            case Select():
                todo.append((node.operand, exempt))
            case Call():
                inner = exempt or node.name == "format"
                todo.extend((arg, inner) for arg in node.args)
                if node.target is not None:
                    todo.append((node.target, inner))
            case ListNode():
                todo.extend((item, exempt) for item in node.items)
            case MapNode():
                todo.extend((part, exempt) for entry in node.entries for part in (entry.key, entry.value))
            case Fold():
                parts = (node.range, node.init, node.condition, node.step, node.result)
                todo.extend((part, exempt) for part in parts)
            case _:
                pass


def _found(node: Node, exempt: bool) -> Iterator[tuple[int, str]]:
    if isinstance(node, Call):
        yield from _call(node)
    elif isinstance(node, ListNode) and not exempt:
        yield from _mixed([(item, place in node.optional) for place, item in enumerate(node.items)])
    elif isinstance(node, MapNode) and not exempt:
        yield from _mixed([(entry.key, False) for entry in node.entries])
        yield from _mixed([(entry.value, entry.optional) for entry in node.entries])


def _mixed(parts: list[tuple[Node, bool]]) -> Iterator[tuple[int, str]]:
    first: Type | None = None
    for node, optional in parts:
        type_ = node.type.params[0] if optional and node.type.params else node.type
        if first is None:
            first = type_
        elif not _equivalent(first, type_):
            yield node.at, f"expected type '{shown(first)}' but found '{shown(type_)}'"
            return


def _equivalent(one: Type, other: Type) -> bool:
    if one.kind == "dyn" or other.kind == "dyn":
        return one.kind == other.kind
    if one.kind != other.kind or one.name != other.name or len(one.params) != len(other.params):
        return False
    return all(map(_equivalent, one.params, other.params))


def _call(node: Call) -> Iterator[tuple[int, str]]:
    arg = node.args[0] if node.args else None
    if node.name == "format" and isinstance(node.target, Literal) and isinstance(arg, ListNode):
        yield from _format(node, node.target.value, arg)
    elif not isinstance(arg, Literal):
        return
    elif node.name in ("duration", "timestamp") and not _converts(node, arg.value):
        yield arg.at, f"invalid {node.name} argument"
    elif node.name == "matches" and not _compiles(arg.value):
        yield arg.at, "invalid matches argument"


def _converts(node: Call, value: Any) -> bool:
    for overload in node.overloads:
        if overload.call is not None and accepts(overload.args[0], value):
            try:
                overload.call(value)
            except EvalError:
                return False
    return True


def _compiles(pattern: Any) -> bool:
    try:
        compile_pattern(str(pattern))
    except PatternError:
        return False
    return True


# --- format -----------------------------------------------------------------------------------------------------------

_ANY = frozenset("list map int uint double bool string timestamp bytes duration type null dyn".split())  # noqa: SIM905
_TAKEN: dict[str, frozenset[str]] = {
    "s": _ANY,
    "d": frozenset({"int", "uint", "dyn"}),
    "f": frozenset({"double", "string", "dyn"}),
    "e": frozenset({"double", "string", "dyn"}),
    "b": frozenset({"int", "uint", "bool", "dyn"}),
    "x": frozenset({"int", "uint", "string", "bytes", "dyn"}),
    "o": frozenset({"int", "uint", "dyn"}),
}


def _format(node: Call, pattern: str, args: ListNode) -> Iterator[tuple[int, str]]:
    used = 0
    try:
        for clause in clauses(pattern):
            if isinstance(clause, str):
                continue
            if used >= len(args.items):
                yield node.at, f"index {used} out of range"
                return
            bad = _unfit(clause[0].lower(), args.items[used]) if clause[0] else None
            if bad is not None:
                yield bad.at, f"error during formatting: {refusal(clause[0], bad.type.name)}"
                return
            used += 1
    except EvalError as error:
        yield node.at, str(error)
        return
    if used < len(args.items):
        words = f"too many arguments supplied to string.format (expected {used}, got {len(args.items)})"
        yield node.at, words


def _unfit(letter: str, arg: Node) -> Node | None:
    """Return the node that a clause cannot show."""
    if arg.type.kind not in _TAKEN[letter]:
        return arg
    parts: list[Node] = []
    if letter == "s" and isinstance(arg, ListNode):
        parts = arg.items
    elif letter == "s" and isinstance(arg, MapNode):
        parts = [part for entry in arg.entries for part in (entry.key, entry.value)]
    return next((bad for part in parts if (bad := _unfit(letter, part)) is not None), None)
