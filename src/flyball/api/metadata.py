"""What every object has: its metadata, who owns it, and the conditions of its status.

Texts that are empty and lists or maps without entries are not sent, as the server itself does it; so `labels`,
`annotations`, `finalizers` and `owner_references` can be used without asking first whether they are there.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from flyball.api.markers import Format, MaxLength, MinLength, Pattern
from flyball.api.model import REQUIRED, Model, field

__all__ = ["Condition", "ConditionStatus", "ListMeta", "ManagedFieldsEntry", "ObjectMeta", "OwnerReference"]

ConditionStatus = Literal["True", "False", "Unknown"]


class OwnerReference(Model):
    """The object that this one belongs to; when the owner goes, the garbage collector takes this one along."""

    api_version: str = REQUIRED
    kind: str = REQUIRED
    name: str = REQUIRED
    uid: str = REQUIRED
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ManagedFieldsEntry(Model):
    """Which manager has set which fields, when and how."""

    manager: str | None = None
    operation: str | None = None
    api_version: str | None = None
    time: datetime | None = None
    fields_type: str | None = None
    fields_v1: msgspec.Raw = field(default=REQUIRED, name="fieldsV1")
    subresource: str | None = None


class ObjectMeta(Model, plain_defaults=True):
    """Name, labels, owners and history of an object."""

    name: str = ""
    generate_name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: list[OwnerReference] = field(default_factory=list)
    finalizers: list[str] = field(default_factory=list)
    self_link: str | None = None
    managed_fields: msgspec.Raw = REQUIRED
    """Kept as received, because it is half of an object and hardly ever read; `managers()` decodes it."""

    def managers(self) -> list[ManagedFieldsEntry]:
        """The entries of `managed_fields`, decoded now; an empty list if the server sent none."""
        raw: Any = self.managed_fields
        if not isinstance(raw, msgspec.Raw):
            return []
        return msgspec.json.decode(raw, type=list[ManagedFieldsEntry] | None) or []


class ListMeta(Model, plain_defaults=True):
    """What a list says about itself: its version and how to go on."""

    resource_version: str = ""
    continue_: str | None = None
    remaining_item_count: int | None = None
    self_link: str | None = None


_REASON = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)


class Condition(Model):
    """One observed fact about an object: its type, whether it holds, since when and why."""

    type: Annotated[str, MaxLength(316), Pattern(_TYPE)] = REQUIRED
    status: ConditionStatus = REQUIRED
    observed_generation: Annotated[int, Format("int64")] | None = None
    last_transition_time: datetime = REQUIRED
    reason: Annotated[str, MinLength(1), MaxLength(1024), Pattern(_REASON)] = REQUIRED
    message: Annotated[str, MaxLength(32768)] = REQUIRED
