"""Ports on which a process listens."""

from __future__ import annotations

from flyball.errors import FlyballError

__all__ = ["PortTaken"]


class PortTaken(FlyballError):
    """A server cannot listen where it was told to."""
