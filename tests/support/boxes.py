"""A cluster in the box whose workloads live, on a clock that is turned by hand."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from flyball.client import Client
from flyball.clock import ManualClock
from flyball.k8s.batch.v1 import CronJob, Job
from flyball.k8s.core.v1 import Event, Pod
from flyball.testing import Cluster

__all__ = ["Box", "box"]

T = TypeVar("T")

_LOOKS = 1000


class Box:
    """A cluster, and what tests ask of it."""

    def __init__(self, client: Client, clock: ManualClock) -> None:
        self.client, self.clock = client, clock

    async def pods(self) -> list[Pod]:
        """The Pods of the namespace `default`, by name."""
        found = await self.client.list(Pod, namespace="default")
        return sorted(found, key=lambda one: one.metadata.name)

    async def jobs(self) -> list[Job]:
        """The Jobs of the namespace `default`, by name."""
        found = await self.client.list(Job, namespace="default")
        return sorted(found, key=lambda one: one.metadata.name)

    async def job(self, name: str = "work") -> Job:
        """A Job."""
        return await self.client.get(Job, name, namespace="default")

    async def cronjob(self, name: str = "tick") -> CronJob:
        """A CronJob."""
        return await self.client.get(CronJob, name, namespace="default")

    async def told(self) -> list[tuple[str, str]]:
        """Reason and message of every event."""
        events = await self.client.list(Event, namespace="default")
        return [(event.reason or "", event.message or "") for event in events]

    async def until(
        self, probe: Callable[[], Awaitable[T]], right: Callable[[T], object] = bool, *, step: float = 0.02
    ) -> T:
        """Turn the clock in small steps (back-off is on it, too) until the answer is right."""
        answer = await probe()
        for _ in range(_LOOKS):
            if right(answer):
                return answer
            await self.clock.advance(step)
            answer = await probe()
        raise AssertionError(f"not so after {_LOOKS} steps of {step} s; last seen: {answer}")


@asynccontextmanager
async def box(nodes: int = 1, **options: Any) -> AsyncGenerator[Box]:
    """Start a cluster with workloads."""
    clock = ManualClock()
    async with Cluster(clock=clock, workloads=True, nodes=nodes, **options) as cluster:
        yield Box(cluster.client, clock)
