"""Objects without a class of their own: any kind as a dict, and any kind as its metadata only."""

from __future__ import annotations

from typing import Any, cast

from flyball.api.metadata import ObjectMeta
from flyball.api.model import Model, field
from flyball.api.resource import Resource

__all__ = ["DynamicMetadata", "DynamicObject", "PartialObjectMetadata"]


class DynamicObject(dict[str, Any]):
    """An object of any kind: the JSON as a dict, plus the names that every object has.

    >>> shell = DynamicObject({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "demo"}})
    >>> shell.kind, shell.metadata.name
    ('Pod', 'demo')
    >>> shell.metadata.labels["app"] = "demo"
    >>> shell["metadata"]
    {'name': 'demo', 'labels': {'app': 'demo'}}
    """

    @property
    def api_version(self) -> str:
        """`apps/v1`; empty if the object does not say."""
        return str(self.get("apiVersion") or "")

    @property
    def kind(self) -> str:
        """`Deployment`; empty if the object does not say."""
        return str(self.get("kind") or "")

    @property
    def metadata(self) -> DynamicMetadata:
        """The metadata; reading and setting its attributes reads and changes the dict."""
        return DynamicMetadata(self)

    def __repr__(self) -> str:
        metadata = self.metadata
        name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name or "(no name)"
        return f"<{self.kind or 'DynamicObject'} {name}>"


class DynamicMetadata:
    """The metadata of a `DynamicObject` by attributes. Other keys: `obj["metadata"]["..."]`."""

    __slots__ = ("_owner",)

    def __init__(self, owner: dict[str, Any]) -> None:
        """Of this object."""
        self._owner = owner

    def _read(self, key: str) -> Any:
        metadata: Any = self._owner.get("metadata")
        return cast("dict[str, Any]", metadata).get(key) if isinstance(metadata, dict) else None

    def _write(self, key: str, value: Any) -> None:
        metadata: Any = self._owner.get("metadata")
        if not isinstance(metadata, dict):
            metadata = self._owner["metadata"] = {}
        cast("dict[str, Any]", metadata)[key] = value

    def _part(self, key: str, empty: Any) -> Any:
        found = self._read(key)
        if found is None:
            found = empty
            self._write(key, found)
        return found

    @property
    def name(self) -> str:
        """The name; empty if there is none yet."""
        found: str | None = self._read("name")
        return found or ""

    @name.setter
    def name(self, value: str) -> None:
        self._write("name", value)

    @property
    def namespace(self) -> str | None:
        """The namespace; None for objects of the cluster."""
        found: str | None = self._read("namespace")
        return found or None

    @namespace.setter
    def namespace(self, value: str | None) -> None:
        self._write("namespace", value)

    @property
    def uid(self) -> str:
        """What tells this object from others of its name."""
        found: str | None = self._read("uid")
        return found or ""

    @property
    def resource_version(self) -> str:
        """Which version of the object this is."""
        found: str | None = self._read("resourceVersion")
        return found or ""

    @resource_version.setter
    def resource_version(self, value: str) -> None:
        self._write("resourceVersion", value)

    @property
    def generation(self) -> int:
        """Counts the changes of the spec."""
        found: int | None = self._read("generation")
        return found or 0

    @property
    def deletion_timestamp(self) -> str | None:
        """Set while the object waits for its finalizers."""
        found: str | None = self._read("deletionTimestamp")
        return found

    @property
    def labels(self) -> dict[str, str]:
        """The labels, to be changed in place."""
        found: dict[str, str] = self._part("labels", {})
        return found

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations, to be changed in place."""
        found: dict[str, str] = self._part("annotations", {})
        return found

    @property
    def finalizers(self) -> list[str]:
        """The finalizers, to be changed in place."""
        found: list[str] = self._part("finalizers", [])
        return found

    @property
    def owner_references(self) -> list[dict[str, Any]]:
        """The owners, as JSON has them."""
        found: list[dict[str, Any]] = self._part("ownerReferences", [])
        return found


class PartialObjectMetadata(Resource):
    """An object of any kind of which only the metadata was asked for."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class PartialObjectMetadataList(Model):
    """A list of such."""

    items: list[PartialObjectMetadata] = field(default_factory=list)
