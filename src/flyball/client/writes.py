"""The bodies of writes: what each verb sends, and what it refuses to send.

| verb | sends | unknown fields of an object that was read |
|---|---|---|
| create | the object as it is, without the marks of the server | (there is nothing to lose) |
| update | the whole object, with them | sent back as received |
| apply | only what the author set | not mentioned, so nobody loses them |
| patch | the difference between then and now | not mentioned |
"""

from __future__ import annotations

from typing import Any, cast

from flyball.api import DynamicObject, PartialObjectMetadata, origin, to_dict
from flyball.api.changes import difference, merged
from flyball.api.resource import KindOptions
from flyball.client.arguments import Propagation
from flyball.client.kinds import kind_of
from flyball.client.refusals import RefusedRequest

__all__ = ["apply_body", "changes", "create_body", "delete_body", "update_body"]

_SERVERS_OWN = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "generation", "managedFields")
_IDENTITY = ("name", "namespace", "uid", "resourceVersion")


def create_body(obj: Any) -> dict[str, Any]:
    """An object to be made; what only a server may say is left out, so that a copy of a read object can be created."""
    _refuse_partial(obj, "create")
    body = merged(obj)
    _named(obj, body)
    metadata = dict(body.get("metadata") or {})
    for name in (*_SERVERS_OWN, "selfLink", "deletionGracePeriodSeconds"):
        metadata.pop(name, None)
    return {**body, "metadata": metadata}


def update_body(obj: Any, subresource: str | None, *, replace: bool) -> dict[str, Any]:
    """A whole object for a PUT, unknown fields included."""
    _refuse_partial(obj, "update")
    if subresource is None and origin(obj) is not None and "status" in difference(obj):
        _refuse_status(obj, "update")
    read = origin(obj) is not None or isinstance(obj, DynamicObject)
    body = merged(obj)
    _named(obj, body)
    if replace:
        return body
    words = f"update {body.get('kind')} {(body.get('metadata') or {}).get('name')}"
    if not read:
        raise RefusedRequest(
            f"{words}: this object was not read from the server, so a PUT would drop every field that it does not "
            "mention; read it first, use apply, or say replace=True"
        )
    if not (body.get("metadata") or {}).get("resourceVersion"):
        raise RefusedRequest(
            f"{words}: without metadata.resourceVersion a PUT would overwrite what others changed since; "
            "read the object first, or use apply"
        )
    return body


def apply_body(obj: Any, subresource: str | None) -> dict[str, Any]:
    """Only what the author set: of an object that was made here, not read."""
    _refuse_partial(obj, "apply")
    body = to_dict(obj)
    _named(obj, body)
    metadata = dict(body.get("metadata") or {})
    if origin(obj) is not None or metadata.get("managedFields") or metadata.get("creationTimestamp"):
        raise RefusedRequest(
            f"apply {body.get('kind')} {metadata.get('name')}: this object came from the server, so applying it would "
            "claim every field in it; make a new object with the fields you want, or use patch(obj)"
        )
    if subresource == "status":
        identity = {name: metadata[name] for name in _IDENTITY if name in metadata}
        return {
            "apiVersion": body.get("apiVersion"),
            "kind": body.get("kind"),
            "metadata": identity,
            "status": body.get("status", {}),
        }
    return {**body, "metadata": metadata}


def changes(obj: Any, subresource: str | None) -> dict[str, Any]:
    """The difference as a merge patch; for a subresource only its own part."""
    if origin(obj) is None:
        raise RefusedRequest(
            f"patch {kind_of(obj).word}: this object was not read from the server, so there is nothing to compare it "
            "with; read it first, use apply, or give a patch"
        )
    found = difference(obj)
    if subresource == "status":
        return {"status": found["status"]} if "status" in found else {}
    if subresource is None and "status" in found:
        _refuse_status(obj, "patch")
    return found


def delete_body(
    *,
    propagation: Propagation,
    grace_period: int | None,
    uid: str | None,
    resource_version: str | None,
    dry_run: bool,
) -> dict[str, Any]:
    """`DeleteOptions`; the propagation is always said, because servers' defaults differ from kind to kind."""
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
    if grace_period is not None:
        options["gracePeriodSeconds"] = grace_period
    preconditions = {"uid": uid, "resourceVersion": resource_version}
    if given := {name: value for name, value in preconditions.items() if value}:
        options["preconditions"] = given
    if dry_run:
        options["dryRun"] = ["All"]
    return options


def _named(obj: Any, body: dict[str, Any]) -> None:
    """Every body says what it is; a class knows, also when the object does not."""
    if not body.get("apiVersion") or not body.get("kind"):
        source = kind_of(obj).source
        body["apiVersion"], body["kind"] = source.api_version, source.kind


def _refuse_status(obj: Any, verb: str) -> None:
    """A server takes the status of most kinds at its own address only, and silently drops it everywhere else."""
    options: KindOptions | None = getattr(type(obj), "kind_options", None)
    if options is not None and options.status_subresource is not False:
        raise RefusedRequest(
            f"{verb} {options.kind} {obj.metadata.name}: its status was changed, and a server would drop that here; "
            f'write it with {verb}(obj, subresource="status"), which sends nothing else'
        )


def _refuse_partial(obj: Any, verb: str) -> None:
    if isinstance(obj, PartialObjectMetadata):
        found = cast("Any", obj)
        raise RefusedRequest(
            f"{verb} {found.kind}: only the metadata of this object is here, so the rest would be lost; use patch(obj)"
        )
