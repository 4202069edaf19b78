"""Which columns a kind has, and what a row of it says beside its cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from flyball.controlplane.apiserver.kinds import Kind
from flyball.controlplane.apiserver.printing import basics, networks, pods, policies, storages, workloads
from flyball.controlplane.apiserver.printing.cells import AGE, NAME, Column, column, from_field, number

__all__ = ["SCALE", "columns_of", "row_conditions"]

_BUILTIN: Final = {
    **pods.COLUMNS,
    **workloads.COLUMNS,
    **networks.COLUMNS,
    **storages.COLUMNS,
    **policies.COLUMNS,
    **basics.COLUMNS,
}
_CREATED: Final = column("Created At", from_field("metadata.creationTimestamp", None), "date")
_CUSTOM_AGE: Final = Column("Age", AGE.cell, "date", description=AGE.description)


SCALE: Final = (
    column("Name", from_field("metadata.name")),
    number("Desired", from_field("spec.replicas", 0)),
    number("Available", from_field("status.replicas", 0)),
    AGE,
)
"""The columns of a Scale, whatever it is the scale of."""


def columns_of(kind: Kind) -> Sequence[Column]:
    """Return the columns of a kind: its own, or its name and when it was created."""
    if kind.builtin:
        return _BUILTIN.get(kind.storage, (NAME, _CREATED))
    return kind.columns or (NAME, _CUSTOM_AGE)


def row_conditions(kind: Kind, obj: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a row says of its object: only of a Pod, that it has come to its end."""
    return pods.completed(obj) if kind.storage == "pods" else []
