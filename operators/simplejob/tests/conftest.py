"""What the tests share: worlds for the operator."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from flyball.client import Client
from flyball.clock import ManualClock, RealClock
from flyball.k8s.core.v1 import Namespace, ServiceAccount
from flyball.testing import Cluster, RealCluster, eventually
from flyball.testing.binaries import BinariesMissing, find_binaries

from simplejob.api import SimpleJob

from .playing import World


@pytest.fixture(scope="session")
def real_api() -> Iterator[RealCluster]:
    """A real control plane that leaves Jobs to the tests."""
    try:
        binaries = find_binaries()
        binaries.path("kube-controller-manager")
    except BinariesMissing as missing:
        pytest.skip(str(missing))
    flags = ["--enable-admission-plugins=OwnerReferencesPermissionEnforcement"]
    with RealCluster(binaries=binaries, controllers="*,-job-controller", apiserver_flags=flags) as cluster:
        yield cluster


@pytest.fixture(params=["box", pytest.param("real", marks=pytest.mark.real)])
async def world(request: pytest.FixtureRequest) -> AsyncGenerator[World]:
    """A world of the test's own: on the box, and on a real API server."""
    if request.param == "box":
        async with _box() as world:
            yield world
        return
    real: RealCluster = request.getfixturevalue("real_api")
    async with Client(real.config) as client, namespace(client) as name:
        yield World(client, name, RealClock())


@asynccontextmanager
async def _box() -> AsyncGenerator[World]:
    clock = ManualClock()
    async with Cluster(clock=clock) as cluster:
        yield World(cluster.client, "default", clock, cluster)


@pytest.fixture
def box_of() -> Callable[[], AbstractAsyncContextManager[World]]:
    """Makes worlds on the box."""
    return _box


@pytest.fixture
async def box() -> AsyncGenerator[World]:
    """A world on the box."""
    async with _box() as world:
        yield world


class namespace:
    """A namespace of the test's own, without a SimpleJob afterwards."""

    def __init__(self, client: Client) -> None:
        self.client, self.name = client, f"test-{uuid.uuid4().hex[:10]}"

    async def __aenter__(self) -> str:
        await self.client.create(Namespace.new(self.name))
        await eventually(lambda: self.client.get(ServiceAccount, "default", namespace=self.name))
        return self.name

    async def __aexit__(self, *_: object) -> None:
        await self.client.delete_collection(SimpleJob, namespace=self.name)
        await self.client.delete(Namespace, self.name, propagation="Background")
