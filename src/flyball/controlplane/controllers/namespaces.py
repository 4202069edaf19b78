"""A namespace that is deleted: everything in it goes first, Pods before all else, then the namespace itself."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any, Final

from flyball.api import encode
from flyball.client import Client, MergePatch, ref
from flyball.clock import Clock
from flyball.controlplane.apiserver.metadata import time_text
from flyball.controlplane.apiserver.store import Entry, Key
from flyball.controlplane.controllers.loop import Loop
from flyball.controlplane.controllers.view import View, resource_type
from flyball.errors import NotFound
from flyball.k8s.core.v1 import Namespace

__all__ = ["NamespaceDeletion"]

Object = dict[str, Any]

_NAMESPACES: Final = "namespaces"
_FINALIZER: Final = "kubernetes"
_FINE: Final = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
)


class NamespaceDeletion:
    """Empties namespaces that are terminating."""

    def __init__(self, view: View, client: Client, clock: Clock) -> None:
        """Wait for namespaces to be deleted."""
        self._view = view
        self._client = client
        self._clock = clock
        self._terminating: set[str] = set()
        self.loop: Loop[str] = Loop("namespace deletion", self._empty, clock)

    def seen(self, key: Key) -> None:
        """Take note of an object that was written or deleted."""
        if key.resource == _NAMESPACES:
            entry = self._view.store.get(key)
            if entry is not None and entry.fields.get("status.phase") == "Terminating":
                self._terminating.add(key.name)
                self.loop.add(key.name)
            else:
                self._terminating.discard(key.name)
        elif key.namespace in self._terminating and self._view.store.get(key) is None:
            self.loop.add(key.namespace)

    def relist(self) -> None:
        """Look at all namespaces again."""
        self._terminating.clear()
        for entry in self._view.store.listing(_NAMESPACES).entries:
            self.seen(entry.key)

    async def _empty(self, name: str) -> None:
        namespace = self._view.whole(Key(_NAMESPACES, "", name))
        if namespace is None or not namespace["metadata"].get("deletionTimestamp"):
            return
        if _FINALIZER not in ((namespace.get("spec") or {}).get("finalizers") or ()):
            return
        left = self._content(name)
        pods = [entry for entry in left if entry.key.resource == "pods"]
        await self._delete(pods or left, name)
        left = self._content(name)
        if pods and not any(entry.key.resource == "pods" for entry in left):
            await self._delete(left, name)
            left = self._content(name)
        if left:
            await self._report(name, left)
        else:
            await self._finalize(name)

    def _content(self, namespace: str) -> list[Entry]:
        return [
            entry
            for resource in self._view.store.resources()
            for entry in self._view.store.listing(resource, namespace).entries
            if entry.key.namespace == namespace
        ]

    async def _delete(self, entries: list[Entry], namespace: str) -> None:
        for resource in dict.fromkeys(entry.key.resource for entry in entries):
            kind = self._view.kind_of(resource)
            if kind is not None:
                await self._client.delete_collection(resource_type(kind), namespace=namespace)

    async def _report(self, name: str, left: list[Entry]) -> None:
        """Say in the namespace's status what it waits for."""
        namespace = self._view.whole(Key(_NAMESPACES, "", name))
        if namespace is None:
            return
        before = {one["type"]: one for one in (namespace.get("status") or {}).get("conditions") or ()}
        conditions = [self._condition(before, *one) for one in self._conditions(left)]
        if [before.get(one["type"]) for one in conditions] == conditions:
            return
        seen = {"resourceVersion": namespace["metadata"]["resourceVersion"]}
        change = MergePatch({"metadata": seen, "status": {"conditions": conditions}})
        with suppress(NotFound):
            await self._client.patch(ref(Namespace, name), change, subresource="status")

    def _conditions(self, left: list[Entry]) -> list[tuple[str, str, str, str]]:
        resources = Counter(entry.key.resource for entry in left)
        remaining = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(resources.items()))
        finalizers: Counter[str] = Counter()
        for entry in left:
            meta = self._view.meta(entry.key)
            finalizers.update(() if meta is None else meta.finalizers)
        found = [(kind, "False", reason, told) for kind, reason, told in _FINE]
        told = f"Some resources are remaining: {remaining}"
        found.append(("NamespaceContentRemaining", "True", "SomeResourcesRemain", told))
        if finalizers:
            names = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
            told = f"Some content in the namespace has finalizers remaining: {names}"
            found.append(("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", told))
        else:
            told = "All content-preserving finalizers finished"
            found.append(("NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers", told))
        return found

    def _condition(self, before: dict[str, Object], kind: str, status: str, reason: str, message: str) -> Object:
        old = before.get(kind)
        same = old is not None and old.get("status") == status
        since = old["lastTransitionTime"] if old is not None and same else time_text(self._clock.now())
        return {"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}

    async def _finalize(self, name: str) -> None:
        namespace = self._view.whole(Key(_NAMESPACES, "", name))
        if namespace is None:
            return
        finalizers = [one for one in (namespace.get("spec") or {}).get("finalizers") or () if one != _FINALIZER]
        body = {"kind": "Namespace", "apiVersion": "v1", **namespace, "spec": {"finalizers": finalizers}}
        with suppress(NotFound):
            await self._client.request("PUT", f"/api/v1/namespaces/{name}/finalize", body=encode(body))
