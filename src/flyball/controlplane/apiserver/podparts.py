"""The parts of a Pod that have an address of their own: where it runs, its eviction, containers to look inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from flyball.controlplane.apiserver.builtin import hidden_kind
from flyball.controlplane.apiserver.core import Object
from flyball.controlplane.apiserver.deleting import delete
from flyball.controlplane.apiserver.metadata import time_text
from flyball.controlplane.apiserver.options import DeleteOptions, WriteOptions, read_write_options
from flyball.controlplane.apiserver.patching import patch
from flyball.controlplane.apiserver.render import encode, object_bytes, parse, shown
from flyball.controlplane.apiserver.request import Answer, Request
from flyball.controlplane.apiserver.status import StatusError, bad_request, conflict, method_not_allowed, success
from flyball.controlplane.apiserver.writing import Target, Written, update

if TYPE_CHECKING:
    from flyball.controlplane.apiserver.server import ApiServer

__all__ = ["bind", "change_containers", "evict"]


def _done() -> Answer:
    return Answer(201, encode({**success(None), "code": 201}))


async def bind(server: ApiServer, request: Request, target: Target) -> Answer:
    """Put a Pod on a node, once. Nobody manages the field: it is the scheduler's word."""
    if request.method != "POST":
        raise method_not_allowed()
    options = read_write_options(request, "CreateOptions")
    body = server.read_typed(request, hidden_kind("", "v1", "Binding"), options)
    wanted: Mapping[str, Any] = body.get("target") or {}
    metadata: Mapping[str, Any] = body.get("metadata") or {}
    name = target.name or str(metadata.get("name") or "")
    _check_target(wanted)

    def bound(obj: Object) -> Object:
        spec = obj.setdefault("spec", {})
        if metadata.get("uid") not in (None, "", obj["metadata"]["uid"]):
            told = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: "
            raise conflict("pods/binding", "", name, told + obj["metadata"]["uid"])
        if obj["metadata"].get("deletionTimestamp"):
            raise conflict("pods/binding", "", name, f"pod {name} is being deleted, cannot be assigned to a host")
        if spec.get("nodeName"):
            told = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
            raise conflict("pods/binding", "", name, told)
        spec["nodeName"] = wanted["name"]
        for part in ("annotations", "labels"):
            if metadata.get(part):
                obj["metadata"].setdefault(part, {}).update(metadata[part])
        _scheduled(obj, time_text(server.core.now()))
        return obj

    whole = Target(server.core.kinds.find("", "v1", "pods"), target.namespace, name, "binding")
    await update(server.core, request, whole, bound, options, applied=True)
    return _done()


def _check_target(wanted: Mapping[str, Any]) -> None:
    kind = wanted.get("kind") or ""
    if kind not in ("", "Node"):
        told = f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"'
        raise StatusError(500, "", told)
    if not wanted.get("name"):
        raise StatusError(500, "", "target.name: Required value")


def _scheduled(obj: Object, now: str) -> None:
    conditions: list[Object] = obj.setdefault("status", {}).get("conditions") or []
    others = [one for one in conditions if one.get("type") != "PodScheduled"]
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    obj["status"]["conditions"] = [*others, condition]


async def evict(server: ApiServer, request: Request, target: Target) -> Answer:
    """Delete a Pod, as somebody wants who empties a node."""
    if request.method != "POST":
        raise method_not_allowed()
    kind = hidden_kind("policy", "v1", "Eviction")
    body = server.read_typed(request, kind, read_write_options(request, "CreateOptions"))
    if (body.get("metadata") or {}).get("name") not in (None, "", target.name):
        raise bad_request("name in URL does not match name in Eviction object")
    given: Mapping[str, Any] = body.get("deleteOptions") or {}
    preconditions: Mapping[str, Any] = given.get("preconditions") or {}
    dry_run = bool(given.get("dryRun") or request.every("dryRun"))
    uid, version = preconditions.get("uid") or "", preconditions.get("resourceVersion") or ""
    options = DeleteOptions(given.get("gracePeriodSeconds"), uid, version, dry_run=dry_run)
    await delete(server.core, request, Target(target.kind, target.namespace, target.name), options)
    return _done()


async def change_containers(server: ApiServer, request: Request, target: Target) -> Answer:
    """Read a Pod, or change the part of it that this endpoint writes: ephemeral containers, or resources."""
    core, kind = server.core, target.kind
    if request.method in ("GET", "HEAD"):
        entry = core.store.get(target.key)
        if entry is None:
            raise target.missing()
        return Answer(200, object_bytes(kind, entry) + b"\n")
    if request.method == "PATCH":
        written = await patch(core, request, target, read_write_options(request, "PatchOptions"))
    elif request.method == "PUT":
        options = read_write_options(request, "UpdateOptions")
        written = await update(core, request, target, _replaced(server, request, target, options), options)
    else:
        raise method_not_allowed()
    return Answer(200, encode(_whole(target, written)))


def _replaced(server: ApiServer, request: Request, target: Target, options: WriteOptions) -> Callable[[Object], Object]:
    body = server.read_typed(request, target.kind, options)
    return lambda old: dict(body)


def _whole(target: Target, written: Written) -> Object:
    return shown(target.kind, written.obj) if written.entry is None else parse(target.kind, written.entry)
