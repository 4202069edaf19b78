"""Taints, and what Pods put up with."""

from __future__ import annotations

from collections.abc import Iterable

from flyball.controlplane.scheduler.seen import Taint, Toleration

__all__ = ["tolerates"]


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Tell whether one of the tolerations is for this taint."""
    return any(_is_for(one, taint) for one in tolerations)


def _is_for(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and bool(toleration.key) and toleration.value == taint.value
