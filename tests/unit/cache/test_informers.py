from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import pytest
from tests.soak.faulty import FaultyServer, refusal
from tests.support.cached import WIDGETS
from tests.support.widgets import Widget

from flyball.api import decode
from flyball.cache import AllExcept, CacheEvent, CacheOptions, InformerCache, NotCached, ReadPolicy
from flyball.cache.options import CacheOptions as Options
from flyball.client import Client, dynamic, metadata_of
from flyball.clock import ManualClock
from flyball.errors import FlyballError
from flyball.k8s.core.v1 import ConfigMap, Secret


class Numbers:
    """Metrics that remember."""

    def __init__(self) -> None:
        self.seen: dict[str, float] = {}

    def counter(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        self.seen[name] = self.seen.get(name, 0.0) + value

    def gauge(self, name: str, value: float, /, **labels: str) -> None:
        self.seen[name] = value

    def histogram(self, name: str, value: float, /, **labels: str) -> None:
        self.seen[name] = value


class World:
    def __init__(self, **options: Any) -> None:
        self.clock = ManualClock()
        self.server = FaultyServer(Random(1))
        self.client = Client(transport=self.server, retry=None, namespace="ns")
        self.cache = InformerCache(self.client, clock=self.clock, **options)
        for name in ("a", "b", "c"):
            self.server.put(name)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        async with self.cache:
            await self.clock.settle()
            yield


@pytest.mark.capability("C13")
async def test_one_informer_whoever_asks_and_in_whichever_form() -> None:
    world = World()
    one, two = world.cache.informer(Widget), world.cache.informer(Widget)
    assert one is two
    assert world.cache.informer(dynamic("example.org/v1", "Widget")).engine is one.engine
    assert world.cache.informer(WIDGETS).engine is one.engine
    assert world.cache.informer(metadata_of(Widget)).engine is one.engine
    assert world.cache.informer(Widget, namespace="ns").engine is not one.engine
    assert world.cache.informer(Widget, labels="a=b").engine is not one.engine
    async with world.running():
        assert world.cache.has_synced
        watched = [request.path for request in world.server.asked if ("watch", "true") in request.query]
        assert len(watched) == 3


async def test_what_is_asked_for_later_begins_at_once() -> None:
    world = World()
    async with world.running():
        informer = world.cache.informer(Widget)
        await world.cache.wait_synced()
        assert len(informer.list()) == 3


async def test_reads() -> None:
    world = World()
    world.cache.informer(Widget)
    async with world.running():
        found = await world.cache.get(Widget, "a")
        assert found is not None
        assert found.spec.size == 101
        assert await world.cache.get(Widget, "nobody", "ns") is None
        assert len(await world.cache.list(Widget)) == 3
        assert await world.cache.list(Widget, namespace="other") == []
        assert await world.cache.list(Widget, labels={"app": "web"}) == []
        assert len(await world.cache.list(Widget, labels="!app")) == 3
        untyped = await world.cache.get(WIDGETS, "a", "ns")
        assert untyped is not None
        assert untyped["spec"] == {"size": 101}


async def test_a_kind_that_nobody_declared_is_watched_from_the_first_read_on() -> None:
    undeclared: list[str] = []
    world = World(on_undeclared=lambda kind: undeclared.append(kind.word))
    async with world.running():
        assert await world.cache.get(Widget, "a") is not None
        assert await world.cache.get(Widget, "b") is not None
        assert undeclared == ["Widget"]
        assert world.server.lists == 1


@pytest.mark.parametrize("kind", [Secret, ConfigMap])
async def test_secrets_and_config_maps_are_read_live_unless_declared(kind: Any) -> None:
    world = World()
    world.server.before = lambda query: refusal(404, "NotFound") if query[":path"].endswith("/nobody") else None
    async with world.running():
        assert await world.cache.get(kind, "nobody") is None
        assert world.server.asked[-1].path.endswith("/namespaces/ns/" + kind.resource_type.plural + "/nobody")
        assert world.server.watches == 0
        assert len(await world.cache.list(kind)) == 3
        with pytest.raises(NotCached, match="read live, so it has no indexes"):
            await world.cache.by_index(kind, "x", "y")
        world.cache.informer(kind)
        assert await world.cache.get(kind, "a") is not None
        assert world.server.watches == 1


async def test_the_policy_can_be_another() -> None:
    world = World(policy=ReadPolicy(otherwise="live"))
    async with world.running():
        await world.cache.list(Widget)
        assert world.server.watches == 0


@pytest.mark.capability("C14")
async def test_options_of_a_kind() -> None:
    world = World()
    world.cache.configure(Widget, CacheOptions(labels={"app": "web"}, fields="spec.x=y", page_size=7))
    world.cache.informer(Widget)
    async with world.running():
        query = dict(world.server.asked[0].query)
        assert query == {"labelSelector": "app=web", "fieldSelector": "spec.x=y", "limit": "7"}
        assert await world.cache.get(Widget, "a") is not None, "reads use the declared informer"
        assert world.server.lists == 1
        with pytest.raises(FlyballError, match="there is an informer already"):
            world.cache.configure(Widget, CacheOptions())


@pytest.mark.capability("C15")
async def test_all_namespaces_but_some() -> None:
    world = World(namespaces=AllExcept(["kube-system", "other"]))
    world.cache.informer(Widget)
    async with world.running():
        query = dict(world.server.asked[0].query)
        assert query["fieldSelector"] == "metadata.namespace!=kube-system,metadata.namespace!=other"
        assert await world.cache.get(Widget, "a", "ns") is not None
        with pytest.raises(NotCached, match="namespace 'other' is not among those that are watched"):
            await world.cache.get(Widget, "a", "other")


async def test_an_informer_of_one_namespace_answers_for_it() -> None:
    world = World()
    world.cache.informer(Widget, namespace="ns")
    async with world.running():
        assert await world.cache.get(Widget, "a", "ns") is not None
        assert world.server.lists == 1


async def test_an_informer_of_some_labels_answers_for_them_and_no_others() -> None:
    undeclared: list[str] = []
    world = World(on_undeclared=lambda kind: undeclared.append(kind.word))
    world.cache.informer(Widget, labels={"app": "web"})
    async with world.running():
        assert await world.cache.list(Widget, labels={"app": "web"}) == []
        assert await world.cache.list(Widget, namespace="ns", labels={"tier": "db", "app": "web"}) == []
        assert (world.server.lists, undeclared) == (1, [])
        assert len(await world.cache.list(Widget, labels="!app")) == 3
        assert (world.server.lists, undeclared) == (2, ["Widget"])


async def test_metadata_only_is_not_read_as_a_whole() -> None:
    world = World()
    world.cache.configure(Widget, CacheOptions(metadata_only=True))
    with pytest.raises(NotCached, match="read metadata_of\\(Widget\\)"):
        world.cache.informer(Widget)
    informer = world.cache.informer(metadata_of(Widget))
    async with world.running():
        found = await world.cache.get(metadata_of(Widget), "a")
        assert found is not None
        assert found.metadata.name == "a"
        with pytest.raises(NotCached):
            await world.cache.get(Widget, "a")
        _, written = world.server.put("a")
        world.cache.note_write(decode(Widget, written))
        held = informer.peek("a", "ns")
        assert held is not None
        assert (held.resource_version, "spec" in held.plain()) == ("104", False)


@pytest.mark.capability("C23")
async def test_remove_ends_the_watch_and_frees_the_memory() -> None:
    world = World()
    informer = world.cache.informer(Widget)
    informer.add_handler(lambda event: None)
    async with world.running():
        assert world.server.open_watches == 1
        engine, store = weakref.ref(informer.engine), weakref.ref(informer.store)
        del informer
        await world.cache.remove(Widget)
        await asyncio.sleep(0)
        assert world.server.open_watches == 0
        gc.collect()
        assert engine() is None
        assert store() is None
        assert world.cache.health() == {}
        assert len(world.cache.informer(Widget).list()) == 0
        await world.cache.wait_synced()
        assert len(await world.cache.list(Widget)) == 3


@pytest.mark.capability("C25")
async def test_health_and_missing_permissions() -> None:
    world = World()
    world.cache.informer(Widget, namespace="ns")
    world.server.before = lambda query: refusal(403, "Forbidden", "no")
    async with world.running():
        assert [str(missing) for missing in world.cache.missing_permissions()] == [
            'missing: list widgets.example.org in namespace ns; add @rbac("example.org", "widgets", "list", "watch")'
        ]
        (health,) = world.cache.health().values()
        assert not health.ok
        world.server.before = None
        await world.clock.advance(10)
        assert list(world.cache.health()) == ["widgets.example.org in namespace ns"]
        assert world.cache.missing_permissions() == []


async def test_metrics() -> None:
    numbers = Numbers()
    world = World(metrics=numbers)
    world.cache.informer(Widget)
    async with world.running():
        world.server.put("a")
        await world.clock.settle()
        assert numbers.seen["reflector_lists_total"] == 1
        assert numbers.seen["reflector_items_per_list"] == 3
        assert numbers.seen["flyball_cache_objects"] == 3
        assert numbers.seen["flyball_cache_events_total"] == 4
        assert numbers.seen["flyball_reflector_healthy"] == 1


@pytest.mark.capability("C21")
async def test_events_wait_until_a_write_under_way_is_answered() -> None:
    """The watch is often quicker than the answer; its event is judged when the answer is there."""
    world = World()
    told: list[CacheEvent] = []
    informer = world.cache.informer(Widget)
    informer.add_handler(told.append)
    async with world.running():
        told.clear()
        with world.cache.writing(Widget, "a", "ns", sent={"spec": {"size": 104}}) as write:
            _, answer = world.server.put("a")
            world.server.put("b")
            await world.clock.settle()
            assert [event.key[1] for event in told] == ["b"]
            assert informer.peek("a", "ns").resource_version == "104", "readers do not wait"  # type: ignore[union-attr]
            write.done(decode(Widget, answer))
        await world.clock.settle()
        assert [(event.key[1], event.own) for event in told] == [("b", False), ("a", True)]


@pytest.mark.capability("C21")
async def test_foreign_changes_during_a_write_are_told_as_such() -> None:
    world = World()
    told: list[CacheEvent] = []
    world.cache.informer(Widget).add_handler(told.append)
    async with world.running():
        told.clear()
        with world.cache.writing(Widget, "a", "ns", base="101") as write:
            world.server.put("a")
            _, answer = world.server.put("a")
            world.server.put("a")
            await world.clock.settle()
            write.done(decode(Widget, answer))
        with suppress(RuntimeError), world.cache.writing(Widget, "b", "ns"):
            world.server.put("b")
            await world.clock.settle()
            raise RuntimeError("the write failed")
        await world.clock.settle()
        assert [(event.object.resource_version, event.own) for event in told] == [
            ("104", False),
            ("105", True),
            ("106", False),
            ("107", False),
        ]


@pytest.mark.capability("C21")
async def test_own_deletes() -> None:
    world = World()
    told: list[CacheEvent] = []
    world.cache.informer(Widget).add_handler(told.append)
    async with world.running():
        told.clear()
        with world.cache.writing(Widget, "a", "ns") as write:
            world.server.remove("a")
            await world.clock.settle()
            write.deleted(uid="uid-1")
        with world.cache.writing(Widget, "b", "ns") as write:
            world.server.remove("b")
            write.deleted()
        assert await world.cache.get(Widget, "b") is None
        world.server.remove("c")
        await world.clock.settle()
        assert [(event.type, event.key[1], event.own) for event in told] == [
            ("deleted", "a", True),
            ("deleted", "b", True),
            ("deleted", "c", False),
        ]


async def test_a_delete_that_waits_for_finalizers_is_a_write() -> None:
    world = World()
    informer = world.cache.informer(Widget)
    async with world.running():
        with world.cache.writing(Widget, "a", "ns", base="101") as write:
            _, answer = world.server.put("a")
            write.deleted(decode(Widget, answer))
        held = informer.peek("a", "ns")
        assert held is not None
        assert held.resource_version == "104"


async def test_notes_without_an_informer_do_nothing() -> None:
    world = World()
    _, answer = world.server.put("a")
    world.cache.note_write(decode(Widget, answer), base="1")
    world.cache.note_delete(Widget, "a", "ns")


def test_what_options_say() -> None:
    assert Options(namespaces="one").scopes == ("one",)
    assert Options(namespaces=["a", "b", "a"]).scopes == ("a", "b")
    assert Options(namespaces=["a"]).covers("a")
    assert not Options(namespaces=["a"]).covers("b")
    assert not Options(namespaces=AllExcept(["a"])).covers("a")
    assert Options(namespaces=AllExcept(["a"])).covers(None)
    assert Options().shape is None
