"""`ensure` on a cluster: what it writes, what it tells, and what it leaves alone."""

from __future__ import annotations

from tests.integration.controller.harness import DEFAULT, Shop, config, install, running, shop

from flyball import Context
from flyball.client import MergePatch, ref
from flyball.controller import Controller, NameConflict, controller, ensure
from flyball.k8s.core.v1 import ConfigMap
from flyball.testing import eventually
from flyball.testing.cluster import Cluster

Told = list[tuple[str, str]]


def keeper(told: Told) -> Controller[Shop]:
    """Keeps a ConfigMap, whose key `color` is only there while it is not red."""

    @controller(Shop, owns=[ConfigMap], write_budget=1)
    async def keep(obj: Shop, ctx: Context) -> None:
        data = {"size": str(obj.spec.size)}
        if obj.spec.color != "red":
            data["color"] = obj.spec.color
        done = await ensure(ctx, config(obj.metadata.name, **data))
        word = "made" if done.made else "drifted" if done.drifted else "changed" if done.changed else "nothing"
        told.append((word, str(done)))

    return keep


async def test_it_tells_what_was_done_and_who_was_the_reason(cluster: Cluster) -> None:
    client, told = cluster.client, list[tuple[str, str]]()
    await install(client, Shop)
    place = ref(ConfigMap, "demo", namespace=DEFAULT)

    async def last(word: str, fields: str) -> None:
        await eventually(lambda: (word, f"ConfigMap default/demo{fields}") in told)
        await eventually(lambda: told[-1][0] == "nothing")
        told.clear()

    async with running(cluster.transport, keeper(told)):
        await client.create(shop(size=1))
        await last("made", "")
        await client.patch(ref(Shop, "demo", namespace=DEFAULT), MergePatch({"spec": {"size": 2, "color": "blue"}}))
        await last("changed", ": metadata.annotations[flyball.dev/intent], data.size, data.color")
        await client.patch(place, MergePatch({"data": {"size": "9", "theirs": "kept"}}))
        await last("drifted", ": data.size")
    cluster.requests.clear()
    async with running(cluster.transport, keeper(told)):
        await eventually(lambda: [word for word, _ in told] == ["nothing"])
        assert cluster.requests.of("patch", "configmaps") == []
        told.clear()
        await client.patch(ref(Shop, "demo", namespace=DEFAULT), MergePatch({"spec": {"color": "red"}}))
        await last("changed", ": metadata.annotations[flyball.dev/intent]")
        found = await client.get(ConfigMap, "demo", namespace=DEFAULT)
        assert found.data == {"size": "2", "theirs": "kept"}


async def test_what_is_not_ours_is_left_alone_though_no_field_differs(cluster: Cluster) -> None:
    client, told = cluster.client, list[tuple[str, str]]()
    await install(client, Shop)
    async with running(cluster.transport, keeper(told)):
        await client.create(shop(size=1))
        await eventually(lambda: told and told[-1][0] == "nothing")
    await client.patch(ref(ConfigMap, "demo", namespace=DEFAULT), MergePatch({"metadata": {"ownerReferences": None}}))
    before = await client.get(ConfigMap, "demo", namespace=DEFAULT)
    async with running(cluster.transport, keeper(told)):
        found = await eventually(
            lambda: client.get(Shop, "demo", namespace=DEFAULT), lambda one: one.status.is_true("Degraded")
        )
    condition = found.status.condition("Degraded")
    assert condition is not None
    assert condition.reason == NameConflict.__name__
    assert await client.get(ConfigMap, "demo", namespace=DEFAULT) == before
