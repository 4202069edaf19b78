"""The cache on the embedded cluster, as a program uses it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random

import pytest

from flyball.api import crd_of
from flyball.cache import AllExcept, CacheEvent, CacheOptions, DeltaQueue, InformerCache, Reflector, Store, by_label
from flyball.client import Client, MergePatch, dynamic, metadata_of, ref
from flyball.controlplane.cluster import EmbeddedCluster
from flyball.k8s.core.v1 import ConfigMap, Namespace
from flyball.testing.eventually import eventually

pytestmark = pytest.mark.capability("S11")


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster() as cluster:
        yield cluster


@pytest.fixture
def client(cluster: EmbeddedCluster) -> Client:
    return Client(transport=cluster.transport, field_manager="test", namespace="default")


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_store_follows_the_server(client: Client, streaming: bool) -> None:
    for number in range(25):
        await client.create(ConfigMap.new(f"c{number}", data={"n": str(number)}))
    cache = InformerCache(client, defaults=CacheOptions(page_size=10, streaming=streaming))
    informer = cache.informer(ConfigMap)
    informer.add_index("app", by_label("app"))
    told: list[CacheEvent] = []
    informer.add_handler(told.append)
    async with cache:
        await cache.wait_synced()
        assert len(told) == len(informer.list()) >= 25
        made = await client.create(ConfigMap.new("new", labels={"app": "web"}))
        cache.note_write(made, base="")
        assert [found.metadata.name for found in informer.by_index("app", "web")] == ["new"]
        await client.delete(ConfigMap, "c3")
        await eventually(lambda: informer.store.get(("default", "c3")), lambda found: found is None)
        await eventually(lambda: [(e.type, e.key[1], e.own) for e in told][-2:], _are_the_two)
        found = await cache.get(dynamic("v1", "ConfigMap"), "c4")
        assert found is not None
        assert found["data"] == {"n": "4"}


def _are_the_two(events: list[tuple[str, str, bool]]) -> bool:
    return events == [("added", "new", True), ("deleted", "c3", False)]


async def test_metadata_only_and_other_namespaces(client: Client) -> None:
    await client.create(Namespace.new("other"))
    for namespace in ("default", "other"):
        await client.create(ConfigMap.new("a", namespace=namespace, data={"big": "x" * 1000}))
    cache = InformerCache(client)
    cache.configure(
        ConfigMap, CacheOptions(metadata_only=True, namespaces=AllExcept(["kube-system", "kube-public", "default"]))
    )
    informer = cache.informer(metadata_of(ConfigMap))
    async with cache:
        await cache.wait_synced()
        (held,) = [obj for obj in informer.peek_list() if obj.name == "a"]
        assert held.namespace == "other"
        assert b"xxx" not in held.raw


async def test_the_parts_alone(client: Client) -> None:
    """The flow by hand: reflector, queue, store."""
    await client.create(ConfigMap.new("a"))
    store = Store()
    queue = DeltaQueue(store)
    task = asyncio.create_task(Reflector(client, ConfigMap, queue, namespace="default").run())
    seen: list[str] = []
    await client.create(ConfigMap.new("b"))
    while {"a", "b"} - set(seen):
        await queue.wait()
        while len(queue):
            key, deltas = queue.pop()
            for delta in deltas:
                store.remove(key) if delta.type == "deleted" else store.put(delta.object)
                seen.append(key[1])
    assert queue.has_synced
    assert store.get(("default", "b")) is not None
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_kind_that_comes_later(cluster: EmbeddedCluster, client: Client) -> None:
    from tests.support.widgets import Widget

    from flyball.api import DynamicObject

    cache = InformerCache(client)
    informer = cache.informer(Widget)
    async with cache:
        await eventually(lambda: informer.health, lambda health: health.not_served)
        await client.create(DynamicObject(crd_of(Widget)))
        await eventually(lambda: client.create(Widget.new("w")))
        await cache.wait_synced()
        await eventually(lambda: informer.get("w", "default"), lambda found: found is not None)
        assert informer.health.ok


async def test_labels_are_found_as_the_server_finds_them(client: Client) -> None:
    random = Random(7)
    cache = InformerCache(client)
    cache.informer(ConfigMap)
    names, queries = [f"c{number}" for number in range(8)], [{"app": "a"}, {"app": "b", "tier": "x"}, "tier in (x),app"]

    def labels() -> dict[str, str]:
        return {key: random.choice("abx") for key in ("app", "tier") if random.random() < 0.8}

    async def compare() -> None:
        for query in queries:
            served = await client.list(ConfigMap, namespace="default", labels=query)
            cached = await cache.list(ConfigMap, namespace="default", labels=query)
            assert sorted(one.metadata.name for one in cached) == sorted(one.metadata.name for one in served), query
            assert await cache.list(ConfigMap, namespace="elsewhere", labels=query) == []

    async with cache:
        await cache.wait_synced()
        for _ in range(60):
            name = random.choice(names)
            if await cache.get(ConfigMap, name) is None:
                cache.note_write(await client.create(ConfigMap.new(name, labels=labels())), base="")
            elif random.random() < 0.3:
                await client.delete(ConfigMap, name)
                cache.note_delete(ConfigMap, name, "default")
            else:
                patch = MergePatch({"metadata": {"labels": {"app": None, "tier": None, **labels()}}})
                cache.note_write(await client.patch(ref(ConfigMap, name), patch))
            await compare()
            if random.random() < 0.3:
                await asyncio.sleep(0)
        many = [await cache.list(ConfigMap, labels={f"key-{number}": "x"}) for number in range(20)]
        assert many == [[]] * 20
        assert len(cache.informer(ConfigMap).store.indexes) <= 8
