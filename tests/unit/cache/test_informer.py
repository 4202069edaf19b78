from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
from tests.soak.faulty import FaultyServer, Reply
from tests.support.cached import cached
from tests.support.widgets import Widget

from flyball.api import ResourceType
from flyball.cache import CachedObject, CacheEvent, CacheOptions, Informer, UnknownIndex, by_namespace
from flyball.client import Client, dynamic, metadata_of
from flyball.clock import ManualClock


class World:
    """A server with three objects, and an informer of it."""

    def __init__(self, kind: Any = Widget, **options: Any) -> None:
        self.clock = ManualClock()
        self.server = FaultyServer(Random(1))
        self.client = Client(transport=self.server, retry=None)
        chosen = CacheOptions(**options)
        self.informer: Informer[Any] = Informer(self.client, kind, options=chosen, clock=self.clock)
        self.told: list[CacheEvent] = []
        for name in ("a", "b", "c"):
            self.server.put(name)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        async with self.informer:
            await self.clock.settle()
            yield

    def listen(self, **options: Any) -> Any:
        return self.informer.add_handler(self.told.append, **options)

    def size(self, name: str, namespace: str | None = "ns") -> int:
        """What a reader sees."""
        found = self.informer.get(name, namespace)
        assert found is not None, f"{name} is not there"
        return int(found.spec.size)

    def words(self) -> list[str]:
        """What was told, and forget it."""
        found = [f"{event.type} {event.key[1]}{' own' if event.own else ''}" for event in self.told]
        self.told.clear()
        return found


async def test_reads_and_events() -> None:
    world = World()
    world.listen()
    assert not world.informer.has_synced
    async with world.running():
        assert world.informer.has_synced
        assert all(event.initial for event in world.told)
        assert world.words() == ["added a", "added b", "added c"]
        world.server.put("a")
        world.server.remove("b")
        world.server.put("d")
        await world.clock.settle()
        updated, deleted, added = world.told
        assert not added.initial
        assert (updated.old and updated.old.resource_version, updated.object.resource_version) == ("101", "104")
        assert deleted.new is None
        assert deleted.key == ("ns", "b")
        assert world.words() == ["updated a", "deleted b", "added d"]
        assert world.size("a") == 104
        assert world.informer.get("b", "ns") is None
        assert sorted(found.metadata.name for found in world.informer.list("ns")) == ["a", "c", "d"]
        assert world.informer.list("other") == []
    assert world.informer.get("a", "ns") is not None, "what is there can still be read"
    assert world.server.open_watches == 0


async def test_the_store_shows_a_change_before_a_handler_hears_of_it() -> None:
    world = World()
    seen: list[bool] = []
    world.informer.add_index("ns", by_namespace)

    def handler(event: CacheEvent) -> None:
        held = world.informer.store.get(event.key)
        indexed = world.informer.store.by_index("ns", "ns")
        if event.new is not None:
            seen.append(held is event.new and event.new in indexed)
        else:
            seen.append(held is None and event.old not in indexed)

    world.informer.add_handler(handler)
    async with world.running():
        world.server.put("a")
        await world.clock.settle()
        world.server.remove("a")
        await world.clock.settle()
    assert seen == [True] * 5


async def test_it_has_synced_only_when_the_handlers_have_heard() -> None:
    world = World()
    gate = asyncio.Event()

    async def slow(event: CacheEvent) -> None:
        await gate.wait()

    quick, held = world.listen(), world.informer.add_handler(slow)
    async with world.running():
        assert quick.has_synced
        assert not held.has_synced
        assert not world.informer.has_synced
        assert len(world.informer.store) == 3
        gate.set()
        await world.informer.wait_synced()
        assert held.has_synced


async def test_an_empty_collection_syncs_too() -> None:
    world = World()
    for name in ("a", "b", "c"):
        world.server.remove(name)
    registration = world.listen()
    async with world.running():
        assert world.informer.has_synced
        await registration.wait_synced()


async def test_a_slow_handler_delays_nobody() -> None:
    world = World()
    gate = asyncio.Event()

    async def slow(event: CacheEvent) -> None:
        await gate.wait()

    waiting = world.informer.add_handler(slow)
    world.listen()
    async with world.running():
        for _ in range(50):
            world.server.put("a")
            await world.clock.settle()
        assert len(world.words()) == 53
        assert world.size("a") == world.server.version
        assert waiting.waiting == 53
        gate.set()
        await world.clock.settle()


async def test_a_failing_handler_is_named_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    told: list[str] = []

    def failing(event: CacheEvent) -> None:
        told.append(event.key[1])
        raise RuntimeError("no")

    world.informer.add_handler(failing, name="the failing one")
    world.listen()
    async with world.running():
        world.server.put("d")
        await world.clock.settle()
    assert told == ["a", "b", "c", "d"]
    assert world.words() == ["added a", "added b", "added c", "added d"]
    assert "handler the failing one failed on added <Widget ns/a at 101>; it goes on" in caplog.text


async def test_a_handler_that_comes_later_is_told_everything() -> None:
    world = World()
    async with world.running():
        registration = world.listen()
        assert world.informer.has_synced
        assert not registration.has_synced
        await registration.wait_synced()
        assert world.words() == ["added a", "added b", "added c"]
        world.server.put("a")
        await world.clock.settle()
        assert world.words() == ["updated a"]


async def test_a_handler_that_was_removed_hears_nothing_more() -> None:
    world = World()
    registration = world.listen()
    gate = asyncio.Event()

    async def never(event: CacheEvent) -> None:
        await gate.wait()

    blocking = world.informer.add_handler(never)
    async with world.running():
        assert not world.informer.has_synced
        blocking.remove()
        assert world.informer.has_synced, "nobody waits for a handler that is gone"
        world.words()
        registration.remove()
        world.server.put("a")
        await world.clock.settle()
        assert world.words() == []


async def test_a_handler_may_remove_itself() -> None:
    world = World()
    told: list[str] = []

    def once(event: CacheEvent) -> None:
        told.append(event.key[1])
        registration.remove()

    registration = world.informer.add_handler(once)
    async with world.running():
        world.server.put("d")
        await world.clock.settle()
    assert told == ["a"]


async def test_resync_tells_everything_again() -> None:
    world = World()
    world.listen(resync=600.0)
    async with world.running():
        world.words()
        await world.clock.advance(599)
        assert world.words() == []
        await world.clock.advance(1)
        assert all(event.old is event.new for event in world.told)
        assert world.words() == ["updated a", "updated b", "updated c"]


async def test_changes_in_a_gap_are_told_as_one() -> None:
    world = World()
    world.listen()
    async with world.running():
        world.words()
        world.server.break_watches("gone")
        world.server.put("a")
        world.server.put("a")
        world.server.remove("b")
        world.server.remove("c")
        world.server.put("c")
        await world.clock.advance(1)
        assert sorted(world.words()) == ["added c", "deleted b", "deleted c", "updated a"]


async def test_a_list_that_says_nothing_new_tells_nothing() -> None:
    world = World()
    world.listen()
    async with world.running():
        world.words()
        world.server.break_watches("gone")
        await world.clock.advance(1)
        assert world.server.lists == 2
        assert world.words() == []


@pytest.mark.capability("C13")
async def test_every_form_reads_the_same_store() -> None:
    world = World()
    async with world.running():
        untyped = Informer.of(dynamic("example.org/v1", "Widget"), world.informer.engine)
        assert untyped.list()[0]["spec"] == {"size": 101}
        partial = Informer.of(metadata_of(Widget), world.informer.engine)
        found = partial.get("a", "ns")
        assert found is not None
        assert found.metadata.name == "a"


async def test_indexes_are_read_and_must_be_known() -> None:
    world = World()

    def by_parity(view: CachedObject) -> list[str]:
        return ["even" if view.decode(Widget).spec.size % 2 == 0 else "odd"]

    world.informer.add_index("parity", by_parity)
    async with world.running():
        assert [found.metadata.name for found in world.informer.by_index("parity", "even")] == ["b"]
        assert len(world.informer.peek_index("parity", "odd")) == 2
        with pytest.raises(UnknownIndex):
            world.informer.by_index("colour", "red")


@pytest.mark.capability("C15")
async def test_several_namespaces_are_one_collection() -> None:
    world = World(namespaces=["one", "two"])
    world.listen()
    held = [True]

    def before(query: dict[str, str]) -> Reply | None:
        namespace = query[":path"].split("/")[-2]
        if query.get("watch") == "true":
            return None
        if namespace == "two" and held.pop():
            held.append(False)
            return Reply(503)
        metadata = {"name": "a", "namespace": namespace, "uid": namespace, "resourceVersion": "200"}
        return Reply(
            200, json.dumps({"items": [{"metadata": metadata}], "metadata": {"resourceVersion": "200"}}).encode()
        )

    world.server.before = before
    async with world.running():
        assert [obj.key for obj in world.informer.store.list()] == [("one", "a")]
        assert not world.informer.has_synced, "the other namespace is missing"
        assert not world.informer.health.ok
        await world.clock.advance(5)
        assert world.informer.has_synced
        assert world.informer.health.ok
        assert all(event.initial for event in world.told)
        assert [obj.key for obj in world.informer.peek_list()] == [("one", "a"), ("two", "a")]


@pytest.mark.capability("C17")
async def test_what_is_left_out() -> None:
    world = World(fields_to_keep=[], transform=lambda obj: {**obj, "metadata": {**obj["metadata"], "annotations": {}}})
    async with world.running():
        held = world.informer.peek("a", "ns")
        assert held is not None
        assert not held.whole
        assert "spec" not in held.plain()
        assert held.plain()["metadata"]["annotations"] == {}


async def test_a_transform_that_fails_loses_no_object(caplog: pytest.LogCaptureFixture) -> None:
    def bad(obj: dict[str, Any]) -> dict[str, Any]:
        raise KeyError("x")

    world = World(transform=bad)
    async with world.running():
        assert world.size("a") == 101
        assert "leaving out fields failed; it is kept whole" in caplog.text


async def test_metadata_only() -> None:
    world = World(ResourceType("example.org", "v1", "Widget", "widgets"), metadata_only=True)
    async with world.running():
        assert all("as=PartialObjectMetadata" in request.headers["Accept"] for request in world.server.asked)


async def test_one_namespace_need_not_be_said_again() -> None:
    world = World(namespaces=["ns"])
    async with world.running():
        assert world.size("a", None) == 101


async def test_what_comes_late_does_not_go_back_in_time() -> None:
    """No server sends such a thing; a proxy that repeats itself might."""
    world = World()
    world.listen()
    async with world.running():
        world.words()
        queue = world.informer.engine.queue
        world.server.put("a")
        world.server.remove("b")
        await world.clock.settle()
        assert world.words() == ["updated a", "deleted b"]
        queue.update(cached("a", 50, uid="uid-1"))
        queue.update(cached("b", 104, uid="uid-2"))
        queue.delete(cached("a", 90, uid="uid-1"))
        queue.update(cached("a", 104, uid="uid-1"))
        await world.clock.settle()
        assert world.words() == []
        assert world.size("a") == 104
        assert world.informer.get("b", "ns") is None


async def test_another_object_of_the_same_name_is_told_as_such() -> None:
    world = World()
    world.listen()
    async with world.running():
        world.words()
        world.informer.engine.queue.update(cached("a", 200, uid="another"))
        await world.clock.settle()
        assert world.words() == ["deleted a", "added a"]


# -- own writes


@pytest.mark.capability("C20")
async def test_a_write_is_read_before_the_watch_brings_it() -> None:
    world = World()
    world.informer.add_index("ns", by_namespace)
    async with world.running():
        _, changed = world.server.put("a")
        _, made = world.server.put("new")
        world.informer.note_write(changed)
        world.informer.note_write(made)
        assert world.informer.store.get(("ns", "new")) is None, "the watch has not brought it"
        assert world.size("a") == 104
        assert world.size("new") == 105
        assert len(world.informer.list()) == 4
        assert len(world.informer.by_index("ns", "ns")) == 4
        assert {obj.resource_version for obj in world.informer.peek_index("ns", "ns")} >= {"104", "105"}
        await world.clock.settle()
        assert len(world.informer.engine.overlay) == 0
        assert world.size("new") == 105


@pytest.mark.capability("C20")
async def test_a_delete_is_read_before_the_watch_brings_it() -> None:
    world = World()
    world.listen()
    async with world.running():
        world.words()
        world.server.remove("a")
        world.informer.note_delete("a", "ns", uid="uid-1")
        assert world.informer.get("a", "ns") is None
        assert len(world.informer.list()) == 2
        _, again = world.server.put("a")
        world.informer.note_write(again, base="")
        assert world.size("a") == 105
        await world.clock.settle()
        assert world.words() == ["deleted a own", "added a own"]
        assert len(world.informer.engine.overlay) == 0


async def test_a_late_note_brings_nothing_back() -> None:
    """The watch was quicker than the answer, and the object is gone already."""
    world = World()
    async with world.running():
        _, old = world.server.put("a")
        world.server.remove("a")
        await world.clock.settle()
        world.informer.note_write(old)
        assert world.informer.get("a", "ns") is None
        world.informer.note_delete("b", "ns", uid="another one")
        assert world.informer.get("b", "ns") is not None


async def test_an_older_version_from_the_watch_does_not_go_back_in_time() -> None:
    world = World()
    world.listen()
    async with world.running():
        world.words()
        world.server.put("a")
        base = str(world.server.version)
        _, ours = world.server.put("a")
        world.informer.note_write(ours, base=base)
        await world.clock.settle()
        assert world.words() == ["updated a", "updated a own"], "the foreign one in between is told as such"
        assert world.size("a") == 105


@pytest.mark.capability("C21")
async def test_an_answer_that_changed_nothing_is_not_our_write() -> None:
    world = World()
    world.listen()
    async with world.running():
        world.words()
        _, foreign = world.server.put("a")
        world.informer.note_write(foreign, base=str(world.server.version))
        world.server.put("b")
        world.informer.note_write(world.server.objects["b"])
        await world.clock.settle()
        assert world.words() == ["updated a", "updated b"]


@pytest.mark.capability("C21")
async def test_what_was_sent_proves_whose_change_it_was() -> None:
    world = World()
    world.listen()
    async with world.running():
        world.words()
        _, ours = world.server.put("a")
        world.informer.note_write(ours, sent={"spec": {"size": 104}})
        _, foreign = world.server.put("b")
        world.informer.note_write(foreign, sent={"metadata": {"labels": {"x": "1"}}})
        await world.clock.settle()
        assert world.words() == ["updated a own", "updated b"]


@pytest.mark.capability("C21")
async def test_after_a_gap_nothing_passes_as_our_own() -> None:
    """A list shows one step where there were several, perhaps not all of them ours."""
    world = World()
    world.listen()
    async with world.running():
        world.words()
        world.server.break_watches("gone")
        await asyncio.sleep(0)
        world.server.put("a")
        _, ours = world.server.put("a")
        world.informer.note_write(ours, base="104")
        await world.clock.advance(1)
        assert world.words() == ["updated a"]
        assert len(world.informer.engine.overlay) == 0


async def test_selectors_hold_for_own_writes() -> None:
    world = World(labels="app=web")
    async with world.running():
        _, plain = world.server.put("a")
        world.informer.note_write(plain)
        assert world.informer.get("a", "ns") is None, "it is not selected any more"
        _, other = world.server.put("other")
        world.informer.note_write(other)
        assert world.informer.get("other", "ns") is None
