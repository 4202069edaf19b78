"""Faults on purpose, over both ways in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from flyball import errors
from flyball.client import Client
from flyball.client.transport import HttpRequest
from flyball.clock import ManualClock
from flyball.k8s.core.v1 import ConfigMap
from flyball.testing import Cluster


@pytest.fixture(params=["inside", "tls"])
async def ways(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Cluster, Client]]:
    """A cluster and a client that repeats nothing."""
    async with Cluster() as cluster:
        if request.param == "inside":
            yield cluster, Client(transport=cluster.transport, retry=None)
            return
        async with Client(cluster.config, retry=None) as client:
            yield cluster, client


async def watched(client: Client, count: int, resource_version: str) -> list[str]:
    """The first events of a watch, each with its name."""
    seen: list[str] = []
    async with client.watch(ConfigMap, namespace="default", resource_version=resource_version) as watch:
        async for event in watch:
            seen.append(f"{event.type} {event.object.metadata.name}")
            if len(seen) == count:
                return seen
    return seen


async def test_a_status_and_when_to_come_again(ways: tuple[Cluster, Client]) -> None:
    cluster, client = ways
    rule = cluster.faults.status(429, retry_after=7, verb="create", resource="configmaps", first=2)
    for _ in range(2):
        with pytest.raises(errors.TooManyRequests) as refused:
            await client.create(ConfigMap.new("a"))
        assert refused.value.retry_after == 7
    await client.create(ConfigMap.new("a"))
    assert rule.hits == 2
    assert [one.fault for one in cluster.requests.of("create", "configmaps")][-3:] == ["status 429", "status 429", ""]


async def test_cut_before_and_after_the_commit(ways: tuple[Cluster, Client]) -> None:
    cluster, client = ways
    cluster.faults.cut_before_commit(verb="create", first=1)
    with pytest.raises(errors.ConnectionLost):
        await client.create(ConfigMap.new("a"))
    with pytest.raises(errors.NotFound):
        await client.get(ConfigMap, "a")
    cluster.faults.cut_after_commit(verb="create", first=1)
    with pytest.raises(errors.ConnectionLost):
        await client.create(ConfigMap.new("a"))
    assert (await client.get(ConfigMap, "a")).metadata.name == "a"


async def test_an_answer_that_breaks_off(ways: tuple[Cluster, Client]) -> None:
    cluster, client = ways
    cluster.faults.truncate(20, verb="get", first=1)
    await client.create(ConfigMap.new("a"))
    with pytest.raises(errors.TransportError):
        await client.get(ConfigMap, "a")
    assert (await client.get(ConfigMap, "a")).metadata.name == "a"


async def test_somebody_was_quicker(ways: tuple[Cluster, Client]) -> None:
    cluster, client = ways
    made = await client.create(ConfigMap.new("a"))
    cluster.faults.conflict(verb="update", first=1)
    made.data = {"x": "1"}
    with pytest.raises(errors.Conflict):
        await client.update(made)
    again = await client.get(ConfigMap, "a")
    again.data = {"x": "1"}
    assert (await client.update(again)).data == {"x": "1"}


async def test_reads_that_are_late(ways: tuple[Cluster, Client]) -> None:
    cluster, client = ways
    await client.create(ConfigMap.new("a"))
    newest = await client.create(ConfigMap.new("b"))
    rule = cluster.faults.stale(1, resource="configmaps")
    late = await client.list(ConfigMap, namespace="default", labels="!system")
    assert "b" not in [found.metadata.name for found in late]
    with pytest.raises(errors.NotFound):
        await client.get(ConfigMap, "b")
    at_least = await client.list(ConfigMap, namespace="default", resource_version=newest.metadata.resource_version)
    assert "b" in [found.metadata.name for found in at_least]
    async with client.watch(ConfigMap, namespace="default", resource_version=late.resource_version) as watch:
        async for event in watch:
            assert event.object.metadata.name == "b"  # nothing is lost: what was late comes as an event
            break
    rule.remove()
    assert (await client.get(ConfigMap, "b")).metadata.name == "b"


async def test_watches_that_are_dropped_closed_and_too_old(ways: tuple[Cluster, Client]) -> None:
    cluster, client = ways
    first = await client.create(ConfigMap.new("a"))
    for name in "bc":
        await client.create(ConfigMap.new(name))
    version = first.metadata.resource_version
    cluster.faults.close_watch(after=1, first=1)
    assert await watched(client, 5, resource_version=version) == ["ADDED b"]
    cluster.faults.drop_watch(after=1, first=1)
    with pytest.raises(errors.TransportError):
        await watched(client, 5, resource_version=version)
    cluster.faults.expire_watch(after=1, first=1)
    with pytest.raises(errors.Expired):
        await watched(client, 5, resource_version=version)
    assert await watched(client, 2, resource_version=version) == ["ADDED b", "ADDED c"]


async def test_a_watch_that_stalls_goes_on_when_the_rule_ends(ways: tuple[Cluster, Client]) -> None:
    cluster, client = ways
    first = await client.create(ConfigMap.new("a"))
    for name in "bc":
        await client.create(ConfigMap.new(name))
    rule = cluster.faults.stall_watch(after=1)
    version = first.metadata.resource_version
    task = asyncio.ensure_future(watched(client, 2, resource_version=version))
    done, _ = await asyncio.wait([task], timeout=0.2)
    assert not done
    rule.remove()
    assert await asyncio.wait_for(task, 10) == ["ADDED b", "ADDED c"]


async def test_a_delay_goes_by_the_clock_of_the_cluster() -> None:
    clock = ManualClock()
    async with Cluster(clock=clock) as cluster:
        cluster.faults.delay(30, verb="create")
        task = asyncio.ensure_future(cluster.client.create(ConfigMap.new("a")))
        await clock.advance(29)
        assert not task.done()
        await clock.advance(1)
        made = await task
        assert made.metadata.creation_timestamp == clock.now()


async def test_bookmarks_are_left_out() -> None:
    clock = ManualClock()
    async with Cluster(clock=clock) as cluster:
        rule = cluster.faults.skip_bookmarks()
        query = (("watch", "1"), ("allowWatchBookmarks", "1"), ("timeoutSeconds", "150"))
        response = await cluster.transport.send(HttpRequest("GET", "/api/v1/nodes", query))
        task = asyncio.ensure_future(response.read())
        for _ in range(6):
            await clock.advance(30)
        assert await task == b""
        assert rule.hits == 1


async def test_rules_choose() -> None:
    async with Cluster(seed=7) as cluster:
        client = Client(transport=cluster.transport, retry=None)
        every = cluster.faults.status(500, verb="get", name="every", every=3)
        cluster.faults.status(500, verb="get", name="some", probability=0.5)
        late = cluster.faults.status(500, verb="get", name="late", skip=2, first=1)
        other = cluster.faults.status(500, user="somebody")

        async def codes(name: str) -> str:
            found: list[str] = []
            for _ in range(12):
                try:
                    await client.get(ConfigMap, name)
                except errors.ApiError as error:
                    found.append("x" if error.code == 500 else ".")
            return "".join(found)

        assert await codes("every") == "..x..x..x..x"
        assert await codes("late") == "..x........."
        assert 0 < (await codes("some")).count("x") < 12
        assert (every.hits, late.hits, other.hits) == (4, 1, 0)


async def test_the_same_seed_gives_the_same_faults() -> None:
    async def hits(seed: int) -> list[str]:
        async with Cluster(seed=seed) as cluster:
            client = Client(transport=cluster.transport, retry=None)
            cluster.faults.status(500, probability=0.5)
            for _ in range(30):
                with pytest.raises(errors.ApiError):
                    await client.get(ConfigMap, "a")
            return [one.fault for one in cluster.requests.of("get", "configmaps")]

    assert await hits(1) == await hits(1)
    assert await hits(1) != await hits(2)


async def test_a_rule_lasts_so_long() -> None:
    clock = ManualClock()
    async with Cluster(clock=clock) as cluster:
        client = Client(transport=cluster.transport, retry=None)
        cluster.faults.status(503, lasting=60)
        with pytest.raises(errors.ServiceUnavailable):
            await client.list(ConfigMap)
        await clock.advance(60)
        await client.list(ConfigMap)
