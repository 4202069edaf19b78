"""The built-in kinds, made from the facts about Kubernetes that `flyball.k8s` carries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from flyball.api.structural import Schema, compile_schema
from flyball.controlplane.apiserver.conversions import SHAPES, STORED_WITH
from flyball.controlplane.apiserver.kinds import Kind, Subresource
from flyball.controlplane.apiserver.strategies import DEPRECATED, strategy_of
from flyball.k8s import facts
from flyball.k8s.facts import ResourceFacts

__all__ = ["builtin_kinds", "hidden_kind", "message_of"]

SERVED: Final = frozenset(
    {
        ("", "v1"),
        ("admissionregistration.k8s.io", "v1"),
        ("apiextensions.k8s.io", "v1"),
        ("apiregistration.k8s.io", "v1"),
        ("apps", "v1"),
        ("authentication.k8s.io", "v1"),
        ("authorization.k8s.io", "v1"),
        ("autoscaling", "v1"),
        ("autoscaling", "v2"),
        ("batch", "v1"),
        ("certificates.k8s.io", "v1"),
        ("coordination.k8s.io", "v1"),
        ("discovery.k8s.io", "v1"),
        ("events.k8s.io", "v1"),
        ("flowcontrol.apiserver.k8s.io", "v1"),
        ("networking.k8s.io", "v1"),
        ("node.k8s.io", "v1"),
        ("policy", "v1"),
        ("rbac.authorization.k8s.io", "v1"),
        ("resource.k8s.io", "v1"),
        ("scheduling.k8s.io", "v1"),
        ("storage.k8s.io", "v1"),
    }
)
"""The groups and versions that a server of this level serves by default."""


def builtin_kinds() -> Iterator[Kind]:
    """Give every built-in kind that is served."""
    known = facts.load()
    names = _all_names()
    schemas = _Schemas(known["schemas"])
    for group in known["groups"]:
        for version in group["versions"]:
            if (group["group"], version["version"]) in SERVED:
                for resource in version["resources"]:
                    yield _kind(group["group"], version["version"], resource, names, schemas)


@cache
def hidden_kind(group: str, version: str, kind: str) -> Kind:
    """Describe a published type that is no resource of its own, such as the body of a subresource."""
    source = facts.load()["schemas"]
    name = _all_names()[group, version, kind]
    return Kind(
        group=group,
        version=version,
        kind=kind,
        plural=kind.lower(),
        singular=kind.lower(),
        namespaced=True,
        load_schema=_Schemas(source).loader(name),
        schema_name=name,
    )


def message_of(api_version: str, kind: str) -> str:
    """Return the published name of a type by what an object says of itself; empty when there is none."""
    group, _, version = api_version.rpartition("/")
    return _all_names().get((group, version, kind), "")


@cache
def _all_names() -> dict[tuple[str, str, str], str]:
    return _schema_names(facts.load()["schemas"])


def _schema_names(schemas: Mapping[str, Mapping[str, Any]]) -> dict[tuple[str, str, str], str]:
    return {
        (one["group"], one["version"], one["kind"]): name
        for name, schema in schemas.items()
        for one in schema.get("x-kubernetes-group-version-kind") or ()
    }


class _Schemas:
    """Compiles the published schemas, each once, when one is first asked for."""

    def __init__(self, source: Mapping[str, Mapping[str, Any]]) -> None:
        self._source = source
        self._known: dict[str, Schema] = {}

    def loader(self, name: str) -> Callable[[], Schema | None]:
        return lambda: self._compiled(name)

    def _compiled(self, name: str) -> Schema | None:
        if not name:
            return None
        if name not in self._known:
            self._known[name] = compile_schema({"$ref": name}, resolve=self._resolve)
        return self._known[name]

    def _resolve(self, name: str) -> Mapping[str, Any]:
        return self._source[name]


def _kind(
    group: str, version: str, resource: ResourceFacts, names: Mapping[tuple[str, str, str], str], schemas: _Schemas
) -> Kind:
    name = names.get((group, version, resource["kind"]), "")
    shape = SHAPES.get((group, version, resource["plural"]))
    return Kind(
        group=group,
        version=version,
        kind=resource["kind"],
        plural=resource["plural"],
        singular=resource["singular"],
        namespaced=resource["namespaced"],
        short_names=tuple(resource.get("shortNames", ())),
        categories=tuple(resource.get("categories", ())),
        verbs=tuple(resource["verbs"]),
        subresources={
            one["name"]: Subresource(one["name"], one["kind"], tuple(one["verbs"]), one["group"], one["version"])
            for one in resource.get("subresources", ())
        },
        storage_version_hash=resource.get("storageVersionHash", ""),
        load_schema=schemas.loader(name),
        schema_name=name,
        strategy=strategy_of(group, version, resource["plural"]),
        stored_with=STORED_WITH.get((group, resource["plural"]), ""),
        conversion=shape,
        warning=DEPRECATED.get((group, version, resource["plural"]), ""),
    )
