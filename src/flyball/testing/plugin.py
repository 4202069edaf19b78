"""The pytest plugin of Flyball.

- Option `--real` and mark `real`: marked tests need a real control plane; without the option they are deselected.
- Fixture `real_cluster` (session): a running `RealCluster`. With xdist each worker has one of its own, so tests of one
  worker may restart or compact theirs. Where the programs are missing, the tests that ask for it are skipped in one
  line.
- Fixture `real_cluster_with_nodes` (session): another one, on which our scheduler and simulated kubelet play Pods, so
  that what kube-controller-manager makes of Jobs and Deployments progresses.
- Fixture `cluster`: an embedded cluster (`flyball.testing.Cluster`) of the test's own, in the event loop of an
  asynchronous test, otherwise in a thread.
- Fixture `cluster_server`: the same with its door to the network open (TLS, loopback), always in a thread: for
  programs and clients that block.
- Mark `capability("ID")`: the promise that a test keeps.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from flyball.testing.binaries import BinariesMissing, find_binaries

if TYPE_CHECKING:
    from flyball.testing.cluster import Cluster
    from flyball.testing.realcluster import RealCluster

__all__: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--real`."""
    group = parser.getgroup("flyball")
    group.addoption("--real", action="store_true", help="run the tests that need a real control plane (mark: real)")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks."""
    config.addinivalue_line("markers", "capability(id): the promise that this test keeps")
    config.addinivalue_line("markers", "real: needs a real control plane; runs with --real")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests marked `real`, unless `--real` was given."""
    if config.getoption("--real"):
        return
    left_out = [item for item in items if item.get_closest_marker("real")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("real")]


@pytest.fixture(scope="session")
def real_cluster() -> Iterator[RealCluster]:
    """A running real control plane, shared by the session's tests: use a namespace of your own in it."""
    try:
        binaries = find_binaries()
        binaries.path("kube-controller-manager")
    except BinariesMissing as missing:
        pytest.skip(str(missing))
    from flyball.testing.realcluster import RealCluster

    with RealCluster(binaries=binaries) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def real_cluster_with_nodes() -> Iterator[RealCluster]:
    """A running real control plane whose Pods are bound and played by the simulation; one of its own.

    Use a namespace of your own in it. A Pod lives as `flyball.controlplane.kubelet` says.
    """
    try:
        binaries = find_binaries()
        binaries.path("kube-controller-manager")
    except BinariesMissing as missing:
        pytest.skip(str(missing))
    from flyball.testing.nodes import BESIDE_PLAYED_NODES, PlayedNodes
    from flyball.testing.realcluster import RealCluster

    with RealCluster(binaries=binaries, controllers=BESIDE_PLAYED_NODES) as cluster, PlayedNodes(cluster.config):
        yield cluster


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """An embedded cluster of the test's own, in the test's event loop if it has one."""
    from flyball.testing.cluster import Cluster

    test = getattr(request.node, "obj", None)
    if not inspect.iscoroutinefunction(test):
        with Cluster() as running:
            yield running
        return
    waiting = Cluster()  # it starts with its first request, in the event loop of the test
    yield waiting
    waiting.abandon()


@pytest.fixture
def cluster_server() -> Iterator[Cluster]:
    """An embedded cluster of the test's own that listens on loopback, over TLS."""
    from flyball.testing.cluster import Cluster

    with Cluster() as running:
        _ = running.kubeconfig
        yield running
