"""Finalizers: work that must be done before an object may vanish, and that the garbage collector cannot do.

The order that is kept:

1. the finalizer is added before anything is done for the object, and never to one that is being deleted;
2. when the object is being deleted, its finalizers run, and nothing else does;
3. a finalizer is taken away after its function has succeeded, by a JSON patch that tests that it takes away this one
   and no other; what other writers do to the list meanwhile is not lost.

A function that was interrupted runs again from the start: it must bear that what it removes is gone already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from flyball.api import PartialObjectMetadata
from flyball.client import JsonPatch, MergePatch, Ref
from flyball.client.kinds import Kind, kind_of, metadata_of
from flyball.errors import BadRequest, Conflict, Invalid, NotFound

if TYPE_CHECKING:
    from flyball.controller.context import Context
    from flyball.controller.reconciler import Step

__all__ = ["Finalizer", "add_finalizers", "default_finalizer", "remove_finalizer"]

_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Finalizer:
    """The name that stands in the object, and what has to be done."""

    name: str
    step: Step


def default_finalizer(kind: Kind[Any], controller: str) -> str:
    """`<group>/<controller>`; kinds of the core group have none, so theirs begin with the controller's name."""
    group, _, version = kind.source.api_version.rpartition("/")
    return f"{group}/{controller}" if group and version else f"{controller}/finalizer"


async def add_finalizers(ctx: Context, obj: Any, names: list[str]) -> Any:
    """Add those that are missing, onto the version that was read; returns the object as it is then."""
    present = [str(name) for name in obj.metadata.finalizers]
    missing = [name for name in names if name not in present]
    if not missing:
        return obj
    running, metadata = ctx.running, obj.metadata
    base = metadata.resource_version
    patch = MergePatch({"metadata": {"finalizers": [*present, *missing]}})
    cache, client = running.runtime.cache, running.runtime.client
    with cache.writing(kind_of(obj), metadata.name, metadata.namespace, base=base) as write:
        answer = await client.patch(obj, patch, guard=True, field_manager=running.field_manager)
        write.done(answer)
        running.note_own(answer.metadata.uid, answer.metadata.resource_version)
    return answer


async def remove_finalizer(ctx: Context, obj: Any, name: str) -> Any | None:
    """Take one away; returns the object as it is then, None when it is gone."""
    running = ctx.running
    client, cache = running.runtime.client, running.runtime.cache
    current: Any = obj
    for _ in range(_TRIES):
        metadata = current.metadata
        finalizers = [str(one) for one in metadata.finalizers]
        if metadata.uid != obj.metadata.uid or name not in finalizers:
            return current if metadata.uid == obj.metadata.uid else None
        target = Ref(kind_of(obj), metadata.name, metadata.namespace)
        with cache.writing(target.kind, metadata.name, metadata.namespace) as write:
            try:
                answer: Any = await client.patch(
                    target, _removal(metadata.uid, finalizers.index(name), name), field_manager=running.field_manager
                )
            except (Invalid, BadRequest, Conflict):
                current = None  # somebody else changed the list meanwhile: look again
            except NotFound:
                write.deleted(uid=metadata.uid)
                return None
            else:
                if answer.metadata.finalizers:
                    write.done(answer)
                    return answer
                write.deleted(uid=metadata.uid)
                return None
        current = await _look(ctx, metadata.name, metadata.namespace)
        if current is None:
            return None
    raise _still_changing(obj, name)


def _removal(uid: str, index: int, name: str) -> JsonPatch:
    path = f"/metadata/finalizers/{index}"
    return JsonPatch(
        [
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "test", "path": path, "value": name},
            {"op": "remove", "path": path},
        ]
    )


async def _look(ctx: Context, name: str, namespace: str | None) -> PartialObjectMetadata | None:
    try:
        found = await ctx.running.runtime.client.get(metadata_of(ctx.running.kind), name, namespace=namespace)
    except NotFound:
        return None
    return found


def _still_changing(obj: Any, name: str) -> Conflict:
    text = f"finalizer {name} of {obj.metadata.name} could not be taken away: its list changes all the time"
    return Conflict({"kind": "Status", "reason": "Conflict", "code": 409, "message": text}, action="remove finalizer")
