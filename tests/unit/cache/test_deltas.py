from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.support.cached import cached

from flyball.cache import Delta, DeltaQueue, Store


def drain(queue: DeltaQueue) -> list[tuple[str, list[tuple[str, str]]]]:
    found: list[tuple[str, list[tuple[str, str]]]] = []
    while len(queue):
        key, deltas = queue.pop()
        found.append((key[1], [(delta.type, delta.object.resource_version) for delta in deltas]))
    return found


def test_changes_of_a_key_come_together_in_order() -> None:
    queue = DeltaQueue()
    queue.add(cached("a", 1))
    queue.add(cached("b", 2))
    queue.update(cached("a", 3))
    assert drain(queue) == [("a", [("added", "1"), ("updated", "3")]), ("b", [("added", "2")])]


def test_a_key_that_was_taken_goes_behind() -> None:
    queue = DeltaQueue()
    queue.add(cached("a", 1))
    queue.add(cached("b", 2))
    assert queue.pop()[0] == ("ns", "a")
    queue.update(cached("a", 3))
    assert [name for name, _ in drain(queue)] == ["b", "a"]


def test_deletes_in_a_row_are_one() -> None:
    queue = DeltaQueue()
    queue.add(cached("a", 1))
    queue.delete(cached("a", 2))
    queue.delete(cached("a", 3))
    assert drain(queue) == [("a", [("added", "1"), ("deleted", "2")])]


def test_a_seen_delete_takes_the_place_of_a_guessed_one() -> None:
    store = Store()
    store.put(cached("a", 1))
    queue = DeltaQueue(store)
    queue.replace([], "5")
    queue.delete(cached("a", 4))
    _, deltas = queue.pop()
    assert deltas == [Delta("deleted", deltas[0].object, True)]
    assert deltas[0].object.resource_version == "4"


def test_a_delete_of_what_nobody_knows_is_not_told() -> None:
    queue = DeltaQueue(Store())
    queue.delete(cached("a", 1))
    assert len(queue) == 0


def test_what_vanished_is_told_with_its_last_known_state() -> None:
    store = Store()
    store.put(cached("old", 1))
    queue = DeltaQueue(store)
    queue.add(cached("young", 2))
    queue.replace([cached("new", 3)], "3")
    found = {key[1]: deltas for key, deltas in (queue.pop() for _ in range(len(queue)))}
    assert [(d.type, d.final) for d in found["old"]] == [("deleted", False)]
    assert [d.type for d in found["young"]] == ["added", "deleted"]
    assert [(d.type, d.initial) for d in found["new"]] == [("replaced", True)]
    assert queue.resource_version == "3"


def test_an_object_of_the_same_name_is_another_one() -> None:
    store = Store()
    store.put(cached("a", 1, uid="one"))
    queue = DeltaQueue(store)
    queue.replace([cached("a", 2, uid="two")], "2")
    assert drain(queue) == [("a", [("deleted", "1"), ("replaced", "2")])]


def test_a_list_of_one_namespace_says_nothing_of_others() -> None:
    store = Store()
    store.put(cached("a", 1))
    store.put(cached("b", 1, namespace="other"))
    queue = DeltaQueue(store, namespaces=["ns", "other"])
    queue.add(cached("c", 2, namespace="other"))
    queue.replace([], "3", namespace="ns")
    assert drain(queue) == [("c", [("added", "2")]), ("a", [("deleted", "1")])]
    assert not queue.has_synced
    queue.replace([], "3", namespace="other")
    drain(queue)
    assert queue.has_synced


def test_it_has_synced_when_the_first_list_was_taken_out() -> None:
    queue = DeltaQueue()
    assert not queue.has_synced
    queue.replace([cached("a"), cached("b")], "1")
    queue.pop()
    assert not queue.has_synced
    queue.pop()
    assert queue.has_synced
    queue.replace([cached("c")], "2")
    assert queue.has_synced


def test_resync_gives_what_is_known_but_not_what_waits() -> None:
    store = Store()
    store.put(cached("a", 1))
    store.put(cached("b", 1))
    queue = DeltaQueue(store)
    queue.update(cached("a", 2))
    queue.resync()
    assert drain(queue) == [("a", [("updated", "2")]), ("b", [("sync", "1")])]
    DeltaQueue().resync()


async def test_waiting() -> None:
    queue = DeltaQueue()
    waiting = asyncio.ensure_future(queue.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    queue.add(cached("a"))
    await waiting
    queue.pop()
    queue.replace([], "1")
    await queue.wait()
    waiting = asyncio.ensure_future(queue.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(IndexError, match="the delta queue is empty"):
        queue.pop()


NAMES = st.sampled_from(["a", "b", "c"])


class Replay(RuleBasedStateMachine):
    """Whatever happens, and whenever the consumer works: replayed deltas give the state of the server."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store()
        self.queue = DeltaQueue(self.store)
        self.server: dict[str, tuple[int, str]] = {}
        self.version = 0
        self.deaf = False

    def _next(self) -> int:
        self.version += 1
        return self.version

    @rule(name=NAMES)
    def write(self, name: str) -> None:
        version = self._next()
        made = name not in self.server
        uid = f"uid-{version}" if made else self.server[name][1]
        self.server[name] = (version, uid)
        if not self.deaf:
            obj = cached(name, version, uid=uid)
            self.queue.add(obj) if made else self.queue.update(obj)

    @rule(name=NAMES, twice=st.booleans())
    def delete(self, name: str, twice: bool) -> None:
        if name not in self.server:
            return
        _, uid = self.server.pop(name)
        gone = cached(name, self._next(), uid=uid)
        if not self.deaf:
            self.queue.delete(gone)
            if twice:
                self.queue.delete(gone)

    @rule()
    def lose_the_watch(self) -> None:
        self.deaf = True

    @rule()
    def list_again(self) -> None:
        objects = [cached(name, version, uid=uid) for name, (version, uid) in self.server.items()]
        self.queue.replace(objects, str(self.version))
        self.deaf = False

    @rule()
    def resync(self) -> None:
        self.queue.resync()

    @rule()
    def work_one(self) -> None:
        if len(self.queue):
            self._consume()

    def _consume(self) -> None:
        key, deltas = self.queue.pop()
        assert deltas
        for one, two in pairwise(deltas):
            assert (one.type, two.type) != ("deleted", "deleted")
        for delta in deltas:
            present = self.store.get(key)
            if delta.type == "deleted":
                self.store.remove(key)
            else:
                assert delta.type != "sync" or present is not None
                if delta.type != "added" and present is not None:
                    assert present.uid == delta.object.uid, "one object turned into another without a delete"
                self.store.put(delta.object)

    @invariant()
    def keys_wait_once(self) -> None:
        assert len(self.queue) <= 3

    def teardown(self) -> None:
        if self.deaf:
            self.list_again()
        while len(self.queue):
            self._consume()
        stored = {obj.name: (int(obj.resource_version), obj.uid) for obj in self.store.list()}
        assert stored == self.server


TestReplay = Replay.TestCase
TestReplay.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
