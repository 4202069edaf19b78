"""Questions put as objects: nothing of them is stored, the answer is in their status. Also the tokens one asks for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from flyball.api.fielderrors import FieldError
from flyball.controlplane.apiserver.apply import track
from flyball.controlplane.apiserver.authn import with_groups
from flyball.controlplane.apiserver.builtin import hidden_kind
from flyball.controlplane.apiserver.core import Admission, Core, Object, no_namespace_change
from flyball.controlplane.apiserver.kinds import Kind
from flyball.controlplane.apiserver.metadata import time_text
from flyball.controlplane.apiserver.options import read_write_options
from flyball.controlplane.apiserver.render import arrange, encode
from flyball.controlplane.apiserver.request import Answer, Request, User
from flyball.controlplane.apiserver.status import (
    StatusError,
    bad_request,
    conflict,
    invalid,
    method_not_allowed,
    not_found,
)
from flyball.controlplane.apiserver.store import Entry, Key
from flyball.controlplane.apiserver.tokens import Bound, InvalidToken, not_there
from flyball.controlplane.apiserver.writing import Target
from flyball.controlplane.unsupported import REFUSED

if TYPE_CHECKING:
    from flyball.controlplane.apiserver.server import ApiServer

__all__ = ["Review", "refuse_unsupported", "request_token", "reviews"]

Review = Callable[["ApiServer", Request, Target], Awaitable[Answer]]

_MIN_SECONDS: Final = 600
_MAX_SECONDS: Final = 1 << 32
_BINDABLE: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


def reviews() -> dict[str, Review]:
    """Return who answers which question, by resource."""
    return {
        "tokenreviews.authentication.k8s.io": _review_token,
        "selfsubjectreviews.authentication.k8s.io": _review_self,
        **{resource: _refuse for resource in REFUSED if resource.endswith(".authorization.k8s.io")},
    }


async def refuse_unsupported(core: Core, admission: Admission) -> None:
    """Refuse to create what nobody would act on, where it would matter."""
    kind = admission.kind
    if admission.verb == "CREATE" and kind.storage in REFUSED:
        raise _unsupported(kind)


async def _refuse(server: ApiServer, request: Request, target: Target) -> Answer:
    raise _unsupported(target.kind)


def _unsupported(kind: Kind) -> StatusError:
    details = {"group": kind.group, "kind": kind.plural}
    return StatusError(
        501, "NotImplemented", f"{kind.kind} is not supported by this server: {REFUSED[kind.storage]}", details
    )


def _user_info(user: User) -> Object:
    info: Object = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {name: list(values) for name, values in user.extra.items()}
    return info


async def _review_self(server: ApiServer, request: Request, target: Target) -> Answer:
    kind = target.kind
    obj = server.read_typed(request, kind, read_write_options(request, "CreateOptions"))
    metadata = {**obj["metadata"], "creationTimestamp": time_text(server.core.now())}
    status = {"userInfo": _user_info(request.user)}
    head = {"kind": kind.kind, "apiVersion": kind.api_version}
    return Answer(201, encode({**head, "metadata": metadata, "status": status}))


async def _review_token(server: ApiServer, request: Request, target: Target) -> Answer:
    kind = target.kind
    options = read_write_options(request, "CreateOptions")
    obj = server.read_typed(request, kind, options)
    spec: Mapping[str, Any] = obj.get("spec") or {}
    if not spec.get("token"):
        raise bad_request("token is required for TokenReview in authentication")
    obj = track(None, obj, server.core.operation(kind, options))
    obj["status"] = _reviewed(server, spec["token"], spec.get("audiences") or [])
    return Answer(201, encode(arrange(obj, kind.schema)))


def _reviewed(server: ApiServer, token: str, audiences: list[str]) -> Object:
    tokens = server.tokens
    wanted = audiences or list(tokens.audiences if tokens is not None else ())
    try:
        known = server.authenticator.static(token)
        if known is not None:
            return {"authenticated": True, "user": _user_info(with_groups(known)), "audiences": wanted}
        if tokens is None:
            raise InvalidToken("invalid bearer token")
        user, meant = tokens.verify(token, wanted)
        return {"authenticated": True, "user": _user_info(with_groups(user)), "audiences": meant}
    except InvalidToken as wrong:
        return {"user": {}, "error": str(wrong)}


async def request_token(server: ApiServer, request: Request, target: Target) -> Answer:
    """Sign a token for a ServiceAccount: its subresource `token`."""
    if request.method != "POST":
        raise method_not_allowed()
    if server.tokens is None:
        raise not_there()
    options = read_write_options(request, "CreateOptions")
    kind = hidden_kind("authentication.k8s.io", "v1", "TokenRequest")
    obj = server.read_typed(request, kind, options)
    account = server.core.store.get(target.key)
    if account is None:
        raise target.missing()
    metadata = obj["metadata"]
    if (metadata.get("name") or target.name) != target.name:
        told = "must match the service account name if specified"
        raise _invalid(kind, FieldError.invalid("metadata.name", metadata["name"], told), target.name)
    no_namespace_change(obj, target.namespace)
    spec = obj.setdefault("spec", {})
    spec["expirationSeconds"] = seconds = spec.get("expirationSeconds") or 3600
    _check_seconds(kind, seconds)
    bound = _bound(server.core, target, spec.get("boundObjectRef"))
    stamped: Object = {"name": target.name, "namespace": target.namespace, "uid": account.uid}
    stamped["creationTimestamp"] = time_text(server.core.now())
    noted = track(None, {**obj, "metadata": {}}, server.core.operation(kind, options, "token"))
    stamped.update(noted["metadata"])
    audiences = spec.get("audiences") or list(server.tokens.audiences)
    issued = server.tokens.issue(
        target.namespace, target.name, account.uid, audiences=audiences, seconds=seconds, bound=bound
    )
    shown = {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": spec.get("boundObjectRef")}
    status = {"token": issued.token, "expirationTimestamp": time_text(issued.expires)}
    head = {"kind": kind.kind, "apiVersion": kind.api_version}
    return Answer(201, encode({**head, "metadata": stamped, "spec": shown, "status": status}))


def _invalid(kind: Kind, error: FieldError, name: str = "") -> StatusError:
    return invalid(kind.kind, kind.group, name, [error])


def _check_seconds(kind: Kind, seconds: int) -> None:
    told = ""
    if seconds < _MIN_SECONDS:
        told = "may not specify a duration less than 10 minutes"
    elif seconds > _MAX_SECONDS:
        told = "may not specify a duration larger than 2^32 seconds"
    if told:
        raise _invalid(kind, FieldError.invalid("spec.expirationSeconds", seconds, told))


def _bound(core: Core, target: Target, ref: Mapping[str, Any] | None) -> list[Bound]:
    """Find the object that a token is to be bound to."""
    if not ref:
        return []
    kind, api_version, name = ref.get("kind", ""), ref.get("apiVersion", ""), ref.get("name", "")
    resource = _BINDABLE.get(kind) if api_version == "v1" else None
    if resource is None:
        group, _, version = api_version.rpartition("/")
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    entry = core.store.get(Key(resource, "" if kind == "Node" else target.namespace, name))
    if entry is None:
        raise not_found(resource, "", name)
    if ref.get("uid") and ref["uid"] != entry.uid:
        told = (
            f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise conflict(resource, "", name, told)
    bound = [Bound(kind.lower(), name, entry.uid)]
    return bound + _node_of(core, target, entry) if kind == "Pod" else bound


def _node_of(core: Core, target: Target, pod: Entry) -> list[Bound]:
    account, node = pod.fields.get("spec.serviceAccountName", ""), pod.fields.get("spec.nodeName", "")
    if account != target.name:
        told = (
            f'cannot bind token for serviceaccount "{target.name}" to pod running with different serviceaccount name.'
        )
        raise bad_request(told)
    entry = core.store.get(Key("nodes", "", node)) if node else None
    return [Bound("node", node, entry.uid)] if entry is not None else []
