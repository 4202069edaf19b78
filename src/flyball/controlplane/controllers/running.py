"""All control loops of a cluster, started and stopped together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Final, Protocol

from flyball.client import Client
from flyball.client.transport import Transport
from flyball.clock import Clock
from flyball.controlplane.apiserver.core import Core
from flyball.controlplane.apiserver.store import Key
from flyball.controlplane.controllers.accounts import EveryNamespace, root_certificate, service_account
from flyball.controlplane.controllers.events import EventExpiry
from flyball.controlplane.controllers.garbage import GarbageCollector
from flyball.controlplane.controllers.loop import Loop
from flyball.controlplane.controllers.namespaces import NamespaceDeletion
from flyball.controlplane.controllers.unheard import unheard
from flyball.controlplane.controllers.view import View

__all__ = ["NAMES", "Controllers"]

NAMES: Final = ("garbage-collector", "namespace", "serviceaccount", "root-ca-certificate-publisher", "event-ttl")
"""The names of the loops, as upstream calls them where it has them."""


MANAGER: Final = "kube-controller-manager"
"""The manager of the fields that loops write, as upstream."""


class _Controller(Protocol):
    def seen(self, key: Key) -> None: ...
    def relist(self) -> None: ...


class Controllers:
    """The loops of one cluster.

    `wanted` names those that shall run. A new namespace has its account and certificate when its creator is answered;
    everything else comes a moment later.
    """

    def __init__(
        self,
        core: Core,
        clock: Clock,
        transport: Callable[[str], Transport],
        certificate: Callable[[], str],
        wanted: Collection[str] = NAMES,
    ) -> None:
        """Take the parts; `transport` gives the way in for a loop by its name."""
        unknown = set(wanted) - set(NAMES)
        if unknown:
            raise ValueError(f"there is no controller {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
        self._core = core
        view = View(core.store, core.kinds)

        def client(name: str) -> Client:
            return Client(transport=transport(name), field_manager=MANAGER, retry=None, on_warning=unheard)

        self._everywhere: list[EveryNamespace] = []
        self._all: list[_Controller] = []
        self._running: list[Loop[Key] | Loop[str]] = []
        if "garbage-collector" in wanted:
            garbage = GarbageCollector(view, client("generic-garbage-collector"), clock)
            self._add(garbage, garbage.loop)
        if "namespace" in wanted:
            deletion = NamespaceDeletion(view, client("namespace-controller"), clock)
            self._add(deletion, deletion.loop)
        for name, resource, make in (
            ("serviceaccount", "serviceaccounts", service_account),
            ("root-ca-certificate-publisher", "configmaps", root_certificate(certificate)),
        ):
            if name in wanted:
                user = "service-account-controller" if name == "serviceaccount" else "root-ca-cert-publisher"
                each = EveryNamespace(name, resource, make, view, client(user), clock)
                self._everywhere.append(each)
                self._add(each, each.loop)
        if "event-ttl" in wanted:
            expiry = EventExpiry(view, client("event-ttl"), clock)
            self._add(expiry, expiry.loop)

    def _add(self, controller: _Controller, running: Loop[Key] | Loop[str]) -> None:
        self._all.append(controller)
        self._running.append(running)

    async def start(self) -> None:
        """Look at what is there, and follow every commit from now on; return when all namespaces are complete."""
        self._core.committed.append(self._committed)
        for running in self._running:
            running.start()
        self.relist()
        await self.settled()

    async def stop(self) -> None:
        """End all loops."""
        follow: Callable[[Key], Awaitable[None]] = self._committed
        if follow in self._core.committed:
            self._core.committed.remove(follow)
        for running in self._running:
            await running.stop()

    def relist(self) -> None:
        """Look at everything again, after the state was exchanged."""
        for controller in self._all:
            controller.relist()

    async def settled(self) -> None:
        """Wait until no loop has anything to do at once."""
        for running in self._running:
            await running.settled()

    async def _committed(self, key: Key) -> None:
        for controller in self._all:
            controller.seen(key)
        if key.resource == "namespaces":
            for each in self._everywhere:
                await each.ensure(key.name)
