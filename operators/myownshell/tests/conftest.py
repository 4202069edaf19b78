"""The worlds as fixtures.

A test that asks for `world` is played without controllers of workloads (`bare`), with them (`box`), and on a real
control plane whose pods are simulated (`real`). `box` and `bare` give one of them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import pytest
from flyball.client import Client
from flyball.clock import ManualClock, RealClock
from flyball.k8s.core.v1 import Namespace, ServiceAccount
from flyball.testing import Cluster, eventually, install
from flyball.testing.realcluster import RealCluster

from myownshell.api import MyOwnShell

from .world import USER, World

_numbers = count(1)


@asynccontextmanager
async def in_the_box(*, workloads: bool) -> AsyncGenerator[World]:
    clock = ManualClock()
    async with Cluster(clock=clock, workloads=workloads) as cluster:
        await install(cluster.client, MyOwnShell)
        mine = cluster.client_as(USER)
        yield World(cluster.client, clock, "default", lambda: cluster.kubeconfig, cluster, workloads, mine)


@asynccontextmanager
async def on_the_real_one(real: RealCluster) -> AsyncGenerator[World]:
    async with Client(real.config) as client:
        await install(client, MyOwnShell)
        name = f"shells-{next(_numbers)}"
        await client.create(Namespace.new(name))
        await eventually(lambda: client.get(ServiceAccount, "default", namespace=name), timeout=30)
        try:
            yield World(client, RealClock(), name, lambda: real.kubeconfig, None, True, client)
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


@pytest.fixture(params=["bare", "box", pytest.param("real", marks=pytest.mark.real)])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """Each of the worlds in turn."""
    if request.param == "real":
        async with on_the_real_one(request.getfixturevalue("real_cluster_with_nodes")) as found:
            yield found
        return
    async with in_the_box(workloads=request.param == "box") as found:
        yield found


@pytest.fixture(params=["box", pytest.param("real", marks=pytest.mark.real)])
async def whole(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """The worlds in which Deployments progress."""
    if request.param == "real":
        async with on_the_real_one(request.getfixturevalue("real_cluster_with_nodes")) as found:
            yield found
        return
    async with in_the_box(workloads=True) as found:
        yield found
