"""The managers of an object's fields, as `metadata.managedFields` keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from flyball.controlplane.apiserver.apply.fieldset import EMPTY, FieldSet, fields_v1, from_fields_v1

__all__ = ["MAX_UPDATERS", "Managed", "ManagerEntry", "ManagerId", "OperationType"]

OperationType = Literal["Apply", "Update"]

MAX_UPDATERS: Final = 10
"""More managers that only update than this are merged into one, the oldest first."""

_ANCIENT: Final = "ancient-changes"


class ManagerId(NamedTuple):
    """What tells one entry from another. The version counts for updates only: an applier is one in all versions."""

    manager: str
    operation: OperationType
    api_version: str
    subresource: str

    def told(self) -> str:
        """Name the manager in the message of a conflict."""
        words = f'"{self.manager}"'
        if self.subresource:
            words += f' with subresource "{self.subresource}"'
        if self.operation == "Update":
            words += f" using {self.api_version}"
        return words


def identify(manager: str, operation: OperationType, api_version: str, subresource: str) -> ManagerId:
    """Make the id of an entry."""
    return ManagerId(manager or "unknown", operation, "" if operation == "Apply" else api_version, subresource)


@dataclass(frozen=True, slots=True)
class ManagerEntry:
    """The fields of one manager, in the version in which it wrote them, and when it last changed something."""

    fields: FieldSet
    api_version: str
    time: str = ""


@dataclass
class Managed:
    """All managers of one object."""

    entries: dict[ManagerId, ManagerEntry] = field(default_factory=dict[ManagerId, ManagerEntry])

    @classmethod
    def read(cls, managed_fields: Any) -> Managed:
        """Read `metadata.managedFields`. Raises `ValueError` for what cannot be understood."""
        managed = cls()
        for given in managed_fields or ():
            if not isinstance(given, Mapping):
                raise ValueError("an entry of managedFields is an object")
            operation = given.get("operation")
            if operation not in ("Apply", "Update"):
                raise ValueError("operation must be `Apply` or `Update`")
            api_version = given.get("apiVersion") or ""
            if not api_version:
                raise ValueError("apiVersion must not be empty")
            if given.get("fieldsType") != "FieldsV1":
                raise ValueError(f"invalid fieldsType {given.get('fieldsType')!r} in managed fields")
            key = identify(given.get("manager") or "", operation, api_version, given.get("subresource") or "")
            fields = from_fields_v1(given.get("fieldsV1"))
            managed.entries[key] = ManagerEntry(fields, api_version, given.get("time") or "")
        return managed

    def write(self) -> list[dict[str, Any]]:
        """Write the entries as `metadata.managedFields` has them: appliers first, then by time and name."""
        ordered = sorted(self.entries.items(), key=lambda pair: (pair[0].operation, pair[1].time, pair[0]))
        return [_written(key, entry) for key, entry in ordered]

    def fields_of(self, key: ManagerId) -> FieldSet:
        """Return the fields of a manager; of one that has none, an empty set."""
        entry = self.entries.get(key)
        return EMPTY if entry is None else entry.fields

    def set(self, key: ManagerId, fields: FieldSet, api_version: str, time: str | None = None) -> None:
        """Give a manager these fields; one without fields has no entry."""
        before = self.entries.get(key)
        if not fields:
            self.entries.pop(key, None)
            return
        moment = time if time is not None else (before.time if before is not None else "")
        self.entries[key] = ManagerEntry(fields, api_version, moment)

    def copy(self) -> Managed:
        """Return the same entries, to be changed apart."""
        return Managed(dict(self.entries))

    def cap(self) -> None:
        """Merge the oldest updates of a version into one entry until there are few enough."""
        updaters = sorted(
            (key for key in self.entries if key.operation == "Update"),
            key=lambda key: (self.entries[key].time, key),
        )
        count = len(updaters)
        first: dict[str, ManagerId] = {}
        for key in updaters:
            if count <= MAX_UPDATERS:
                break
            entry = self.entries[key]
            bucket = identify(_ANCIENT, "Update", entry.api_version, "")
            if entry.api_version not in first:
                first[entry.api_version] = key
                continue
            if bucket not in self.entries:
                self.entries[bucket] = self.entries.pop(first[entry.api_version])
            merged = self.entries[bucket].fields | entry.fields
            self.entries[bucket] = replace(self.entries[bucket], fields=merged, time=entry.time)
            del self.entries[key]
            count -= 1


def _written(key: ManagerId, entry: ManagerEntry) -> dict[str, Any]:
    written: dict[str, Any] = {
        "manager": key.manager,
        "operation": key.operation,
        "apiVersion": entry.api_version,
        "time": entry.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields_v1(entry.fields),
        "subresource": key.subresource,
    }
    return {name: value for name, value in written.items() if value != ""}


def time_text(moment: datetime) -> str:
    """Write a time as entries do."""
    return moment.isoformat()[:19] + "Z"
