"""Simulated nodes, and the kubelet that plays the Pods on all of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from flyball.api import DynamicObject
from flyball.client import MergePatch, ref
from flyball.controller import Controller
from flyball.controlplane.kubelet.fleet import MakeFleet, Setting
from flyball.controlplane.kubelet.simulated.nodes import NODE_LABEL, new_node
from flyball.controlplane.kubelet.simulated.pods import simulated_kubelet
from flyball.errors import AlreadyExists, ConfigError
from flyball.k8s.core.v1 import Node

__all__ = ["SimulatedFleet", "simulated"]


def simulated(*, nodes: int = 1, speed: float = 1.0) -> MakeFleet:
    """Return what makes so many simulated nodes; Pods on them live `speed` times as fast."""
    if nodes < 0:
        raise ConfigError(f"{nodes} simulated nodes: a cluster has none or more")
    if not 0 < speed < float("inf"):
        raise ConfigError(f"speed {speed:g}: simulated Pods live some number of times faster; give one above 0")
    return lambda setting: SimulatedFleet(setting, nodes, speed)


class SimulatedFleet:
    """Nodes that nothing is behind.

    Simulated nodes that the cluster has from an earlier life go on, also when there are more of them.
    """

    def __init__(self, setting: Setting, nodes: int, speed: float) -> None:
        """Nothing is made yet."""
        self._setting = setting
        self._speed = speed
        self._nodes = [f"node-{number}" for number in range(1, nodes + 1)]

    @property
    def controllers(self) -> Sequence[Controller[Any]]:
        """One kubelet for all nodes."""
        return [simulated_kubelet(self._setting.client, self._nodes, speed=self._speed)]

    async def start(self) -> None:
        """Make the nodes."""
        kept = [node.metadata.name for node in await self._setting.client.list(Node, labels=f"{NODE_LABEL}=true")]
        for name in self._nodes:
            await self._make_node(name)
        self._nodes = list(dict.fromkeys([*self._nodes, *kept]))

    async def _make_node(self, name: str) -> None:
        """Make a node, take the taint off with which every new one begins, and let it be ready."""
        client, node = self._setting.client, new_node(name, self._setting.clock.now())
        with suppress(AlreadyExists):  # it was there before a restart
            await client.create(DynamicObject(node))
        place = ref(Node, name)
        await client.patch(place, MergePatch({"spec": {"taints": None}}))
        await client.patch(place, MergePatch({"status": node["status"]}), subresource="status")

    async def stop(self) -> None:
        """Nothing runs."""
