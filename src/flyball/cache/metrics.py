"""Numbers about the cache, by name, for whoever counts them.

The names of `reflector_*` are those of client-go; label `name` is the kind as `plural.group`.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["NO_METRICS", "Metrics"]


class Metrics(Protocol):
    """Takes numbers. It must be quick and must not raise."""

    def counter(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        """Add to a number that only grows."""
        ...

    def gauge(self, name: str, value: float, /, **labels: str) -> None:
        """Set a number."""
        ...

    def histogram(self, name: str, value: float, /, **labels: str) -> None:
        """Count one more observation."""
        ...


class _NoMetrics:
    def counter(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        return

    def gauge(self, name: str, value: float, /, **labels: str) -> None:
        return

    def histogram(self, name: str, value: float, /, **labels: str) -> None:
        return


NO_METRICS: Metrics = _NoMetrics()
"""Counts nothing."""
