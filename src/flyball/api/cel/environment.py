"""Environments: which functions, macros and variables expressions have; and the programs that they become."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from flyball.api.cel import formats, kubernetes, lists, network, standard, strings, times, urls
from flyball.api.cel.checker import check
from flyball.api.cel.code import FIRST_SLOT, SPENT, Code
from flyball.api.cel.compiler import Compiler
from flyball.api.cel.errors import CompileError, CostExceeded, EvalError
from flyball.api.cel.macros import BINDINGS, KUBERNETES, STANDARD, Macro
from flyball.api.cel.nodes import Node
from flyball.api.cel.overloads import Overload, collect, member
from flyball.api.cel.parser import parse
from flyball.api.cel.types import (
    BOOL,
    BYTES,
    CIDR,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    IP,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    type_of,
)
from flyball.api.cel.validators import validate
from flyball.api.cel.values import TypeValue

__all__ = ["PER_CALL_LIMIT", "Environment", "Library", "Program"]

PER_CALL_LIMIT: Final = 1_000_000
"""What one evaluation may cost, as an API server limits it."""


class Library:
    """Functions and macros that belong together."""

    __slots__ = ("macros", "overloads")

    def __init__(
        self, overloads: Iterable[Overload] = (), macros: Mapping[tuple[str, int, bool], Macro] | None = None
    ) -> None:
        """Take both."""
        self.overloads = tuple(overloads)
        self.macros = dict(macros or {})


STANDARD_LIBRARY: Final = Library((*standard.LIBRARY, *times.LIBRARY), STANDARD)
"""The standard functions and macros of the language."""

KUBERNETES_LIBRARY: Final = Library(
    (
        *lists.OPTIONALS,
        *lists.MAP_INSERT,
        *strings.LIBRARY,
        *lists.LIBRARY,
        *network.LIBRARY,
        *urls.LIBRARY,
        *kubernetes.LIBRARY,
        *formats.LIBRARY,
    ),
    KUBERNETES,
)
"""What an API server (1.36) adds: optionals, two-variable comprehensions, and its libraries."""

BINDINGS_LIBRARY: Final = Library((), BINDINGS)
"""`cel.bind`. No API server takes it in a rule."""

REVERSE_LIBRARY: Final = Library([member("reverse", "string_reverse", [STRING], STRING, lambda text: text[::-1])])
"""`reverse` for strings. No API server takes it in a rule."""

_TYPES: Final[dict[str, Type]] = {
    type_.name: type_of(type_)
    for type_ in (
        BOOL,
        BYTES,
        DOUBLE,
        DURATION,
        INT,
        NULL,
        STRING,
        TIMESTAMP,
        UINT,
        IP,
        CIDR,
        list_of(DYN),
        map_of(DYN, DYN),
        optional_of(DYN),
        type_of(TYPE),
    )
}
_TYPES["type"] = type_of(TYPE)
_VALUES: Final = {name: TypeValue(name) for name in _TYPES}


class Environment:
    """What expressions may use. Immutable once made; `compile` may be called from several threads."""

    def __init__(self, *libraries: Library) -> None:
        """Take libraries; without any it is what the rules of custom resources have."""
        chosen = libraries or (STANDARD_LIBRARY, KUBERNETES_LIBRARY)
        self._functions = collect(*(library.overloads for library in chosen))
        self._macros = {key: macro for library in chosen for key, macro in library.macros.items()}

    def compile(self, source: str, variables: Mapping[str, Type] | None = None) -> Program:
        """Compile an expression over variables of these types.

        Raises `CompileError` for an expression that is not well formed or typed, and `ProgramError` for one that has
        a constant part without a value.
        """
        declared = dict(variables or {})
        tree = parse(source, self._macros)
        try:
            used = check(tree, source, {**_TYPES, **declared}, self._functions)
            validate(tree, source)
            return Program(source, tree, list(declared), used)
        except RecursionError:
            raise CompileError([], "expression recursion limit exceeded") from None


class Program:
    """A compiled expression. It holds no state: it may be evaluated from several threads at once."""

    __slots__ = ("_call", "_cost", "_names", "_rest", "source", "type", "uses")

    def __init__(self, source: str, tree: Node, variables: list[str], used: set[str]) -> None:
        """Compile a checked tree; `Environment.compile` is the way to get here."""
        self.source = source
        self.type = tree.type
        self.uses = frozenset(used & set(variables))
        self._names = tuple(variables)
        compiler = Compiler({name: FIRST_SLOT + place for place, name in enumerate(variables)}, _VALUES)
        code: Code = compiler.compile(tree)
        self._call, self._cost = code.call, code.cost
        self._rest = [None] * (compiler.next_slot - FIRST_SLOT - len(variables))

    def __call__(self, **variables: Any) -> Any:
        """Return the value. Raises `EvalError`, or `CostExceeded`."""
        return self.evaluate([variables.get(name) for name in self._names])[0]

    def evaluate(self, values: list[Any], limit: int = PER_CALL_LIMIT) -> tuple[Any, int]:
        """Return the value and what it has cost; `values` are those of the variables, in their order."""
        frame: list[Any] = [self._cost, limit, *values, *self._rest]
        try:
            value = self._call(frame)
        except RecursionError:
            raise EvalError("the value is nested too deeply") from None
        except EvalError as error:
            error.cost = frame[SPENT]
            raise
        if frame[SPENT] > limit:
            raise CostExceeded
        return value, frame[SPENT]
