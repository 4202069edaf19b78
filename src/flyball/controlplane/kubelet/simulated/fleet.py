"""Simulated nodes, their heartbeats, and the kubelet that plays the Pods on all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from flyball.api import DynamicObject
from flyball.client import MergePatch, ref
from flyball.controller import Controller
from flyball.controlplane.kubelet.fleet import MakeFleet, Setting
from flyball.controlplane.kubelet.simulated.diary import Diary
from flyball.controlplane.kubelet.simulated.heartbeats import Heartbeats
from flyball.controlplane.kubelet.simulated.kubelet import SimulatedKubelet
from flyball.controlplane.kubelet.simulated.nodes import NODE_LABEL, new_node
from flyball.controlplane.kubelet.simulated.stage_files import read_stages
from flyball.controlplane.kubelet.simulated.stages import Stage
from flyball.errors import AlreadyExists, ConfigError
from flyball.k8s.core.v1 import Node

__all__ = ["SimulatedFleet", "simulated"]

_AT_ONCE: Final = 16
"""How many nodes are made at the same time."""


def simulated(*, nodes: int = 1, speed: float = 1.0, stages: Sequence[Stage | Path] = (), seed: int = 0) -> MakeFleet:
    """Return what makes so many simulated nodes; Pods on them live `speed` times as fast.

    `stages` are looked at in their order, before the usual life of a Pod; a path is a file or folder with some in YAML.
    `seed` is where their chance comes from. Raises ConfigError.
    """
    if nodes < 0:
        raise ConfigError(f"{nodes} simulated nodes: a cluster has none or more")
    if not 0 < speed < float("inf"):
        raise ConfigError(f"speed {speed:g}: simulated Pods live some number of times faster; give one above 0")
    read = [stage for one in stages for stage in ([one] if isinstance(one, Stage) else read_stages(one))]
    return lambda setting: SimulatedFleet(setting, nodes, speed, read, seed)


class SimulatedFleet:
    """Nodes that nothing is behind.

    Simulated nodes that the cluster has from an earlier life go on, also when there are more of them.
    """

    def __init__(self, setting: Setting, nodes: int, speed: float, stages: Sequence[Stage], seed: int) -> None:
        """Nothing is made yet."""
        self._setting = setting
        self._speed = speed
        self._stages = stages
        self._seed = seed
        self._nodes = [f"node-{number}" for number in range(1, nodes + 1)]
        self._diary = Diary(speed)
        self._heartbeats: Heartbeats | None = None
        self._kubelet: SimulatedKubelet | None = None

    @property
    def controllers(self) -> Sequence[Controller[Any]]:
        """None: the kubelet hears of Pods by itself."""
        return []

    async def start(self) -> None:
        """Make the nodes, let them be heard of, and take Pods."""
        setting = self._setting
        kept = [node.metadata.name for node in await setting.client.list(Node, labels=f"{NODE_LABEL}=true")]
        wanted = iter(self._nodes)

        async def make() -> None:
            for name in wanted:
                await self._make_node(name)

        await asyncio.gather(*(make() for _ in range(min(_AT_ONCE, len(self._nodes)))))
        self._nodes = list(dict.fromkeys([*self._nodes, *kept]))
        for name in self._nodes:
            setting.kubelets.register(name, self._diary)
        self._heartbeats = Heartbeats(setting.client, setting.clock, self._nodes)
        await self._heartbeats.start()
        self._kubelet = SimulatedKubelet(
            setting, self._nodes, self._diary, speed=self._speed, stages=self._stages, seed=self._seed
        )
        self._kubelet.start()

    async def _make_node(self, name: str) -> None:
        """Make a node, take the taint off with which every new one begins, and let it be ready."""
        client, node = self._setting.client, new_node(name, self._setting.clock.now())
        place = ref(Node, name)
        with suppress(AlreadyExists):  # it was there before a restart
            await client.create(DynamicObject(node))
            await client.patch(place, MergePatch({"spec": {"taints": None}}))
            return
        await client.patch(place, MergePatch({"status": node["status"]}), subresource="status")

    async def stop(self) -> None:
        """Play no Pod any more, and let nothing be heard of the nodes."""
        if self._kubelet is not None:
            await self._kubelet.stop()
        if self._heartbeats is not None:
            await self._heartbeats.stop()
        for name in self._nodes:
            self._setting.kubelets.leave(name, self._diary)
