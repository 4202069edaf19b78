"""Delete: at once, after finalizers, or after a grace period; one object or a selection of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final

from flyball.controlplane.apiserver.core import Admission, Core, Object
from flyball.controlplane.apiserver.kinds import Kind
from flyball.controlplane.apiserver.metadata import time_text
from flyball.controlplane.apiserver.options import DeleteOptions
from flyball.controlplane.apiserver.render import draft, parse
from flyball.controlplane.apiserver.request import Request
from flyball.controlplane.apiserver.status import conflict, forbidden, named
from flyball.controlplane.apiserver.store import Entry, Stale
from flyball.controlplane.apiserver.writing import Target

__all__ = ["Deleted", "delete"]

_ORPHAN: Final = "orphan"
_FOREGROUND: Final = "foregroundDeletion"
_PROTECTED: Final = frozenset({"default", "kube-system", "kube-public"})
_DEFAULT_GRACE: Final = 30


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a delete leads to: the object is gone, or it was only marked and is as `entry` (or `obj`, in a dry run)."""

    entry: Entry | None
    obj: Object
    gone: bool

    def details(self, kind: Kind) -> dict[str, Any]:
        """Give the details of the Status of a delete that left nothing."""
        metadata = self.obj["metadata"]
        return named(kind.plural, kind.group, metadata["name"], uid=metadata.get("uid", ""))


async def delete(core: Core, request: Request, target: Target, options: DeleteOptions) -> Deleted:
    """Delete one object."""
    kind = target.kind
    if kind.storage == "namespaces" and target.name in _PROTECTED:
        raise forbidden("namespaces", "", target.name, "this namespace may not be deleted")
    while True:
        entry = core.store.get(target.key)
        if entry is None:
            raise target.missing()
        _hold_to(entry, options, target)
        old = parse(kind, entry)
        await core.ask(
            Admission("DELETE", kind, "", target.namespace, target.name, None, old, request.user, options.dry_run)
        )
        obj = parse(kind, entry)
        kind.strategy.prepare_delete(obj, time_text(core.now()))
        gone = _mark(core, kind, obj, old, options)
        if options.dry_run:
            return Deleted(None, obj, gone)
        try:
            if gone:
                last = await core.store.delete(target.key, entry, partial(draft, kind, obj))
                await core.tell(target.key)
                return Deleted(None, parse(kind, last), gone=True)
            if obj == old:
                return Deleted(entry, old, gone=False)
            marked = await core.store.commit(target.key, entry, partial(draft, kind, obj))
            await core.tell(target.key)
            return Deleted(marked, obj, gone=False)
        except Stale:
            continue  # it changed in between: look again


def _hold_to(entry: Entry, options: DeleteOptions, target: Target) -> None:
    if options.uid and options.uid != entry.uid:
        raise conflict(
            target.kind.kind,
            target.kind.group,
            target.name,
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({entry.uid}). "
            "The object might have been deleted and then recreated",
        )
    if options.resource_version and options.resource_version != str(entry.revision):
        raise conflict(
            target.kind.kind,
            target.kind.group,
            target.name,
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion "
            f"in record ({entry.revision}). The object might have been modified",
        )


def _mark(core: Core, kind: Kind, obj: Object, old: Object, options: DeleteOptions) -> bool:
    """Mark an object as being deleted; tell whether nothing keeps it any more."""
    metadata = obj["metadata"]
    finalizers = _finalizers(kind, metadata.get("finalizers") or [], options)
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    if kind.storage == "namespaces":
        return _mark_namespace(core, obj)
    grace = _grace(kind, obj, options)
    if not finalizers and not grace:
        if kind.storage == "pods":
            _set_deletion(core, kind, metadata, 0)
        return True
    if metadata.get("deletionTimestamp") is None:
        _set_deletion(core, kind, metadata, grace)
    elif kind.storage == "pods" and grace < metadata.get("deletionGracePeriodSeconds", 0):
        metadata["deletionTimestamp"] = time_text(core.now() + timedelta(seconds=grace))
        metadata["deletionGracePeriodSeconds"] = grace
    return False


def _set_deletion(core: Core, kind: Kind, metadata: Object, grace: int) -> None:
    if metadata.get("deletionTimestamp") is None and kind.strategy.has_generation:
        metadata["generation"] = metadata.get("generation", 0) + 1
    metadata["deletionTimestamp"] = time_text(core.now() + timedelta(seconds=grace))
    metadata["deletionGracePeriodSeconds"] = grace


def _mark_namespace(core: Core, obj: Object) -> bool:
    metadata = obj["metadata"]
    if metadata.get("deletionTimestamp") is None:
        metadata["deletionTimestamp"] = time_text(core.now())
    obj.setdefault("status", {})["phase"] = "Terminating"
    return not (obj.get("spec") or {}).get("finalizers") and not metadata.get("finalizers")


def _grace(kind: Kind, obj: Object, options: DeleteOptions) -> int:
    """Return for how long a pod may go on; everything else goes at once."""
    if kind.storage != "pods":
        return 0
    spec, status, metadata = obj.get("spec") or {}, obj.get("status") or {}, obj["metadata"]
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    wanted = options.grace
    if wanted is None:
        before = metadata.get("deletionGracePeriodSeconds")
        wanted = before if before is not None else spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE)
    return max(int(wanted), 0)


def _finalizers(kind: Kind, present: list[str], options: DeleteOptions) -> list[str]:
    """Return the finalizers that the propagation policy leads to: the garbage collector acts on them."""
    policy = options.propagation
    if options.orphan_dependents is not None:
        policy = "Orphan" if options.orphan_dependents else "Background"
    if not policy:
        if _ORPHAN in present or _FOREGROUND in present or not kind.strategy.orphans_by_default:
            return present
        policy = "Orphan"
    others = [finalizer for finalizer in present if finalizer not in (_ORPHAN, _FOREGROUND)]
    if policy == "Orphan":
        return [*others, _ORPHAN]
    return [*others, _FOREGROUND] if policy == "Foreground" else others
