"""The Python clients of other people: the same scripts against the embedded API server and against a real one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integration.clients.environment import clients_python
from tests.integration.clients.playing import look_around, play

from flyball.sync import Client
from flyball.testing import Cluster, RealCluster
from flyball.testing.binaries import BinariesMissing, find_binaries

CLIENTS = ("official", "asyncio_client", "lightkube_client", "kr8s_client")


@pytest.mark.parametrize("script", CLIENTS)
def test_a_client_works_with_the_embedded_server(cluster_server: Cluster, script: str) -> None:
    left = play(clients_python(), script, cluster_server.kubeconfig)
    look_around(cluster_server.sync, left)
    broken = [request for request in cluster_server.requests if request.status >= 500]
    assert broken == []


@pytest.fixture(scope="module")
def quiet_server() -> Iterator[RealCluster]:
    """A real server that collects garbage and rolls nothing out: that would write into what the scripts compare."""
    try:
        binaries = find_binaries()
    except BinariesMissing as missing:
        pytest.skip(str(missing))
    with RealCluster(controllers="*,-deployment-controller", binaries=binaries) as cluster:
        yield cluster


@pytest.mark.real
@pytest.mark.parametrize("script", CLIENTS)
def test_a_client_works_with_a_real_server(quiet_server: RealCluster, script: str) -> None:
    left = play(clients_python(), script, quiet_server.kubeconfig)
    with Client(quiet_server.config) as client:
        look_around(client, left)
