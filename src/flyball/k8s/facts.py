"""The facts about the built-in API that models are generated from and that an API server needs.

The file beside this module is made by `tools/modelgen` from what Kubernetes publishes. It holds no texts.
"""

from __future__ import annotations

import json
import lzma
from functools import cache
from importlib.resources import files
from typing import Any, Final, TypedDict

__all__ = ["FILE", "Facts", "GroupFacts", "ResourceFacts", "SubresourceFacts", "VersionFacts", "load"]

FILE: Final = "kubernetes-1.36.json.xz"


class SubresourceFacts(TypedDict):
    """What discovery says of a subresource: its name below the resource, the kind it takes and its verbs."""

    name: str
    group: str
    version: str
    kind: str
    verbs: list[str]


class _Resource(TypedDict):
    plural: str
    singular: str
    kind: str
    namespaced: bool
    verbs: list[str]


class ResourceFacts(_Resource, total=False):
    """What discovery says of a resource."""

    shortNames: list[str]
    categories: list[str]
    storageVersionHash: str
    subresources: list[SubresourceFacts]


class VersionFacts(TypedDict):
    """A version of a group with its resources."""

    version: str
    resources: list[ResourceFacts]


class GroupFacts(TypedDict):
    """A group with its versions, the preferred one first."""

    group: str
    versions: list[VersionFacts]


class Facts(TypedDict):
    """Everything in the file.

    `schemas` are OpenAPI v3 schemas by their published name, with `$ref` into `#/components/schemas/`, with
    `x-kubernetes-*` extensions, and with properties in the order in which a server writes them.
    """

    kubernetes: str
    groups: list[GroupFacts]
    schemas: dict[str, dict[str, Any]]


@cache
def load() -> Facts:
    """The facts, read once. The result is shared: do not change it."""
    packed = (files("flyball.k8s") / "_facts" / FILE).read_bytes()
    facts: Facts = json.loads(lzma.decompress(packed))
    return facts
