"""From a definition to the kinds that are served: one for each version, all over one storage."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from flyball.controlplane.apiserver.crds.columns import columns_of
from flyball.controlplane.apiserver.crds.definition import is_true, storage_version, versions
from flyball.controlplane.apiserver.crds.objects import Objects
from flyball.controlplane.apiserver.crds.versions import VersionOf, Versions
from flyball.controlplane.apiserver.kinds import Kind, Subresource
from flyball.controlplane.apiserver.printing.jsonpath import simple_path, value_at
from flyball.controlplane.apiserver.strategy import Strategy

__all__ = ["kinds_of", "sources_of"]

Object = dict[str, Any]

_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_PART_VERBS: Final = ("get", "patch", "update")


def sources_of(definition: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the schema of each version as it was written."""
    return {
        version["name"]: (version.get("schema") or {}).get("openAPIV3Schema") or {} for version in versions(definition)
    }


def kinds_of(definition: Mapping[str, Any], shared: Versions) -> list[Kind]:
    """Make the kinds that a definition has in its served versions; none while its names are not accepted."""
    if not is_true(definition, "Established"):
        return []
    return [_kind(definition, version, shared) for version in versions(definition) if version.get("served")]


def _kind(definition: Mapping[str, Any], version: Object, shared: Versions) -> Kind:
    spec = definition["spec"]
    names = definition["status"]["acceptedNames"]
    group, name = spec["group"], version["name"]
    parts = version.get("subresources") or {}
    one = VersionOf(shared, name)
    kind = names["kind"]
    return Kind(
        group=group,
        version=name,
        kind=kind,
        plural=names["plural"],
        singular=names.get("singular", ""),
        list_kind=names.get("listKind", ""),
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        verbs=_VERBS,
        subresources=_subresources(kind, parts),
        storage_version_hash=_storage_hash(group, storage_version(definition), kind),
        builtin=False,
        load_schema=lambda: shared.schema(name),
        definition=version,
        strategy=_strategy(spec, version, shared),
        stored_as=f"{group}/{shared.storage}",
        conversion=one,
        columns=columns_of(version.get("additionalPrinterColumns") or ()),
        warning=_warning(group, version, kind),
        terminating=is_true(definition, "Terminating"),
    )


def _subresources(kind: str, parts: Mapping[str, Any]) -> dict[str, Subresource]:
    made: dict[str, Subresource] = {}
    if parts.get("status") is not None:
        made["status"] = Subresource("status", kind, _PART_VERBS)
    if parts.get("scale") is not None:
        made["scale"] = Subresource("scale", "Scale", _PART_VERBS, "autoscaling", "v1")
    return made


def _storage_hash(group: str, version: str, kind: str) -> str:
    digest = hashlib.sha256(f"{group}/{version}/{kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def _warning(group: str, version: Object, kind: str) -> str:
    if not version.get("deprecated"):
        return ""
    return str(version.get("deprecationWarning") or f"{group}/{version['name']} {kind} is deprecated")


def _strategy(spec: Object, version: Object, shared: Versions) -> Strategy:
    objects = Objects(lambda: shared.schema(version["name"]))
    selectable = _selectable_paths(spec)
    has_status = (version.get("subresources") or {}).get("status") is not None
    left_out = ("metadata", "status") if has_status else ("metadata",)
    return Strategy(
        wanted=lambda obj: {name: value for name, value in obj.items() if name not in left_out},
        unconditional_update=False,
        coerce=objects.coerce,
        validate=objects.validate,
        validate_update=lambda obj, old: objects.validate(obj),
        fields=_field_values(selectable),
        selectable=tuple(
            one["jsonPath"].removeprefix(".") for one in version.get("selectableFields") or () if one.get("jsonPath")
        ),
    )


def _selectable_paths(spec: Object) -> dict[str, tuple[str, ...]]:
    """Return the selectable fields of all versions: an object may be written in one and selected in another."""
    return {
        one["jsonPath"].removeprefix("."): simple_path(one["jsonPath"])
        for version in spec.get("versions") or ()
        for one in version.get("selectableFields") or ()
        if one.get("jsonPath")
    }


def _field_values(paths: Mapping[str, tuple[str, ...]]) -> Callable[[Object], Mapping[str, str]]:
    def values(obj: Object) -> Mapping[str, str]:
        return {name: _text(value_at(obj, path)) for name, path in paths.items()}

    return values


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None or isinstance(value, (dict, list)) else str(value)
