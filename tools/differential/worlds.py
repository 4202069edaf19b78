"""Where stories happen: a real control plane without nodes, or the embedded one on a clock that is turned by hand."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from flyball.client import Client
from flyball.clock import ManualClock
from flyball.controlplane.controllers.catalogue import CATALOGUE
from flyball.controlplane.controllers.unheard import unheard
from flyball.manager.manager import Manager
from flyball.manager.options import Options
from flyball.testing.cluster import Cluster
from flyball.testing.realcluster import RealCluster
from tools.differential.target import Target

__all__ = ["World", "embedded_world", "real_control_plane", "real_world"]

NOT_WANTED = (
    "node-lifecycle-controller",
    "persistentvolume-binder-controller",
    "pod-garbage-collector-controller",
    "taint-eviction-controller",
)
"""They would take away Pods whose node nobody has seen; and nobody binds claims in the embedded cluster."""

_QUIET = Options(health_port=-1, metrics_port=-1, max_block=0.0, memory_growth=0.0)


class World(Protocol):
    """A server whose controllers are at work, and its time."""

    @property
    def target(self) -> Target:
        """The server, for one thread."""
        ...

    def now(self) -> datetime:
        """The time of day by the clock of the controllers."""
        ...

    def pass_time(self, seconds: float) -> None:
        """Let so much time go by."""
        ...

    def version(self) -> str | None:
        """Something that changes with every change of the world; None where nobody knows that."""
        ...


@dataclass(frozen=True, slots=True)
class _Real:
    target: Target

    def now(self) -> datetime:
        return datetime.now(UTC)

    def pass_time(self, seconds: float) -> None:
        time.sleep(seconds)

    def version(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class _Embedded:
    target: Target
    cluster: Cluster
    clock: ManualClock

    def now(self) -> datetime:
        return self.clock.now()

    def pass_time(self, seconds: float) -> None:
        self.cluster.run(self.clock.advance(seconds))

    def version(self) -> str:
        return str(self.cluster.embedded.store.revision)


@contextmanager
def real_control_plane(*without: str) -> Generator[RealCluster]:
    """A real kube-apiserver and kube-controller-manager that leave Pods on unknown nodes alone, and do not dawdle.

    `without` names controllers that are not to run: somebody else plays them.
    """
    wanted = ",".join(["*", *(f"-{name}" for name in (*NOT_WANTED, *without))])
    flags = ["--kube-api-qps=500", "--kube-api-burst=1000"]
    with RealCluster(controllers=wanted, controller_flags=flags) as cluster:
        yield cluster


@contextmanager
def real_world(target: Target) -> Generator[World]:
    """A world of real seconds, over a connection of its own."""
    mine = target.another()
    try:
        yield _Real(mine)
    finally:
        mine.close()


@contextmanager
def embedded_world() -> Generator[World]:
    """A cluster in this process: all workload controllers, no scheduler, no kubelet, and time that stands still."""
    clock = ManualClock()
    with Cluster(clock=clock) as cluster:
        client = Client(transport=cluster.transport, field_manager="kube-controller-manager", on_warning=unheard)
        parts = [one for make in CATALOGUE.values() for one in make(client)]
        manager = Manager(client, controllers=parts, leader_election=False, options=_QUIET, clock=clock)
        cluster.run(manager.__aenter__())
        target = Target.from_kubeconfig(cluster.kubeconfig_for("flyball-admin", ("system:masters",)))
        try:
            yield _Embedded(target, cluster, clock)
        finally:
            target.close()
            cluster.run(manager.__aexit__(None, None, None))
