"""Parts of objects that have an address of their own and rules of their own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from flyball.api.fielderrors import FieldError
from flyball.controlplane.apiserver import podparts, streaming
from flyball.controlplane.apiserver.apply import ApplyConflict
from flyball.controlplane.apiserver.body import read_yaml
from flyball.controlplane.apiserver.builtin import hidden_kind
from flyball.controlplane.apiserver.core import Object, of_kind
from flyball.controlplane.apiserver.kinds import Kind
from flyball.controlplane.apiserver.negotiation import media_type, negotiate
from flyball.controlplane.apiserver.options import read_write_options
from flyball.controlplane.apiserver.patching import (
    APPLY,
    JSON,
    MERGE,
    STRATEGIC,
    patch_change,
    read_json_patch,
    read_patch,
)
from flyball.controlplane.apiserver.render import encode, parse
from flyball.controlplane.apiserver.request import Answer, Request
from flyball.controlplane.apiserver.reviews import request_token
from flyball.controlplane.apiserver.status import (
    StatusError,
    bad_request,
    invalid,
    method_not_allowed,
    unsupported_media_type,
)
from flyball.controlplane.apiserver.store import Entry
from flyball.controlplane.apiserver.tables import scale_table
from flyball.controlplane.apiserver.writing import Target, update

if TYPE_CHECKING:
    from flyball.controlplane.apiserver.server import ApiServer

__all__ = ["Endpoint", "endpoints"]

Endpoint = Callable[["ApiServer", Request, Target], Awaitable[Answer]]


def endpoints() -> dict[tuple[str, str], Endpoint]:
    """Return who answers which subresource: by resource and name, or by name alone."""
    return {
        ("", "scale"): _scale,
        ("namespaces", "finalize"): _finalize,
        ("pods", "binding"): podparts.bind,
        ("pods", "attach"): streaming.attach,
        ("pods", "eviction"): podparts.evict,
        ("pods", "exec"): streaming.execute,
        ("pods", "log"): streaming.read_log,
        ("pods", "portforward"): streaming.forward,
        ("pods", "ephemeralcontainers"): podparts.change_containers,
        ("pods", "resize"): podparts.change_containers,
        ("serviceaccounts", "token"): request_token,
    }


def _entry(server: ApiServer, target: Target) -> Entry:
    entry = server.core.store.get(target.key)
    if entry is None:
        raise target.missing()
    return entry


# Scale

_BUILTIN_SCALE: Final = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def _at(obj: Any, path: str) -> Any:
    for part in path.strip(".").split("."):
        obj = obj.get(part) if isinstance(obj, Mapping) else None
    return obj


def _put_at(obj: Object, path: str, value: Any) -> None:
    *parents, last = path.strip(".").split(".")
    for part in parents:
        obj = obj.setdefault(part, {})
    obj[last] = value


def _scale_paths(kind: Kind) -> Mapping[str, str]:
    if kind.builtin:
        return _BUILTIN_SCALE
    return (kind.definition.get("subresources") or {}).get("scale") or {}


def _selector_text(kind: Kind, obj: Object, paths: Mapping[str, str]) -> str:
    if not kind.builtin:
        return str(_at(obj, paths["labelSelectorPath"]) or "") if paths.get("labelSelectorPath") else ""
    selector = _at(obj, ".spec.selector") or {}
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    terms = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for one in selector.get("matchExpressions") or ():
        values = ",".join(sorted(one.get("values") or ()))
        terms.append(
            {
                "In": f"{one['key']} in ({values})",
                "NotIn": f"{one['key']} notin ({values})",
                "Exists": one["key"],
                "DoesNotExist": f"!{one['key']}",
            }[one["operator"]]
        )
    return ",".join(terms)


def _as_scale(kind: Kind, obj: Object) -> Object:
    paths, metadata = _scale_paths(kind), obj["metadata"]
    shown = {
        name: metadata[name]
        for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if name in metadata
    }
    wanted = _at(obj, paths["specReplicasPath"])
    spec = {"replicas": wanted} if wanted else {}
    status: Object = {"replicas": _at(obj, paths["statusReplicasPath"]) or 0}
    selector = _selector_text(kind, obj, paths)
    if selector:
        status["selector"] = selector
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": shown, "spec": spec, "status": status}


async def _scale(server: ApiServer, request: Request, target: Target) -> Answer:
    kind = target.kind
    if request.method in ("GET", "HEAD"):
        return _show_scale(server, request, _as_scale(kind, parse(kind, _entry(server, target))))
    if request.method == "PUT":
        body = server.read_typed(request, _scale_kind(), read_write_options(request, "UpdateOptions"))
        return await _change_scale(server, request, target, lambda scale: body, "UpdateOptions")
    if request.method != "PATCH":
        raise method_not_allowed()
    type_ = media_type(request.headers.get("content-type", ""))
    if type_ == APPLY:
        config, _ = read_yaml(request.body)
        if not isinstance(config, dict):
            raise bad_request("error decoding patch: the configuration is no object")
        return await _change_scale(server, request, target, lambda scale: {**scale, **config}, "PatchOptions")
    if type_ not in (JSON, MERGE, STRATEGIC):
        raise unsupported_media_type((JSON, MERGE, STRATEGIC, APPLY))
    patch = read_json_patch(request.body) if type_ == JSON else read_patch(request.body)
    change = patch_change(type_, patch, Target(_scale_kind(), target.namespace, target.name), [])
    return await _change_scale(server, request, target, change, "PatchOptions")


def _show_scale(server: ApiServer, request: Request, scale: Object) -> Answer:
    form = negotiate(request.headers.get("accept", ""), table=True)
    if form.as_ != "Table":
        return Answer(200, encode(scale))
    body = scale_table(scale, server.core.now(), request.first("includeObject"), form.version)
    return Answer(200, body, form.content_type)


def _scale_kind() -> Kind:
    return hidden_kind("autoscaling", "v1", "Scale")


async def _change_scale(
    server: ApiServer, request: Request, target: Target, change: Callable[[Object], Object], options_kind: str
) -> Answer:
    kind, paths = target.kind, _scale_paths(target.kind)
    options = read_write_options(request, options_kind)

    def scaled(obj: Object) -> Object:
        before = _as_scale(kind, obj)
        scale = server.core.shape(_scale_kind(), of_kind(change(before), _scale_kind()), [])
        name = (scale.get("metadata") or {}).get("name")
        if name != target.name:
            raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
        replicas = (scale.get("spec") or {}).get("replicas") or 0
        if replicas < 0:
            error = FieldError.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
            raise invalid("Scale", "autoscaling", target.name, [error])
        version = (scale.get("metadata") or {}).get("resourceVersion")
        _put_at(obj, paths["specReplicasPath"], replicas)
        if version and version != before["metadata"]["resourceVersion"]:
            obj["metadata"]["resourceVersion"] = version
        return obj

    try:
        done = await update(server.core, request, target, scaled, options)
    except ApplyConflict as refused:
        raise StatusError(409, "Conflict", str(refused), {"causes": refused.causes()}) from None
    obj = done.obj if done.entry is None else parse(kind, done.entry)
    return Answer(200, encode(_as_scale(kind, obj)))


# Namespaces


async def _finalize(server: ApiServer, request: Request, target: Target) -> Answer:
    if request.method != "PUT":
        raise method_not_allowed()
    options = read_write_options(request, "UpdateOptions")
    body = server.read_typed(request, target.kind, options)
    wanted = (body.get("spec") or {}).get("finalizers") or []

    def finalized(obj: Object) -> Object:
        obj.setdefault("spec", {})["finalizers"] = wanted
        version = (body.get("metadata") or {}).get("resourceVersion")
        if version:
            obj["metadata"]["resourceVersion"] = version
        return obj

    done = await update(server.core, request, target, finalized, options)
    return Answer(200, encode(done.obj))
