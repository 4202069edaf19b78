"""The kinds of patch a server understands, and how one is guarded against a version that is no longer there.

| class | what is sent | use it when |
|---|---|---|
| `JsonPatch` | a list of operations (RFC 6902) | one place is meant exactly, or a `test` must hold |
| `MergePatch` | the parts that change; None deletes; a list replaces the whole list (RFC 7386) | always possible |
| `StrategicPatch` | as merge, but lists with keys are merged by key | built-in kinds only; a custom resource answers
415 |

`client.patch(obj)` without any of these sends the difference between the object as it was read and as it is now.
Server-side apply is no patch in this sense: `client.apply`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

__all__ = ["JsonPatch", "MergePatch", "Patch", "StrategicPatch"]


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """Operations of RFC 6902: `JsonPatch([{"op": "replace", "path": "/spec/replicas", "value": 3}])`."""

    operations: Sequence[Mapping[str, Any]]
    content_type: ClassVar[str] = "application/json-patch+json"

    def content(self) -> list[Mapping[str, Any]]:
        """The body as JSON values."""
        return list(self.operations)

    def guarded(self, resource_version: str) -> JsonPatch:
        """The same patch, answered with Conflict unless the object still has this version.

        Writing the version that was read is what the server compares; a `test` operation would be answered with
        Invalid, which says less.
        """
        guard = {"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version}
        return JsonPatch([guard, *self.operations])


@dataclass(frozen=True, slots=True)
class MergePatch:
    """A merge patch of RFC 7386: `MergePatch({"metadata": {"labels": {"tier": "web", "old": None}}})`."""

    document: Mapping[str, Any]
    content_type: ClassVar[str] = "application/merge-patch+json"

    def content(self) -> Mapping[str, Any]:
        """The body as JSON values."""
        return self.document

    def guarded(self, resource_version: str) -> MergePatch:
        """The same patch, answered with Conflict unless the object still has this version."""
        return MergePatch(_with_version(self.document, resource_version))


@dataclass(frozen=True, slots=True)
class StrategicPatch:
    """A strategic merge patch: lists with a merge key are merged by it; `$patch`, `$retainKeys` and others as given."""

    document: Mapping[str, Any]
    content_type: ClassVar[str] = "application/strategic-merge-patch+json"

    def content(self) -> Mapping[str, Any]:
        """The body as JSON values."""
        return self.document

    def guarded(self, resource_version: str) -> StrategicPatch:
        """The same patch, answered with Conflict unless the object still has this version."""
        return StrategicPatch(_with_version(self.document, resource_version))


Patch = JsonPatch | MergePatch | StrategicPatch


def _with_version(document: Mapping[str, Any], resource_version: str) -> dict[str, Any]:
    metadata: Mapping[str, Any] = document.get("metadata") or {}
    return {**document, "metadata": {**metadata, "resourceVersion": resource_version}}
