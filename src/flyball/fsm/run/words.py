"""A table written as Python: the words that generated modules use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from flyball.fsm import model

__all__ = ["FINAL", "all_of", "any_of", "call", "machine", "not_", "state", "to"]

FINAL = model.FINAL


def call(name: str, *params: str) -> model.Call:
    """One use of an action or guard."""
    return model.Call(str(name), tuple(params))


def not_(operand: model.GuardExpr) -> model.Not:
    """True when `operand` is false."""
    return model.Not(operand)


def all_of(*operands: model.GuardExpr) -> model.And:
    """True when all operands are; asked from left to right until one is false."""
    return model.And(operands)


def any_of(*operands: model.GuardExpr) -> model.Or:
    """True when one operand is; asked from left to right until one is true."""
    return model.Or(operands)


def to(
    target: str,
    guard: model.GuardExpr | None = None,
    *,
    do: Iterable[model.Call] = (),
    error: bool | Iterable[str] = False,
) -> model.Transition:
    """One transition of the state it is written in; `error` makes it an error transition, for some errors or (True)
    for any.
    """
    match = None if error is False else model.ErrorMatch(() if error is True else tuple(error))
    return model.Transition(model.INITIAL, str(target), guard, tuple(do), match)


def state(
    name: str,
    *,
    entry: Iterable[model.Call] = (),
    do: Iterable[model.Call] = (),
    exit: Iterable[model.Call] = (),
    transitions: Iterable[model.Transition] = (),
    initial: Iterable[model.Transition] = (),
    initial_do: Iterable[model.Call] = (),
    states: Iterable[model.State] = (),
    poll: bool = False,
    choice: bool = False,
    end: bool = False,
) -> model.State:
    """One state; with `initial` and `states` it is a composite."""
    initial, states = tuple(initial), tuple(states)
    inner = machine(initial, states, initial_do) if initial or states else None
    own = tuple(replace(transition, source=str(name)) for transition in transitions)
    return model.State(str(name), tuple(entry), tuple(do), tuple(exit), own, inner, poll=poll, choice=choice, end=end)


def machine(
    initial: Iterable[model.Transition], states: Iterable[model.State], initial_do: Iterable[model.Call] = ()
) -> model.Machine:
    """One level: how it starts, and its states in declaration order."""
    return model.Machine({one.name: one for one in states}, tuple(initial), tuple(initial_do))
