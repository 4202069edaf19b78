"""The worlds as fixtures.

A test that asks for `world` is played without controllers of workloads (`bare`), with them (`box`), and on a real
control plane whose pods are simulated (`real`); there the operator is the account that config/rbac makes, with the
rights that it gives and no others. `box` and `bare` give one of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import pytest
from flyball.client import Client
from flyball.client.config import load_config
from flyball.clock import ManualClock, RealClock
from flyball.controlplane.apiserver.request import User
from flyball.controlplane.inprocess import InProcess
from flyball.k8s.core.v1 import Namespace, ServiceAccount
from flyball.testing import Cluster, eventually, install
from flyball.testing.realcluster import RealCluster

from myownshell.api import MyOwnShell

from .world import ACCOUNT, USER, World, documents

_numbers = count(1)


@asynccontextmanager
async def in_the_box(*, workloads: bool) -> AsyncGenerator[World]:
    clock = ManualClock()
    async with Cluster(clock=clock, workloads=workloads) as cluster:
        await install(cluster.client, MyOwnShell)
        mine = InProcess(cluster.embedded.server, User(USER, ("system:authenticated",)))
        yield World(
            cluster.client,
            clock,
            "default",
            lambda: cluster.kubeconfig,
            cluster,
            workloads,
            lambda cut: Client(transport=mine, retry=None, interceptors=cut),
        )


@asynccontextmanager
async def on_the_real_one(real: RealCluster) -> AsyncGenerator[World]:
    async with Client(real.config) as client:
        rights = load_config(real.kubeconfig_for(ACCOUNT, ["system:serviceaccounts", "system:authenticated"]))
        name = f"shells-{next(_numbers)}"
        await client.create(Namespace.new(name))
        await eventually(lambda: client.get(ServiceAccount, "default", namespace=name), timeout=30)
        try:
            yield World(
                client,
                RealClock(),
                name,
                lambda: real.kubeconfig,
                None,
                True,
                lambda cut: Client(rights, interceptors=cut),
            )
        finally:
            await client.delete_collection(MyOwnShell, namespace=name)
            for shell in await client.list(MyOwnShell, namespace=name):
                shell.metadata.finalizers = []
                await client.patch(shell)
            await client.delete(Namespace, name)


@pytest.fixture
async def bare() -> AsyncIterator[World]:
    """The API server and nothing else: the test plays the rest."""
    async with in_the_box(workloads=False) as world:
        yield world


@pytest.fixture
async def box() -> AsyncIterator[World]:
    """Everything in the box."""
    async with in_the_box(workloads=True) as world:
        yield world


@pytest.fixture(scope="session")
def real_cluster_with_shells(real_cluster_with_nodes: RealCluster) -> RealCluster:
    """With the kind and the roles. Its garbage collector learns of a kind when it starts, or half a minute later."""

    async def prepare() -> None:
        async with Client(real_cluster_with_nodes.config) as client:
            await install(client, MyOwnShell)
            for one in documents("rbac"):
                await client.apply(one, field_manager="test", force=True)

    asyncio.run(prepare())
    real_cluster_with_nodes.stop_controllers()
    real_cluster_with_nodes.start_controllers()
    return real_cluster_with_nodes


@pytest.fixture
async def real(real_cluster_with_shells: RealCluster) -> AsyncIterator[World]:
    """A real control plane; for tests marked so."""
    async with on_the_real_one(real_cluster_with_shells) as world:
        yield world


@pytest.fixture(params=["bare", "box", pytest.param("real", marks=pytest.mark.real)])
def world(request: pytest.FixtureRequest) -> World:
    """Each of the worlds in turn."""
    found: World = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["box", pytest.param("real", marks=pytest.mark.real)])
def whole(request: pytest.FixtureRequest) -> World:
    """The worlds in which Deployments progress."""
    found: World = request.getfixturevalue(request.param)
    return found
