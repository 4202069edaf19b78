"""Our controllers of Jobs, at work on a real API server instead of kube-controller-manager's, tell its stories.

So what they write is what a real server accepts, and what they read is what it sends.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from tools.differential import golden
from tools.differential.cases import load
from tools.differential.stories import play_stories
from tools.differential.target import Target
from tools.differential.worlds import real_control_plane, real_world

from flyball.client import Client, ClusterConfig, HttpTransport
from flyball.controlplane.controllers.catalogue import CATALOGUE
from flyball.manager.manager import Manager
from flyball.manager.options import Options

pytestmark = pytest.mark.real

OURS = ("job-controller", "ttl-after-finished-controller")
STORIES = (
    "completes",
    "succeeds-after-a-failure",
    "fails-while-others-run",
    "works-off-a-queue",
    "does-each-index",
    "counts-tries-of-an-index",
    "fails-by-an-exit-code",
    "ignores-a-disruption",
    "fails-an-index-by-an-exit-code",
    "is-enough-by-an-index",
    "replaces-only-what-has-failed",
    "is-suspended-and-resumed",
    "has-its-indexes-changed",
    "adopts",
    "lets-go",
    "goes-with-its-pods",
    "leaves-its-pods",
    "goes-when-its-time-is-over",
)
_QUIET = Options(health_port=-1, metrics_port=-1, max_block=0.0, memory_growth=0.0)


@contextmanager
def at_work(config: ClusterConfig) -> Generator[None]:
    """Our controllers on a cluster, in a thread of their own."""
    begun = threading.Event()
    loop = asyncio.new_event_loop()
    end = asyncio.Event()

    async def work() -> None:
        async with Client(transport=HttpTransport(config), field_manager="kube-controller-manager") as client:
            parts = [one for name in OURS for one in CATALOGUE[name](client)]
            async with Manager(client, controllers=parts, leader_election=False, options=_QUIET):
                begun.set()
                await end.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(work()))
    thread.start()
    try:
        assert begun.wait(60)
        yield
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(60)
        loop.close()


def test_the_stories_are_those_of_the_real_controllers() -> None:
    cases = [case for case in load(only=["controllers-jobs"]) if case.name in STORIES]
    assert len(cases) == len(STORIES)
    with real_control_plane(*OURS) as cluster, at_work(cluster.config):
        target = Target.from_kubeconfig(cluster.kubeconfig)
        told = play_stories(cases, lambda: real_world(target), len(cases))
    recorded = golden.read("controllers-jobs")
    differing: dict[str, list[str]] = {}
    for case, answers in zip(cases, told, strict=True):
        unplayed = isinstance(answers, Exception)
        lines = [str(answers)] if unplayed else golden.differences(recorded[case.name], answers)
        if lines:
            differing[case.name] = lines
    assert differing == {}
