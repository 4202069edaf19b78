"""Testing: what an operator's tests stand on.

- `eventually`, `consistently`: wait for a state of the world, with a message that shows what was seen instead.
- `Cluster`: an embedded cluster in this process, a few milliseconds each; fixtures `cluster` and `cluster_server`.
- `running`: controllers at work, on any cluster; `cluster.running(...)` is the same on the embedded one.
- `RealCluster`: etcd, kube-apiserver and kube-controller-manager on loopback; `python -m flyball.testing.realcluster`
  gives one to a person. Programs come from `make real-control-plane` or `$KUBEBUILDER_ASSETS` (`binaries`).
- `nodes`: our scheduler and simulated kubelet at work on any cluster, a real one too.
- `cutting`: a process that dies before or after any of its writes, for crash matrices.
- `plugin`: the pytest plugin: the fixtures `real_cluster` and `real_cluster_with_nodes`, the mark `real` and the option
  `--real`.

Promises: a test never leaves a process behind, also after kill -9 of pytest (`processes`); everything listens on
loopback only. To read: eventually, cluster with record, realcluster, processes with the supervisor that it starts,
certificates, plugin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flyball.testing.eventually import NeverHappened, consistently, eventually

if TYPE_CHECKING:
    from flyball.testing.at_work import install, running
    from flyball.testing.cluster import Cluster
    from flyball.testing.realcluster import RealCluster

__all__ = ["Cluster", "NeverHappened", "RealCluster", "consistently", "eventually", "install", "running"]


def __getattr__(name: str) -> Any:
    """The clusters are imported when they are used."""
    if name == "Cluster":
        from flyball.testing.cluster import Cluster

        return Cluster
    if name == "RealCluster":
        from flyball.testing.realcluster import RealCluster

        return RealCluster
    if name in {"install", "running"}:
        import importlib

        return getattr(importlib.import_module("flyball.testing.at_work"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
