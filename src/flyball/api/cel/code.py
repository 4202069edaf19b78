"""What a compiled node is.

Each node becomes a function of one argument, the frame: a list that begins with what was spent and what may be spent,
and holds the variables after that. What a node costs is known beforehand for most of them; it is added up by the
nearest node that decides whether its parts are evaluated at all (`Code.cost` travels upwards until then).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from flyball.api.cel.errors import CelError, CostExceeded

__all__ = ["FIRST_SLOT", "LIMIT", "SPENT", "UNSET", "VARIES", "Code", "Evaluate", "ProgramError", "charge", "constant"]

SPENT: Final = 0
LIMIT: Final = 1
FIRST_SLOT: Final = 2
"""Places in a frame."""

Evaluate = Callable[[list[Any]], Any]
VARIES: Final[Any] = object()
UNSET: Final[Any] = object()


class ProgramError(CelError):
    """A part of an expression that is always the same has no value."""


class Code(NamedTuple):
    """A compiled node: what evaluates it, what that costs for sure, and its value if it is always the same."""

    call: Evaluate
    cost: int = 0
    value: Any = VARIES
    path: int = 0
    """1 for a variable with fields and indices behind it, 2 for a choice between such; they cost less in a choice."""


def constant(value: Any) -> Code:
    """Return what always has one value."""
    return Code(lambda frame: value, 0, value)


def charge(frame: list[Any], price: int) -> None:
    """Add to what was spent. Raises `CostExceeded` when that is too much."""
    spent = frame[SPENT] = frame[SPENT] + price
    if spent > frame[LIMIT]:
        raise CostExceeded
