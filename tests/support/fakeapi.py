"""A small API server for tests of the client: over the `Transport` protocol (`FakeApi` is one), and over HTTP.

It is honest: it stores, counts versions, pages, watches, checks preconditions, and answers what it does not know with
an error. It is small: no schemas, no admission, one version per kind, field managers only as far as conflicts go. What
a real server answers is tested against a real server (tests/conformance).
"""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from multidict import CIMultiDict

from flyball.client.transport import HttpRequest

Json = dict[str, Any]


@dataclass(frozen=True)
class Served:
    """A kind that the fake serves."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    subresources: tuple[str, ...] = ("status", "scale")
    names_in_lists: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


KINDS = [
    Served("", "v1", "Pod", "pods", subresources=("status", "log", "eviction", "binding")),
    Served("", "v1", "ConfigMap", "configmaps", subresources=()),
    Served("", "v1", "ServiceAccount", "serviceaccounts", subresources=("token",)),
    Served("", "v1", "Namespace", "namespaces", namespaced=False, subresources=("status",)),
    Served("apps", "v1", "Deployment", "deployments"),
    Served("example.org", "v1", "Widget", "widgets", names_in_lists=True),
]


class Refusal(Exception):
    """Ends a request with a `Status`."""

    def __init__(self, code: int, reason: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "details": details,
            "code": code,
        }


@dataclass
class FakeAnswer:
    """What the fake answers: a body, or a stream."""

    status: int = 200
    body: bytes = b""
    stream: AsyncIterator[bytes] | None = None
    headers: CIMultiDict[str] = field(default_factory=lambda: CIMultiDict({"Content-Type": "application/json"}))

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self.chunks()])

    async def chunks(self) -> AsyncIterator[bytes]:
        if self.stream is None:
            yield self.body
            return
        async for piece in self.stream:
            yield piece

    async def close(self) -> None:
        if self.stream is not None:
            await self.stream.aclose()  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Call:
    """A request, understood."""

    served: Served
    namespace: str | None
    name: str | None
    subresource: str | None
    query: dict[str, str]
    request: HttpRequest

    @property
    def body(self) -> Any:
        try:
            return json.loads(self.request.body or b"{}")
        except ValueError as error:
            raise Refusal(400, "BadRequest", f"the body is not JSON: {error}") from error

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.served.plural, self.namespace or "", self.name or "")

    @property
    def dry_run(self) -> bool:
        return self.query.get("dryRun") == "All"


class FakeApi:
    """The store and its verbs; itself a `Transport`."""

    def __init__(self, kinds: list[Served] | None = None) -> None:
        self.host = "fake:6443"
        self.kinds = list(KINDS if kinds is None else kinds)
        self.objects: dict[tuple[str, str, str], Json] = {}
        self.history: list[tuple[int, str, str, Json]] = []
        self.version = 100
        self.compacted = 0
        self.requests: list[HttpRequest] = []
        self.aggregated = True
        self.before: Callable[[HttpRequest], FakeAnswer | None] | None = None
        self.warnings: list[str] = []
        self.snapshots: dict[int, list[Json]] = {}
        self.log_lines: list[bytes] = []
        self._changed = asyncio.Condition()
        self.cut = asyncio.Event()

    # -- Transport

    async def send(self, request: HttpRequest) -> FakeAnswer:
        self.requests.append(request)
        answer = self.before(request) if self.before else None
        if answer is None:
            try:
                answer = await self._answer(request)
            except Refusal as refusal:
                answer = _json(refusal.status, refusal.status["code"])
        for text in self.warnings:
            answer.headers.add("Warning", f'299 - "{text}"')
        return answer

    async def close(self) -> None:
        return None

    # -- routing

    async def _answer(self, request: HttpRequest) -> FakeAnswer:
        parts = [part for part in request.path.split("/") if part]
        if parts in (["api"], ["apis"]) or len(parts) <= 3:
            found = self._discovery(parts, request)
            if found is not None:
                return found
        call = self._call(parts, request)
        if call.name is None:
            return await self._on_collection(call)
        if call.subresource not in (None, "status"):
            return await self._on_subresource(call)
        verb = {"GET": self._get, "PUT": self._put, "PATCH": self._patch, "DELETE": self._delete}.get(request.method)
        if verb is None:
            raise Refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
        return await verb(call)

    def _call(self, parts: list[str], request: HttpRequest) -> Call:
        group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
        namespace = None
        if len(rest) >= 3 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        for served in self.kinds:
            if served.group == group and served.plural == rest[0]:
                name = rest[1] if len(rest) > 1 else None
                subresource = "/".join(rest[2:]) or None
                if subresource and subresource not in served.subresources:
                    break
                return Call(served, namespace, name, subresource, dict(request.query), request)
        raise Refusal(404, "NotFound", "the server could not find the requested resource")

    def _discovery(self, parts: list[str], request: HttpRequest) -> FakeAnswer | None:
        core = parts[0] == "api"
        groups = sorted({k.group for k in self.kinds if (not k.group) == core})
        if len(parts) == 1:
            if self.aggregated and "APIGroupDiscoveryList" in request.headers.get("Accept", ""):
                return _json({"kind": "APIGroupDiscoveryList", "items": [self._aggregated(g) for g in groups]})
            if core:
                return _json({"kind": "APIVersions", "versions": ["v1"]})
            listed = [{"name": g, "versions": [{"groupVersion": f"{g}/v1", "version": "v1"}]} for g in groups]
            return _json({"kind": "APIGroupList", "groups": listed})
        group = "" if core else parts[1]
        if len(parts) == (2 if core else 3):
            listed = [r for k in self.kinds if k.group == group for r in _legacy(k)]
            return _json({"kind": "APIResourceList", "groupVersion": f"{group}/v1".lstrip("/"), "resources": listed})
        return None

    def _aggregated(self, group: str) -> Json:
        resources = [
            {
                "resource": k.plural,
                "responseKind": {"group": k.group, "version": k.version, "kind": k.kind},
                "scope": "Namespaced" if k.namespaced else "Cluster",
                "singularResource": k.kind.lower(),
                "verbs": ["get", "list", "watch"],
                "shortNames": [k.kind[:2].lower()],
                "subresources": [{"subresource": s} for s in k.subresources],
            }
            for k in self.kinds
            if k.group == group
        ]
        versions = [{"version": "v1", "resources": resources, "freshness": "Current"}]
        return {"metadata": {"name": group} if group else {}, "versions": versions}

    # -- collections

    async def _on_collection(self, call: Call) -> FakeAnswer:
        if call.request.method == "POST":
            return await self._create(call)
        if call.request.method == "DELETE":
            return await self._delete_collection(call)
        if call.query.get("watch") == "true":
            return FakeAnswer(stream=self._watch(call))
        return self._list(call)

    async def _create(self, call: Call) -> FakeAnswer:
        obj = call.body
        metadata = obj.setdefault("metadata", {})
        if metadata.get("resourceVersion"):
            raise Refusal(500, "InternalError", "resourceVersion should not be set on objects to be created")
        if not metadata.get("name"):
            metadata["name"] = metadata["generateName"] + uuid.uuid4().hex[:5]
        key = (call.served.plural, call.namespace or "", metadata["name"])
        if key in self.objects:
            message = f'{call.served.plural} "{metadata["name"]}" already exists'
            raise Refusal(409, "AlreadyExists", message, name=metadata["name"], kind=call.served.plural)
        if call.namespace:
            metadata["namespace"] = call.namespace
        obj = {"kind": call.served.kind, "apiVersion": call.served.api_version, **obj}
        metadata.update(uid=str(uuid.uuid4()), creationTimestamp="2026-02-11T08:15:42Z", generation=1)
        if "status" in call.served.subresources:
            obj.pop("status", None)
        return _json(await self._store(call, key, "ADDED", obj), 201)

    def _selected(self, call: Call) -> list[Json]:
        wanted = dict(term.split("=", 1) for term in call.query.get("labelSelector", "").split(",") if term)
        fields = dict(term.split("=", 1) for term in call.query.get("fieldSelector", "").split(",") if term)
        if set(fields) - {"metadata.name"}:
            raise Refusal(400, "BadRequest", "field label not supported")
        found = [obj for key, obj in sorted(self.objects.items()) if self._is_in(call, key)]
        return [
            obj
            for obj in found
            if wanted.items() <= (obj["metadata"].get("labels") or {}).items()
            and fields.get("metadata.name") in (None, obj["metadata"]["name"])
        ]

    def _is_in(self, call: Call, key: tuple[str, str, str]) -> bool:
        return key[0] == call.served.plural and call.namespace in (None, key[1])

    def _list(self, call: Call) -> FakeAnswer:
        start, version = 0, self.version
        if token := call.query.get("continue"):
            if "resourceVersion" in call.query:
                raise Refusal(400, "BadRequest", "specifying resource version is not allowed when using continue")
            version, start = json.loads(base64.b64decode(token))
            if version <= self.compacted:
                raise Refusal(410, "Expired", "The provided continue parameter is too old")
            items = self.snapshots[version]
        else:
            items = self._selected(call)
            self.snapshots[version] = items
        size = int(call.query.get("limit") or 0) or len(items)
        page, rest = items[start : start + size], items[start + size :]
        metadata: Json = {"resourceVersion": str(version)}
        if rest:
            metadata["continue"] = base64.b64encode(json.dumps([version, start + size]).encode()).decode()
            metadata["remainingItemCount"] = len(rest)
        form = self._form(call)
        return _json(
            {
                "kind": f"{call.served.kind}List",
                "apiVersion": call.served.api_version,
                "metadata": metadata,
                "items": [_without_names(form(obj)) if not call.served.names_in_lists else form(obj) for obj in page],
            }
        )

    async def _delete_collection(self, call: Call) -> FakeAnswer:
        gone = self._selected(call)
        for obj in gone:
            key = (call.served.plural, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
            if not _options_dry(call):
                await self._store(call, key, "DELETED", obj)
        return _json({"kind": f"{call.served.kind}List", "apiVersion": call.served.api_version, "items": gone})

    async def _watch(self, call: Call) -> AsyncIterator[bytes]:
        since = int(call.query.get("resourceVersion") or 0)
        if since and since < self.compacted:
            status = Refusal(410, "Expired", f"too old resource version: {since} ({self.version})").status
            yield _event("ERROR", status)
            return
        if not since:
            since, present = self.version, self._selected(call)
            for obj in present:
                yield _event("ADDED", self._form(call)(obj))
            if call.query.get("sendInitialEvents") == "true":
                yield _event("BOOKMARK", self._bookmark(call, {"k8s.io/initial-events-end": "true"}))
        self.cut.clear()
        while not self.cut.is_set():
            for version, kind, plural, obj in list(self.history):
                if version > since and plural == call.served.plural:
                    since = version
                    if call.namespace in (None, obj["metadata"].get("namespace")):
                        yield _event(kind, self._form(call)(obj))
            async with self._changed:
                if not self.cut.is_set() and not any(
                    v > since and p == call.served.plural for v, _, p, _ in self.history
                ):
                    await self._changed.wait()
        yield _event("BOOKMARK", self._bookmark(call, {}))

    def _bookmark(self, call: Call, annotations: dict[str, str]) -> Json:
        metadata = {"resourceVersion": str(self.version), "annotations": annotations}
        return {"kind": call.served.kind, "apiVersion": call.served.api_version, "metadata": metadata}

    async def end_watches(self) -> None:
        """Every watch ends after a bookmark, as at the server's own time-out."""
        self.cut.set()
        async with self._changed:
            self._changed.notify_all()

    # -- objects

    def _found(self, call: Call) -> Json:
        try:
            return _copied(self.objects[call.key])
        except KeyError:
            message = f'{call.served.plural} "{call.name}" not found'
            raise Refusal(404, "NotFound", message, name=call.name, kind=call.served.plural) from None

    async def _get(self, call: Call) -> FakeAnswer:
        return _json(self._form(call)(self._found(call)))

    async def _put(self, call: Call) -> FakeAnswer:
        old, new = self._found(call), call.body
        given = new["metadata"].get("resourceVersion")
        if given and given != old["metadata"]["resourceVersion"]:
            raise self._stale(call)
        if call.subresource == "status":
            new = {**old, "status": new.get("status", {})}
        return _json(await self._store(call, call.key, "MODIFIED", new))

    def _stale(self, call: Call) -> Refusal:
        message = f'Operation cannot be fulfilled on {call.served.plural} "{call.name}": the object has been modified'
        return Refusal(409, "Conflict", message, name=call.name, kind=call.served.plural)

    async def _patch(self, call: Call) -> FakeAnswer:
        content = call.request.headers.get("Content-Type", "")
        if content == "application/apply-patch+yaml":
            return await self._apply(call)
        old = self._found(call)
        version = old["metadata"]["resourceVersion"]
        if content == "application/merge-patch+json":
            new = _merge(old, call.body)
        elif content == "application/json-patch+json":
            new = _json_patch(old, call.body)
        else:
            raise Refusal(415, "UnsupportedMediaType", f"the body of the request was in an unknown format: {content}")
        if new["metadata"].get("resourceVersion") != version:
            raise self._stale(call)
        if call.subresource == "status":
            new = {**old, "status": new.get("status", {})}
        return _json(self._form(call)(await self._store(call, call.key, "MODIFIED", new)))

    async def _apply(self, call: Call) -> FakeAnswer:
        manager, body = call.query.get("fieldManager"), call.body
        if not manager:
            raise Refusal(422, "Invalid", "fieldManager: Required value: is required for apply patch")
        old = self.objects.get(call.key)
        owner = (old or {}).get("metadata", {}).get("annotations", {}).get("owner", manager)
        if owner != manager and call.query.get("force") != "true":
            causes = [{"reason": "FieldManagerConflict", "message": f'conflict with "{owner}"', "field": ".spec"}]
            raise Refusal(
                409, "Conflict", f'Apply failed with 1 conflict: conflict with "{owner}": .spec', causes=causes
            )
        metadata = {"name": call.name, "namespace": call.namespace, "uid": str(uuid.uuid4())}
        new = _merge(json.loads(json.dumps(old)) if old else {"metadata": metadata}, body)
        new["metadata"].setdefault("annotations", {})["owner"] = manager
        return _json(await self._store(call, call.key, "MODIFIED" if old else "ADDED", new), 200 if old else 201)

    async def _delete(self, call: Call) -> FakeAnswer:
        obj, options = self._found(call), call.body
        if "propagationPolicy" not in options:
            raise Refusal(400, "BadRequest", "this fake wants to be told the propagation policy")
        given = options.get("preconditions") or {}
        if given.get("uid") not in (None, obj["metadata"].get("uid")):
            raise Refusal(409, "Conflict", "Precondition failed: UID in precondition")
        if given.get("resourceVersion") not in (None, obj["metadata"]["resourceVersion"]):
            raise Refusal(409, "Conflict", "Precondition failed: resource version in precondition")
        if obj["metadata"].get("finalizers"):
            obj["metadata"]["deletionTimestamp"] = "2026-02-11T09:00:00Z"
            return _json(self._form(call)(await self._store(call, call.key, "MODIFIED", obj)))
        if not _options_dry(call):
            await self._store(call, call.key, "DELETED", obj)
        return _json({"kind": "Status", "apiVersion": "v1", "status": "Success", "details": {"name": call.name}})

    async def _on_subresource(self, call: Call) -> FakeAnswer:
        obj = self._found(call)
        if call.subresource == "log":
            return FakeAnswer(stream=self._log(), headers=CIMultiDict({"Content-Type": "text/plain"}))
        if call.subresource == "scale":
            if call.request.method == "PATCH":
                obj = await self._store(call, call.key, "MODIFIED", _merge(obj, call.body))
            status = {"replicas": obj.get("status", {}).get("replicas", 0), "selector": "app=web"}
            return _json({"kind": "Scale", "metadata": obj["metadata"], "spec": obj["spec"], "status": status})
        if call.subresource == "eviction" and not call.dry_run:
            await self._store(call, call.key, "DELETED", obj)
        if call.subresource == "token":
            status = {"token": "secret-token", "expirationTimestamp": "2026-02-11T09:15:42Z"}
            return _json({"kind": "TokenRequest", "status": status}, 201)
        if call.subresource == "binding":
            obj.setdefault("spec", {})["nodeName"] = call.body["target"]["name"]
            await self._store(call, call.key, "MODIFIED", obj)
        return _json({"kind": "Status", "status": "Success"}, 201)

    async def _log(self) -> AsyncIterator[bytes]:
        for line in self.log_lines:
            yield line

    # -- storage

    async def _store(self, call: Call, key: tuple[str, str, str], kind: str, obj: Json) -> Json:
        if call.dry_run or _options_dry(call):
            return obj
        async with self._changed:
            self.version += 1
            obj["metadata"]["resourceVersion"] = str(self.version)
            if kind == "DELETED":
                self.objects.pop(key, None)
            else:
                self.objects[key] = obj
            self.history.append((self.version, kind, key[0], _copied(obj)))
            self._changed.notify_all()
        return obj

    def compact(self) -> None:
        """Forget the past."""
        self.compacted = self.version
        self.history.clear()

    def _form(self, call: Call) -> Callable[[Json], Json]:
        if "as=PartialObjectMetadata" not in call.request.headers.get("Accept", ""):
            return lambda obj: obj
        names = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
        return lambda obj: {**names, "metadata": obj["metadata"]}


def _copied(obj: Json) -> Json:
    copied: Json = json.loads(json.dumps(obj))
    return copied


def _options_dry(call: Call) -> bool:
    return call.request.method == "DELETE" and call.body.get("dryRun") == ["All"]


def _json(value: Any, status: int = 200) -> FakeAnswer:
    return FakeAnswer(status, json.dumps(value, separators=(",", ":")).encode())


def _event(kind: str, obj: Json) -> bytes:
    return json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode() + b"\n"


def _without_names(obj: Json) -> Json:
    return {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}


def _legacy(served: Served) -> list[Json]:
    whole = {
        "name": served.plural,
        "singularName": served.kind.lower(),
        "namespaced": served.namespaced,
        "kind": served.kind,
        "verbs": ["get", "list", "watch"],
        "shortNames": [served.kind[:2].lower()],
    }
    return [whole, *({"name": f"{served.plural}/{sub}", "kind": served.kind} for sub in served.subresources)]


def _merge(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), value)
    return merged


def _json_patch(obj: Json, operations: list[Json]) -> Json:
    for operation in operations:
        *path, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        place: Any = obj
        for part in path:
            place = place[part]
        if operation["op"] == "test":
            if place.get(last) != operation["value"]:
                raise Refusal(422, "Invalid", "the server rejected our request due to an error in our request")
        elif operation["op"] == "remove":
            del place[last]
        else:
            place[last] = operation["value"]
    return obj


def application(api: FakeApi) -> web.Application:
    """The same server over HTTP."""

    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        answer = await api.send(
            HttpRequest(
                request.method,
                request.raw_path.partition("?")[0],
                tuple(request.query.items()),
                request.headers,
                body or None,
            )
        )
        if answer.stream is None:
            return web.Response(status=answer.status, body=answer.body, headers=answer.headers)
        response = web.StreamResponse(status=answer.status, headers=answer.headers)
        await response.prepare(request)
        try:
            async for piece in answer.chunks():
                await response.write(piece)
        finally:
            await answer.close()
        await response.write_eof()
        return response

    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{path:.*}", handle)
    return app


@contextmanager
def serving(api: FakeApi) -> Generator[str]:
    """The same server over HTTP, in a thread of its own: the URL at which it is."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    runner = web.AppRunner(application(api), shutdown_timeout=0.1)

    async def start() -> str:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    try:
        yield asyncio.run_coroutine_threadsafe(start(), loop).result()
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
