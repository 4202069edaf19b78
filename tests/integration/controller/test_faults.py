"""Whatever goes wrong on the way, by a seed: everything converges, nothing is made twice, no key runs twice at once."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from tests.integration.controller.harness import DEFAULT, Shop, config, install, running, shop

from flyball.client import HttpRequest, HttpResponse, MergePatch, Transport, ref
from flyball.controller import Backoff, Context, Result, child_name, controller
from flyball.errors import ConnectError, ConnectionLost
from flyball.k8s.core.v1 import ConfigMap
from flyball.testing import eventually
from flyball.testing.cluster import Cluster


class Faulty:
    """Refuses, loses requests and loses answers, until it is told to stop."""

    host = "faulty"

    def __init__(self, transport: Transport, seed: int) -> None:
        self._transport = transport
        self._chance = random.Random(seed)
        self.on = True
        self.faults: Counter[str] = Counter()

    async def send(self, request: HttpRequest) -> HttpResponse:
        fault = self._chance.random()
        if not self.on or fault > 0.3 or "watch" in dict(request.query):
            return await self._transport.send(request)
        if fault < 0.1:
            self.faults["lost request"] += 1
            raise ConnectError("no connection")
        if fault < 0.2 or request.method == "GET":
            self.faults["lost answer"] += 1
            await (await self._transport.send(request)).close()
            raise ConnectionLost("the answer got lost")
        self.faults["stale"] += 1
        return await self._transport.send(_stale(request))

    async def close(self) -> None:
        return


def _stale(request: HttpRequest) -> HttpRequest:
    """The same request as if somebody else had been quicker; only one that insists on a version is answered 409."""
    import dataclasses

    body = request.body or b""
    if b'"resourceVersion":"' not in body or "apply" in request.headers.get("Content-Type", ""):
        return request
    head, _, tail = body.partition(b'"resourceVersion":"')
    return dataclasses.replace(request, body=head + b'"resourceVersion":"1' + tail[tail.index(b'"') :])


@pytest.mark.parametrize("seed", range(4))
async def test_everything_converges(cluster: Cluster, seed: int) -> None:
    client = cluster.client
    await install(client, Shop)
    faulty = Faulty(cluster.transport, seed)
    chance = random.Random(seed)
    at_work: set[str] = set()

    @controller(Shop, owns=[ConfigMap], max_concurrent=4, backoff=Backoff(0.001, 0.02))
    async def follow(obj: Shop, ctx: Context) -> Result | None:
        name = obj.metadata.name
        assert name not in at_work, "two passes over one object"
        at_work.add(name)
        try:
            made = await ctx.create(config(child_name(obj, "fixed"), made="once"))
            child = await ctx.apply(config(child_name(obj, "child"), size=str(obj.spec.size)))
            obj.status.ready = int((child.data or {})["size"])
            obj.status.note = made.metadata.uid
            return Result.after(60)
        finally:
            at_work.discard(name)

    @follow.finalize
    async def clean(obj: Shop, ctx: Context) -> None:
        for child in await ctx.owned(ConfigMap):
            await ctx.delete(child)

    names = [f"s{number}" for number in range(12)]
    async with running(faulty, follow):
        for name in names:
            await client.create(shop(name))

        async def settled(count: int) -> bool:
            shops = await client.list(Shop, namespace=DEFAULT)
            children = {one.metadata.name: one for one in await client.list(ConfigMap, namespace=DEFAULT)}
            wanted = {f"{one.metadata.name}-{part}" for one in shops for part in ("fixed", "child")}
            return (
                len(shops) == count
                and {name for name in children if not name.startswith("kube")} == wanted
                and all(
                    one.status.ready == one.spec.size
                    and (children[f"{one.metadata.name}-child"].data or {})["size"] == str(one.spec.size)
                    and not one.status.is_true("Degraded")
                    for one in shops
                )
            )

        for _ in range(6):
            for name in chance.sample(names, 8):
                change = MergePatch({"spec": {"size": chance.randrange(2, 100)}})
                await client.patch(ref(Shop, name, namespace=DEFAULT), change)
            await eventually(lambda: settled(12), timeout=20)
        for name in names[:4]:
            await client.delete(Shop, name, namespace=DEFAULT)
        await eventually(lambda: settled(8), timeout=20)
    assert sum(faulty.faults.values()) > 10
