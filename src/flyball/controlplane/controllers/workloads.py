"""Workload controllers, scheduler and kubelets at work on one cluster."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Self

from flyball.client import Client
from flyball.client.transport import Transport
from flyball.clock import Clock
from flyball.controlplane.apiserver.kubelets import Kubelets
from flyball.controlplane.controllers.catalogue import CATALOGUE, EVERYTHING, chosen
from flyball.controlplane.controllers.unheard import unheard
from flyball.controlplane.kubelet.fleet import Fleet, MakeFleet, Setting
from flyball.controlplane.scheduler import scheduler
from flyball.manager.manager import Manager
from flyball.manager.options import Options

__all__ = ["Workloads"]

_QUIET = Options(health_port=-1, metrics_port=-1, max_block=0.0, memory_growth=0.0)


class Workloads:
    """Makes Deployments, ReplicaSets, Jobs and Pods progress.

    `controllers` chooses among those of the catalogue; `fleet` brings the nodes (None: there are none but those that
    others make). On a cluster that has controllers and a scheduler of its own, choose `controllers=()` and
    `scheduling=False`: then only the nodes are added.
    """

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        *,
        fleet: MakeFleet | None = None,
        controllers: Sequence[str] = EVERYTHING,
        scheduling: bool = True,
        kubelets: Kubelets | None = None,
    ) -> None:
        """Nothing runs yet. `kubelets` is where the cluster's API server looks for the kubelet of a node."""
        self._client = Client(transport=transport, field_manager="kube-controller-manager", on_warning=unheard)
        self._clock = clock
        self._chosen = chosen(controllers)
        self._scheduling = scheduling
        setting = Setting(self._client, clock, kubelets if kubelets is not None else Kubelets())
        self._fleet: Fleet | None = fleet(setting) if fleet is not None else None
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        """Make the nodes and begin to work."""
        async with AsyncExitStack() as stack:
            if self._fleet is not None:
                stack.push_async_callback(self._fleet.stop)
                await self._fleet.start()
            parts = [one for name in self._chosen for one in CATALOGUE[name](self._client)]
            if self._scheduling:
                parts.append(scheduler(self._client))
            if self._fleet is not None:
                parts += self._fleet.controllers
            if parts:
                manager = Manager(
                    self._client, controllers=parts, leader_election=False, options=_QUIET, clock=self._clock
                )
                await stack.enter_async_context(manager)
            self._stack = stack.pop_all()

    async def stop(self) -> None:
        """Finish what is under way, and end."""
        await self._stack.aclose()

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop."""
        await self.stop()
