"""In a rush only some normal Events are told; in quiet times all of them."""

from __future__ import annotations

from flyball.client import Client
from flyball.clock import ManualClock
from flyball.controller.events import EventRecorder
from flyball.controlplane.rush import Rush
from flyball.testing import Cluster


async def test_a_burst_is_told_and_then_fifty_a_second() -> None:
    clock = ManualClock()
    async with Cluster(clock=clock, controllers=False) as cluster:
        client: Client = cluster.client
        rush = Rush(EventRecorder(client, clock=clock), clock, "kubelet")
        assert [rush.allows() for _ in range(501)].count(True) == 500
        assert not rush.allows(3)
        clock.jump(1)
        assert [rush.allows() for _ in range(60)].count(True) == 50
        clock.jump(3600)
        assert rush.allows(500)
        assert not rush.allows()
