"""What a real kube-scheduler says of the cases that the cluster in the box is held to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import pytest
from tests.support.realclient import pods_can_be_made
from tests.support.scheduled import play, told_by_events
from tests.support.scheduling import CASES, PLACED

from flyball.client import Client
from flyball.testing import RealCluster, eventually
from flyball.testing.binaries import BinariesMissing, find_binaries

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def scheduling_cluster() -> Iterator[RealCluster]:
    try:
        binaries = find_binaries()
        binaries.path("kube-scheduler")
    except BinariesMissing as missing:
        pytest.skip(str(missing))
    controllers = "*,-node-lifecycle-controller,-pod-garbage-collector-controller"
    with RealCluster(binaries=binaries, controllers=controllers, scheduler=True) as cluster:
        yield cluster


async def test_it_says_what_the_cases_say(scheduling_cluster: RealCluster) -> None:
    async def until(probe: Callable[[], Awaitable[bool]]) -> None:
        await eventually(probe, bool, timeout=60)

    async with Client(scheduling_cluster.config) as client:
        await pods_can_be_made(client)
        said = await play(client, until)
        for case in CASES:
            name = case.pod["metadata"]["name"]
            assert said[name] == (PLACED.get(name), case.message), name
        events = await told_by_events(client)
        assert events["cpu"][:4] == ("Warning", "FailedScheduling", "Scheduling", "default-scheduler")
        assert events["third"][:4] == ("Normal", "Scheduled", "Binding", "default-scheduler")
        assert "gated" not in events
