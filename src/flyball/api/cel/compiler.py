"""From a checked tree to closures; `code.py` explains what they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final

from flyball.api.cel import operators as op
from flyball.api.cel.code import FIRST_SLOT, SPENT, UNSET, VARIES, Code, Evaluate, ProgramError, charge, constant
from flyball.api.cel.errors import EvalError
from flyball.api.cel.loops import compile_fold
from flyball.api.cel.nodes import Call, Fold, Ident, ListNode, Literal, MapNode, Node, Select
from flyball.api.cel.operators import NO_OVERLOAD
from flyball.api.cel.overloads import Overload, accepts
from flyball.api.cel.quick import quick_call
from flyball.api.cel.standard import CONVERSIONS
from flyball.api.cel.values import ABSENT, NONE, MapValue, OptionalValue, TypeValue, type_name

__all__ = ["Compiler"]


class Compiler:
    """Compiles the nodes of one expression."""

    def __init__(self, variables: Mapping[str, int], types: Mapping[str, TypeValue]) -> None:
        """Take the slots of the variables, and the types that have names."""
        self._slots = dict(variables)
        self._types = types
        self._bound: dict[str, Code] = {}
        self._known: dict[int, Code] = {}
        self.next_slot = max(variables.values(), default=FIRST_SLOT - 1) + 1

    def compile(self, node: Node) -> Code:
        """Compile a node; one that stands in two places is compiled once."""
        if isinstance(node, Call):
            code = self._known.get(id(node))
            if code is None:
                code = self._known[id(node)] = self._call(node)
            return code
        match node:
            case Literal():
                return constant(node.value)
            case Ident():
                return self._ident(node.name)
            case Select():
                return self._select(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case Fold():
                return compile_fold(self, node)
            case _:
                raise AssertionError(f"not compiled: {node}")

    # --- variables ----------------------------------------------------------------------------------------------------

    def new_slot(self) -> int:
        """Reserve a place in the frame."""
        self.next_slot += 1
        return self.next_slot - 1

    def within(self, variables: Mapping[str, int], node: Node) -> Code:
        """Compile a node that sees more variables."""
        before, bound = self._slots, self._bound
        self._slots = {**before, **variables}
        self._bound = {name: code for name, code in bound.items() if name not in variables}
        try:
            return self.compile(node)
        finally:
            self._slots, self._bound = before, bound

    def with_bound(self, name: str, slot: int, value: Node, node: Node) -> Code:
        """Compile a node that sees a variable whose value is found out when it is first needed."""
        init = self.compile(value)
        call, cost = init.call, init.cost

        def once(frame: list[Any]) -> Any:
            found = frame[slot]
            if found is UNSET:
                charge(frame, cost)
                found = frame[slot] = call(frame)
            return found

        before = self._bound
        self._bound = {**before, name: Code(once, 1, path=1)}
        try:
            code = self.compile(node)
        finally:
            self._bound = before
        inner = code.call

        def fresh(frame: list[Any]) -> Any:
            frame[slot] = UNSET
            return inner(frame)

        return Code(fresh, code.cost)

    def _ident(self, name: str) -> Code:
        bound = self._bound.get(name)
        if bound is not None:
            return bound
        slot = self._slots.get(name)
        if slot is not None:
            return Code(itemgetter(slot), 1, path=1)
        return constant(self._types[name])

    # --- access -------------------------------------------------------------------------------------------------------

    def _reached(self, operand: Code) -> int:
        """Tell what it costs to begin with a field or an index here."""
        return operand.cost + (0 if operand.path else 1)

    def _select(self, node: Select) -> Code:
        qualified = _qualified(node)
        if qualified in self._slots or qualified in self._types:
            return self._ident(qualified)
        operand = self.compile(node.operand)
        cost = self._reached(operand)
        if node.test:
            return Code(_presence(operand.call, node.field), cost)
        type_ = node.operand.type
        if type_.name == "optional_type":
            return Code(_chosen(operand.call, constant(node.field).call, op.lookup), cost, path=operand.path or 1)
        shape = type_.shape
        if shape is not None and node.field in shape.fields:
            call = _field(operand.call, node.field, *shape.fields[node.field])
        else:
            call = _selection(operand.call, node.field)
        return Code(call, cost + 1, path=operand.path or 1)

    def _index(self, node: Call, *, optional: bool) -> Code:
        operand, key = (self.compile(arg) for arg in node.args)
        cost = self._reached(operand)
        cost += key.cost - (key.path == 1)
        if optional or node.args[0].type.name == "optional_type":
            return Code(_chosen(operand.call, key.call, op.lookup), cost, path=operand.path or 1)
        types = [arg.type.kind for arg in node.args]
        if types == ["map", "string"]:
            return Code(_entry(operand.call, key.call), cost + 1, path=operand.path or 1)
        call, find, index = operand.call, key.call, op.index
        return Code(lambda frame: index(call(frame), find(frame)), cost + 1, path=operand.path or 1)

    # --- literals -----------------------------------------------------------------------------------------------------

    def _list(self, node: ListNode) -> Code:
        codes = list(map(self.compile, node.items))
        if not node.optional and all(code.value is not VARIES for code in codes):
            return constant([code.value for code in codes])
        cost = 10 + sum(code.cost for code in codes)
        calls = tuple(code.call for code in codes)
        if not node.optional:
            return Code(lambda frame: [call(frame) for call in calls], cost)
        optional = node.optional

        def some(frame: list[Any]) -> Any:
            made: list[Any] = []
            for place, call in enumerate(calls):
                value = call(frame)
                if place in optional:
                    value = _inside(value)
                if value is not ABSENT:
                    made.append(value)
            return made

        return Code(some, cost)

    def _map(self, node: MapNode) -> Code:
        entries = [(self.compile(entry.key), self.compile(entry.value), entry.optional) for entry in node.entries]
        calls = tuple((key.call, value.call, optional) for key, value, optional in entries)

        def make(frame: list[Any]) -> Any:
            made = MapValue()
            for key, value, optional in calls:
                name, found = key(frame), value(frame)
                if optional:
                    found = _inside(found)
                if found is not ABSENT:
                    made.insert(_as_key(name), found)
            return made

        fixed = all(key.value is not VARIES and value.value is not VARIES for key, value, _ in entries)
        if fixed and not any(optional for _, _, optional in entries):
            return self._folded(make)
        return Code(make, 30 + sum(key.cost + value.cost for key, value, _ in entries))

    def _folded(self, make: Evaluate) -> Code:
        """Evaluate now what is always the same."""
        try:
            return constant(make([0, 1 << 62]))
        except EvalError as error:
            raise ProgramError(str(error)) from None

    # --- calls --------------------------------------------------------------------------------------------------------

    def _call(self, node: Call) -> Code:
        match node.name:
            case "_&&_":
                return _logic(list(map(self.compile, node.args)), stop=False)
            case "_||_":
                return _logic(list(map(self.compile, node.args)), stop=True)
            case "_?_:_":
                return _choice(*map(self.compile, node.args))
            case "_[_]":
                return self._index(node, optional=False)
            case "_[?_]":
                return self._index(node, optional=True)
            case "_?._":
                operand, field = (self.compile(arg) for arg in node.args)
                call = _chosen(operand.call, field.call, op.lookup)
                return Code(call, self._reached(operand), path=operand.path or 1)
            case "@not_strictly_false":
                return self.compile(node.args[0])
            case _:
                return self._function(node)

    def _function(self, node: Call) -> Code:
        nodes = node.args if node.target is None else [node.target, *node.args]
        codes = list(map(self.compile, nodes))
        if node.target is not None and node.name in ("or", "orValue"):
            return _alternative(codes[0], codes[1], whole=node.name == "or")
        if node.name in CONVERSIONS and len(codes) == 1 and codes[0].value is not VARIES:
            return self._folded(_invoked(node.overloads, [codes[0].call], guarded=True))
        code = quick_call(node, codes)
        if code is not None:
            return code
        return _plain_call(node, nodes, codes)


def _plain_call(node: Call, nodes: list[Node], codes: list[Code]) -> Code:
    overloads = node.overloads
    cost = sum(code.cost for code in codes)
    shared = len({id(overload.call) for overload in overloads}) == 1
    loose = any(arg.type.kind == "dyn" for arg in nodes)
    guarded = not shared or (loose and node.name not in _SELF_GUARDED)
    call = _invoked(overloads, [code.call for code in codes], guarded=guarded, priced=True)
    priced = overloads[0].cost
    if priced is None or any(overload.cost is not priced for overload in overloads):
        return Code(_invoked(overloads, [code.call for code in codes], guarded=guarded), cost + 1)
    return Code(call, cost)


_SELF_GUARDED: Final = frozenset(
    {"_+_", "_-_", "_*_", "_/_", "_%_", "-_", "!_", "_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_", "@in", "type", "dyn"}
)


def _paid(frame: list[Any], overload: Overload, values: list[Any]) -> Any:
    """Call a function that has a price, which is paid before whenever it does not depend on the result."""
    call, cost = overload.call, overload.cost
    assert call is not None
    assert cost is not None
    if overload.paid_after:
        result = call(*values)
        charge(frame, cost(values, result))
        return result
    charge(frame, cost(values, None))
    return call(*values)


def _invoked(
    overloads: tuple[Overload, ...], calls: list[Evaluate], *, guarded: bool, priced: bool = False
) -> Evaluate:
    """Return what calls a function: the only overload that there is, or the first that takes the values."""
    arguments = tuple(calls)
    if guarded:

        def choose(frame: list[Any]) -> Any:
            values = [call(frame) for call in arguments]
            for overload in overloads:
                if all(map(accepts, overload.args, values)):
                    return _paid(frame, overload, values) if priced else overload.call(*values)  # type: ignore[misc]
            raise EvalError(_no_overload(overloads[0].name, values))

        return choose
    function = overloads[0].call
    assert function is not None
    if priced:
        only_one = overloads[0]
        return lambda frame: _paid(frame, only_one, [call(frame) for call in arguments])
    if len(arguments) == 1:
        only = arguments[0]
        return lambda frame: function(only(frame))
    if len(arguments) == 2:
        left, right = arguments
        return lambda frame: function(left(frame), right(frame))
    return lambda frame: function(*[call(frame) for call in arguments])


_SILENT: Final = frozenset({"contains", "endsWith", "startsWith", "matches"})
_BRIEF: Final = frozenset({"size"})


def _no_overload(name: str, values: list[Any]) -> str:
    """Say that a function does not take these values; some functions say less than others."""
    if name in _SILENT:
        return NO_OVERLOAD
    if name in _BRIEF:
        return f"{NO_OVERLOAD}: {name}"
    return f"{NO_OVERLOAD}: {name}({', '.join(map(type_name, values))})"


# --- parts ------------------------------------------------------------------------------------------------------------


def _qualified(node: Node) -> str:
    parts: list[str] = []
    while isinstance(node, Select) and not node.test:
        parts.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(parts)]) if isinstance(node, Ident) else ""


def _field(operand: Evaluate, field: str, name: str, convert: Callable[[Any], Any] | None) -> Evaluate:
    """Return what reads a field of an object whose shape is known."""
    missing = f"no such key: {field}"

    def read(frame: list[Any]) -> Any:
        try:
            value = operand(frame).raw.get(name)
        except AttributeError:
            raise EvalError(missing) from None
        if value is None:
            raise EvalError(missing)
        return value

    if convert is None:
        return read

    def converted(frame: list[Any]) -> Any:
        try:
            value = operand(frame).raw.get(name)
        except AttributeError:
            raise EvalError(missing) from None
        if value is None:
            raise EvalError(missing)
        return convert(value)

    return converted


def _entry(operand: Evaluate, key: Evaluate) -> Evaluate:
    """Return what reads the value of a key that is a string."""

    def read(frame: list[Any]) -> Any:
        name = key(frame)
        try:
            value = operand(frame).find(name)
        except AttributeError:
            value = ABSENT
        if value is ABSENT:
            raise EvalError(f"no such key: {op.told(name)}")
        return value

    return read


def _selection(operand: Evaluate, field: str) -> Evaluate:
    select = op.select
    return lambda frame: select(operand(frame), field)


def _presence(operand: Evaluate, field: str) -> Evaluate:
    def test(frame: list[Any]) -> bool:
        value = operand(frame)
        if isinstance(value, OptionalValue):
            if value is NONE:
                return False
            value = value.value
        return op.has(value, field)

    return test


def _chosen(operand: Evaluate, key: Evaluate, lookup: Callable[[Any, Any], Any]) -> Evaluate:
    """Return what looks something up that may be missing; only what is found has a price."""

    def choose(frame: list[Any]) -> Any:
        value = operand(frame)
        if isinstance(value, OptionalValue):
            if value.value is ABSENT:
                return NONE
            value = value.value
        found = lookup(value, key(frame))
        if found is ABSENT:
            return NONE
        frame[SPENT] += 1
        return OptionalValue(found)

    return choose


def _inside(value: Any) -> Any:
    if not isinstance(value, OptionalValue):
        raise EvalError(f"cannot initialize optional list element from non-optional value {op.told(value)}")
    return value.value


def _as_key(value: Any) -> Any:
    return value


def _alternative(first: Code, second: Code, *, whole: bool) -> Code:
    """Return what takes the second value when the first is missing."""
    left, right, price = first.call, second.call, second.cost

    def either(frame: list[Any]) -> Any:
        value = left(frame)
        if not isinstance(value, OptionalValue):
            return value
        if value.value is not ABSENT:
            return value if whole else value.value
        frame[SPENT] += price
        return right(frame)

    return Code(either, first.cost)


def _logic(codes: list[Code], *, stop: bool) -> Code:
    """Return what asks one after the other until one says `stop`; errors only count when none does."""
    if len(codes) == 2:
        return _logic_of_two(codes[0], codes[1], stop=stop)
    parts = tuple((code.call, code.cost if place else 0) for place, code in enumerate(codes))

    def ask(frame: list[Any]) -> Any:
        error: EvalError | None = None
        for call, price in parts:
            frame[SPENT] += price
            try:
                value = call(frame)
            except EvalError as caught:
                error = error or caught
                continue
            if value is stop:
                return stop
            if type(value) is not bool:
                error = error or EvalError(NO_OVERLOAD)
        if error is not None:
            raise error
        return not stop

    return Code(ask, codes[0].cost)


def _logic_of_two(first: Code, second: Code, *, stop: bool) -> Code:
    left, right, price = first.call, second.call, second.cost
    otherwise = not stop

    def ask(frame: list[Any]) -> Any:
        error: EvalError | None = None
        try:
            value = left(frame)
            if value is stop:
                return stop
            if value is not otherwise:
                error = EvalError(NO_OVERLOAD)
        except EvalError as caught:
            error = caught
        frame[SPENT] += price
        if error is None:
            value = right(frame)
            if type(value) is bool:
                return value
            raise EvalError(NO_OVERLOAD)
        try:
            if right(frame) is stop:
                return stop
        except EvalError:
            pass
        raise error

    return Code(ask, first.cost)


def _choice(condition: Code, yes: Code, no: Code) -> Code:
    test, accept, refuse = condition.call, yes.call, no.call
    price = yes.cost - (yes.path == 1)
    other = no.cost - (no.path == 1)

    def choose(frame: list[Any]) -> Any:
        value = test(frame)
        if value is True:
            frame[SPENT] += price
            return accept(frame)
        if value is False:
            frame[SPENT] += other
            return refuse(frame)
        raise EvalError(NO_OVERLOAD)

    return Code(choose, condition.cost, path=2)
