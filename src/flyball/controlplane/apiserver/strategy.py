"""What is particular about a kind, in one place: the answers that the handlers ask for.

The default is what a kind without peculiarities does. Built-in kinds say only where they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flyball.api.fielderrors import FieldError
from flyball.controlplane.apiserver.names import NameCheck, is_subdomain

__all__ = ["Strategy"]

Object = dict[str, Any]


def _nothing(obj: Object) -> None:
    """Change nothing."""


def _keep(obj: Object, unknown: list[str]) -> None:
    """Find nothing to remove."""


def _not_kept(obj: Object, now: str) -> None:
    """Keep nothing that is deleted."""


def _no_change(obj: Object, old: Object) -> None:
    """Change nothing."""


def _valid(obj: Object) -> list[FieldError]:
    return []


def _valid_update(obj: Object, old: Object) -> list[FieldError]:
    return []


def _no_fields(obj: Object) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """How objects of a kind are written."""

    name: NameCheck = is_subdomain
    """Which names objects may have."""
    has_generation: bool = True
    """Whether `metadata.generation` counts changes of what is wanted."""
    wanted: Callable[[Object], Any] = lambda obj: {
        key: value for key, value in obj.items() if key not in ("metadata", "status")
    }
    """The part of an object whose change counts as a new generation."""
    unconditional_update: bool = True
    """Whether an update may leave out the resourceVersion."""
    create_on_update: bool = False
    """Whether an update of what is not there creates it."""
    status_on_create: bool = False
    """Whether a create may bring a status."""
    status_keeps: tuple[str, ...] = ("labels", "annotations", "finalizers", "ownerReferences")
    """The metadata that the status endpoint does not write."""
    unmanaged: tuple[str, ...] = ()
    """Fields that nobody manages, because the kind lets nobody change them."""
    tells_deleted: bool = False
    """Whether a delete answers with the object that is gone, not with a Status."""
    default: Callable[[Object], None] = _nothing
    """Fills in what is not in the schema: defaults that are code."""
    coerce: Callable[[Object, list[str]], None] = _keep
    """Brings into shape what no schema describes, and names the fields that it removes."""
    by_schema: bool = True
    """Whether the published schema is held against objects; a kind that judges itself says it in better words."""
    prepare_create: Callable[[Object], None] = _nothing
    prepare_update: Callable[[Object, Object], None] = _no_change
    """Brings a new state in order, given the old one."""
    prepare_delete: Callable[[Object, str], None] = _not_kept
    """Marks an object that is to be deleted, at a time, before anything else is decided."""
    validate: Callable[[Object], list[FieldError]] = _valid
    validate_update: Callable[[Object, Object], list[FieldError]] = _valid_update
    fields: Callable[[Object], Mapping[str, str]] = _no_fields
    """The values of the fields, beside name and namespace, that a field selector may name."""
    selectable: tuple[str, ...] = ()
    """The names of those fields."""
    orphans_by_default: bool = False
    """Whether a delete without a propagation policy leaves the dependents (Jobs, for history's sake)."""
    warn_on_create: Callable[[Object], list[str]] = lambda obj: []
    """What the writer is told beside the answer."""
