"""Finds the type of every node of a tree, and which overloads each call may mean; or says what does not fit."""

from __future__ import annotations

from collections.abc import Mapping

from flyball.api.cel.errors import CompileError, Issue
from flyball.api.cel.nodes import Call, Entry, Fold, Ident, ListNode, Literal, MapNode, Node, Select, Struct
from flyball.api.cel.overloads import Functions, Overload
from flyball.api.cel.parser import Places
from flyball.api.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Substitutions,
    Type,
    list_of,
    map_of,
    most_general,
    optional_of,
    param,
    shown,
    signature,
)

__all__ = ["check"]

_MOST_ISSUES = 100
_LITERALS = {"int": INT, "uint": UINT, "double": DOUBLE, "string": STRING, "bytes": BYTES, "bool": BOOL, "null": NULL}


def check(root: Node, source: str, variables: Mapping[str, Type], functions: Functions) -> set[str]:
    """Annotate a tree. Returns the variables it refers to. Raises `CompileError`."""
    checker = _Checker(source, variables, functions)
    try:
        checker.visit(root)
    except RecursionError:
        raise CompileError([Issue(-1, 0, "expression recursion limit exceeded")], source) from None
    if checker.issues:
        raise CompileError(checker.issues, source)
    checker.finish()
    return checker.used


class _Checker:
    def __init__(self, source: str, variables: Mapping[str, Type], functions: Functions) -> None:
        self._places = Places(source)
        self._scopes: list[Mapping[str, Type]] = [variables]
        self._functions = functions
        self._known = Substitutions()
        self._free = 0
        self._visited: list[Node] = []
        self._known_nodes: dict[int, slice] = {}
        self.issues: list[Issue] = []
        self.used: set[str] = set()

    def finish(self) -> None:
        """Put what was found out into all types."""
        for node in self._visited:
            node.type = self._known.resolve(node.type, free=False)

    def visit(self, node: Node) -> Type:
        """Check a node; its type may still hold parameters. A node in two places has its errors twice."""
        known = self._known_nodes.get(id(node))
        if known is not None:
            if len(self.issues) < _MOST_ISSUES:
                self.issues.extend(self.issues[known])
            return node.type
        before = len(self.issues)
        node.type = self._typed(node)
        self._visited.append(node)
        self._known_nodes[id(node)] = slice(before, len(self.issues))
        return node.type

    def _typed(self, node: Node) -> Type:
        match node:
            case Literal():
                return _LITERALS[node.kind]
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case Fold():
                return self._fold(node)
            case Struct():
                return self._struct(node)
            case _:
                raise AssertionError(f"no such node: {node}")

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _report(self, at: int, message: str) -> Type:
        self.issues.append(self._places.issue(at, message))
        return ERROR

    def _mismatch(self, at: int, expected: Type, found: Type) -> Type:
        return self._report(at, f"expected type '{shown(expected)}' but found '{shown(found)}'")

    def _new_parameter(self) -> Type:
        self._free += 1
        return param(f"_var{self._free - 1}")

    def _fits(self, one: Type, other: Type) -> bool:
        return self._known.fit((one,), (other,))

    def _lookup(self, name: str) -> Type | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    # --- nodes --------------------------------------------------------------------------------------------------------

    def _ident(self, node: Ident) -> Type:
        absolute = node.name.startswith(".")
        found = self._scopes[0].get(node.name[1:]) if absolute else self._lookup(node.name)
        if found is None:
            return self._report(node.at, f"undeclared reference to '{node.name}' (in container '')")
        if absolute:
            node.name = node.name[1:]
        self.used.add(node.name)
        return found

    def _select(self, node: Select) -> Type:
        qualified = None if node.test else _qualified(node)
        if qualified is not None and (found := self._lookup(qualified)) is not None:
            self.used.add(qualified)
            return found
        result = self._field(node.at, node.operand, node.field, optional=False)
        return BOOL if node.test else self._known.resolve(result)

    def _field(self, at: int, operand: Node, field: str, *, optional: bool) -> Type:
        type_ = self._known.resolve(self.visit(operand))
        inner = type_.params[0] if type_.name == "optional_type" else type_
        result = ERROR
        if inner.kind == "map":
            result = inner.params[1]
        elif inner.kind == "object":
            found = inner.fields.get(field)
            result = self._report(at, f"undefined field '{field}'") if found is None else found
        else:
            if inner.kind == "param":
                self._fits(DYN, inner)
            elif inner.kind not in ("dyn", "error"):
                self._report(at, f"type '{shown(inner)}' does not support field selection")
            result = DYN
        return optional_of(result) if optional or inner is not type_ else result

    def _optional_select(self, node: Call) -> Type:
        operand, field = node.args
        assert isinstance(field, Literal)
        self.visit(field)
        return self._known.resolve(self._field(node.at, operand, field.value, optional=True))

    def _call(self, node: Call) -> Type:
        if node.name == "_?._":
            return self._optional_select(node)
        for arg in node.args:
            self.visit(arg)
        if node.name in ("_&&_", "_||_"):
            return self._logic(node)
        if node.target is not None:
            prefix = _qualified(node.target)
            if prefix is not None and f"{prefix}.{node.name}" in self._functions:
                node.name, node.target = f"{prefix}.{node.name}", None
            else:
                self.visit(node.target)
        overloads = self._functions.get(node.name.removeprefix("."))
        if overloads is None:
            return self._report(node.at, f"undeclared reference to '{node.name}' (in container '')")
        node.name = node.name.removeprefix(".")
        return self._resolved(node, overloads)

    def _logic(self, node: Call) -> Type:
        wrong = [arg for arg in node.args if not self._fits(arg.type, BOOL)]
        for arg in wrong:
            self._mismatch(arg.at, BOOL, arg.type)
        return ERROR if wrong else BOOL

    def _resolved(self, node: Call, overloads: tuple[Overload, ...]) -> Type:
        types = [arg.type for arg in node.args]
        if node.target is not None:
            types.insert(0, node.target.type)
        result: Type | None = None
        fitting: list[Overload] = []
        for overload in overloads:
            if overload.member != (node.target is not None) or len(overload.args) != len(types):
                continue
            args, candidate = self._instance(overload)
            if not self._known.fit(types, args):
                continue
            fitting.append(overload)
            candidate = self._known.resolve(candidate)
            if result is None:
                result = candidate
            elif result.kind != "dyn" and candidate != result:
                result = DYN
        if result is None:
            known = [self._known.resolve(type_, free=False) for type_ in types]
            words = signature(known, member=node.target is not None)
            return self._report(node.at, f"found no matching overload for '{node.name}' applied to '{words}'")
        node.overloads = tuple(fitting)
        return result

    def _instance(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        """Give the type parameters of a signature names of their own."""
        names: dict[str, Type] = {}

        def fresh(type_: Type) -> Type:
            if type_.kind == "param":
                if type_.name not in names:
                    names[type_.name] = self._new_parameter()
                return names[type_.name]
            if not type_.params:
                return type_
            return Type(type_.kind, type_.name, tuple(map(fresh, type_.params)))

        return tuple(map(fresh, overload.args)), fresh(overload.result)

    def _joined(self, before: Type | None, now: Type) -> Type:
        """Return the type of both; of what does not fit nothing is known (`validators.py` refuses most of it)."""
        if before is None:
            return now
        return most_general(before, now) if self._fits(before, now) else DYN

    def _unwrapped(self, node: Node) -> Type:
        """Return what is inside of an optional item or entry."""
        type_ = self._known.resolve(node.type)
        if type_.name == "optional_type":
            return type_.params[0]
        if type_.kind not in ("dyn", "any"):
            self._mismatch(node.at, optional_of(type_), type_)
        return type_

    def _list(self, node: ListNode) -> Type:
        item: Type | None = None
        for place, each in enumerate(node.items):
            found = self.visit(each)
            if place in node.optional:
                found = self._unwrapped(each)
            item = self._joined(item, found)
        return list_of(self._new_parameter() if item is None else item)

    def _map(self, node: MapNode) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self._joined(key, self.visit(entry.key))
            value = self._joined(value, self._entry_value(entry))
        if key is None or value is None:
            return map_of(self._new_parameter(), self._new_parameter())
        return map_of(key, value)

    def _entry_value(self, entry: Entry) -> Type:
        found = self.visit(entry.value)
        return self._unwrapped(entry.value) if entry.optional else found

    def _struct(self, node: Struct) -> Type:
        if self._lookup(node.name) is None:
            return self._report(node.at, f"undeclared reference to '{node.name}' (in container '')")
        return self._report(node.at, f"'{node.name}' is not a message type")

    def _fold(self, node: Fold) -> Type:
        range_ = self._known.resolve(self.visit(node.range))
        accu = self.visit(node.init)
        self._scopes.append({node.accu: accu})
        self._scopes.append(self._loop_variables(node, range_))
        if self.visit(node.condition).kind != "bool":
            self._expect(node.condition, BOOL)
        self.visit(node.step)
        self._expect(node.step, accu)
        self._scopes.pop()
        result = self.visit(node.result)
        self._scopes.pop()
        return self._known.resolve(result)

    def _expect(self, node: Node, type_: Type) -> None:
        if not self._fits(type_, node.type):
            self._mismatch(node.at, type_, node.type)

    def _loop_variables(self, node: Fold, range_: Type) -> dict[str, Type]:
        if range_.kind == "list":
            first, second = (INT, range_.params[0]) if node.var2 else (range_.params[0], ERROR)
        elif range_.kind == "map":
            first, second = range_.params
        elif range_.kind in ("dyn", "error", "param"):
            self._fits(DYN, range_)
            first = second = DYN
        else:
            words = f"expression of type '{shown(range_)}' cannot be range of a comprehension"
            first = second = self._report(node.range.at, f"{words} (must be list, map, or dynamic)")
        return {node.var: first, node.var2: second} if node.var2 else {node.var: first}


def _qualified(node: Node) -> str | None:
    parts: list[str] = []
    while isinstance(node, Select) and not node.test:
        parts.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(parts)]) if isinstance(node, Ident) else None
