"""What guards see in debug mode, and how a guard that changes something is found out.

A guard must only read. In production nothing stands in its way; under test and in debug mode it gets a read-only
view of machine and extended state, and what it changes deeper down (a list of the state, say) is found by comparing
before and after.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import Any, cast

from flyball.fsm.run.binding import Op
from flyball.strict import report, report_at

__all__ = ["ReadOnly", "fingerprint", "watched"]

_RULE = "FSM-02"


class ReadOnly:
    """A view of a machine or an extended state: reads go through, writes are reported and have no effect."""

    __slots__ = ("_deep", "_target")

    def __init__(self, target: object, *deep: str) -> None:
        """Look at `target`; the attributes `deep` are given out as views too."""
        object.__setattr__(self, "_target", target)
        object.__setattr__(self, "_deep", deep)

    def __getattribute__(self, name: str) -> Any:
        target = object.__getattribute__(self, "_target")
        if name == "__class__":
            return cast("object", type(target))
        value = getattr(target, name)
        return ReadOnly(value) if name in object.__getattribute__(self, "_deep") else value

    def __setattr__(self, name: str, value: object) -> None:
        report(_RULE, f"a guard sets {name}; guards only read, actions write", stacklevel=2)

    def __delattr__(self, name: str) -> None:
        report(_RULE, f"a guard deletes {name}; guards only read, actions write", stacklevel=2)

    def __eq__(self, other: object) -> bool:
        mine, others = _target_of(self), _target_of(other)
        return mine is others or mine == others

    def __hash__(self) -> int:
        return hash(_target_of(self))

    def __repr__(self) -> str:
        return repr(_target_of(self))


def watched(op: Op, view: object, machine: Any) -> Any:
    """Ask a guard; report it if the extended state or the machine is another one afterwards."""
    before = fingerprint(machine.state), machine.current
    value = op.call(view)
    if (fingerprint(machine.state), machine.current) != before:
        code = getattr(inspect.unwrap(op.function), "__code__", None)
        file, line = (code.co_filename, code.co_firstlineno) if code is not None else ("<unknown>", 0)
        report_at(_RULE, f"the guard {op.text} changes the state; guards only read, actions write", file, line)
    return value


def fingerprint(value: object, seen: set[int] | None = None) -> object:
    """Something equal for equal contents: plain values, containers, dataclasses and structs by content, all else by
    identity.
    """
    if value is None or isinstance(value, str | bytes | int | float):
        return type(value), value
    seen = set() if seen is None else seen
    if id(value) in seen:
        return id(value)
    seen.add(id(value))
    return id(value), tuple(fingerprint(part, seen) for part in _parts(value))


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return chain.from_iterable(cast("Mapping[Any, Any]", value).items())  # type: ignore[redundant-cast]
    if isinstance(value, Sequence | Set | deque):
        return cast("Iterable[Any]", value)
    if dataclasses.is_dataclass(value):
        return [getattr(value, one.name, None) for one in dataclasses.fields(value)]
    return [getattr(value, name, None) for name in getattr(value, "__struct_fields__", ())]


def _target_of(value: object) -> object:
    return object.__getattribute__(value, "_target") if type(value) is ReadOnly else value
