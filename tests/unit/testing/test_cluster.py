"""The cluster that tests are given: in both worlds, over both ways in."""

from __future__ import annotations

import asyncio
import stat
import time
from dataclasses import replace
from pathlib import Path

import pytest

from flyball import errors, sync
from flyball.client import Client
from flyball.client.config import load_config
from flyball.clock import ManualClock
from flyball.k8s.core.v1 import ConfigMap, Namespace
from flyball.testing import Cluster
from flyball.testing.cluster import ClusterError


async def names(client: Client) -> list[str]:
    return [found.metadata.name for found in await client.list(ConfigMap, namespace="default", labels="!system")]


def test_in_a_thread_for_code_without_an_event_loop(cluster: Cluster) -> None:
    cluster.sync.create(ConfigMap.new("a", data={"x": "1"}))
    assert cluster.sync.get(ConfigMap, "a").data == {"x": "1"}
    with sync.Client(cluster.config) as over_tls:
        assert over_tls.get(ConfigMap, "a").data == {"x": "1"}


async def test_in_the_event_loop_of_an_asynchronous_test(cluster: Cluster) -> None:
    await cluster.client.create(ConfigMap.new("a"))
    async with Client(cluster.config) as over_tls:
        assert (await over_tls.get(ConfigMap, "a")).metadata.name == "a"


async def test_a_cluster_in_a_thread_serves_other_event_loops(cluster_server: Cluster) -> None:
    made = await cluster_server.client.create(ConfigMap.new("a"))
    async with cluster_server.client.watch(ConfigMap, resource_version=made.metadata.resource_version) as watch:
        await cluster_server.client.create(ConfigMap.new("b"))
        async for event in watch:
            assert event.object.metadata.name == "b"
            break


async def test_the_kubeconfig_is_whole_and_private(cluster: Cluster) -> None:
    path = cluster.kubeconfig
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert cluster.url.startswith("https://127.0.0.1:")
    async with Client(cluster.config) as client:
        assert len(await client.list(Namespace)) == 4


async def test_nobody_shares_state() -> None:
    async with Cluster() as one, Cluster() as other:
        await one.client.create(ConfigMap.new("a"))
        assert "a" in await names(one.client)
        assert "a" not in await names(other.client)
        async with Client(replace(one.config, server=other.url)) as stranger:
            with pytest.raises(errors.TransportError):
                await stranger.list(ConfigMap)


async def test_snapshot_and_restore(cluster: Cluster) -> None:
    await cluster.client.create(ConfigMap.new("a"))
    before = cluster.snapshot()
    await cluster.client.create(ConfigMap.new("b"))
    await cluster.client.delete(ConfigMap, "a")
    version = cluster.embedded.store.revision
    cluster.restore(before)
    found = await names(cluster.client)
    assert "a" in found
    assert "b" not in found
    assert int((await cluster.client.create(ConfigMap.new("c"))).metadata.resource_version) > version


async def test_every_request_is_recorded(cluster: Cluster) -> None:
    jane = cluster.client_as("jane", ["dev"])
    await jane.create(ConfigMap.new("a"))
    with pytest.raises(errors.NotFound):
        await jane.get(ConfigMap, "b")
    seen = [(one.verb, one.resource, one.namespace, one.name, one.status) for one in cluster.requests.of(user="jane")]
    assert seen == [("create", "configmaps", "default", "", 201), ("get", "configmaps", "default", "b", 404)]


async def test_the_clock_can_be_turned() -> None:
    clock = ManualClock()
    async with Cluster(clock=clock) as cluster:
        await clock.advance(3600)
        made = await cluster.client.create(ConfigMap.new("a"))
        assert made.metadata.creation_timestamp == clock.now()


def test_the_clock_of_a_cluster_in_a_thread_can_be_turned() -> None:
    clock = ManualClock()
    with Cluster(clock=clock) as cluster:
        cluster.run(clock.advance(60))
        assert cluster.sync.create(ConfigMap.new("a")).metadata.creation_timestamp == clock.now()


def test_what_does_not_run_says_so() -> None:
    with pytest.raises(ClusterError, match="enter it by"):
        _ = Cluster().url
    with pytest.raises(ClusterError, match="start"):
        Cluster().snapshot()


def test_a_kubeconfig_for_anybody(cluster_server: Cluster) -> None:
    with sync.Client(load_config(cluster_server.kubeconfig_for("jane", ["dev"]))) as client:
        client.list(Namespace)
    assert cluster_server.requests[-1].user == "jane"


def test_what_is_kept_in_a_file_is_there_again(tmp_path: Path) -> None:
    with Cluster(data=tmp_path / "data") as cluster:
        made = cluster.sync.create(ConfigMap.new("a"))
    with Cluster(data=tmp_path / "data") as cluster:
        again = cluster.sync.get(ConfigMap, "a")
        assert again.metadata.uid == made.metadata.uid
        assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "data.keys"]


def test_the_keys_are_kept_with_the_data(tmp_path: Path) -> None:
    with Cluster(data=tmp_path / "data") as cluster:
        before = cluster.config
    with Cluster(data=tmp_path / "data") as cluster:
        assert stat.S_IMODE((tmp_path / "data.keys").stat().st_mode) == 0o600
        with sync.Client(replace(before, server=cluster.url)) as client:
            client.list(Namespace)


async def test_a_cluster_per_test_is_cheap() -> None:
    async with Cluster() as cluster:
        await cluster.client.list(Namespace)
    took: list[float] = []
    for _ in range(10):
        begin = time.process_time()
        async with Cluster() as cluster:
            await cluster.client.list(Namespace)
        took.append(time.process_time() - begin)
    assert min(took) < 0.030
    await asyncio.sleep(0)
