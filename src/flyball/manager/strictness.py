"""Strict warnings in production: each place once in the log, all of them counted, none of them raised.

Whatever filters the process inherited (`-W error`), a broken rule is no reason to stop. Filters that name
`StrictWarning` and ignore are what somebody chose, and hold.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TextIO

from flyball.cache import Metrics
from flyball.strict import StrictWarning

__all__ = ["logged_strict_warnings"]

log = logging.getLogger("flyball.strict")


@contextmanager
def logged_strict_warnings(metrics: Metrics) -> Generator[None]:
    """Inside, strict warnings go to the log and the numbers; other warnings go where they always go."""
    before = warnings.showwarning
    seen: set[tuple[str, int, str]] = set()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if not issubclass(category, StrictWarning):
            before(message, category, filename, lineno, file, line)
            return
        text = str(message)
        item = text.partition(":")[0]
        metrics.counter("flyball_strict_warnings_total", item=item)
        if (filename, lineno, item) not in seen:
            seen.add((filename, lineno, item))
            log.warning("%s (%s:%d)", text, filename, lineno)

    with warnings.catch_warnings():
        chosen = [one for one in warnings.filters if one[0] == "ignore" and _names_strict(one[2])]
        warnings.simplefilter("always", StrictWarning)
        _put_first(chosen)
        warnings.showwarning = show
        yield


def _names_strict(category: Any) -> bool:
    return isinstance(category, type) and issubclass(category, StrictWarning)


def _put_first(chosen: list[Any]) -> None:
    for _, message, category, module, lineno in reversed(chosen):
        warnings.filterwarnings(
            "ignore", _pattern(message), category, _pattern(module), lineno if isinstance(lineno, int) else 0
        )


def _pattern(given: Any) -> str:
    return given if isinstance(given, str) else getattr(given, "pattern", "") or ""
