"""A controller on a real API: what it makes, what wakes it, what it writes."""

from __future__ import annotations

from tests.integration.controller.harness import DEFAULT, Shop, config, install, running, shop

from flyball.controller import Context, controller
from flyball.k8s.core.v1 import ConfigMap
from flyball.testing import eventually
from flyball.testing.cluster import Cluster


@controller(Shop, owns=[ConfigMap])
async def follow(obj: Shop, ctx: Context) -> None:
    child = await ctx.apply(config(obj.metadata.name, size=str(obj.spec.size)))
    obj.status.ready = int((child.data or {})["size"])


async def test_a_child_follows_its_owner_and_the_status_tells(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    async with running(cluster.transport, follow):
        await client.create(shop(size=3))
        found = await eventually(lambda: client.get(Shop, "demo", namespace=DEFAULT), lambda one: one.status.ready == 3)
        assert found.status.observed_generation == 1
        child = await client.get(ConfigMap, "demo", namespace=DEFAULT)
        (owner,) = child.metadata.owner_references
        assert (owner.api_version, owner.kind, owner.name) == ("example.org/v1", "Shop", "demo")
        assert owner.uid == found.metadata.uid
        assert owner.controller
        assert owner.block_owner_deletion

        await client.delete(ConfigMap, "demo", namespace=DEFAULT)
        await eventually(lambda: client.get(ConfigMap, "demo", namespace=DEFAULT))
