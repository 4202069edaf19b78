"""What can be done with an object beside reading and writing it: scale, evict, bind, get a token.

Each is a request to a path under the object's own, with a body of another kind. Bodies and answers are small, so they
are written down here; nothing of the generated models is loaded for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from flyball.api import ResourceType
from flyball.client.arguments import WriteArgs
from flyball.client.kinds import Kind, Ref, dynamic
from flyball.client.patches import MergePatch
from flyball.client.session import Session, Target
from flyball.client.transport import HttpRequest
from flyball.errors import malformed

__all__ = [
    "ScaleState",
    "Token",
    "bind",
    "evict",
    "get_scale",
    "pods",
    "request_token",
    "service_accounts",
    "set_scale",
]

_POD = ResourceType(group="", version="v1", kind="Pod", plural="pods", namespaced=True, singular="pod")
_ACCOUNT = ResourceType(
    group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", namespaced=True, singular="serviceaccount"
)


@dataclass(frozen=True, slots=True)
class ScaleState:
    """How many replicas are wanted and how many there are."""

    replicas: int
    """Wanted (`spec.replicas`)."""
    ready: int
    """There now (`status.replicas`)."""
    selector: str
    """The label selector of the replicas, as text."""
    resource_version: str


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a service account; its text is not shown by `repr`."""

    token: str = field(repr=False)
    expires: datetime | None


class _Spec(msgspec.Struct):
    replicas: int | None = None


class _Status(msgspec.Struct, rename="camel"):
    replicas: int | None = None
    selector: str | None = None
    token: str | None = None
    expiration_timestamp: datetime | None = None


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str | None = None


class _Answer(msgspec.Struct):
    metadata: _Meta | None = None
    spec: _Spec | None = None
    status: _Status | None = None


def pods(name: str, namespace: str | None = None) -> Ref[Any]:
    """A pod by its name."""
    return Ref(_fixed(_POD), name, namespace)


def service_accounts(name: str, namespace: str | None = None) -> Ref[Any]:
    """A service account by its name."""
    return Ref(_fixed(_ACCOUNT), name, namespace)


def _fixed(resource: ResourceType) -> Kind[Any]:
    return Kind(resource, dynamic(resource.api_version, resource.kind).read)


async def get_scale(session: Session, target: Target[Any], args: WriteArgs) -> ScaleState:
    """Read the scale of an object."""
    request = session.request(
        "GET", target.path("scale"), action=f"read the scale of {target.words}", timeout=args.get("timeout")
    )
    return _scale(await _answer(session, request))


async def set_scale(session: Session, target: Target[Any], replicas: int, args: WriteArgs) -> ScaleState:
    """Want another number of replicas, whatever was wanted before."""
    request = session.request(
        "PATCH",
        target.path("scale"),
        action=f"scale {target.words} to {replicas}",
        query=session.write_query(args),
        body=msgspec.json.encode({"spec": {"replicas": replicas}}),
        content_type=MergePatch.content_type,
        timeout=args.get("timeout"),
    )
    return _scale(await _answer(session, request))


async def evict(
    session: Session,
    target: Target[Any],
    uid: str | None,
    grace_period: int | None,
    args: WriteArgs,
) -> None:
    """Ask for the pod's end, within its disruption budget."""
    options: dict[str, Any] = {}
    if grace_period is not None:
        options["gracePeriodSeconds"] = grace_period
    if uid:
        options["preconditions"] = {"uid": uid}
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": target.name, "namespace": target.namespace},
        **({"deleteOptions": options} if options else {}),
    }
    await _post(session, target, "eviction", body, f"evict {target.words}", args)


async def bind(session: Session, target: Target[Any], node: str, args: WriteArgs) -> None:
    """Put the pod onto a node, as a scheduler does."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": target.name, "namespace": target.namespace},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    await _post(session, target, "binding", body, f"bind {target.words} to node {node}", args)


async def request_token(
    session: Session,
    target: Target[Any],
    audiences: Sequence[str],
    expires_in: timedelta | None,
    args: WriteArgs,
) -> Token:
    """A token with which to act as the service account."""
    spec: dict[str, Any] = {"audiences": list(audiences)}
    if expires_in is not None:
        spec["expirationSeconds"] = round(expires_in.total_seconds())
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    action = f"request a token of {target.words}"
    answer = await _post(session, target, "token", body, action, args)
    status = answer.status or _Status()
    return Token(status.token or "", status.expiration_timestamp)


async def _post(
    session: Session,
    target: Target[Any],
    subresource: str,
    body: dict[str, Any],
    action: str,
    args: WriteArgs,
) -> _Answer:
    request = session.request(
        "POST",
        target.path(subresource),
        action=action,
        query=session.write_query(args),
        body=msgspec.json.encode(body),
        timeout=args.get("timeout"),
    )
    body_bytes = await session.call(request)
    return _decoded(session, request, body_bytes) if subresource == "token" else _Answer()


async def _answer(session: Session, request: HttpRequest) -> _Answer:
    return _decoded(session, request, await session.call(request))


def _decoded(session: Session, request: HttpRequest, body: bytes) -> _Answer:
    try:
        return msgspec.json.decode(body, type=_Answer)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise malformed({}, body, action=request.action, host=session.transport.host, cause=str(error)) from error


def _scale(answer: _Answer) -> ScaleState:
    spec, status, metadata = answer.spec or _Spec(), answer.status or _Status(), answer.metadata or _Meta()
    return ScaleState(spec.replicas or 0, status.replicas or 0, status.selector or "", metadata.resource_version or "")
