"""What tests of streams share: a client by either way in, and a kubelet that really runs things."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.support.testkubelet import Kubelet, start_pod

from flyball.client import Client
from flyball.testing import Cluster


@pytest.fixture(params=["in-process", "tls"])
async def client(request: pytest.FixtureRequest, cluster: Cluster) -> AsyncIterator[Client]:
    if request.param == "in-process":
        yield Client(transport=cluster.transport, retry=None)
        return
    async with Client(cluster.config, retry=None) as client:
        yield client


@pytest.fixture
async def kubelet(cluster: Cluster) -> Kubelet:
    kubelet = Kubelet()
    await start_pod(cluster.embedded.server, cluster.client, kubelet, "web")
    return kubelet
