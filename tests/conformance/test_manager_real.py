"""Controllers and the election against a real API server."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.support.realclient import client_of
from tests.support.shell import shell_follows_its_size

from flyball import Context, Manager, controller
from flyball.client import Client
from flyball.k8s.coordination.v1 import Lease
from flyball.k8s.core.v1 import ConfigMap
from flyball.manager import Election, LeaseLost, Options
from flyball.testing import eventually
from flyball.testing.realcluster import RealCluster

pytestmark = pytest.mark.real

QUIET = Options(health_port=-1, metrics_port=-1, max_block=0.0, memory_growth=0.0)


async def test_the_first_program_runs(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as client:
        await shell_follows_its_size(client)


def candidate(client: Client, name: str, written: list[str]) -> Manager:
    @controller(ConfigMap, namespace=client.namespace)
    async def reconcile(config: ConfigMap, ctx: Context) -> None:
        if config.metadata.name == "work":
            written.append(name)

    election = Election(
        name="demo", identity=name, lease_duration=4, renew_deadline=2.5, retry_period=0.5, labels={"app": "demo"}
    )
    return Manager(client, controllers=[reconcile], leader_election=election, options=QUIET)


@pytest.mark.capability("C51")
async def test_the_lease_goes_from_hand_to_hand(real_cluster: RealCluster) -> None:
    written: list[str] = []
    async with client_of(real_cluster) as client:
        await client.create(ConfigMap.new("work"))
        async with candidate(client, "one", written) as one:
            await one.wait_leading()
            await eventually(lambda: written == ["one"])
            async with candidate(client, "two", written) as two:
                await eventually(lambda: two.cache.has_synced)
                assert not two.is_leader
                await one.stop()
                assert (await client.get(Lease, "demo")).spec.holder_identity in {"", "two"}
                await two.wait_leading()
                lease = await client.get(Lease, "demo")
                assert (lease.spec.holder_identity, lease.spec.lease_transitions) == ("two", 1)
                assert lease.metadata.labels == {"app": "demo"}
                await eventually(lambda: written == ["one", "two"])
                await client.delete(lease)  # the one who leads makes it again
                again = await eventually(lambda: client.get(Lease, "demo"), timeout=10)
                assert again.spec.holder_identity == "two"
                assert two.is_leader


@pytest.mark.capability("C51")
async def test_a_leader_whose_server_dies_stops_in_time(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as client:
        one = candidate(client, "one", [])
        running = asyncio.create_task(one.run())
        await eventually(lambda: one.at_work, timeout=20)
        stopped = time.monotonic()
        await asyncio.to_thread(real_cluster.stop_apiserver)
        try:
            with pytest.raises(LeaseLost, match=r"not renewed for 2\.5 s; last failure: "):
                await running
            assert time.monotonic() - stopped < 15
        finally:
            await asyncio.to_thread(real_cluster.start_apiserver)
