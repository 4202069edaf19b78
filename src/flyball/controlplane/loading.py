"""Manifests that a cluster begins with: a folder of YAML files, applied in an order that works."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from flyball.api import DynamicObject
from flyball.client import Client, dynamic
from flyball.controlplane.apiserver.body import read_documents
from flyball.controlplane.apiserver.status import StatusError
from flyball.errors import ApiError, ConfigError

__all__ = ["Manifest", "apply_manifests", "read_manifests"]

_SUFFIXES = frozenset({".yaml", ".yml", ".json"})
_FIRST = ("CustomResourceDefinition", "Namespace", "ServiceAccount")
"""What others need, in this order; everything else comes as the files have it."""
_CRD = dynamic("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_SECONDS = 10.0


class Manifest(NamedTuple):
    """One object and the file it stands in."""

    file: Path
    object: DynamicObject


def read_manifests(place: Path) -> list[Manifest]:
    """Read a file, or every YAML and JSON file of a folder and those below it, by name. Raises ConfigError."""
    if not place.exists():
        raise ConfigError(f"{place}: no such file or folder; name one with YAML files")
    files = [place] if place.is_file() else sorted(file for file in place.rglob("*") if file.suffix in _SUFFIXES)
    return [Manifest(file, found) for file in files for found in _objects(file)]


def _objects(file: Path) -> Iterator[DynamicObject]:
    try:
        documents = read_documents(file.read_bytes())
    except StatusError as error:
        raise ConfigError(f"{file}: {error.message}; repair the file") from None
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror or error}") from None
    for document in documents:
        listed = document.get("items") if isinstance(document, dict) and document.get("kind") == "List" else [document]
        for found in listed or ():
            yield _object(file, found)


def _object(file: Path, found: Any) -> DynamicObject:
    metadata = found.get("metadata") if isinstance(found, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise ConfigError(f"{file}: a document is no object of Kubernetes: it needs apiVersion, kind and metadata.name")
    if not all(isinstance(found.get(name), str) and found[name] for name in ("apiVersion", "kind")):
        raise ConfigError(f"{file}: {metadata['name']} does not say its apiVersion and kind; add them")
    return DynamicObject(found)


async def apply_manifests(client: Client, manifests: list[Manifest]) -> None:
    """Apply objects, CustomResourceDefinitions first; each is established before what follows. Raises ConfigError."""
    for manifest in sorted(manifests, key=_order):
        try:
            applied = await client.apply(manifest.object, field_manager="flyball-up", force=True)
            if manifest.object.kind == _CRD.word:
                await _established(client, applied)
        except ApiError as error:
            raise ConfigError(f"{manifest.file}: {error}") from None


def _order(manifest: Manifest) -> int:
    kind = manifest.object.kind
    return _FIRST.index(kind) if kind in _FIRST else len(_FIRST)


async def _established(client: Client, crd: DynamicObject) -> None:
    """Wait until the kinds of a CustomResourceDefinition are served."""
    if _is_established(crd):
        return
    found = await client.list(_CRD, fields=f"metadata.name={crd.metadata.name}")
    if any(_is_established(one) for one in found):
        return
    version = found.resource_version
    fields = f"metadata.name={crd.metadata.name}"
    async with client.watch(_CRD, fields=fields, resource_version=version, timeout=_SECONDS) as watch:
        async for event in watch:
            if _is_established(event.object):
                return
    told = "it was not established; look at its conditions"
    raise ConfigError(f"CustomResourceDefinition {crd.metadata.name}: {told}")


def _is_established(crd: Any) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or []
    return any(one.get("type") == "Established" and one.get("status") == "True" for one in conditions)
