"""Strict mode: rules that are checked and reported, never enforced in production.

A violation is a Python warning of the category `StrictWarning` whose text starts with the id of the rule (``FSM-02:
...``) and which points at the line of user code. Ordinary filters silence single rules: ``filterwarnings("ignore",
"FSM-02", StrictWarning)``. A test run turns them into errors; a production process shows each place once and goes
on.

Checks that cost time run only while `enabled()`: under pytest, with ``python -X dev``, with a non-empty
``FLYBALL_DEBUG``, or after `enable()`.
"""

from __future__ import annotations

import os
import sys
import warnings

__all__ = ["StrictWarning", "enable", "enabled", "report", "report_at"]

_forced: bool | None = None


class StrictWarning(UserWarning):
    """A rule of the controller model was broken; the text starts with the rule's id."""


def enabled() -> bool:
    """Whether the costly checks run now."""
    if _forced is not None:
        return _forced
    return "PYTEST_CURRENT_TEST" in os.environ or sys.flags.dev_mode or bool(os.environ.get("FLYBALL_DEBUG"))


def enable(on: bool | None = True) -> None:
    """Switch the costly checks on or off for this process; None goes back to finding it out."""
    global _forced
    _forced = on


def report(item: str, text: str, *, stacklevel: int = 1) -> None:
    """Warn that rule `item` was broken; `stacklevel` 1 points at the caller of this function, 2 at its caller."""
    warnings.warn(f"{item}: {text}", StrictWarning, stacklevel=stacklevel + 1)


def report_at(item: str, text: str, filename: str, line: int) -> None:
    """Warn that rule `item` was broken at this place of the user's code."""
    warnings.warn_explicit(f"{item}: {text}", StrictWarning, filename, line)
