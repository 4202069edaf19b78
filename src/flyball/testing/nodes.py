"""Nodes of the simulation on any cluster: our scheduler binds Pods to them, our simulated kubelet plays those Pods.

    with RealCluster(controllers=BESIDE_PLAYED_NODES) as cluster, PlayedNodes(cluster.config):
        ...                                   # Jobs and Deployments of kube-controller-manager progress

They work in a thread of their own, in real time, so they serve tests with and without an event loop. What happens to a
Pod is what `flyball.controlplane.kubelet` says, its annotations included.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from flyball.client.http_transport import HttpTransport
from flyball.clock import RealClock
from flyball.controlplane.controllers.workloads import Workloads
from flyball.controlplane.kubelet.simulated import Stage, simulated

if TYPE_CHECKING:
    from flyball.client.config import ClusterConfig

__all__ = ["BESIDE_PLAYED_NODES", "PlayedNodes"]

BESIDE_PLAYED_NODES: Final = "*,-node-lifecycle-controller"
"""The controllers that a real control plane runs beside played nodes: none that misses the heartbeat of a kubelet."""


class PlayedNodes:
    """So many nodes at work on the cluster that `config` leads to, while the block lasts."""

    def __init__(self, config: ClusterConfig, *, nodes: int = 1, stages: Sequence[Stage | Path] = ()) -> None:
        """Nothing runs yet; `stages` say how Pods live instead of as usual."""
        self._config = config
        self._fleet = simulated(nodes=nodes, stages=stages)
        self._begun: Future[None] = Future()
        self._end: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="played-nodes", daemon=True)

    def __enter__(self) -> Self:
        """Make the nodes; return when Pods are taken."""
        self._thread.start()
        self._begun.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish what is under way. The nodes stay, and nobody plays them."""
        if self._loop is not None and self._end is not None:
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    async def _live(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        transport = HttpTransport(self._config)
        try:
            async with Workloads(transport, RealClock(), fleet=self._fleet, controllers=()):
                self._begun.set_result(None)
                await self._end.wait()
        except BaseException as error:
            if self._begun.done():
                raise
            self._begun.set_exception(error)
        finally:
            await transport.close()
