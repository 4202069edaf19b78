"""The decorators that tie a function to a name of the diagram.

They store what they are given on the function and return it unchanged: nothing is registered, nothing is wrapped.
The table refers to functions by attribute and checks that their markers say what the diagram says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from flyball.fsm.run.errors import TableError

__all__ = ["Marker", "action", "guard", "marker_of"]

ActionFunction = TypeVar("ActionFunction", bound=Callable[..., Any])
GuardFunction = TypeVar("GuardFunction", bound=Callable[..., bool])

_ATTRIBUTE = "__fsm_marker__"


@dataclass(frozen=True, slots=True)
class Marker:
    """What a decorator said about a function."""

    kind: Literal["action", "guard"]
    name: str
    thread: bool = False
    fails: bool = True


def action(name: str, *, thread: bool = False, fails: bool = True) -> Callable[[ActionFunction], ActionFunction]:
    """Mark a function as the action `name` of the diagram.

    `thread=True` runs a plain function in a worker thread, so that it may block; a run that is cancelled does not
    wait for the thread. `fails=False` says that it never fails, so that `lint` does not ask for error handling;
    should it fail all the same, that is an error like any other.
    """
    return _marking(Marker("action", name, thread, fails))


def guard(name: str) -> Callable[[GuardFunction], GuardFunction]:
    """Mark a function as the guard `name` of the diagram. Guards are plain functions that only read."""
    return _marking(Marker("guard", name))


def marker_of(function: object) -> Marker | None:
    """The marker of a function, or None."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, Marker) else None


def _marking(marker: Marker) -> Callable[[Any], Any]:
    def mark(function: Any) -> Any:
        present = marker_of(function)
        if present is not None:
            raise TableError(
                f"{marker.kind} {marker.name}: {function.__qualname__} is already the {present.kind} {present.name}; "
                "write one function for each name"
            )
        setattr(function, _ATTRIBUTE, marker)
        return function

    return mark
