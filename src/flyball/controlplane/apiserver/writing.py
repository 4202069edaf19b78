"""Create, update and patch: every way in which an object comes to be or changes.

The steps are those of `core.Core`, in this order: shape, note the managers, prepare, admit, judge, commit. An update is
tried again when somebody else was quicker, unless the writer said which version it had seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from flyball.api.fielderrors import FieldError, Shown
from flyball.api.structural import same
from flyball.controlplane.apiserver.apply import ApplyConflict, NotTyped, apply, keep_times, track
from flyball.controlplane.apiserver.core import Admission, Core, Object, blank, fresh, no_namespace_change, of_kind
from flyball.controlplane.apiserver.kinds import Kind
from flyball.controlplane.apiserver.metadata import (
    generate_name,
    keep_on_update,
    set_on_create,
    validate_metadata,
    validate_metadata_update,
)
from flyball.controlplane.apiserver.options import WriteOptions
from flyball.controlplane.apiserver.render import draft, parse
from flyball.controlplane.apiserver.request import Request
from flyball.controlplane.apiserver.status import (
    StatusError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    internal,
    invalid,
    not_found,
)
from flyball.controlplane.apiserver.store import Entry, Key, Stale

__all__ = ["Target", "Written", "create", "patch_by_apply", "update"]

_ATTEMPTS: Final = 64
_NAME_ATTEMPTS: Final = 8
_CHANGED: Final = "the object has been modified; please apply your changes to the latest version and try again"
_STATUS_METADATA: Final = ("labels", "annotations", "finalizers", "ownerReferences")


@dataclass(frozen=True, slots=True)
class Target:
    """The object that a write is about."""

    kind: Kind
    namespace: str
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> Key:
        """Where it is stored."""
        return Key(self.kind.storage, self.namespace if self.kind.namespaced else "", self.name)

    def missing(self) -> StatusError:
        """Say that it is not there."""
        return not_found(self.kind.plural, self.kind.group, self.name)

    def conflict(self, why: str) -> StatusError:
        """Say that it is not what the writer had seen."""
        return conflict(self.kind.plural, self.kind.group, self.name, why)


@dataclass(frozen=True, slots=True)
class Written:
    """What a write leads to: the entry as it is now, or (in a dry run) the object as it would be."""

    entry: Entry | None
    obj: Object
    created: bool = False


async def create(core: Core, request: Request, target: Target, body: Object, options: WriteOptions) -> Written:
    """Store a new object."""
    kind = target.kind
    obj = of_kind(body, kind)
    no_namespace_change(obj, target.namespace)
    if obj["metadata"].get("resourceVersion"):
        raise _version_on_create()
    if target.name and obj["metadata"].setdefault("name", target.name) != target.name:
        told = f"the name of the object ({obj['metadata']['name']}) does not match the name on the URL ({target.name})"
        raise bad_request(told)
    unknown: list[str] = []
    obj = core.shape(kind, obj, unknown)
    core.report_unknown(request, kind, [f'unknown field "{path}"' for path in unknown], options)
    return await _insert(core, request, target, obj, options, applied=False)


def _version_on_create() -> StatusError:
    """Say that an object that is not there yet cannot have a version."""
    told = "resourceVersion should not be set on objects to be created"
    return StatusError(500, "", told)


async def _insert(
    core: Core, request: Request, target: Target, obj: Object, options: WriteOptions, *, applied: bool
) -> Written:
    kind, metadata = target.kind, obj["metadata"]
    if not applied:
        obj = track(None, obj, core.operation(kind, options))
        metadata = obj["metadata"]
    prefix = metadata.get("generateName") if not metadata.get("name") else None
    if kind.namespaced:
        core.require_namespace(kind, target.namespace, str(metadata.get("name") or ""))
    if kind.terminating:
        told = "create not allowed while custom resource definition is terminating"
        raise forbidden(kind.plural, kind.group, str(metadata.get("name") or ""), told)
    if not kind.strategy.status_on_create and kind.has("status"):
        obj.pop("status", None)
        if "status" in blank(kind):
            obj["status"] = fresh(blank(kind)["status"])
    set_on_create(metadata, core.now(), has_generation=kind.strategy.has_generation)
    kind.strategy.prepare_create(obj)
    for attempt in range(_NAME_ATTEMPTS):
        if prefix:
            metadata["name"] = generate_name(prefix)
        name = str(metadata.get("name") or "")
        called = prefix or name  # a name that was made up means nothing to who asked
        await core.ask(
            Admission("CREATE", kind, "", target.namespace, called, obj, None, request.user, options.dry_run)
        )
        errors = core.judge(kind, obj, None)
        if errors:
            raise invalid(kind.kind, kind.group, name, errors)
        request.warnings.extend(kind.strategy.warn_on_create(obj))
        key = core.key(kind, target.namespace, name)
        if core.store.get(key) is None:
            if options.dry_run:
                return Written(None, obj, created=True)
            try:
                entry = await core.store.commit(key, None, lambda revision: draft(kind, obj, revision))
                await core.tell(key)
                return Written(entry, obj, created=True)
            except Stale:
                pass  # somebody else was quicker
        if not prefix or attempt == _NAME_ATTEMPTS - 1:
            raise already_exists(kind.plural, kind.group, name)
    raise internal(f"no free name was found for {prefix}")


Change = Callable[[Object], Object]
"""Takes the object as it is (to be changed or thrown away), returns it as it shall be."""


async def update(
    core: Core,
    request: Request,
    target: Target,
    change: Change,
    options: WriteOptions,
    *,
    applied: bool = False,
    unknown_as: Callable[[list[str]], None] | None = None,
    misfit: Callable[[StatusError], StatusError] | None = None,
) -> Written:
    """Change an object that is there.

    `applied` tells that the change has noted the managers itself; `misfit` words the refusal of a result that is no
    object of the kind.
    """
    kind = target.kind
    for _ in range(_ATTEMPTS):
        entry = core.store.get(target.key)
        if entry is None:
            raise target.missing()
        old = parse(kind, entry)
        changed = change(parse(kind, entry))
        unknown: list[str] = []
        try:
            obj = core.shape(kind, of_kind(changed, kind), unknown, applied=applied)
        except StatusError as error:
            raise misfit(error) if misfit is not None and error.code == 400 else error from None
        if unknown_as is not None:
            unknown_as(unknown)
        _same_place(obj, target)
        asked = _asked_version(obj, entry, target, replaced=misfit is None)
        if not applied:
            obj = track(old, obj, core.operation(kind, options, target.subresource))
        obj = _prepared(core, kind, obj, old, target.subresource)
        await core.ask(
            Admission(
                "UPDATE",
                kind,
                target.subresource,
                target.namespace,
                target.name,
                obj,
                old,
                request.user,
                options.dry_run,
            )
        )
        errors = _changed_metadata(kind, obj, old) + core.judge(kind, obj, old)
        if errors:
            raise invalid(kind.kind, kind.group, target.name, errors)
        obj = keep_times(old, obj)
        if _unchanged(obj, old):
            return Written(entry, old)
        if options.dry_run:
            return Written(None, {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(entry.revision)}})
        try:
            return await _commit(core, target, entry, obj)
        except Stale:
            if asked:
                raise target.conflict(_CHANGED) from None
    raise target.conflict(_CHANGED)


def _changed_metadata(kind: Kind, obj: Object, old: Object) -> list[FieldError]:
    """Judge a change of metadata; for built-in kinds twice, as upstream does: once for every kind, once for this."""
    errors = validate_metadata_update(obj["metadata"], old["metadata"])
    if not kind.builtin:
        return errors
    plain = validate_metadata(obj["metadata"], lambda name, prefix: [], kind.namespaced)
    return [*plain, *errors, *plain, *errors, *plain]


def _asked_version(obj: Object, entry: Entry, target: Target, *, replaced: bool) -> bool:
    """Hold the writer to the version and, when it replaced the object, to the uid; tell whether it named a version."""
    metadata = obj["metadata"]
    version = metadata.get("resourceVersion")
    if version and not version.isdecimal():
        raise StatusError(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
    if version and version != str(entry.revision):
        raise target.conflict(_CHANGED)
    uid = metadata.get("uid")
    if uid and uid != entry.uid and replaced:
        where = "/".join(part for part in ("/registry", *_registry(target.kind), target.namespace, target.name) if part)
        raise target.conflict(
            f"StorageError: invalid object, Code: 4, Key: {where}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {entry.uid}"
        )
    if not version and not target.kind.strategy.unconditional_update:
        told = "must be specified for an update"
        error = FieldError.invalid("metadata.resourceVersion", Shown("0x0"), told)
        raise invalid(target.kind.kind, target.kind.group, target.name, [error])
    return bool(version)


def _registry(kind: Kind) -> tuple[str, ...]:
    """Name the place where upstream keeps the objects of a kind; messages tell it."""
    return (kind.plural,) if kind.builtin else (kind.group, kind.plural)


def _same_place(obj: Object, target: Target) -> None:
    metadata = obj["metadata"]
    if not metadata.get("name"):
        told = f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        raise bad_request(told)
    if metadata["name"] != target.name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({target.name})"
        )
    no_namespace_change(obj, target.namespace if target.kind.namespaced else "")


def _prepared(core: Core, kind: Kind, obj: Object, old: Object, subresource: str) -> Object:
    """Keep what this endpoint does not write, and count generations."""
    managers = obj["metadata"].get("managedFields")
    if subresource == "status":
        obj = _only_status(kind, obj, old)
    elif subresource in _SPEC_PARTS:
        obj = {**fresh(old), "spec": {**old["spec"], **_SPEC_PARTS[subresource](obj["spec"])}}
    elif kind.has("status") and subresource != "binding":
        obj = {name: value for name, value in obj.items() if name != "status"}
        if "status" in old:
            obj["status"] = old["status"]
    metadata = obj["metadata"]
    if managers is not None:
        metadata["managedFields"] = managers
    else:
        metadata.pop("managedFields", None)
    keep_on_update(metadata, old["metadata"])
    if subresource != "finalize":
        kind.strategy.prepare_update(obj, old)
    counts = kind.strategy.has_generation and subresource not in ("binding", "status")
    if counts and not same(kind.strategy.wanted(obj), kind.strategy.wanted(old)):
        metadata["generation"] = old["metadata"].get("generation", 0) + 1
    return obj


def _ephemeral(spec: Object) -> Object:
    return {"ephemeralContainers": spec.get("ephemeralContainers")}


def _sizes(spec: Object) -> Object:
    return {name: spec[name] for name in ("containers", "initContainers") if name in spec}


_SPEC_PARTS: Final[dict[str, Callable[[Object], Object]]] = {"ephemeralcontainers": _ephemeral, "resize": _sizes}
"""Endpoints that write only a part of the spec."""


def _only_status(kind: Kind, obj: Object, old: Object) -> Object:
    kept = fresh(old)
    if "status" in obj:
        kept["status"] = obj["status"]
    else:
        kept.pop("status", None)
    for field in _STATUS_METADATA:
        if field not in kind.strategy.status_keeps:
            kept["metadata"].pop(field, None)
            if field in obj["metadata"]:
                kept["metadata"][field] = obj["metadata"][field]
    return kept


def _unchanged(obj: Object, old: Object) -> bool:
    return same(_without_version(obj), _without_version(old))


def _without_version(obj: Object) -> Object:
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}}


async def _commit(core: Core, target: Target, entry: Entry, obj: Object) -> Written:
    """Store the new state; an object that was only waiting for its last finalizer goes."""
    kind, metadata = target.kind, obj["metadata"]

    def build(revision: int) -> Any:
        return draft(kind, obj, revision)

    if metadata.get("deletionTimestamp") and not metadata.get("finalizers") and not _lingers(kind, obj):
        before = parse(kind, entry)
        await core.store.delete(target.key, entry, lambda revision: draft(kind, before, revision))
        await core.tell(target.key)
        return Written(None, {**obj, "metadata": {**metadata, "resourceVersion": str(entry.revision)}})
    written = await core.store.commit(target.key, entry, build)
    await core.tell(target.key)
    return Written(written, obj)


def _lingers(kind: Kind, obj: Object) -> bool:
    """Tell whether an object without finalizers still waits: a Pod for its end, a namespace for its content."""
    if kind.storage == "pods":
        return bool(obj["metadata"].get("deletionGracePeriodSeconds"))
    return kind.storage == "namespaces" and bool((obj.get("spec") or {}).get("finalizers"))


def _type_text(api_version: Any, kind: Any) -> str:
    """Name a type as Go prints it: `apps/v1, Kind=Deployment`, `/v1, Kind=Pod`."""
    version = str(api_version)
    return f"{version if '/' in version else '/' + version}, Kind={kind}"


async def patch_by_apply(
    core: Core, request: Request, target: Target, config: Object, options: WriteOptions
) -> Written:
    """Apply a configuration on the server's side; what is not there is created."""
    kind = target.kind
    metadata = config.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    said = (config.get("apiVersion") or "", config.get("kind") or "")
    if said != (kind.api_version, kind.kind):
        raise bad_request(f"invalid object type: {_type_text(*said)}")
    given_namespace = (metadata or {}).get("namespace", "") if isinstance(metadata, dict) else ""
    config = of_kind(config, kind)
    _same_place(config, target)
    operation = core.operation(kind, options, target.subresource)

    def applied(live: Object) -> Object:
        plain = fresh(config)
        version = plain["metadata"].pop("resourceVersion", None)
        try:
            obj = apply(live, plain, operation, force=bool(options.force))
        except ApplyConflict as refused:
            raise StatusError(409, "Conflict", str(refused), {"causes": refused.causes()}) from None
        except NotTyped as wrong:
            where = f"{given_namespace}/{target.name}; {_type_text(kind.api_version, kind.kind)}"
            told = f"failed to create typed patch object ({where}): {wrong}"
            raise StatusError(500, "", told) from None
        if version is not None:
            obj["metadata"]["resourceVersion"] = version
        return obj

    while True:
        if core.store.get(target.key) is not None or target.subresource:
            return await update(core, request, target, applied, options, applied=True)
        obj = of_kind(applied({"metadata": {}}), kind)
        no_namespace_change(obj, target.namespace)
        uid = obj["metadata"].get("uid")
        if uid:
            told = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise target.conflict(told)
        obj["metadata"].pop("resourceVersion", None)
        obj = core.shape(kind, obj, [], applied=True)
        try:
            return await _insert(core, request, target, obj, options, applied=True)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
