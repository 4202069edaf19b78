"""A world for controllers: a kind of our own, its definition in an embedded cluster, and controllers that run there."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from flyball import Resource, Spec, Status
from flyball.cache import Metrics
from flyball.client import Client, Transport
from flyball.clock import Clock
from flyball.controller import Controller, ControllerRuntime, RunningController
from flyball.errors import NotFound
from flyball.k8s.core.v1 import ConfigMap
from flyball.k8s.events.v1 import Event
from flyball.k8s.meta.v1 import ObjectMeta
from flyball.testing import install

__all__ = [
    "DEFAULT",
    "Numbers",
    "Shop",
    "ShopSpec",
    "ShopStatus",
    "config",
    "events_of",
    "gone",
    "install",
    "running",
    "shop",
]

DEFAULT = "default"


class ShopSpec(Spec):
    size: int = 1
    color: str = "red"


class ShopStatus(Status):
    ready: int = 0
    note: str = ""


class Shop(Resource, group="example.org", version="v1"):
    """Something to reconcile."""

    spec: ShopSpec
    status: ShopStatus


def shop(name: str = "demo", **spec: Any) -> Shop:
    """A shop in the default namespace."""
    return Shop.new(name, namespace=DEFAULT, spec=ShopSpec(**spec))


def config(name: str, **data: str) -> ConfigMap:
    """A child."""
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


class Numbers:
    """Counts what metrics are told."""

    def __init__(self) -> None:
        self.counts: dict[str, float] = {}

    def counter(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + value

    def gauge(self, name: str, value: float, /, **labels: str) -> None:
        self.counts[name] = value

    def histogram(self, name: str, value: float, /, **labels: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1


@asynccontextmanager
async def running(
    transport: Transport,
    *controllers: Controller[Any],
    clock: Clock | None = None,
    metrics: Metrics | None = None,
    grace: float = 5.0,
) -> AsyncGenerator[Sequence[RunningController[Any]], None]:
    """Controllers that run over a transport, with parts of their own, until the block ends."""
    client = Client(transport=transport, retry=None)
    given: dict[str, Any] = {} if metrics is None else {"metrics": metrics}
    runtime = ControllerRuntime.of(client, clock=clock, **given)
    bound = [one.bind(runtime) for one in controllers]
    for one in bound:
        one.prepare()
    await runtime.cache.start()
    try:
        for one in bound:
            await one.start()
        yield bound
    finally:
        for one in bound:
            await one.stop(grace)
        await runtime.recorder.stop()
        await runtime.cache.stop()


async def events_of(client: Client, name: str) -> list[Event]:
    found = await client.list(Event, namespace=DEFAULT)
    return [one for one in found if one.regarding is not None and one.regarding.name == name]


async def gone(client: Client, kind: type[Resource], name: str) -> bool:
    try:
        await client.get(kind, name, namespace=DEFAULT)
    except NotFound:
        return True
    return False
