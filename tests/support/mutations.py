"""Requests that are wrong in one way or another, made from ones that are right; the same seed makes the same ones."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["Asked", "mutated", "right_requests"]

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
YAML = "application/yaml"
NS = "/api/v1/namespaces/default"

POD = {
    "containers": [{"name": "a", "image": "i", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1"}}}]
}
LABELS = {"app": "a"}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {"selector": {"matchLabels": LABELS}, "template": {"metadata": {"labels": LABELS}, "spec": POD}},
}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "widgets", "kind": "Widget"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "text": {"type": "string", "pattern": "^(a+)+$"},
                                    "size": {"type": "integer"},
                                },
                                "x-kubernetes-validations": [{"rule": "!has(self.size) || self.size < 10"}],
                            }
                        },
                    }
                },
            }
        ],
    },
}
WIDGET = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "w"},
    "spec": {"text": "aaa", "size": 1},
}


@dataclass(frozen=True)
class Asked:
    """One request, as it goes over the wire."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    how: str = "right"


def _with(method: str, path: str, body: Any, content_type: str = JSON, **query: str) -> Asked:
    raw = b"" if body is None else json.dumps(body).encode()
    return Asked(method, path, tuple(query.items()), {"Content-Type": content_type}, raw)


def right_requests() -> list[Asked]:
    """Requests of every sort."""
    cm = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"generateName": "m-", "labels": LABELS},
        "data": {"a": "b"},
    }
    named = {**cm, "metadata": {"name": "victim"}}
    operations = [{"op": "test", "path": "/data/a", "value": "b"}, {"op": "add", "path": "/data/c", "value": "d"}]
    deployments, widgets = (
        "/apis/apps/v1/namespaces/default/deployments",
        "/apis/example.com/v1/namespaces/default/widgets",
    )
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 2}}
    options = {"propagationPolicy": "Background", "preconditions": {"uid": "x"}, "gracePeriodSeconds": 1}
    return [
        _with("POST", f"{NS}/configmaps", cm, fieldManager="me", fieldValidation="Strict"),
        _with("PUT", f"{NS}/configmaps/victim", named, dryRun="All"),
        _with("PATCH", f"{NS}/configmaps/victim", {"data": {"a": None}}, MERGE),
        _with("PATCH", f"{NS}/configmaps/victim", operations, JSON_PATCH),
        _with("PATCH", f"{NS}/configmaps/victim", named, APPLY, fieldManager="me", force="true"),
        _with("POST", deployments, {**DEPLOYMENT, "metadata": {"generateName": "d-"}}),
        _with("PATCH", f"{deployments}/d", {"spec": {"template": {"spec": POD}}}, STRATEGIC),
        _with("PATCH", f"{deployments}/d", DEPLOYMENT, APPLY, fieldManager="me", force="true"),
        _with("PUT", f"{deployments}/d/scale", scale),
        _with("PATCH", f"{deployments}/d/scale", {"spec": {"replicas": 3}}, MERGE),
        _with("PUT", f"{deployments}/d/status", {**DEPLOYMENT, "status": {"replicas": 1}}),
        _with("POST", f"{NS}/pods", {"metadata": {"generateName": "p-"}, "spec": POD}),
        _with("POST", f"{NS}/services", {"metadata": {"generateName": "s-"}, "spec": {"ports": [{"port": 80}]}}),
        _with(
            "POST",
            f"{NS}/secrets",
            {"metadata": {"generateName": "s-"}, "data": {"a": "Yg=="}, "stringData": {"c": "d"}},
        ),
        _with(
            "POST",
            "/apis/batch/v1/namespaces/default/jobs",
            {"metadata": {"generateName": "j-"}, "spec": {"template": {"spec": {**POD, "restartPolicy": "Never"}}}},
        ),
        _with(
            "POST",
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            {"metadata": {"generateName": "l-"}, "spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}},
        ),
        _with(
            "POST",
            f"{NS}/events",
            {
                "metadata": {"generateName": "e-"},
                "involvedObject": {"namespace": "default"},
                "lastTimestamp": "2026-01-01T00:00:00Z",
            },
        ),
        _with("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD, dryRun="All"),
        _with("PUT", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com", CRD, dryRun="All"),
        _with("POST", widgets, {**WIDGET, "metadata": {"generateName": "w-"}}),
        _with("PATCH", f"{widgets}/w", WIDGET, APPLY, fieldManager="me", force="true"),
        _with("PATCH", f"{widgets}/w", {"spec": {"size": 2}}, MERGE),
        _with("POST", "/api/v1/namespaces", {"metadata": {"generateName": "n-"}}),
        _with(
            "PUT",
            "/api/v1/namespaces/default/finalize",
            {"metadata": {"name": "default"}, "spec": {"finalizers": ["kubernetes"]}},
            dryRun="All",
        ),
        _with("POST", f"{NS}/serviceaccounts/default/token", {"spec": {"expirationSeconds": 600, "audiences": ["a"]}}),
        _with("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x", "audiences": ["a"]}}),
        _with("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}),
        _with("POST", f"{NS}/pods/nobody/eviction", {"metadata": {"name": "nobody"}, "deleteOptions": options}),
        _with("POST", f"{NS}/pods/nobody/binding", {"target": {"name": "n"}, "metadata": {"name": "nobody"}}),
        _with("DELETE", f"{NS}/configmaps/nobody", options),
        _with("DELETE", f"{NS}/configmaps/victim", options, dryRun="All"),
        _with("DELETE", f"{NS}/secrets", None, labelSelector="nothing=here", fieldSelector="metadata.name=x"),
        _with("GET", f"{NS}/configmaps", None, limit="2", labelSelector="app in (a,b),!c", resourceVersion="0"),
        _with("GET", f"{NS}/configmaps/victim", None, resourceVersion="1"),
        _with(
            "GET", f"{NS}/configmaps", None, watch="1", timeoutSeconds="0", allowWatchBookmarks="1", resourceVersion="1"
        ),
        _with("GET", "/api/v1/pods", None, fieldSelector="spec.nodeName=x,status.phase!=Running", limit="1"),
        _with("GET", widgets, None, limit="1"),
        _with("GET", "/apis", None),
        _with("GET", "/openapi/v3/apis/apps/v1", None, hash="abc"),
        _with("GET", "/healthz", None, verbose=""),
    ]


WRONG: list[Any] = [
    None,
    0,
    -1,
    1.5,
    2**63,
    1e400,
    "",
    "x",
    "é\u0000",
    [],
    [[]],
    {},
    {"a": {}},
    True,
    "9" * 400,
    "a" * 300,
]
TEXTS = [
    "",
    "x",
    "-1",
    "1e99",
    "9" * 40,
    "²",
    "\u0000",
    "a=b=c",
    "in (",
    ")(",
    "a in ()",
    "!",
    ",",
    "a b",
    "é",
    "x" * 9000,
    "=",
    "\\",
    "a=b,c!=d,e notin (f",
    "NaN",
    "true",
    "All",
    "%",
    "+",
]


def mutated(count: int, seed: int) -> list[Asked]:
    """Make so many requests, each with one to three things wrong."""
    chance = random.Random(seed)
    right = right_requests()
    made: list[Asked] = []
    while len(made) < count:
        asked = chance.choice(right)
        for _ in range(chance.choice((1, 1, 2, 3))):
            change = chance.choice(_CHANGES)
            asked = replace(change(chance, asked), how=f"{asked.how}, {change.__name__.strip('_')}")
        made.append(asked)
    return made


def _document(asked: Asked) -> Any:
    try:
        return None if asked.body.count(b"[") + asked.body.count(b"{") > 400 else json.loads(asked.body)
    except (ValueError, RecursionError):
        return None


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += _places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += _places(inner, (*path, index))
    return found


def _put(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    document = copy.deepcopy(document)
    parent = document
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = value
    return document


def _wrong_type(chance: random.Random, asked: Asked) -> Asked:
    document = _document(asked)
    changed = _put(document, chance.choice(_places(document)), copy.deepcopy(chance.choice(WRONG)))
    return replace(asked, body=json.dumps(changed).encode())


def _unknown_field(chance: random.Random, asked: Asked) -> Asked:
    document = _document(asked)
    maps = [path for path in _places(document) if isinstance(_at(document, path), dict)]
    if not maps:
        return asked
    where = (
        *chance.choice(maps),
        chance.choice(("nope", "status", "metadata", "spec", "", "a.b/c", "$patch", "x" * 500)),
    )
    return replace(asked, body=json.dumps(_put(document, where, copy.deepcopy(chance.choice(WRONG)))).encode())


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


def _metadata(chance: random.Random, asked: Asked) -> Asked:
    document = _document(asked)
    if not isinstance(document, dict) or not isinstance(document.get("metadata", {}), dict):
        return asked
    fields = (
        "name",
        "generateName",
        "namespace",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "managedFields",
    )
    more = ("resourceVersion", "uid", "generation", "deletionTimestamp", "creationTimestamp", "selfLink")
    value = chance.choice(
        [*WRONG, [1], [None], [{}], ["x"], {"a": 1}, {"a b": "c"}, [{"manager": 1}], "2026-13-01T00:00:00Z"]
    )
    changed = _put(document, ("metadata",), {**document.get("metadata", {}), chance.choice(fields + more): value})
    return replace(asked, body=json.dumps(changed).encode())


def _truncated(chance: random.Random, asked: Asked) -> Asked:
    return replace(asked, body=asked.body[: chance.randrange(len(asked.body) + 1)])


def _flipped(chance: random.Random, asked: Asked) -> Asked:
    raw = bytearray(asked.body)
    for _ in range(chance.randrange(1, 5)):
        if raw:
            raw[chance.randrange(len(raw))] = chance.randrange(256)
    return replace(asked, body=bytes(raw))


def _deep(chance: random.Random, asked: Asked) -> Asked:
    depth = chance.choice((50, 500, 5_000, 100_000))
    opening, closing = chance.choice(((b'{"a":', b"}"), (b"[", b"]"), (b'{"spec":', b"}")))
    nested = opening * depth + b"1" + closing * (depth if chance.random() < 0.7 else 0)
    if chance.random() < 0.5 and asked.body.endswith(b"}"):
        return replace(asked, body=asked.body[:-1] + b',"deep":' + nested + b"}")
    return replace(asked, body=nested)


def _doubled(chance: random.Random, asked: Asked) -> Asked:
    if not asked.body.startswith(b"{"):
        return asked
    return replace(asked, body=b'{"metadata":{"name":"x","name":"y"},' + asked.body[1:])


def _content_type(chance: random.Random, asked: Asked) -> Asked:
    kinds = (JSON, MERGE, STRATEGIC, JSON_PATCH, APPLY, YAML, "", "text/plain", "application/cbor", ";;;", "a/b; c=d")
    return replace(
        asked, headers={**asked.headers, "Content-Type": chance.choice((*kinds, "application/vnd.kubernetes.protobuf"))}
    )


def _protobuf(chance: random.Random, asked: Asked) -> Asked:
    raw = b"k8s\x00" + bytes(chance.randrange(256) for _ in range(chance.randrange(60)))
    if chance.random() < 0.5:
        raw = b"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12" + bytes(chance.randrange(256) for _ in range(20))
    return replace(asked, body=raw, headers={**asked.headers, "Content-Type": "application/vnd.kubernetes.protobuf"})


def _yaml(chance: random.Random, asked: Asked) -> Asked:
    texts = (
        b"a: &x [*x]",
        b"a: &a [1]\nb: &b [*a,*a]\nc: [*b,*b]",
        b"!!python/object:os.system x",
        b"? [a]\n: b",
        b"- - -",
        b"\t",
        b"a: 2026-01-01",
        b"<<: 1",
        b"a: *nope",
        b"%YAML 9",
        b"a: 1\n---\nb: 2",
        b"{a: [}",
        b"a: .inf",
        b"'",
    )
    return replace(
        asked, body=chance.choice(texts), headers={**asked.headers, "Content-Type": chance.choice((YAML, APPLY))}
    )


def _accept(chance: random.Random, asked: Asked) -> Asked:
    accepts = (
        "text/html",
        ";",
        "application/json;as=Nope;g=meta.k8s.io;v=v1",
        "*/*;q=x",
        "application/cbor",
        "a" * 5000,
        "application/json;as=Table;g=meta.k8s.io;v=v1",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
    )
    return replace(asked, headers={**asked.headers, "Accept": chance.choice(accepts)})


def _method(chance: random.Random, asked: Asked) -> Asked:
    return replace(
        asked,
        method=chance.choice(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECTED", "FOO")),
    )


def _path(chance: random.Random, asked: Asked) -> Asked:
    parts = asked.path.split("/")
    odd = (
        "",
        ".",
        "..",
        "%2e%2e",
        "a%2Fb",
        "%00",
        "%ff",
        "%",
        "é".encode().decode("latin1"),
        "v9",
        "Nope",
        "x" * 3000,
        "status",
        "scale",
        "log",
        "exec",
        "namespaces",
        "api",
        "apis",
        "watch",
        "token",
        "%E2%82",
    )
    if chance.random() < 0.3:
        parts.append(chance.choice(odd))
    else:
        parts[chance.randrange(1, len(parts))] = chance.choice(odd)
    return replace(asked, path="/".join(parts))


def _query(chance: random.Random, asked: Asked) -> Asked:
    names = (
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "timeoutSeconds",
        "dryRun",
        "fieldManager",
        "fieldValidation",
        "force",
        "propagationPolicy",
        "gracePeriodSeconds",
        "orphanDependents",
        "sendInitialEvents",
        "allowWatchBookmarks",
        "pretty",
        "includeObject",
        "timeout",
        "nope",
    )
    name = chance.choice(names)
    value = chance.choice((*TEXTS, "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0", "bnVsbA", "W10"))
    return replace(asked, query=(*((key, old) for key, old in asked.query if key != name), (name, value)))


_CHANGES: list[Callable[[random.Random, Asked], Asked]] = [
    _wrong_type,
    _wrong_type,
    _wrong_type,
    _metadata,
    _metadata,
    _unknown_field,
    _truncated,
    _flipped,
    _deep,
    _doubled,
    _content_type,
    _protobuf,
    _yaml,
    _accept,
    _method,
    _path,
    _path,
    _query,
    _query,
]
