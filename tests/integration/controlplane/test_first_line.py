"""From the client through every room of the server to the store and back."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from flyball import errors
from flyball.client import Client
from flyball.controlplane.cluster import EmbeddedCluster
from flyball.k8s.core.v1 import ConfigMap, Namespace


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with EmbeddedCluster() as cluster:
        yield Client(transport=cluster.transport, field_manager="test", namespace="default")


async def test_a_cluster_begins_with_its_namespaces(client: Client) -> None:
    names = [namespace.metadata.name for namespace in await client.list(Namespace)]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]


async def test_create_change_and_delete(client: Client) -> None:
    made = await client.create(ConfigMap.new("a", data={"x": "1"}))
    made.data = {**(made.data or {}), "y": "2"}
    changed = await client.patch(made)
    assert changed.data == {"x": "1", "y": "2"}
    assert int(changed.metadata.resource_version) > int(made.metadata.resource_version)
    await client.delete(changed)
    with pytest.raises(errors.NotFound, match='configmaps "a" not found'):
        await client.get(ConfigMap, "a")


async def test_apply_owns_and_conflicts(client: Client) -> None:
    await client.apply(ConfigMap.new("a", data={"x": "1"}), field_manager="one")
    with pytest.raises(errors.Conflict, match=r'conflict with "one": \.data\.x'):
        await client.apply(ConfigMap.new("a", data={"x": "2"}), field_manager="two")
    taken = await client.apply(ConfigMap.new("a", data={"x": "2"}), field_manager="two", force=True)
    assert [entry.manager for entry in taken.metadata.managers()] == ["two"]


async def test_a_watch_sees_what_was_written_since(client: Client) -> None:
    first = await client.create(ConfigMap.new("a"))
    for name in ("b", "c"):
        await client.create(ConfigMap.new(name))
    seen: list[str] = []
    async with client.watch(ConfigMap, resource_version=first.metadata.resource_version) as watch:
        async for event in watch:
            seen.append(event.object.metadata.name)
            if len(seen) == 2:
                break
    assert seen == ["b", "c"]


async def test_what_is_new_must_have_a_place(client: Client) -> None:
    with pytest.raises(errors.NotFound, match='namespaces "nowhere" not found'):
        await client.create(ConfigMap.new("a", namespace="nowhere"))
