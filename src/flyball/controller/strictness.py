"""Strict warnings that point at the line of the author's code, however deep in the framework they are noticed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flyball import strict
from flyball.client.kinds import Kind
from flyball.controller.logs import pass_fields

__all__ = ["report", "report_undeclared_read"]

_HOME = str(Path(strict.__file__).parent)
_SKIPPED = ("asyncio", "threading.py", "concurrent", "contextlib.py", "runpy.py", "pytest", "pluggy")


def report(item: str, text: str, *, code: Callable[..., Any] | None = None) -> None:
    """Warn of a broken rule at the nearest line outside of this package, else at the head of `code`."""
    frame = inspect.currentframe()
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_HOME):
            if any(part in name for part in _SKIPPED):
                break
            strict.report_at(item, text, name, frame.f_lineno)
            return
        frame = frame.f_back
    place = getattr(code, "__code__", None)
    if place is not None:
        strict.report_at(item, text, place.co_filename, place.co_firstlineno)
    else:
        strict.report(item, text, stacklevel=2)


def report_undeclared_read(kind: Kind[Any]) -> None:
    """For `InformerCache(on_undeclared=...)`: a pass has started a watch by reading."""
    if pass_fields():
        report(
            "F-10",
            f"{kind.word} is read in a pass and nobody declared it, so a watch was started for it; "
            f"add it to owns= or watches=, or configure it in the cache",
        )
