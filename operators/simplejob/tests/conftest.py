"""What the tests share: worlds for the operator."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import yaml
from flyball.api import DynamicObject
from flyball.client import Client
from flyball.client.config import load_config
from flyball.clock import ManualClock, RealClock
from flyball.k8s.core.v1 import Namespace, ServiceAccount
from flyball.testing import Cluster, RealCluster, eventually
from flyball.testing.binaries import BinariesMissing, find_binaries

from simplejob.api import SimpleJob

from .playing import World

CONFIG = Path(__file__).parents[1] / "config"
ACCOUNT = "system:serviceaccount:simplejob-system:simplejob"
"""Whom config/rbac gives its rights."""


def documents(folder: str) -> Iterator[DynamicObject]:
    """Everything in the files of a folder of config, in the order of `kubectl apply -f`."""
    for path in sorted((CONFIG / folder).glob("*.yaml")):
        for one in yaml.safe_load_all(path.read_text()):
            yield DynamicObject(one)


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
    """A world of the test's own: on the box, and on a real API server with the rights of config/rbac and no others."""
    if request.param == "box":
        async with _box() as world:
            yield world
        return
    real: RealCluster = request.getfixturevalue("real_api")
    async with Client(real.config) as client, namespace(client) as name:
        for one in documents("rbac"):
            await client.apply(one, field_manager="test", force=True)
        rights = load_config(real.kubeconfig_for(ACCOUNT, ["system:serviceaccounts", "system:authenticated"]))
        async with Client(rights) as limited:
            yield World(client, name, RealClock(), rights=limited)


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
