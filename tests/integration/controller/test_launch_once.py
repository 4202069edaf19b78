"""The example launch-once: one instance, wherever the operator dies and whatever the cloud loses."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from examples.fake_cloud import FakeCloud
from examples.launch_once import Cloud, Instance, InstanceWorkspace, launch_once
from tests.integration.controller.harness import DEFAULT, gone, install, running

from flyball.client import Client
from flyball.clock import ManualClock
from flyball.testing import eventually
from flyball.testing.cluster import Cluster
from flyball.testing.cutting import Cut, When


class CutCloud(Cloud):
    """The way of one process to the cloud; it ends with the process."""

    def __init__(self, url: str, cut: Cut) -> None:
        super().__init__(url)
        self._cut = cut

    async def request(self, method: str, path: str, body: Any = None) -> Any:
        send = super().request
        return await self._cut.act(f"cloud {method}", lambda: send(method, path, body))


async def ready(client: Client) -> Instance:
    return await eventually(
        lambda: client.get(Instance, "web", namespace=DEFAULT), lambda one: one.status.is_true("Ready")
    )


async def life(point: int, when: When) -> tuple[Cut, int]:
    """The life of one object with one death; answers the process and how many instances were launched in all."""
    async with Cluster() as cluster, FakeCloud() as service:
        client = cluster.client
        await install(client, Instance, InstanceWorkspace)
        await client.create(Instance.new("web", namespace=DEFAULT))
        phase = ["create"]

        async def story() -> None:
            if phase[0] == "create":
                found = await ready(client)
                assert found.status.id == "i-1"
                assert list(service.instances) == ["i-1"]
                phase[0] = "delete"
                await client.delete(Instance, "web", namespace=DEFAULT)
            await eventually(lambda: gone(client, Instance, "web"))

        async def process(cut: Cut) -> None:
            async with running(cut, launch_once(CutCloud(service.url, cut)), grace=0):
                telling, dying = asyncio.ensure_future(story()), asyncio.ensure_future(cut.dead.wait())
                await asyncio.wait([telling, dying], return_when=asyncio.FIRST_COMPLETED)
                for one in (telling, dying):
                    one.cancel()
                results = await asyncio.gather(telling, dying, return_exceptions=True)
                if not cut.dead.is_set() and isinstance(results[0], Exception):
                    raise results[0]

        first = Cut(cluster.transport, point, when)
        await process(first)
        if first.dead.is_set():
            await process(Cut(cluster.transport))
        assert await gone(client, Instance, "web")
        assert service.instances == {}
        return first, service.launched


@pytest.mark.capability("S17")
async def test_exactly_one_wherever_the_operator_dies() -> None:
    whole, launched = await life(0, "before")
    assert launched == 1
    assert "cloud POST" in whole.acts
    for point in range(1, len(whole.acts) + 1):
        for when in ("before", "after"):
            cut, launched = await life(point, when)
            assert cut.dead.is_set(), whole.acts[point - 1]
            assert launched == 1, f"cut {when} {whole.acts[point - 1]}"


@pytest.mark.capability("S17")
async def test_lost_answers_and_a_lost_notebook(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Instance, InstanceWorkspace)
    async with FakeCloud() as service:
        service.lose_answers = 3
        async with running(cluster.transport, launch_once(Cloud(service.url))):
            await client.create(Instance.new("web", namespace=DEFAULT))
            await ready(client)
        assert service.launched == 1
        await client.delete(InstanceWorkspace.resource_type, "web", namespace=DEFAULT)
        async with running(cluster.transport, launch_once(Cloud(service.url))):
            await eventually(lambda: client.get(InstanceWorkspace.resource_type, "web", namespace=DEFAULT))
        assert service.launched == 1


async def test_an_instance_that_vanishes_is_told_and_not_launched_again(cluster: Cluster) -> None:
    client, clock = cluster.client, ManualClock()
    await install(client, Instance, InstanceWorkspace)
    async with (
        FakeCloud() as service,
        running(cluster.transport, launch_once(Cloud(service.url)), clock=clock) as (run,),
    ):
        await client.create(Instance.new("web", namespace=DEFAULT))
        await ready(client)
        await eventually(lambda: run.queue.delayed == 1)
        service.instances.clear()
        await clock.advance(60)
        found = await eventually(
            lambda: client.get(Instance, "web", namespace=DEFAULT), lambda one: one.status.is_false("Ready")
        )
        assert found.status.id == "i-1"
    assert service.launched == 1
