"""The verbs themselves, over a `Session`: `flyball.client.client` gives them their types and their words."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from flyball.api import DynamicObject, Resource, ResourceType, encode, origin
from flyball.client import writes
from flyball.client.arguments import CollectionArgs, DeleteArgs, ReadArgs, WriteArgs
from flyball.client.kinds import Kind, Ref, kind_from, ref_of
from flyball.client.listing import ListResult, read_list
from flyball.client.patches import MergePatch, Patch
from flyball.client.refusals import RefusedRequest
from flyball.client.session import Session, Target
from flyball.errors import NotFound

__all__ = ["apply", "create", "delete", "delete_collection", "get", "patch", "update"]

T = TypeVar("T")
W = TypeVar("W", bound=Resource | DynamicObject)

_APPLY = "application/apply-patch+yaml"


class _Metadata(msgspec.Struct, rename="camel"):
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] | None = None


class _Spec(msgspec.Struct):
    finalizers: list[str] | None = None


class _Head(msgspec.Struct):
    kind: str | None = None
    metadata: _Metadata | None = None
    spec: msgspec.Raw = msgspec.Raw(b"null")


async def get(session: Session, ref: Ref[T], args: ReadArgs) -> T:
    """Read one object."""
    target = await session.one(ref)
    version = args.get("resource_version")
    request = session.request(
        "GET",
        target.path(args.get("subresource")),
        action=f"get {target.words}",
        query=(("resourceVersion", version),) if version else (),
        accept=target.kind.accept,
        timeout=args.get("timeout"),
    )
    return session.read(target, await session.call(request), request.action)


async def create(session: Session, obj: W, args: WriteArgs) -> W:
    """Make a new object, at the address of its collection."""
    body = writes.create_body(obj)
    ref = ref_of(obj)
    target = await session.collection(ref.kind, ref.namespace)
    metadata = body["metadata"]
    name = metadata.get("name") or f"{metadata.get('generateName') or ''}*"
    if name == "*":
        raise RefusedRequest(f"create {target.resource.kind}: it has neither a name nor a generateName; set one")
    named = Target(target.kind, target.resource, target.namespace, name)
    return await _write(session, "POST", target, named.words, body, session.write_query(args), args)


async def update(session: Session, obj: W, subresource: str | None, replace: bool, args: WriteArgs) -> W:
    """Put the whole object."""
    body = writes.update_body(obj, subresource, replace=replace)
    target = await session.one(ref_of(obj))
    return await _write(
        session, "PUT", target, target.words, body, session.write_query(args), args, subresource=subresource
    )


async def apply(
    session: Session,
    obj: W,
    force: bool,
    subresource: str | None,
    of: type[Resource] | Kind[Any] | ResourceType | None,
    args: WriteArgs,
) -> W:
    """Server-side apply."""
    body = writes.apply_body(obj, subresource)
    ref = ref_of(obj)
    if not (args.get("field_manager") or session.options.field_manager):
        raise RefusedRequest(
            f"apply {ref.kind.word} {ref.name}: nobody is named who will own the fields; "
            'make the client with field_manager="the name of your program"'
        )
    parent: Kind[Any] = ref.kind if of is None else kind_from(of)
    place = await session.one(Ref(parent, ref.name, ref.namespace))
    target = Target(ref.kind, place.resource, place.namespace, place.name)
    query = session.write_query(args, force=force)
    return await _write(
        session, "PATCH", target, target.words, body, query, args, subresource=subresource, content_type=_APPLY
    )


async def patch(
    session: Session,
    given: Any,
    patch: Patch | None,
    subresource: str | None,
    guard: bool | None,
    args: WriteArgs,
) -> Any:
    """Send a patch, or the difference between the object and what was read."""
    ref: Ref[Any] = given if isinstance(given, Ref) else ref_of(given)
    target = await session.one(ref)
    if patch is None:
        if isinstance(given, Ref):
            raise RefusedRequest(f"patch {target.words}: give a patch, or an object that was read and changed")
        found = writes.changes(given, subresource)
        if not found:
            return session.read(target, origin(given) or b"", f"patch {target.words}")
        patch = MergePatch(found)
        guard = True if guard is None else guard
    if guard:
        if not ref.resource_version:
            raise RefusedRequest(f"patch {target.words}: no version is known to guard it with; read the object first")
        patch = patch.guarded(ref.resource_version)
    query = session.write_query(args)
    return await _write(
        session,
        "PATCH",
        target,
        target.words,
        patch.content(),
        query,
        args,
        subresource=subresource,
        content_type=patch.content_type,
    )


async def delete(session: Session, ref: Ref[T], args: DeleteArgs) -> T | None:
    """Delete one object; None when it is gone, itself when it is only on its way."""
    target = await session.one(ref, args.get("namespace"))
    if args.get("guard") and not ref.resource_version:
        raise RefusedRequest(f"delete {target.words}: no version is known to guard it with; read the object first")
    options = writes.delete_body(
        propagation=args.get("propagation", "Background"),
        grace_period=args.get("grace_period"),
        uid=ref.uid,
        resource_version=ref.resource_version if args.get("guard") else None,
        dry_run=session.dry(args.get("dry_run")),
    )
    request = session.request(
        "DELETE",
        target.path(),
        action=f"delete {target.words}",
        accept=target.kind.accept,
        body=msgspec.json.encode(options),
        timeout=args.get("timeout"),
    )
    try:
        answer = await session.call(request)
    except NotFound:
        if args.get("missing_ok"):
            return None
        raise
    return None if _is_gone(answer) else session.read(target, answer, request.action)


async def delete_collection(
    session: Session, kind: Kind[T], query: tuple[tuple[str, str], ...], args: CollectionArgs
) -> ListResult[T]:
    """Delete many objects of one namespace."""
    target = await session.collection(kind, args.get("namespace"))
    if target.resource.namespaced and target.namespace is None:
        raise RefusedRequest(
            f"delete {target.words}: no server deletes over all namespaces at once; go through them one by one"
        )
    options = writes.delete_body(
        propagation=args.get("propagation", "Background"),
        grace_period=args.get("grace_period"),
        uid=None,
        resource_version=None,
        dry_run=session.dry(args.get("dry_run")),
    )
    request = session.request(
        "DELETE",
        target.path(),
        action=f"delete {target.words}",
        query=query,
        accept=target.kind.list_accept,
        body=msgspec.json.encode(options),
        timeout=args.get("timeout"),
    )
    answer = await session.call(request)
    if _is_status(answer):
        return ListResult()
    return await read_list(session, answer, target, request.action)


async def _write(
    session: Session,
    method: str,
    target: Target[T],
    words: str,
    body: Any,
    query: tuple[tuple[str, str], ...],
    args: WriteArgs,
    *,
    subresource: str | None = None,
    content_type: str = "application/json",
) -> T:
    verb = {"POST": "create", "PUT": "update"}.get(method, "apply" if content_type == _APPLY else "patch")
    part = f"/{subresource}" if subresource else ""
    request = session.request(
        method,
        target.path(subresource),
        action=f"{verb} {words}{part}",
        query=query,
        accept=target.kind.accept,
        body=encode(body),
        content_type=content_type,
        timeout=args.get("timeout"),
    )
    return session.read(target, await session.call(request), request.action)


def _is_gone(answer: bytes) -> bool:
    """Whether the answer to a delete means that the object is no more.

    A Status says so. Some kinds (Pods, ServiceAccounts) are answered with the object although it is gone: then nothing
    holds it, neither a finalizer nor a grace period; a Namespace has finalizers of its own kind.
    """
    try:
        head = msgspec.json.decode(answer, type=_Head)
    except msgspec.MsgspecError:
        return False
    metadata = head.metadata or _Metadata()
    if head.kind == "Status" or not metadata.deletion_timestamp:
        return True
    in_spec = msgspec.json.decode(head.spec, type=_Spec).finalizers if head.kind == "Namespace" else None
    return not (metadata.finalizers or metadata.deletion_grace_period_seconds or in_spec)


def _is_status(answer: bytes) -> bool:
    try:
        return msgspec.json.decode(answer, type=_Head).kind == "Status"
    except msgspec.MsgspecError:
        return False
