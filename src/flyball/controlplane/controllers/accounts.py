"""What every namespace has: the ServiceAccount `default`, and the certificate of the cluster's authority."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flyball.api import DynamicObject
from flyball.client import Client, MergePatch
from flyball.clock import Clock
from flyball.controlplane.apiserver.store import Key
from flyball.controlplane.controllers.loop import Loop
from flyball.controlplane.controllers.view import View
from flyball.errors import AlreadyExists, Forbidden, NotFound

__all__ = ["EveryNamespace", "root_certificate", "service_account"]

Object = dict[str, Any]

_NAMESPACES: Final = "namespaces"
_DESCRIPTION: Final = "kubernetes.io/description"
_CERTIFICATE_WORDS: Final = "The certificates by which a Pod knows the API server at its address inside of the cluster."


class EveryNamespace:
    """Keeps one object in every namespace: makes it when it is missing, and gives it back what it shall hold."""

    def __init__(
        self, name: str, resource: str, wanted: Callable[[], Object], view: View, client: Client, clock: Clock
    ) -> None:
        """Take what is wanted: an object without a namespace."""
        self._resource = resource
        self._wanted = wanted
        self._view = view
        self._client = client
        self.loop: Loop[str] = Loop(name, self.ensure, clock)

    def seen(self, key: Key) -> None:
        """Take note of an object that was written or deleted."""
        if key.resource == _NAMESPACES:
            self.loop.add(key.name)
        elif key.resource == self._resource and key.name == self._wanted()["metadata"]["name"]:
            self.loop.add(key.namespace)

    def relist(self) -> None:
        """Look at all namespaces again."""
        for entry in self._view.store.listing(_NAMESPACES).entries:
            self.loop.add(entry.key.name)

    async def ensure(self, namespace: str) -> None:
        """See that the object is in a namespace, unless that is on its way out."""
        entry = self._view.store.get(Key(_NAMESPACES, "", namespace))
        if entry is None or entry.fields.get("status.phase") == "Terminating":
            return
        wanted = self._wanted()
        name = wanted["metadata"]["name"]
        key = Key(self._resource, namespace, name)
        present, meta = self._view.whole(key), self._view.meta(key)
        try:
            if present is None or meta is None:
                inside = {**wanted, "metadata": {**wanted["metadata"], "namespace": namespace}}
                await self._client.create(DynamicObject(inside))
            elif "data" in wanted and present.get("data") != wanted["data"]:
                await self._client.patch(self._view.ref(key, meta), MergePatch({"data": wanted["data"]}), guard=False)
        except (AlreadyExists, Forbidden, NotFound):
            return  # somebody else made it, or the namespace went in between


def service_account() -> Object:
    """Give the account that Pods run as which name none."""
    return {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"}}


def root_certificate(certificate: Callable[[], str]) -> Callable[[], Object]:
    """Give the ConfigMap with the certificate by which Pods know the API server."""

    def wanted() -> Object:
        metadata = {"name": "kube-root-ca.crt", "annotations": {_DESCRIPTION: _CERTIFICATE_WORDS}}
        return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"ca.crt": certificate()}}

    return wanted
