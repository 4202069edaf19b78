"""How long to wait before the next try."""

from __future__ import annotations

import random
from collections.abc import Callable

__all__ = ["Backoff"]


class Backoff:
    """Pauses that double from `first` to `longest`, each shortened by up to its half by chance.

    The chance keeps many clients from coming back at the same moment after the server was away.
    """

    def __init__(
        self, first: float = 0.2, longest: float = 30.0, *, jitter: Callable[[], float] = random.random
    ) -> None:
        """`jitter` gives numbers from 0 to 1."""
        self._first = first
        self._longest = longest
        self._jitter = jitter
        self.failures = 0
        """How many in a row."""

    def next(self, *, longest: float | None = None) -> float:
        """One more failure: the seconds to wait now."""
        limit = self._longest if longest is None else longest
        pause = min(self._first * 2.0 ** min(self.failures, 40), limit)
        self.failures += 1
        return pause * (1 - self._jitter() / 2)

    def reset(self) -> None:
        """It went well."""
        self.failures = 0
