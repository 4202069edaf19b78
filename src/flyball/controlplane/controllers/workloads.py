"""Workload controllers, scheduler and kubelets at work on one cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

from flyball.client import Client
from flyball.client.transport import Transport
from flyball.clock import Clock
from flyball.controller.running import RunningController
from flyball.controller.runtime import ControllerRuntime
from flyball.controlplane.apiserver.kubelets import Kubelets
from flyball.controlplane.controllers.catalogue import CATALOGUE, EVERYTHING, chosen
from flyball.controlplane.controllers.unheard import unheard
from flyball.controlplane.kubelet.fleet import Fleet, MakeFleet, Setting
from flyball.controlplane.scheduler import Scheduler

__all__ = ["Workloads"]


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
        client = Client(transport=transport, field_manager="kube-controller-manager", on_warning=unheard)
        self._runtime = ControllerRuntime.of(client, clock=clock)
        self._chosen = chosen(controllers)
        self._scheduling = scheduling
        known = kubelets if kubelets is not None else Kubelets()
        setting = Setting(client, clock, self._runtime.cache, self._runtime.recorder, known)
        self._fleet: Fleet | None = fleet(setting) if fleet is not None else None
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        """Make the nodes and begin to work; returns when everything that is there is known."""
        runtime = self._runtime
        async with AsyncExitStack() as stack:
            stack.push_async_callback(runtime.cache.stop)
            parts: list[Scheduler | RunningController[Any]] = []
            if self._fleet is not None:
                stack.push_async_callback(self._fleet.stop)
                await self._fleet.start()
                parts += [one.bind(runtime) for one in self._fleet.controllers]
            parts += [one.bind(runtime) for name in self._chosen for one in CATALOGUE[name](runtime.client)]
            if self._scheduling:
                parts.append(Scheduler(runtime.client, runtime.cache, runtime.recorder, runtime.clock))
            stack.push_async_callback(runtime.recorder.stop)
            for part in parts:
                stack.push_async_callback(part.stop)
                part.prepare()
            await runtime.cache.start()
            await asyncio.gather(*(part.start() for part in parts))
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
