"""The versions of one custom kind: their schemas, and how an object goes from one to the other.

With the strategy `None`, objects of all versions are the same but for `apiVersion`; what the other version's schema
does not know is not there. An object is stored in one version; it is read in the one that was asked for, with that
version's defaults. A body that was stored in the version and under the schema that is asked for is served as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from flyball.api.structural import Schema, compile_schema, default, drop_nulls, prune
from flyball.controlplane.apiserver.store import Entry
from flyball.k8s import facts

__all__ = ["VersionOf", "Versions", "custom_schema", "object_meta_schema"]

Object = dict[str, Any]

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_object_meta: list[Schema] = []


def object_meta_schema() -> Schema:
    """Return the schema of metadata, compiled once."""
    if not _object_meta:
        known = facts.load()["schemas"]
        _object_meta.append(compile_schema({"$ref": OBJECT_META}, resolve=lambda name: known[name]))
    return _object_meta[0]


def custom_schema(source: Mapping[str, Any]) -> Schema:
    """Compile the schema of a custom kind, with what every object has: apiVersion, kind and metadata."""
    root = compile_schema(source)
    for name in ("apiVersion", "kind"):
        root.properties.setdefault(name, Schema({"type": "string"}))
    given = root.properties.get("metadata")
    root.properties["metadata"] = object_meta_schema() if given is None else _restricted(given)
    return root


def _restricted(given: Schema) -> Schema:
    """Add to the schema of metadata what a definition may say of it: how objects are named."""
    whole = object_meta_schema()
    node = Schema(whole.source)
    node.required = given.required
    node.rules = given.rules
    node.properties = {**whole.properties, **given.properties}
    return node


class Versions:
    """The schemas of the versions of one kind, each compiled when it is first needed."""

    def __init__(self, group: str, storage: str, sources: Mapping[str, Mapping[str, Any]], since: int) -> None:
        """Take the schemas by version; bodies of revisions before `since` may be of an older schema."""
        self.group = group
        self.storage = storage
        self.since = since
        self._sources = sources
        self._compiled: dict[str, Schema] = {}

    def schema(self, version: str) -> Schema:
        """Return the schema of a version."""
        if version not in self._compiled:
            self._compiled[version] = custom_schema(self._sources[version])
        return self._compiled[version]

    def same_as(self, sources: Mapping[str, Mapping[str, Any]]) -> bool:
        """Tell whether these are the schemas."""
        return dict(self._sources) == dict(sources)


class VersionOf:
    """One version as a reader and a writer of what is stored."""

    def __init__(self, versions: Versions, version: str) -> None:
        """Take the versions and which one this is."""
        self._versions = versions
        self._version = version
        self._api_version = f"{versions.group}/{version}"
        self._stored = f"{versions.group}/{versions.storage}"

    def as_it_is(self, entry: Entry) -> bool:
        """Tell whether the stored body is already what this version shows."""
        return entry.api_version == self._api_version and entry.revision >= self._versions.since

    def read(self, obj: Object) -> Object:
        """Bring an object that was stored into this version."""
        schema = self._versions.schema(self._version)
        obj["apiVersion"] = self._api_version
        prune(obj, schema)
        default(obj, schema)
        return obj

    def store(self, obj: Object) -> Object:
        """Bring an object of this version into the one that is stored; the object itself stays as it is."""
        if self._stored == self._api_version:
            return obj
        schema = self._versions.schema(self._versions.storage)
        stored: Object = _copied(obj)
        stored["apiVersion"] = self._stored
        prune(stored, schema)
        drop_nulls(stored, schema)
        default(stored, schema)
        return stored


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(inner) for name, inner in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value
