"""The crash matrix: a process that dies before or after any of its writes leaves nothing that the next one cannot mend.

A sample operator with two children, a finalizer, a workspace and a call to the outside runs through the life of one
object. The process is cut at every write and at every outside call, once before it is sent and once after it was
carried out but before its answer came. A new process, with empty caches, must reach the same end as an uncut one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.integration.controller.harness import DEFAULT, Shop, config, gone, install, running, shop

from flyball.api import Model, to_dict
from flyball.client import Client, MergePatch, dynamic, ref
from flyball.controller import Context, Controller, child_name, controller, workspace_kind
from flyball.k8s.core.v1 import ConfigMap, Secret
from flyball.k8s.meta.v1 import ObjectMeta
from flyball.testing import eventually
from flyball.testing.cluster import Cluster
from flyball.testing.cutting import Cut, When


class Notes(Model):
    """What the operator remembers."""

    instance: str = ""


@dataclass
class Cloud:
    """A service outside of the cluster that honours nonces, and remembers whatever it was asked."""

    instances: dict[str, str] = field(default_factory=dict[str, str])
    launched: int = 0

    async def launch(self, nonce: str) -> str:
        """Start an instance; the same nonce starts none twice."""
        if nonce not in self.instances:
            self.launched += 1
            self.instances[nonce] = f"i-{self.launched}"
        return self.instances[nonce]

    async def terminate(self, instance: str) -> None:
        """End an instance; one that is gone is fine."""
        self.instances = {nonce: one for nonce, one in self.instances.items() if one != instance}


def operator(cloud: Cloud, cut: Cut) -> Controller[Shop]:
    """The sample."""

    async def launch(nonce: str) -> str:
        return await cut.act("launch", lambda: cloud.launch(nonce))

    @controller(Shop, owns=[ConfigMap, Secret])
    async def reconcile(obj: Shop, ctx: Context) -> None:
        notes = await ctx.workspace(Notes)
        if not notes.data.instance:
            intent = await notes.intent("launch")
            notes.data.instance = await intent.call(launch)
            await notes.done("launch")
        settings = config(child_name(obj, "settings"), size=str(obj.spec.size), instance=notes.data.instance)
        await ctx.apply(settings)
        await ctx.apply(
            Secret(metadata=ObjectMeta(name=child_name(obj, "key")), data={"color": obj.spec.color.encode()})
        )
        obj.status.note = notes.data.instance
        obj.status.ready = obj.spec.size

    @reconcile.finalize
    async def release(obj: Shop, ctx: Context) -> None:
        notes = await ctx.workspace(Notes)
        instance = notes.data.instance
        if not instance and "launch" in notes.intents:
            instance = await (await notes.intent("launch")).call(launch)
        if instance:
            await cut.act("terminate", lambda: cloud.terminate(instance))

    return reconcile


def plain(obj: Any) -> dict[str, Any]:
    """An object without what differs from run to run."""
    found = to_dict(obj)
    metadata: dict[str, Any] = found["metadata"]
    for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        metadata.pop(name, None)
    for owner in metadata.get("ownerReferences", []):
        owner.pop("uid")
    for condition in found.get("status", {}).get("conditions", []):
        condition.pop("lastTransitionTime")
    return found


KINDS: list[Any] = [Shop, ConfigMap, Secret, dynamic("example.org/v1", "ShopWorkspace")]


async def world(client: Client) -> list[dict[str, Any]]:
    """Everything there is in the namespace, without what differs from run to run."""
    found: list[dict[str, Any]] = []
    for kind in KINDS:
        found += [plain(one) for one in await client.list(kind, namespace=DEFAULT)]
    return sorted((one for one in found if "kube" not in one["metadata"]["name"]), key=str)


async def collect_garbage(client: Client) -> None:
    """Remove what has only owners that are gone, as the garbage collector does."""
    living = {one.metadata.uid for one in await client.list(Shop, namespace=DEFAULT)}
    for kind in KINDS:
        for one in await client.list(kind, namespace=DEFAULT):
            owners = to_dict(one)["metadata"].get("ownerReferences", [])
            if owners and not any(owner["uid"] in living for owner in owners):
                await client.delete(one, missing_ok=True)


class Life:
    """The life of one object, with a process that may die on the way and is started again."""

    def __init__(self, cluster: Cluster, point: int, when: When) -> None:
        self.cluster = cluster
        self.cloud = Cloud()
        self.first = Cut(cluster.transport, point, when)
        self.peak: list[dict[str, Any]] = []
        self.launched = 0

    async def live(self) -> None:
        client, cloud = self.cluster.client, self.cloud
        await install(client, Shop, workspace_kind(Shop))

        async def story() -> None:
            if await gone(client, Shop, "demo") and not self.peak:
                await client.create(shop(size=1))
            if not self.peak:
                await eventually(
                    lambda: client.get(Shop, "demo", namespace=DEFAULT),
                    lambda one: one.status.ready == one.spec.size and one.status.is_false("Degraded"),
                )
                await client.patch(ref(Shop, "demo", namespace=DEFAULT), MergePatch({"spec": {"size": 2}}))
                await eventually(lambda: self.settled(client))
                self.peak, self.launched = await world(client), cloud.launched
            if not await gone(client, Shop, "demo"):
                await client.delete(Shop, "demo", namespace=DEFAULT)
                await eventually(lambda: gone(client, Shop, "demo"))

        await self.process(self.first, story)
        if self.first.dead.is_set():
            await self.process(Cut(self.cluster.transport), story)
        await collect_garbage(client)

    async def settled(self, client: Client) -> bool:
        found = await client.get(Shop, "demo", namespace=DEFAULT)
        settings = await client.get(ConfigMap, "demo-settings", namespace=DEFAULT)
        return found.status.ready == 2 and (settings.data or {}).get("size") == "2"

    async def process(self, cut: Cut, story: Callable[[], Awaitable[None]]) -> None:
        """One process, until the story has been told or the process is dead."""
        async with running(cut, operator(self.cloud, cut), grace=0):
            telling = asyncio.ensure_future(story())
            dying = asyncio.ensure_future(cut.dead.wait())
            await asyncio.wait([telling, dying], return_when=asyncio.FIRST_COMPLETED)
            for one in (telling, dying):
                if not one.done():
                    one.cancel()
            await asyncio.gather(telling, dying, return_exceptions=True)
            if not cut.dead.is_set():
                telling.result()


async def lived(point: int, when: When) -> Life:
    async with Cluster() as cluster:
        life = Life(cluster, point, when)
        await life.live()
        life.after = await world(cluster.client)  # type: ignore[attr-defined]
        return life


@pytest.mark.capability("S17")
@pytest.mark.capability("S7")
async def test_the_matrix() -> None:
    """Cut at every point; the end is always the same, nothing is made twice, nothing is left."""
    whole = await lived(0, "before")
    acts = whole.first.acts
    assert len(acts) >= 10, acts
    assert whole.peak
    for point in range(1, len(acts) + 1):
        for when in ("before", "after"):
            words = f"cut {when} act {point}: {acts[point - 1]}"
            life = await lived(point, when)
            # Whether two changes are told in one status or in two is a matter of time: a life may have one act less.
            assert life.first.dead.is_set() or len(life.first.acts) == point - 1 == len(acts) - 1, words
            assert life.peak == whole.peak, words
            assert life.launched == 1, words
            assert life.cloud.instances == {}, words
            assert life.after == [], words  # type: ignore[attr-defined]
