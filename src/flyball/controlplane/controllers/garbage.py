"""The garbage collector: what becomes of objects whose owners go.

A dependent goes when none of its owners is there any more (`Background`). An owner that is deleted with `Foreground`
waits, by a finalizer, for the dependents that block it. One that is deleted with `Orphan` leaves them: their references
to it are taken away first.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, Literal

from flyball.api import DynamicObject
from flyball.client import Client, MergePatch
from flyball.clock import Clock
from flyball.controlplane.apiserver.metadata import time_text
from flyball.controlplane.apiserver.store import Key
from flyball.controlplane.controllers.loop import Loop
from flyball.controlplane.controllers.view import Meta, Ownership, Reference, View
from flyball.errors import AlreadyExists, NotFound

__all__ = ["GarbageCollector"]

Object = dict[str, Any]
Propagation = Literal["Background", "Foreground", "Orphan"]

_ORPHAN: Final = "orphan"
_FOREGROUND: Final = "foregroundDeletion"


class GarbageCollector:
    """Looks at every object that names owners, or that is an owner and waits to go."""

    def __init__(self, view: View, client: Client, clock: Clock) -> None:
        """Know of nothing yet; `seen` tells it."""
        self._view = view
        self._client = client
        self._clock = clock
        self._ownership = Ownership()
        self.loop: Loop[Key] = Loop("garbage collector", self._look, clock)

    def seen(self, key: Key) -> None:
        """Take note of an object that was written or deleted."""
        entry = self._view.store.get(key)
        owners = self._ownership.references(key)
        gone = self._ownership.note(key, entry)
        if gone:
            for dependent in self._ownership.dependents(gone):
                self.loop.add(dependent)
            for owner in owners:
                self._wake(owner, key)
        if entry is not None and (self._ownership.references(key) or b'"deletionTimestamp"' in entry.body):
            self.loop.add(key)
        for owner in {*owners} - {*self._ownership.references(key)}:
            self._wake(owner, key)

    def relist(self) -> None:
        """Look at everything again: the state was exchanged."""
        self._ownership.clear()
        for entry in self._view.entries():
            self.seen(entry.key)

    def _wake(self, reference: Reference, dependent: Key) -> None:
        kind = self._view.kinds.by_kind(reference.api_version, reference.kind)
        if kind is not None:
            namespace = dependent.namespace if kind.namespaced else ""
            self.loop.add(Key(kind.storage, namespace, reference.name))

    async def _look(self, key: Key) -> None:
        meta = self._view.meta(key)
        if meta is None:
            return
        if meta.deletion_timestamp is not None:
            if _ORPHAN in meta.finalizers:
                await self._orphan(key, meta)
            elif _FOREGROUND in meta.finalizers:
                await self._wait_for_dependents(key, meta)
        elif meta.owner_references:
            await self._attempt(key, meta)

    # A dependent

    async def _attempt(self, key: Key, meta: Meta) -> None:
        """Delete an object that no owner holds any more; take away references to owners that are gone."""
        dangling: set[str] = set()
        waiting: set[str] = set()
        for reference in meta.owner_references:
            owner = self._view.owner(reference, key)
            if owner is None:
                continue
            if owner.misplaced or (owner.meta is None and self._elsewhere(reference, key)):
                await self._warn(key, meta, reference)
            if owner.meta is None:
                dangling.add(reference.uid)
            elif owner.meta.deletion_timestamp is not None and _FOREGROUND in owner.meta.finalizers:
                waiting.add(reference.uid)
        solid = {one.uid for one in meta.owner_references} - dangling - waiting
        if solid:
            if dangling | waiting:
                await self._take_away(key, meta, dangling | waiting)
        elif waiting and self._ownership.dependents(meta.uid):
            if any(map(self._waits, self._ownership.dependents(meta.uid))):
                meta = await self._unblock(key, meta)  # it may be a circle, in which all would wait for each other
            await self._delete(key, meta, "Foreground")
        elif dangling | waiting:
            policy: Propagation = "Foreground" if _FOREGROUND in meta.finalizers else "Background"
            await self._delete(key, meta, "Orphan" if _ORPHAN in meta.finalizers else policy)

    def _elsewhere(self, reference: Reference, key: Key) -> bool:
        """Tell whether the owner lives in another namespace, where it owns nothing of this one."""
        kind = self._view.kinds.by_kind(reference.api_version, reference.kind)
        if kind is None or not kind.namespaced:
            return False
        entries = self._view.store.listing(kind.storage).entries
        return any(entry.uid == reference.uid and entry.key.namespace != key.namespace for entry in entries)

    async def _take_away(self, key: Key, meta: Meta, uids: set[str]) -> None:
        obj = self._view.whole(key)
        if obj is None:
            return
        kept = [one for one in obj["metadata"].get("ownerReferences") or () if one.get("uid") not in uids]
        await self._change(key, meta, {"ownerReferences": kept or None})

    def _waits(self, key: Key) -> bool:
        meta = self._view.meta(key)
        return meta is not None and meta.deletion_timestamp is not None and _FOREGROUND in meta.finalizers

    async def _unblock(self, key: Key, meta: Meta) -> Meta:
        obj = self._view.whole(key)
        references = [] if obj is None else obj["metadata"].get("ownerReferences") or []
        if not any(one.get("blockOwnerDeletion") for one in references):
            return meta
        free = [{**one, "blockOwnerDeletion": False} for one in references]
        await self._change(key, meta, {"ownerReferences": free})
        return self._view.meta(key) or meta

    async def _delete(self, key: Key, meta: Meta, policy: Propagation) -> None:
        with suppress(NotFound):
            await self._client.delete(self._view.ref(key, meta), propagation=policy, guard=True)

    # An owner that goes

    async def _orphan(self, key: Key, meta: Meta) -> None:
        for dependent in self._ownership.dependents(meta.uid):
            known = self._view.meta(dependent)
            if known is not None:
                await self._take_away(dependent, known, {meta.uid})
        await self._finish(key, meta, _ORPHAN)

    async def _wait_for_dependents(self, key: Key, meta: Meta) -> None:
        blocked = False
        for dependent in self._ownership.dependents(meta.uid):
            blocked = blocked or self._blocks(dependent, meta.uid)
            known = self._view.meta(dependent)
            if known is not None and known.deletion_timestamp is None:
                self.loop.add(dependent)
        if not blocked:
            await self._finish(key, meta, _FOREGROUND)

    def _blocks(self, dependent: Key, uid: str) -> bool:
        return any(one.uid == uid and one.block_owner_deletion for one in self._ownership.references(dependent))

    async def _finish(self, key: Key, meta: Meta, finalizer: str) -> None:
        kept = [one for one in meta.finalizers if one != finalizer]
        await self._change(key, meta, {"finalizers": kept or None})

    async def _change(self, key: Key, meta: Meta, metadata: Object) -> None:
        """Change metadata of the very object and version that was looked at."""
        seen = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        with suppress(NotFound):
            await self._client.patch(self._view.ref(key, meta), MergePatch({"metadata": {**metadata, **seen}}))

    # What people should know

    async def _warn(self, key: Key, meta: Meta, reference: Reference) -> None:
        kind = self._view.kind_of(key.resource)
        if kind is None:
            return
        namespace = key.namespace or "default"
        told = (
            f"ownerRef [{reference.api_version}/{reference.kind}, namespace: {key.namespace}, name: {reference.name}, "
            f"uid: {reference.uid}] does not exist in namespace {_quoted(key.namespace)}"
        )
        now = time_text(self._clock.now())
        about = {"kind": kind.kind, "apiVersion": kind.api_version, "name": key.name, "uid": meta.uid}
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{key.name}.{int(meta.resource_version):016x}", "namespace": namespace},
            "involvedObject": {**about, **({"namespace": key.namespace} if key.namespace else {})},
            "reason": "OwnerRefInvalidNamespace",
            "message": told,
            "type": "Warning",
            "source": {"component": "garbage-collector-controller"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        with suppress(AlreadyExists):
            await self._client.create(DynamicObject(event))


def _quoted(text: str) -> str:
    return f'"{text}"'
