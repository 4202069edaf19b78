"""The API server, apart from how requests reach it: who asks, what for, and who answers.

`ApiServer.handle` takes a `Request` and gives an `Answer`; it never raises. Front doors carry both: `http`, and the one
inside of the process for Flyball's own client.
"""

from __future__ import annotations

import copy
import logging
import uuid
from collections.abc import Awaitable, Callable
from typing import Final

from flyball.controlplane.apiserver import discovery, health, openapi
from flyball.controlplane.apiserver.authn import Authenticator
from flyball.controlplane.apiserver.body import (
    MAX_BODY,
    NO_KIND,
    ReadProtobuf,
    expect_object,
    read_body,
    unrecognized,
)
from flyball.controlplane.apiserver.builtin import hidden_kind
from flyball.controlplane.apiserver.core import Core, Object, of_kind, tidied
from flyball.controlplane.apiserver.crds import Definitions
from flyball.controlplane.apiserver.crds.objects import must_have_kind
from flyball.controlplane.apiserver.crds.routes import is_no_address, is_unknown
from flyball.controlplane.apiserver.deleting import Deleted, delete
from flyball.controlplane.apiserver.kinds import Kind
from flyball.controlplane.apiserver.kubelets import Kubelets
from flyball.controlplane.apiserver.negotiation import Form, negotiate
from flyball.controlplane.apiserver.options import (
    DeleteOptions,
    WriteOptions,
    read_delete_options,
    read_list_options,
    read_write_options,
)
from flyball.controlplane.apiserver.patching import patch
from flyball.controlplane.apiserver.podparts import bind
from flyball.controlplane.apiserver.reading import body_of, known_fields, list_body, wait_for_version
from flyball.controlplane.apiserver.render import encode, item_bytes, list_bytes, object_bytes, shown, written
from flyball.controlplane.apiserver.request import (
    ANONYMOUS,
    Answer,
    Place,
    Request,
    User,
    header_safe,
    read_place,
    verb_of,
)
from flyball.controlplane.apiserver.reviews import refuse_unsupported, reviews
from flyball.controlplane.apiserver.selectors import selection
from flyball.controlplane.apiserver.status import (
    StatusError,
    bad_request,
    forbidden,
    internal,
    method_not_allowed,
    no_such_resource,
    success,
    too_large,
)
from flyball.controlplane.apiserver.streaming import Sessions
from flyball.controlplane.apiserver.subresources import Endpoint, endpoints
from flyball.controlplane.apiserver.tokens import Tokens
from flyball.controlplane.apiserver.watching import watch_stream
from flyball.controlplane.apiserver.writing import Target, Written, create, update

__all__ = ["ApiServer"]

_log = logging.getLogger("flyball.apiserver")

_PUBLIC: Final = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
"""What anybody may read, known or not."""


class ApiServer:
    """Answers requests over the objects of a `Core`."""

    def __init__(
        self,
        core: Core,
        authenticator: Authenticator,
        *,
        address: str = "127.0.0.1:6443",
        protobuf: ReadProtobuf | None = None,
    ) -> None:
        """Take the parts; `address` is what discovery tells clients."""
        self.core = core
        self.authenticator = authenticator
        self.address = address
        self.protobuf = protobuf
        self.health = health.Health(core.clock)
        self.definitions = Definitions(core)
        self.openapi = openapi.OpenApi(core.kinds, core.clock)
        self.tokens: Tokens | None = None
        """Signs the tokens of ServiceAccounts; without it there are none."""
        self.kubelets = Kubelets()
        """Who runs the Pods of each node; kubelets register themselves."""
        self.sessions = Sessions()
        """What is open between clients and kubelets; closed when the server stops."""
        self._endpoints: dict[tuple[str, str], Endpoint] = endpoints()
        self._reviews = reviews()
        core.admit.append(refuse_unsupported)
        self.around: Callable[[ApiServer, Request, Place | None], Awaitable[Answer]] | None = None
        """Stands between a known user and `respond`: where faults are injected."""
        self.after: list[Callable[[Request, Answer], None]] = []
        """Told of each request and its answer: recorders."""

    async def handle(self, request: Request, certificate: User | None = None) -> Answer:
        """Answer a request."""
        try:
            answer = await self._handle(request, certificate)
        except StatusError as error:
            answer = self._failure(error)
        except Exception:
            _log.exception("the request %s %s failed inside of the server", request.method, request.path)
            answer = self._failure(internal("an error in the server; its log says where"))
        answer.headers.setdefault("Audit-Id", request.headers.get("audit-id") or str(uuid.uuid4()))
        answer.headers.setdefault("Cache-Control", "no-cache, private")
        if request.warnings:
            answer.warnings = [f"299 - {header_safe(text)}" for text in dict.fromkeys(request.warnings)]
        for tell in self.after:
            tell(request, answer)
        return answer

    @staticmethod
    def _failure(error: StatusError) -> Answer:
        headers = {"Retry-After": str(error.retry_after)} if error.retry_after is not None else {}
        if error.code == 401:
            headers["Www-Authenticate"] = 'Basic realm="kubernetes-master"'
        return Answer(error.code, encode(error.body()), headers=headers)

    async def _handle(self, request: Request, certificate: User | None) -> Answer:
        if len(request.body) > MAX_BODY:
            raise too_large(MAX_BODY)
        request.user = self.authenticator.authenticate(request.headers, certificate)
        place = read_place(request.path)
        if request.user is ANONYMOUS and request.path not in _PUBLIC:
            raise self._nobody(request, place)
        if self.around is not None:
            return await self.around(self, request, place)
        return await self.respond(request, place)

    def over(self, core: Core) -> ApiServer:
        """Return this server over other parts, such as a store of the past."""
        view = copy.copy(self)
        view.core = core
        return view

    async def respond(self, request: Request, place: Place | None) -> Answer:
        """Answer a request of a known user."""
        if place is None or not place.resource:
            return self._meta(request, place)
        if not self.core.kinds.serves(place.group, place.version) and self.core.kinds.is_builtin(place.group):
            raise no_such_resource()
        if not self.core.kinds.serves(place.group, place.version) or is_unknown(self.core.kinds, place):
            return _page_not_found()
        return await self._resource(request, place)

    def _nobody(self, request: Request, place: Place | None) -> StatusError:
        verb = verb_of(request, place)
        who = f'User "{request.user.name}" cannot'
        if place is None or not place.resource:
            return StatusError(403, "Forbidden", f'forbidden: {who} {verb} path "{request.path}"', {})
        resource = f"{place.resource}/{place.subresource}" if place.subresource else place.resource
        scope = f'in the namespace "{place.namespace}"' if place.namespace else "at the cluster scope"
        why = f'{who} {verb} resource "{resource}" in API group "{place.group}" {scope}'
        return forbidden(place.resource, place.group, place.name, why)

    # What is not a resource

    def _meta(self, request: Request, place: Place | None) -> Answer:
        path = request.path
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        kinds = self.core.kinds
        if path in ("/api", "/api/"):
            return discovery.discovery_answer(request, kinds, core=True, address=self.address)
        if path in ("/apis", "/apis/"):
            return discovery.discovery_answer(request, kinds, core=False, address=self.address)
        if place is not None and kinds.serves(place.group, place.version):
            return Answer(200, encode(discovery.api_resources(kinds, place.group, place.version)))
        parts = path.strip("/").split("/")
        if len(parts) == 2 and parts[0] == "apis" and parts[1] in kinds.groups():
            return Answer(200, encode(discovery.api_group(kinds, parts[1])))
        if path.startswith("/openapi/"):
            return self.openapi.answer(request)
        if path == "/":
            return Answer(200, encode({"paths": self._paths()}))
        openid = self.tokens.answer(request, self.address) if self.tokens is not None else None
        return openid or self.health.answer(request) or _page_not_found()

    def _paths(self) -> list[str]:
        kinds = self.core.kinds
        groups = [f"/apis/{group}" for group in kinds.groups() if group]
        versions = [
            f"/apis/{group}/{version}" for group in kinds.groups() if group for version in kinds.versions(group)
        ]
        return sorted({"/api", "/api/v1", "/apis", *groups, *versions, "/openapi/v3", *_PUBLIC} - {"/version/"})

    # Resources

    async def _resource(self, request: Request, place: Place) -> Answer:
        kind = self.core.kinds.find(place.group, place.version, place.resource)
        if is_no_address(kind, place, request.method):
            return _page_not_found()
        if place.namespace and not kind.namespaced:
            raise no_such_resource()
        if kind.warning:
            request.warnings.append(kind.warning)
        target = Target(kind, place.namespace, place.name, place.subresource)
        if kind.storage == "bindings":
            return await bind(self, request, target)
        if place.subresource and place.subresource != "status":
            return await self._subresource(request, target)
        if place.subresource and not kind.has("status"):
            raise no_such_resource()
        form = negotiate(request.headers.get("accept", ""), table=True, streams=not place.name)
        form = Form(form.encoding, form.as_, form.version, form.stream, form.pretty or request.flag("pretty"))
        if place.name:
            if kind.namespaced and not place.namespace:
                raise no_such_resource()
            return await self._one(request, target, form)
        return await self._many(request, target, form)

    async def _subresource(self, request: Request, target: Target) -> Answer:
        kind = target.kind
        if not kind.has(target.subresource):
            raise no_such_resource()
        endpoint = self._endpoints.get((kind.storage, target.subresource)) or self._endpoints.get(
            ("", target.subresource)
        )
        if endpoint is None:
            told = f"{kind.plural}/{target.subresource} is not supported by this server yet"
            raise StatusError(501, "NotImplemented", told, {})
        return await endpoint(self, request, target)

    async def _one(self, request: Request, target: Target, form: Form) -> Answer:
        method = request.method
        if method in ("GET", "HEAD"):
            return await self._get(request, target, form)
        if method == "PUT":
            self._allow(target.kind, "update")
            return self._written(request, target, await self._put(request, target), form)
        if method == "PATCH":
            self._allow(target.kind, "patch")
            options = read_write_options(request, "PatchOptions")
            return self._written(request, target, await patch(self.core, request, target, options), form)
        if method == "DELETE" and not target.subresource:
            self._allow(target.kind, "delete")
            return await self._delete(request, target, form)
        raise method_not_allowed()

    async def _many(self, request: Request, target: Target, form: Form) -> Answer:
        method, kind = request.method, target.kind
        if method in ("GET", "HEAD"):
            self._allow(kind, "list")
            options = read_list_options(request)
            include = request.first("includeObject")
            if options.watch:
                self._allow(kind, "watch")
                stream = watch_stream(self.core, kind, target.namespace, options, form, include)
                return Answer(200, b"", "application/json", stream=stream)
            body = await list_body(self.core, kind, target.namespace, options, form, include)
            return Answer(200, written(body, form), form.content_type)
        if method == "POST":
            self._allow(kind, "create")
            if kind.namespaced and not target.namespace:
                raise method_not_allowed()
            review = self._reviews.get(kind.storage)
            if review is not None:
                return await review(self, request, target)
            options_ = read_write_options(request, "CreateOptions")
            body_, strict = self.read_object(request, kind, options_)
            self.core.report_unknown(request, kind, strict, options_)
            return self._written(request, target, await create(self.core, request, target, body_, options_), form)
        if method == "DELETE":
            self._allow(kind, "deletecollection")
            return await self._delete_many(request, target, form)
        raise method_not_allowed()

    @staticmethod
    def _allow(kind: Kind, verb: str) -> None:
        if verb not in kind.verbs:
            raise method_not_allowed()

    def read_object(self, request: Request, kind: Kind, options: WriteOptions) -> tuple[Object, list[str]]:
        """Read the object of a request, and the findings of a strict reader."""
        strict = options.validation != "Ignore"
        protobuf = self.protobuf if kind.builtin else None
        try:
            body = read_body(request.body, request.headers.get("content-type", ""), strict=strict, protobuf=protobuf)
            expect_object(body.value)
        except StatusError as error:
            if not kind.builtin or not error.message.startswith(NO_KIND):
                raise
            raise unrecognized(kind.kind, error, request.body) from None
        if not kind.builtin:
            must_have_kind(kind, body.value, request.body)
        return body.value, [f'duplicate field "{path}"' for path in body.duplicates]

    def read_typed(self, request: Request, kind: Kind, options: WriteOptions) -> Object:
        """Read the object of a request in the shape of a kind; the writer is told of fields that nobody knows."""
        body, problems = self.read_object(request, kind, options)
        unknown: list[str] = []
        obj = self.core.shape(kind, of_kind(body, kind), unknown)
        problems += [f'unknown field "{path}"' for path in unknown]
        self.core.report_unknown(request, kind, problems, options)
        return obj

    async def _get(self, request: Request, target: Target, form: Form) -> Answer:
        self._allow(target.kind, "get")
        if request.first("resourceVersion") not in ("", "0"):
            await wait_for_version(self.core, request.first("resourceVersion"))
        entry = self.core.store.get(target.key)
        if entry is None:
            raise target.missing()
        body = body_of(self.core, target.kind, entry, form, request.first("includeObject"))
        return Answer(200, written(body, form), form.content_type)

    async def _put(self, request: Request, target: Target) -> Written:
        options = read_write_options(request, "UpdateOptions")
        body, strict = self.read_object(request, target.kind, options)

        def report(fields: list[str]) -> None:
            problems = [*strict, *(f'unknown field "{path}"' for path in fields)]
            self.core.report_unknown(request, target.kind, problems, options)

        absent = self.core.store.get(target.key) is None
        if absent and target.kind.strategy.create_on_update and not target.subresource:
            return await create(self.core, request, target, body, options)
        if absent and target.kind.builtin:
            tidied(target.kind, of_kind(body, target.kind))  # what cannot be read is told before what is not there
        return await update(self.core, request, target, lambda old: dict(body), options, unknown_as=report)

    def _written(self, request: Request, target: Target, written_: Written, form: Form) -> Answer:
        """Show what was written."""
        status = 201 if written_.created else 200
        if written_.entry is None:
            return Answer(status, encode(shown(target.kind, written_.obj)))
        body = body_of(self.core, target.kind, written_.entry, form, request.first("includeObject"))
        return Answer(status, written(body, form), form.content_type)

    def delete_body(self, request: Request) -> Object:
        """Read the options of a delete from its body, if it has one."""
        if not request.body.strip():
            return {}
        body = read_body(request.body, request.headers.get("content-type", ""), strict=False, protobuf=self.protobuf)
        if not isinstance(body.value, dict):
            raise bad_request("the options of a delete are an object")
        kind, version = body.value.get("kind") or "DeleteOptions", body.value.get("apiVersion") or "v1"
        if kind != "DeleteOptions":
            told = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
            raise bad_request(told)
        kind = hidden_kind("", "v1", "DeleteOptions")
        return self.core.shape(kind, {**body.value, "kind": kind.kind, "apiVersion": kind.api_version}, [])

    def _delete_options(self, request: Request, kind: Kind) -> DeleteOptions:
        options = read_delete_options(request, self.delete_body(request))
        if kind.storage == "jobs.batch" and not options.propagation and options.orphan_dependents is None:
            request.warnings.append(
                "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove "
                "them or set propagationPolicy=Orphan to suppress this warning"
            )
        return options

    async def _delete(self, request: Request, target: Target, form: Form) -> Answer:
        options = self._delete_options(request, target.kind)
        deleted = await delete(self.core, request, target, options)
        return self._deleted(target, deleted, form, options.orphan_dependents is False)

    def _deleted(self, target: Target, deleted: Deleted, form: Form, old_style: bool) -> Answer:
        if deleted.gone and not target.kind.strategy.tells_deleted:
            return Answer(200, encode(success(deleted.details(target.kind))))
        if deleted.entry is not None:
            body = object_bytes(target.kind, deleted.entry) + b"\n"
            return Answer(202 if old_style else 200, written(body, form), form.content_type)
        return Answer(200, encode(deleted.obj))

    async def _delete_many(self, request: Request, target: Target, form: Form) -> Answer:
        kind, core = target.kind, self.core
        options = self._delete_options(request, kind)
        wanted = read_list_options(request)
        selected = selection(wanted.labels, wanted.fields, known_fields(kind))
        where = target.namespace if kind.namespaced and target.namespace else None
        items: list[bytes] = []
        metadata = {"resourceVersion": str(core.store.revision)}
        for entry in core.store.listing(kind.storage, where).entries:
            if selected is not None and not selected(entry):
                continue
            try:
                one = Target(kind, entry.key.namespace, entry.key.name)
                await delete(core, request, one, options)
            except StatusError as error:
                if error.reason == "NotFound":
                    continue
                raise
            items.append(item_bytes(kind, entry))
        if not kind.builtin:
            metadata = {"continue": "", **metadata}
        return Answer(200, list_bytes(kind.lists_as, kind.api_version, items, metadata), form.content_type)


def _page_not_found() -> Answer:
    return Answer(404, b"404 page not found\n", "text/plain; charset=utf-8")
