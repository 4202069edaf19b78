"""OpenAPI v3: a document for each group and version, made from the kinds when it is first asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Final

from flyball.clock import Clock
from flyball.controlplane.apiserver.kinds import Kind, Kinds
from flyball.controlplane.apiserver.render import encode
from flyball.controlplane.apiserver.request import Answer, Request
from flyball.k8s import facts

__all__ = ["OpenApi"]

Object = dict[str, Any]

_LEVEL: Final = "1.36"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_REF: Final = "#/components/schemas/"
_PATCH_TYPES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_METHODS: Final = {"get": "get", "create": "post", "update": "put", "patch": "patch", "delete": "delete"}
_GO_ON: Final = "public, immutable"


_SECOND_VERSION: Final = b"\x0a\x032.0\x12\x19\x0a\x0aKubernetes\x12\x0bunversioned\x42\x00"
"""A document of OpenAPI v2 in protobuf that describes no types: kubectl asks for it when it meets a kind that it finds
nowhere else, and then leaves the judgement to the server."""


class OpenApi:
    """Makes the documents and remembers them until the kinds change."""

    def __init__(self, kinds: Kinds, clock: Clock) -> None:
        """Take the kinds that are described."""
        self._kinds = kinds
        self._clock = clock
        self._changed = ""
        self._moment = datetime.min.replace(tzinfo=UTC)
        self._generation = -1
        self._documents: dict[str, tuple[list[Kind], str, bytes]] = {}

    def answer(self, request: Request) -> Answer:
        """Answer a path below `/openapi`."""
        if self._generation != self._kinds.generation:
            self._generation = self._kinds.generation
            self._changed = self._later()
        path = request.path.removeprefix("/openapi/").strip("/")
        if path == "v3":
            headers = {"Last-Modified": self._changed, "Vary": "Accept"}
            if request.headers.get("if-modified-since") == self._changed:
                return Answer(304, b"", "text/plain; charset=utf-8", headers)
            return Answer(200, encode({"paths": dict(self._index())}), "text/plain; charset=utf-8", headers)
        if path.startswith("v3/"):
            return self._document_answer(request, path.removeprefix("v3/"))
        if path == "v2" and "proto-openapi.spec.v2" in request.headers.get("accept", ""):
            return Answer(200, _SECOND_VERSION, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
        return Answer(404, b"404 page not found\n", "text/plain; charset=utf-8")

    def _later(self) -> str:
        """Return the time of a change: whole seconds, and never the same twice, for clients compare nothing else."""
        self._moment = max(self._clock.now().replace(microsecond=0), self._moment + timedelta(seconds=1))
        return format_datetime(self._moment, usegmt=True)

    def _index(self) -> Iterator[tuple[str, Object]]:
        for group in self._kinds.groups():
            for version in self._kinds.versions(group):
                name = f"apis/{group}/{version}" if group else f"api/{version}"
                tag, _ = self._document(name, group, version)
                yield name, {"serverRelativeURL": f"/openapi/v3/{name}?hash={tag}"}

    def _document_answer(self, request: Request, name: str) -> Answer:
        group, _, version = name.removeprefix("apis/").removeprefix("api/").rpartition("/")
        if not self._kinds.serves(group, version):
            return Answer(404, b"404 page not found\n", "text/plain; charset=utf-8")
        tag, body = self._document(name, group, version)
        asked = request.first("hash")
        if asked and asked != tag:
            return Answer(301, b"", "text/plain; charset=utf-8", {"Location": f"/openapi/v3/{name}?hash={tag}"})
        headers = {"Etag": f'"{tag}"', "Last-Modified": self._changed, "Vary": "Accept"}
        if asked:
            headers["Cache-Control"] = _GO_ON
        if request.headers.get("if-none-match") == f'"{tag}"':
            return Answer(304, b"", headers=headers)
        return Answer(200, body, "application/json", headers)

    def _document(self, name: str, group: str, version: str) -> tuple[str, bytes]:
        """Return the digest and the text of a document, made anew when one of its kinds is another one."""
        kinds = self._kinds.of(group, version)
        known = self._documents.get(name)
        if known is None or known[0] != kinds:
            body = encode(_document(kinds))
            known = self._documents[name] = (kinds, hashlib.sha512(body).hexdigest().upper(), body)
        return known[1], known[2]


def _document(kinds: list[Kind]) -> Object:
    paths: Object = {}
    schemas: Object = {}
    known = facts.load()["schemas"]
    for kind in kinds:
        own, listed = _schema_names(kind)
        if not kind.builtin:
            schemas.update(_custom_schemas(kind, own, listed))
        elif listed not in known and own in known:
            schemas[listed] = _list_schema(kind, own)
        paths.update(_paths(kind, own, listed))
    for kind in kinds:
        own, listed = _schema_names(kind)
        _collect(own, known, schemas)
        _collect(listed, known, schemas)
    for name in ("DeleteOptions", "Status", "WatchEvent", "ObjectMeta", "ListMeta"):
        _collect(_META + name, known, schemas)
    for kind in kinds:
        for schema in list(schemas.values()) if not kind.builtin else ():
            for name in _references(schema):
                _collect(name, known, schemas)
    builtin = any(kind.builtin for kind in kinds)
    title = {
        "title": "Kubernetes" if builtin else "Kubernetes CRD Swagger",
        "version": _LEVEL if builtin else "v0.1.0",
    }
    return {"openapi": "3.0.0", "info": title, "paths": paths, "components": {"schemas": schemas}}


def _schema_names(kind: Kind) -> tuple[str, str]:
    if kind.builtin:
        return kind.schema_name, f"{kind.schema_name}List"
    own = ".".join((*reversed(kind.group.split(".")), kind.version, kind.kind))
    return own, ".".join((*reversed(kind.group.split(".")), kind.version, kind.lists_as))


def _list_schema(kind: Kind, own: str) -> Object:
    return {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "items": {"type": "array", "items": {"$ref": _REF + own}},
            "kind": {"type": "string"},
            "metadata": {"$ref": f"{_REF}{_META}ListMeta"},
        },
        "x-kubernetes-group-version-kind": [{"group": kind.group, "kind": kind.lists_as, "version": kind.version}],
    }


def _custom_schemas(kind: Kind, own: str, listed: str) -> Object:
    schema: Object = dict(kind.definition.get("schema", {}).get("openAPIV3Schema") or {"type": "object"})
    properties: Object = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"allOf": [{"$ref": f"{_REF}{_META}ObjectMeta"}]},
    }
    given: Object = schema.get("properties") or {}
    schema["properties"] = {**{name: value for name, value in given.items() if name not in properties}, **properties}
    schema["x-kubernetes-group-version-kind"] = [{"group": kind.group, "kind": kind.kind, "version": kind.version}]
    return {own: schema, listed: _list_schema(kind, own)}


def _collect(name: str, known: Mapping[str, Any], schemas: Object) -> None:
    if name not in schemas and name in known:
        schemas[name] = known[name]
        for inner in _references(known[name]):
            _collect(inner, known, schemas)


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "$ref":
                yield str(value).removeprefix(_REF)
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _paths(kind: Kind, own: str, listed: str) -> Object:
    base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    where = f"{base}/namespaces/{{namespace}}" if kind.namespaced else base
    many = {
        _METHODS.get(verb, verb): _operation(kind, kind.kind, own if verb == "create" else listed, verb)
        for verb in ("list", "create", "deletecollection")
        if verb in kind.verbs
    }
    collection = {
        "get": many.pop("list", None),
        "post": many.pop("post", None),
        "delete": many.pop("deletecollection", None),
    }
    paths: Object = {f"{where}/{kind.plural}": {name: value for name, value in collection.items() if value}}
    if kind.namespaced and "list" in kind.verbs:
        paths[f"{base}/{kind.plural}"] = {"get": _operation(kind, kind.kind, listed, "list")}
    single = {
        _METHODS[verb]: _operation(kind, kind.kind, own, verb)
        for verb in ("get", "update", "patch", "delete")
        if verb in kind.verbs
    }
    if single:
        paths[f"{where}/{kind.plural}/{{name}}"] = single
    for name, one in kind.subresources.items():
        operations = {_METHODS[verb]: _operation(kind, one.kind, own, verb) for verb in one.verbs if verb in _METHODS}
        paths[f"{where}/{kind.plural}/{{name}}/{name}"] = operations
    return paths


def _operation(kind: Kind, shown: str, schema: str, verb: str) -> Object:
    content = {"application/json": {"schema": {"$ref": _REF + schema}}}
    operation: Object = {
        "parameters": [_parameter(name, type_) for name, type_ in _PARAMETERS.get(verb, ())],
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-action": {"update": "put", "create": "post"}.get(verb, verb),
        "x-kubernetes-group-version-kind": {"group": kind.group, "kind": shown, "version": kind.version},
    }
    if verb == "patch":
        types = _PATCH_TYPES if kind.builtin else tuple(one for one in _PATCH_TYPES if "strategic" not in one)
        body = {"schema": {"$ref": f"{_REF}{_META}Patch"}}
        operation["requestBody"] = {"content": dict.fromkeys(types, body), "required": True}
    elif verb in ("create", "update"):
        operation["requestBody"] = {"content": content, "required": True}
    return operation


_WRITE: Final = (("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"))
_PARAMETERS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "create": _WRITE,
    "update": _WRITE,
    "patch": (*_WRITE, ("force", "boolean")),
    "delete": (("dryRun", "string"), ("gracePeriodSeconds", "integer"), ("propagationPolicy", "string")),
    "list": (
        ("allowWatchBookmarks", "boolean"),
        ("continue", "string"),
        ("fieldSelector", "string"),
        ("labelSelector", "string"),
        ("limit", "integer"),
        ("resourceVersion", "string"),
        ("resourceVersionMatch", "string"),
        ("sendInitialEvents", "boolean"),
        ("timeoutSeconds", "integer"),
        ("watch", "boolean"),
    ),
}


def _parameter(name: str, type_: str) -> Object:
    return {"name": name, "in": "query", "schema": {"type": type_, "uniqueItems": True}}
