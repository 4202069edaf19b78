"""The servers that the recorded cases are played against."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tools.differential.target import Target
from tools.differential.worlds import real_control_plane

from flyball.testing.binaries import BinariesMissing, find_binaries


@pytest.fixture(scope="session")
def real_target() -> Iterator[Target]:
    """A real kube-apiserver without controllers, as it was when the answers were recorded."""
    try:
        binaries = find_binaries()
    except BinariesMissing as missing:
        pytest.skip(str(missing))
    from flyball.testing.realcluster import RealCluster

    with RealCluster(controllers=False, binaries=binaries) as cluster:
        target = Target.from_kubeconfig(cluster.kubeconfig, cluster.kubeconfig_for)
        yield target
        target.close()


@pytest.fixture(scope="session")
def real_controllers() -> Iterator[Target]:
    """A real kube-apiserver with kube-controller-manager, as it was when the stories were recorded."""
    try:
        find_binaries()
    except BinariesMissing as missing:
        pytest.skip(str(missing))
    with real_control_plane() as cluster:
        target = Target.from_kubeconfig(cluster.kubeconfig)
        yield target
        target.close()
