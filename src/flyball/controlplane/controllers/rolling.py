"""The arithmetic of a rollout: how many Pods there may be, and how a new number is shared out. Nothing but numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from flyball.k8s.apps.v1 import Deployment

__all__ = ["Limits", "Size", "resolve_rolling", "share_out"]


def resolve_rolling(surge: int | str | None, unavailable: int | str | None, replicas: int) -> tuple[int, int]:
    """Return how many Pods may be too many and too few; never both zero. Surplus is rounded up, lack down."""
    most, least = _share(surge, replicas, math.ceil), _share(unavailable, replicas, math.floor)
    return (most, 1) if most == 0 and least == 0 else (most, least)


def _share(value: int | str | None, of: int, rounding: Callable[[float], int]) -> int:
    text = "25%" if value is None else value
    return text if isinstance(text, int) else rounding(int(text.rstrip("%")) * of / 100)


@dataclass(frozen=True, slots=True)
class Limits:
    """How many Pods a Deployment wants, and how far it may be from that."""

    replicas: int
    surge: int
    unavailable: int

    @classmethod
    def of(cls, deployment: Deployment) -> Limits:
        """Read them; a Deployment that is made anew instead of rolled has neither surplus nor lack."""
        replicas = 1 if deployment.spec.replicas is None else deployment.spec.replicas
        strategy = deployment.spec.strategy
        if strategy is not None and strategy.type == "Recreate":
            return cls(replicas, 0, 0)
        rolling = strategy.rolling_update if strategy is not None else None
        if rolling is None:
            surge, unavailable = resolve_rolling(None, None, replicas)
        else:
            surge, unavailable = resolve_rolling(rolling.max_surge, rolling.max_unavailable, replicas)
        return cls(replicas, surge, min(unavailable, replicas))

    @property
    def most(self) -> int:
        """How many Pods there may be at all."""
        return self.replicas + self.surge

    @property
    def least(self) -> int:
        """How many have to be available."""
        return self.replicas - self.unavailable


@dataclass(frozen=True, slots=True)
class Size:
    """A set among several that are at work at once."""

    name: str
    replicas: int
    created: datetime | None
    known_most: int | None
    """How many Pods there could be at all when the set got its size."""


def share_out(sets: Sequence[Size], limits: Limits, present: int) -> dict[str, int]:
    """Return a new size for each set, in proportion to the present ones; `present` Pods there are by the status.

    What rounding leaves over goes to the largest set. Of sets of one size the newer ones grow first, and the older
    ones shrink first.
    """
    allowed = limits.most if limits.replicas > 0 else 0
    change = allowed - sum(one.replicas for one in sets)
    if change == 0:
        return {one.name: one.replicas for one in sets}
    ordered = sorted(sets, key=lambda one: one.created.timestamp() if one.created else 0.0, reverse=change > 0)
    ordered.sort(key=lambda one: one.replicas, reverse=True)
    sizes: dict[str, int] = {}
    given = 0
    for one in ordered:
        share = _proportion(one, limits, present, change, given)
        sizes[one.name] = one.replicas + share
        given += share
    if ordered:
        largest = ordered[0].name
        sizes[largest] = max(sizes[largest] + change - given, 0)
    return sizes


def _proportion(one: Size, limits: Limits, present: int, change: int, given: int) -> int:
    if one.replicas == 0 or change == given:
        return 0
    fraction = _fraction(one, limits, present)
    left = change - given
    return min(fraction, left) if change > 0 else max(fraction, left)


def _fraction(one: Size, limits: Limits, present: int) -> int:
    if limits.replicas == 0:
        return -one.replicas
    before = one.known_most or present
    if before == 0:
        return 0
    return math.floor(one.replicas * limits.most / before + 0.5) - one.replicas
