"""The cache on a real API server that is restarted, compacted, and whose kinds come and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.support.realclient import CRDS, client_of, widgets_are_served
from tests.support.widgets import Widget, WidgetSpec

from flyball.cache import CacheEvent, CacheOptions, InformerCache
from flyball.client import Client
from flyball.k8s.core.v1 import ConfigMap
from flyball.testing.eventually import eventually
from flyball.testing.realcluster import RealCluster

pytestmark = pytest.mark.real


@pytest.fixture
async def client(real_cluster: RealCluster) -> AsyncIterator[Client]:
    async with client_of(real_cluster) as client:
        yield client


@pytest.mark.capability("C19")
@pytest.mark.parametrize("streaming", [False, True])
async def test_first_state_and_changes(client: Client, streaming: bool) -> None:
    await asyncio.gather(*(client.create(ConfigMap.new(f"c{number}", labels={"mine": ""})) for number in range(25)))
    cache = InformerCache(client, defaults=CacheOptions(page_size=10, streaming=streaming))
    informer = cache.informer(ConfigMap, namespace=client.namespace, labels="mine")
    told: list[CacheEvent] = []
    informer.add_handler(told.append)
    async with cache:
        await cache.wait_synced()
        assert len(told) == 25
        assert all(b"managedFields" not in obj.raw for obj in informer.peek_list())
        changed = await client.get(ConfigMap, "c1")
        changed.data = {"x": "1"}
        with cache.writing(ConfigMap, "c1", client.namespace, base=changed.metadata.resource_version) as write:
            write.done(await client.update(changed))
        found = informer.get("c1")
        assert found is not None
        assert found.data == {"x": "1"}
        await client.delete(ConfigMap, "c2")
        await eventually(lambda: [(event.type, event.own) for event in told[25:]], _an_own_update_and_a_delete)


def _an_own_update_and_a_delete(events: list[tuple[str, bool]]) -> bool:
    return events == [("updated", True), ("deleted", False)]


@pytest.mark.parametrize("how", ["restart", "compact"])
async def test_a_server_that_goes_away_and_forgets(real_cluster: RealCluster, client: Client, how: str) -> None:
    await client.create(ConfigMap.new("before"))
    cache = InformerCache(client)
    informer = cache.informer(ConfigMap, namespace=client.namespace)
    gone: list[str] = []
    informer.add_handler(lambda event: gone.append(event.key[1]) if event.type == "deleted" else None)
    async with cache:
        await cache.wait_synced()
        await asyncio.to_thread(real_cluster.restart_apiserver if how == "restart" else real_cluster.compact)
        await client.delete(ConfigMap, "before")
        await client.create(ConfigMap.new("after"))
        await eventually(lambda: informer.get("after"), lambda found: found is not None, timeout=60)
        await eventually(lambda: gone, lambda names: "before" in names, timeout=60)
        await eventually(lambda: informer.health, lambda health: health.ok, timeout=60)


async def test_a_kind_that_is_deleted_and_made_again(client: Client) -> None:
    await widgets_are_served(client)
    cache = InformerCache(client)
    informer = cache.informer(Widget)
    async with cache:
        await cache.wait_synced()
        await client.create(Widget.new("one", spec=WidgetSpec(size=1)))
        await eventually(lambda: informer.get("one", client.namespace), lambda found: found is not None)
        await client.delete(CRDS, "widgets.example.org")
        await eventually(lambda: informer.health, lambda health: health.not_served, timeout=60)
        await widgets_are_served(client)
        await eventually(lambda: client.create(Widget.new("two", spec=WidgetSpec(size=2))), timeout=60)
        await eventually(lambda: informer.get("two", client.namespace), lambda found: found is not None, timeout=60)
        assert informer.get("one", client.namespace) is None
        await eventually(lambda: informer.health, lambda health: health.ok, timeout=60)
