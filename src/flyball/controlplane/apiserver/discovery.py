"""What is served, told to clients: groups, versions, resources; in both forms."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from flyball.controlplane.apiserver.kinds import Kind, Kinds, Subresource
from flyball.controlplane.apiserver.negotiation import negotiate
from flyball.controlplane.apiserver.render import encode
from flyball.controlplane.apiserver.request import Answer, Request

__all__ = ["aggregated_wanted", "api_group", "api_groups", "api_resources", "api_versions", "discovery_answer"]

Object = dict[str, Any]

_AGGREGATED: Final = ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")
_CONTENT_TYPE: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def api_versions(address: str) -> Object:
    """Give the versions of the core group."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def api_groups(kinds: Kinds) -> Object:
    """Give all groups but the core group."""
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(kinds, group) for group in kinds.groups() if group],
    }


def api_group(kinds: Kinds, group: str) -> Object:
    """Give one group."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(kinds, group)}


def _group(kinds: Kinds, group: str) -> Object:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in kinds.versions(group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def api_resources(kinds: Kinds, group: str, version: str) -> Object:
    """Give the resources of a group and version."""
    api_version = f"{group}/{version}" if group else version
    resources = [entry for kind in kinds.of(group, version) for entry in _resources(kind)]
    kind_of = {"kind": "APIResourceList", **({"apiVersion": "v1"} if group else {})}
    return {**kind_of, "groupVersion": api_version, "resources": resources}


def _resources(kind: Kind) -> list[Object]:
    own: Object = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.told_verbs),
    }
    if kind.short_names:
        own["shortNames"] = list(kind.short_names)
    if kind.categories:
        own["categories"] = list(kind.categories)
    if kind.storage_version_hash:
        own["storageVersionHash"] = kind.storage_version_hash
    listed = [own] if kind.verbs else []
    return listed + [_subresource(kind, one) for _, one in sorted(kind.subresources.items())]


def _subresource(kind: Kind, one: Subresource) -> Object:
    entry: Object = {"name": f"{kind.plural}/{one.name}", "singularName": "", "namespaced": kind.namespaced}
    if (one.group or one.version) and (one.group, one.version) != (kind.group, kind.version):
        if one.group:
            entry["group"] = one.group
        entry["version"] = one.version
    return {**entry, "kind": one.kind, "verbs": list(one.verbs)}


def aggregated_wanted(accept: str) -> bool:
    """Tell whether a client asks for the aggregated form before the plain one."""
    for clause in accept.split(","):
        parameters: dict[str, str] = {}
        for part in clause.split(";")[1:]:
            name, _, value = part.strip().partition("=")
            parameters[name] = value
        if (parameters.get("as"), parameters.get("g"), parameters.get("v")) == _AGGREGATED:
            return True
        if not parameters.get("as"):
            return False
    return False


def aggregated(kinds: Kinds, *, core: bool) -> Object:
    """Give groups with their versions and resources in one document."""
    groups = [group for group in kinds.groups() if bool(group) != core]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [_aggregated_group(kinds, group) for group in groups],
    }


def _aggregated_group(kinds: Kinds, group: str) -> Object:
    versions = [
        {
            "version": version,
            "resources": [_aggregated_resource(kind) for kind in kinds.of(group, version) if kind.verbs],
            "freshness": "Current",
        }
        for version in kinds.versions(group)
    ]
    metadata: Object = {"name": group} if group else {}
    return {"metadata": metadata, "versions": versions}


def _aggregated_resource(kind: Kind) -> Object:
    entry: Object = {
        "resource": kind.plural,
        "responseKind": _response_kind(kind, kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.told_verbs),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if kind.subresources:
        entry["subresources"] = [
            {
                "subresource": one.name,
                "responseKind": _response_kind(kind, one.kind, one),
                "verbs": list(one.verbs),
            }
            for _, one in sorted(kind.subresources.items())
        ]
    return entry


def _response_kind(kind: Kind, name: str, part: Subresource | None = None) -> Mapping[str, str]:
    """Name the kind of an answer; of a built-in kind, group and version only where they are others than its own."""
    group, version = (kind.group, kind.version) if part is None or not part.version else (part.group, part.version)
    if kind.builtin and (group, version) == (kind.group, kind.version):
        group = version = ""
    return {"group": group, "version": version, "kind": name}


def discovery_answer(request: Request, kinds: Kinds, *, core: bool, address: str) -> Answer:
    """Answer `/api` (core) or `/apis`, in the form that was asked for."""
    accept = request.headers.get("accept", "")
    if not aggregated_wanted(accept):
        negotiate(accept, table=False, metadata=False)
        return Answer(200, encode(api_versions(address) if core else api_groups(kinds)))
    body = encode(aggregated(kinds, core=core))
    tag = '"' + hashlib.sha256(body).hexdigest().upper() + '"'
    headers = {"Etag": tag, "Vary": "Accept", "Cache-Control": "public"}
    if request.headers.get("if-none-match") == tag:
        return Answer(304, b"", _CONTENT_TYPE, headers)
    return Answer(200, body, _CONTENT_TYPE, headers)
