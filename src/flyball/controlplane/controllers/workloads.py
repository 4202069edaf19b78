"""Workload controllers, scheduler and simulated kubelet at work on one cluster."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from flyball.api import DynamicObject
from flyball.client import Client, MergePatch, ref
from flyball.client.transport import Transport
from flyball.clock import Clock
from flyball.controlplane.controllers.catalogue import CATALOGUE, EVERYTHING, chosen
from flyball.controlplane.kubelet import NODE_LABEL, new_node, simulated_kubelet
from flyball.controlplane.scheduler import scheduler
from flyball.errors import AlreadyExists
from flyball.k8s.core.v1 import Node
from flyball.manager.manager import Manager
from flyball.manager.options import Options

__all__ = ["Workloads"]

_QUIET = Options(health_port=-1, metrics_port=-1, max_block=0.0, memory_growth=0.0)


class Workloads:
    """Makes Deployments, ReplicaSets, Jobs and Pods progress, with so many simulated nodes.

    Simulated nodes that the cluster has from an earlier life go on, also when there are more of them.
    """

    def __init__(
        self, transport: Transport, clock: Clock, *, nodes: int = 1, controllers: Sequence[str] = EVERYTHING
    ) -> None:
        """Nothing runs yet; `controllers` chooses as `flyball.controlplane.controllers.catalogue.chosen` reads it."""
        self._chosen = chosen(controllers)
        self._client = Client(transport=transport, field_manager="kube-controller-manager")
        self._clock = clock
        self._nodes = [f"node-{number}" for number in range(1, nodes + 1)]
        self._manager: Manager | None = None

    async def start(self) -> None:
        """Make the nodes and begin to work."""
        kept = [node.metadata.name for node in await self._client.list(Node, labels=f"{NODE_LABEL}=true")]
        for name in self._nodes:
            await self._make_node(name)
        kubelet = simulated_kubelet(self._client, [*self._nodes, *kept])
        made = [one for name in self._chosen for one in CATALOGUE[name](self._client)]
        parts = (*made, scheduler(self._client), kubelet)
        manager = Manager(self._client, controllers=parts, leader_election=False, options=_QUIET, clock=self._clock)
        await manager.__aenter__()
        self._manager = manager

    async def _make_node(self, name: str) -> None:
        """Make a node, take the taint off with which every new one begins, and let it be ready."""
        node = new_node(name, self._clock.now())
        with suppress(AlreadyExists):  # it was there before a restart
            await self._client.create(DynamicObject(node))
        place = ref(Node, name)
        await self._client.patch(place, MergePatch({"spec": {"taints": None}}))
        await self._client.patch(place, MergePatch({"status": node["status"]}), subresource="status")

    async def stop(self) -> None:
        """Finish what is under way, and end."""
        if self._manager is not None:
            await self._manager.__aexit__(None, None, None)
            self._manager = None

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop."""
        await self.stop()
