"""Functions become calls: each use in the diagram is checked against the function's signature and bound to its
values.

All of it happens when a table is built: a wrong number of parameters or a text that is no value of the annotation
is an error before any run.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Literal

from flyball.fsm.model import Call
from flyball.fsm.run.errors import TableError
from flyball.fsm.run.markers import marker_of
from flyball.fsm.run.values import UnknownType, convert

__all__ = ["Binder", "Kind", "Op"]

Kind = Literal["action", "guard"]

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_WELL_KNOWN: dict[str, Any] = {"timedelta": timedelta}


class Op:
    """One use of a function, ready to be called with the machine."""

    __slots__ = ("call", "function", "name", "text", "thread", "waits")

    def __init__(self, name: str, text: str, function: Callable[..., Any], values: tuple[Any, ...]) -> None:
        """Bind `values` behind the machine; `text` is the use as traces show it."""
        marker = marker_of(function)
        self.name = name
        self.text = text
        self.function = function
        self.call = _applied(function, values)
        self.waits = is_async(function)
        self.thread = marker is not None and marker.thread


class Binder:
    """The functions of one table by kind and name."""

    def __init__(self, title: str, actions: Mapping[str, Callable[..., Any]], guards: Mapping[str, Callable[..., Any]]):
        """Check what can be said of each function without its uses."""
        self.title = title
        self.functions: dict[Kind, Mapping[str, Callable[..., Any]]] = {"action": dict(actions), "guard": dict(guards)}
        self.used: dict[Kind, set[str]] = {"action": set(), "guard": set()}
        for kind, functions in self.functions.items():
            for name, function in functions.items():
                self._check(kind, name, function)
            _refuse_twins(title, kind, functions)

    def bind(self, kind: Kind, call: Call, state: str) -> Op:
        """One use in a state."""
        function = self.functions[kind].get(call.name)
        if function is None:
            raise TableError(
                f"{self.title}: {kind} {call.name} of state {state} has no function; "
                f'write one marked @{kind}("{call.name}") and regenerate'
            )
        self.used[kind].add(call.name)
        try:
            values = _values(function, call.params)
        except (TypeError, ValueError) as problem:
            raise TableError(
                f"{self.title}: {kind} {call.key} of state {state} does not fit {_place(function)}: {problem}"
            ) from problem
        return Op(call.name, call.key, function, values)

    def refuse_unused(self) -> None:
        """A bound name that no state mentions is a mistake."""
        for kind, functions in self.functions.items():
            unused = sorted(set(functions) - self.used[kind])
            if unused:
                raise TableError(f"{self.title}: no state uses the {kind} {', '.join(unused)}; drop it or regenerate")

    def _check(self, kind: Kind, name: str, function: object) -> None:
        if not callable(function):
            raise TableError(f"{self.title}: {kind} {name} is bound to {function!r}, which cannot be called")
        marker = marker_of(function)
        if marker is not None and (marker.kind, marker.name) != (kind, name):
            raise TableError(
                f"{self.title}: {kind} {name} is bound to {_place(function)}, "
                f'which is marked @{marker.kind}("{marker.name}"); regenerate, or correct the marker'
            )
        if kind == "guard" and is_async(function):
            raise TableError(f"{self.title}: guard {name}, {_place(function)}, is async; guards are plain functions")
        if marker is not None and marker.thread and is_async(function):
            raise TableError(
                f"{self.title}: action {name}, {_place(function)}, is async; thread=True is for plain ones"
            )


def is_async(function: object) -> bool:
    """Whether calling it gives a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _applied(function: Callable[..., Any], values: tuple[Any, ...]) -> Callable[[Any], Any]:
    if not values:
        return function
    if len(values) == 1:
        value = values[0]
        return lambda machine: function(machine, value)
    return lambda machine: function(machine, *values)


def _values(function: Callable[..., Any], params: tuple[str, ...]) -> tuple[Any, ...]:
    parameters = _parameters(function)[1:]
    fixed = [parameter for parameter in parameters if parameter.kind in _POSITIONAL]
    rest = next((one for one in parameters if one.kind is inspect.Parameter.VAR_POSITIONAL), None)
    needed = sum(1 for parameter in fixed if parameter.default is inspect.Parameter.empty)
    if len(params) < needed or (rest is None and len(params) > len(fixed)):
        raise TypeError(
            f"the diagram passes {_count(len(params))}, the function takes {_range(needed, len(fixed), rest)}"
        )
    keyword = next(
        (one for one in parameters if one.kind is one.KEYWORD_ONLY and one.default is inspect.Parameter.empty), None
    )
    if keyword is not None:
        raise TypeError(f"the parameter {keyword.name} must be given by keyword, which a diagram cannot do")
    takers = [*fixed, *([rest] * (len(params) - len(fixed)) if rest is not None else [])]
    return tuple(_value(function, taker, text) for taker, text in zip(takers, params, strict=False))


def _value(function: Callable[..., Any], parameter: inspect.Parameter, text: str) -> Any:
    try:
        return convert(text, _annotation(function, parameter))
    except (UnknownType, ValueError) as problem:
        raise type(problem)(f"parameter {parameter.name}: {problem}") from problem


def _annotation(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    wanted = parameter.annotation
    if wanted is inspect.Parameter.empty:
        return str
    if not isinstance(wanted, str):
        return wanted
    plain = inspect.unwrap(function)
    names = {**_WELL_KNOWN, **getattr(plain, "__globals__", {}), **_closure(plain)}
    try:
        return eval(wanted, names)  # noqa: S307 - an annotation of the user's own code
    except NameError as problem:
        raise UnknownType(f"{wanted} is not known at run time; import it outside of TYPE_CHECKING") from problem


def _closure(function: Any) -> dict[str, Any]:
    if not inspect.isfunction(function) or function.__closure__ is None:
        return {}
    cells = zip(function.__code__.co_freevars, function.__closure__, strict=True)
    return {name: cell.cell_contents for name, cell in cells if _filled(cell)}


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - raises while the cell is empty
    except ValueError:
        return False
    return True


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    parameters = list(_signature(function).parameters.values())
    if not parameters or parameters[0].kind not in (*_POSITIONAL, inspect.Parameter.VAR_POSITIONAL):
        raise TypeError("its first parameter must be the machine")
    if parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        return [parameters[0], *parameters]
    return parameters


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    if sys.version_info >= (3, 14):
        import annotationlib

        return inspect.signature(function, annotation_format=annotationlib.Format.STRING)
    return inspect.signature(function)


def _refuse_twins(title: str, kind: Kind, functions: Mapping[str, Callable[..., Any]]) -> None:
    """Two functions of a module with one marker: nobody could tell which is meant."""
    modules = {function.__module__ for function in functions.values() if marker_of(function) is not None}
    for module in sorted(modules):
        owners: dict[str, Any] = {}
        for function in _marked(vars(sys.modules.get(module, object)).values(), kind):
            marker = marker_of(function)
            assert marker is not None
            first = owners.setdefault(marker.name, function)
            if first is not function and marker.name in functions and functions[marker.name] in (first, function):
                raise TableError(
                    f"{title}: {kind} {marker.name} is marked twice: {_place(first)} and {_place(function)}; keep one"
                )


def _marked(values: Iterable[Any], kind: Kind) -> list[Any]:
    found = [(value, marker_of(value)) for value in list(values)]
    return [value for value, marker in found if marker is not None and marker.kind == kind]


def _place(function: Any) -> str:
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    name = getattr(plain, "__qualname__", repr(plain))
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code is not None else name


def _count(number: int) -> str:
    return f"{number} parameter" + ("" if number == 1 else "s")


def _range(least: int, most: int, rest: object) -> str:
    if rest is not None:
        return f"at least {least}"
    return str(least) if least == most else f"{least} to {most}"
