"""Answering "are you alive, are you ready": named checks. `probes` is the server that Kubernetes' probes ask.

A check is a function that returns None when all is well, else why not, in one line.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import TypeAlias

__all__ = ["Check", "Checks"]

log = logging.getLogger(__name__)

Check: TypeAlias = Callable[[], "str | Awaitable[str | None] | None"]


class Checks:
    """Checks by name."""

    def __init__(self) -> None:
        """Start with one that is always well, so that the answer is never empty."""
        self._checks: dict[str, Check] = {"ping": lambda: None}

    def add(self, name: str, check: Check) -> None:
        """Ask this one too; a name is used once."""
        if name in self._checks:
            raise ValueError(f"there is a check named {name!r} already; give this one another name")
        self._checks[name] = check

    def __contains__(self, name: object) -> bool:
        """Tell whether there is a check of this name."""
        return name in self._checks

    async def ask(self, *, only: str | None = None, exclude: Collection[str] = ()) -> dict[str, str | None]:
        """What each check says, in the order in which they were added."""
        names = [only] if only is not None else [name for name in self._checks if name not in exclude]
        return {name: await _answer(self._checks[name]) for name in names}


async def _answer(check: Check) -> str | None:
    try:
        said = check()
        return await said if inspect.isawaitable(said) else said
    except Exception as error:
        log.exception("a health check failed to run")
        return f"{type(error).__name__}: {error}"
