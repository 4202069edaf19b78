"""Macros: calls that stand for loops.

Each expands into the same tree as the reference implementation's, so that types, errors and costs come out the same;
`Fold.kind` lets the compiler run the loop in a quicker way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from flyball.api.cel.nodes import Call, Fold, Ident, ListNode, Literal, MapNode, Node, Select

__all__ = ["BINDINGS", "KUBERNETES", "STANDARD", "Macro", "MacroError"]

Macro = Callable[[int, Node | None, list[Node]], Node | None]
"""Takes the place of the call, the target and the arguments; None means that it is a plain call after all."""

ACCU: Final = "@result"
_UNUSED: Final = "#unused"


class MacroError(Exception):
    """The arguments are not what the macro is made for."""

    def __init__(self, at: int, message: str) -> None:
        """Keep the place of the argument."""
        super().__init__(message)
        self.at = at


def _variable(node: Node, words: str) -> str:
    if not isinstance(node, Ident) or node.name.startswith("."):
        raise MacroError(node.at, words)
    if node.name in (ACCU, "__result__"):
        raise MacroError(node.at, "iteration variable overwrites accumulator variable")
    return node.name


def _two_variables(args: list[Node]) -> tuple[str, str]:
    names: list[str] = []
    for arg in args[:2]:
        if not isinstance(arg, Ident) or arg.name.startswith("."):
            raise MacroError(arg.at, "argument must be a simple name")
        names.append(arg.name)
    if names[0] == names[1]:
        raise MacroError(args[1].at, f"duplicate variable name: {names[0]}")
    for arg in args[:2]:
        _variable(arg, "")
    return names[0], names[1]


def _has(at: int, target: Node | None, args: list[Node]) -> Node | None:
    found = args[0]
    if not isinstance(found, Select) or found.test:
        raise MacroError(found.at, "invalid argument to has() macro")
    return Select(at, found.operand, found.field, test=True)


class _Loop:
    """Makes the parts of one loop, all at the place of the macro."""

    def __init__(self, at: int, range_: Node | None, variables: tuple[str, str | None]) -> None:
        assert range_ is not None
        self.at, self.range, self.variables = at, range_, variables

    def accu(self) -> Node:
        return Ident(self.at, ACCU)

    def literal(self, kind: str, value: object) -> Node:
        return Literal(self.at, kind, value)

    def call(self, name: str, *args: Node) -> Call:
        return Call(self.at, name, list(args))

    def fold(self, kind: str, init: Node, loop: tuple[Node, Node, Node], body: Node, where: Node | None = None) -> Node:
        return Fold(self.at, kind, self.range, self.variables, (ACCU, init), loop, body, where)

    def all(self, body: Node) -> Node:
        condition = self.call("@not_strictly_false", self.accu())
        loop = (condition, self.call("_&&_", self.accu(), body), self.accu())
        return self.fold("all", self.literal("bool", True), loop, body)

    def exists(self, body: Node) -> Node:
        condition = self.call("@not_strictly_false", self.call("!_", self.accu()))
        loop = (condition, self.call("_||_", self.accu(), body), self.accu())
        return self.fold("exists", self.literal("bool", False), loop, body)

    def one(self, body: Node) -> Node:
        more = self.call("_+_", self.accu(), self.literal("int", 1))
        step = self.call("_?_:_", body, more, self.accu())
        result = self.call("_==_", self.accu(), self.literal("int", 1))
        return self.fold("one", self.literal("int", 0), (self.literal("bool", True), step, result), body)

    def _filtered(self, kind: str, init: Node, step: Node, body: Node, where: Node | None) -> Node:
        if where is not None:
            step = self.call("_?_:_", where, step, self.accu())
        return self.fold(kind, init, (self.literal("bool", True), step, self.accu()), body, where)

    def list(self, body: Node, where: Node | None) -> Node:
        step = self.call("_+_", self.accu(), ListNode(self.at, [body]))
        return self._filtered("list", ListNode(self.at, []), step, body, where)

    def entries(self, key: str, body: Node, where: Node | None) -> Node:
        step = self.call("cel.@mapInsert", self.accu(), Ident(self.at, key), body)
        return self._filtered("entries", MapNode(self.at, []), step, body, where)

    def merged(self, body: Node, where: Node | None) -> Node:
        step = self.call("cel.@mapInsert", self.accu(), body)
        return self._filtered("merged", MapNode(self.at, []), step, body, where)


def _quantifier(make: Callable[[_Loop, Node], Node]) -> Macro:
    def macro(at: int, target: Node | None, args: list[Node]) -> Node | None:
        if len(args) == 3:
            return make(_Loop(at, target, _two_variables(args)), args[2])
        return make(_Loop(at, target, (_variable(args[0], "argument must be a simple name"), None)), args[1])

    return macro


def _map(at: int, target: Node | None, args: list[Node]) -> Node | None:
    loop = _Loop(at, target, (_variable(args[0], "argument is not an identifier"), None))
    return loop.list(args[-1], args[1] if len(args) == 3 else None)


def _filter(at: int, target: Node | None, args: list[Node]) -> Node | None:
    loop = _Loop(at, target, (_variable(args[0], "argument is not an identifier"), None))
    return loop.list(args[0], args[1])


def _where(args: list[Node]) -> Node | None:
    return args[2] if len(args) == 4 else None


def _transform_list(at: int, target: Node | None, args: list[Node]) -> Node | None:
    return _Loop(at, target, _two_variables(args)).list(args[-1], _where(args))


def _transform_map(at: int, target: Node | None, args: list[Node]) -> Node | None:
    names = _two_variables(args)
    return _Loop(at, target, names).entries(names[0], args[-1], _where(args))


def _transform_map_entry(at: int, target: Node | None, args: list[Node]) -> Node | None:
    return _Loop(at, target, _two_variables(args)).merged(args[-1], _where(args))


def _bound(at: int, name: str, value: Node, body: Node) -> Node:
    loop = (Literal(at, "bool", False), Ident(at, name), body)
    return Fold(at, "bind", ListNode(at, []), (_UNUSED, None), (name, value), loop, body)


def _opt_map(name: str, *, flat: bool) -> Macro:
    """Make a macro whose target stands in two places, as one node: else a chain would double with each link."""

    def macro(at: int, target: Node | None, args: list[Node]) -> Node | None:
        assert target is not None
        variable = args[0]
        if not isinstance(variable, Ident):
            raise MacroError(variable.at, f"{name}() variable name must be a simple identifier")
        bound = _bound(at, variable.name, Call(at, "value", [], target), args[1])
        some = bound if flat else Call(at, "optional.of", [bound])
        return Call(at, "_?_:_", [Call(at, "hasValue", [], target), some, Call(at, "optional.none", [])])

    return macro


def _sort_by(at: int, target: Node | None, args: list[Node]) -> Node | None:
    assert target is not None
    if isinstance(target, (Literal, MapNode)):
        words = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(target.at, words)
    name = "@__sortBy_input__"
    mapped = _map(at, Ident(at, name), args)
    assert mapped is not None
    return _bound(at, name, target, Call(at, "@sortByAssociatedKeys", [mapped], Ident(at, name)))


def _bind(at: int, target: Node | None, args: list[Node]) -> Node | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    if not isinstance(args[0], Ident):
        raise MacroError(args[0].at, "cel.bind() variable names must be simple identifiers")
    return _bound(at, args[0].name, args[1], args[2])


STANDARD: Final[Mapping[tuple[str, int, bool], Macro]] = {
    ("has", 1, False): _has,
    ("all", 2, True): _quantifier(_Loop.all),
    ("exists", 2, True): _quantifier(_Loop.exists),
    ("exists_one", 2, True): _quantifier(_Loop.one),
    ("existsOne", 2, True): _quantifier(_Loop.one),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
}
"""What every environment has."""

KUBERNETES: Final[Mapping[tuple[str, int, bool], Macro]] = {
    **STANDARD,
    ("all", 3, True): _quantifier(_Loop.all),
    ("exists", 3, True): _quantifier(_Loop.exists),
    ("exists_one", 3, True): _quantifier(_Loop.one),
    ("existsOne", 3, True): _quantifier(_Loop.one),
    **{("transformList", count, True): _transform_list for count in (3, 4)},
    **{("transformMap", count, True): _transform_map for count in (3, 4)},
    **{("transformMapEntry", count, True): _transform_map_entry for count in (3, 4)},
    ("optMap", 2, True): _opt_map("optMap", flat=False),
    ("optFlatMap", 2, True): _opt_map("optFlatMap", flat=True),
    ("sortBy", 2, True): _sort_by,
}
"""What rules of custom resources may use."""

BINDINGS: Final[Mapping[tuple[str, int, bool], Macro]] = {("bind", 3, True): _bind}
"""`cel.bind`, which an API server does not have."""
