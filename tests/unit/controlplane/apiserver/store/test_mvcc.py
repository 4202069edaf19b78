"""The store keeps what `contract` promises: checked against a model that is too simple to be wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flyball.clock import ManualClock
from flyball.controlplane.apiserver.store import (
    ADDED,
    DELETED,
    MODIFIED,
    Draft,
    Entry,
    Event,
    Expired,
    Future,
    Key,
    Limits,
    Stale,
    Store,
    Watcher,
)


def draft(text: str, **labels: str) -> Callable[[int], Draft]:
    return lambda revision: Draft(f"{text}@{revision}".encode(), uid=f"u-{text}", labels=labels)


def pod(name: str, namespace: str = "default") -> Key:
    return Key("pods", namespace, name)


def seen(events: list[Event]) -> list[tuple[str, str, int]]:
    return [(event.type, event.entry.key.name, event.revision) for event in events]


async def put(store: Store, key: Key, text: str = "x", **labels: str) -> Entry:
    return await store.commit(key, store.get(key), draft(text, **labels))


async def drop(store: Store, key: Key) -> Entry:
    entry = store.get(key)
    assert entry is not None
    return await store.delete(key, entry, draft("gone", **entry.labels))


class TestCommits:
    async def test_each_write_takes_the_next_revision_and_stands_in_its_body(self) -> None:
        store = Store()
        first = await put(store, pod("a"), "one")
        second = await put(store, pod("a"), "two")
        assert (first.body, second.body) == (b"one@1", b"two@2")
        assert (second.created, second.revision, store.revision) == (1, 2, 2)

    async def test_a_writer_that_saw_something_else_is_stale_and_changes_nothing(self) -> None:
        store = Store()
        old = await put(store, pod("a"))
        new = await put(store, pod("a"))
        with pytest.raises(Stale) as stale:
            await store.commit(pod("a"), old, draft("lost"))
        assert stale.value.present is new
        assert (store.get(pod("a")), store.revision) == (new, 2)

    async def test_creating_what_exists_is_stale(self) -> None:
        store = Store()
        await put(store, pod("a"))
        with pytest.raises(Stale):
            await store.commit(pod("a"), None, draft("again"))

    async def test_a_build_that_fails_takes_no_revision(self) -> None:
        store = Store()

        def fail(revision: int) -> Draft:
            raise ValueError("no body")

        with pytest.raises(ValueError, match="no body"):
            await store.commit(pod("a"), None, fail)
        assert (await put(store, pod("a"))).revision == 1


class TestLists:
    async def test_order_is_namespace_then_name_and_namespaces_do_not_leak(self) -> None:
        store = Store()
        for namespace, name in [("b", "x"), ("a", "z"), ("a-b", "q"), ("a", "m")]:
            await put(store, pod(name, namespace))
        everything = [entry.key[1:] for entry in store.listing("pods").entries]
        assert everything == [("a", "m"), ("a", "z"), ("a-b", "q"), ("b", "x")]
        assert [entry.key.name for entry in store.listing("pods", "a").entries] == ["m", "z"]

    async def test_a_revision_of_the_past_until_it_is_compacted(self) -> None:
        store = Store()
        await put(store, pod("a"), "one")
        await put(store, pod("b"))
        await put(store, pod("a"), "two")
        await drop(store, pod("b"))
        assert [entry.body for entry in store.listing("pods", at=2).entries] == [b"one@1", b"x@2"]
        store.compact(3)
        with pytest.raises(Expired):
            store.listing("pods", at=2)
        assert [entry.key.name for entry in store.listing("pods", at=3).entries] == ["a", "b"]

    async def test_a_revision_of_the_future_is_refused(self) -> None:
        with pytest.raises(Future):
            Store().listing("pods", at=1)


class TestWatches:
    async def test_history_then_live_without_gap(self) -> None:
        store = Store()
        await put(store, pod("a"))
        await put(store, pod("b"))
        watcher = store.watch("pods", since=1)
        await drop(store, pod("a"))
        assert seen(watcher.take()) == [(ADDED, "b", 2), (DELETED, "a", 3)]

    async def test_a_start_before_history_is_expired(self) -> None:
        store = Store()
        await put(store, pod("a"))
        store.compact()
        with pytest.raises(Expired, match=r"too old resource version: 0 \(1\)"):
            store.watch("pods", since=0)

    async def test_a_start_in_the_future_waits_for_it(self) -> None:
        store = Store()
        watcher = store.watch("pods", since=2)
        for _ in range(3):
            await put(store, pod("a"))
        assert seen(watcher.take()) == [(MODIFIED, "a", 3)]

    async def test_selection_turns_changes_into_coming_and_going(self) -> None:
        store = Store()
        watcher = store.watch("pods", selection=lambda entry: entry.labels.get("app") == "web")
        await put(store, pod("a"), app="db")
        await put(store, pod("a"), app="web")
        await put(store, pod("a"), app="web")
        await put(store, pod("a"), "last", app="db")
        await drop(store, pod("a"))
        events = watcher.take()
        assert seen(events) == [(ADDED, "a", 2), (MODIFIED, "a", 3), (DELETED, "a", 4)]
        assert events[-1].entry.labels == {"app": "web"}, "what left is shown as it was before"

    async def test_a_reader_that_does_not_drain_is_closed_and_told(self) -> None:
        store = Store(limits=Limits(watcher=2))
        watcher = store.watch("pods")
        for _ in range(4):
            await put(store, pod("a"))
        assert watcher.slow
        assert seen(await watcher.next()) == [(ADDED, "a", 1), (MODIFIED, "a", 2)]
        assert await watcher.next() == []
        resumed = store.watch("pods", since=2)
        assert [event.revision for event in resumed.take()] == [3, 4]

    async def test_a_waiting_reader_wakes_on_write_and_on_close(self) -> None:
        store = Store()
        watcher = store.watch("pods")
        waiting = asyncio.create_task(watcher.next())
        await asyncio.sleep(0)
        await put(store, pod("a"))
        assert seen(await waiting) == [(ADDED, "a", 1)]
        waiting = asyncio.create_task(watcher.next())
        await asyncio.sleep(0)
        store.close_watchers("pods")
        assert await waiting == []

    async def test_history_is_bounded_in_number_and_age(self) -> None:
        clock = ManualClock()
        store = Store(clock=clock, limits=Limits(history=4, history_seconds=10, history_floor=2))
        for _ in range(6):
            await put(store, pod("a"))
        store.watch("pods", since=2)
        with pytest.raises(Expired):
            store.watch("pods", since=1)
        await clock.advance(11)
        await put(store, pod("a"))
        with pytest.raises(Expired):
            store.watch("pods", since=4)


class TestSnapshots:
    async def test_restore_brings_objects_back_and_never_the_revision(self) -> None:
        store = Store()
        await put(store, pod("kept"), "kept")
        snapshot = store.snapshot()
        await drop(store, pod("kept"))
        await put(store, pod("new"))
        watcher = store.watch("pods")
        store.restore(snapshot)
        assert [entry.key.name for entry in store.listing("pods").entries] == ["kept"]
        assert store.revision > 3
        assert watcher.closed
        with pytest.raises(Expired):
            store.watch("pods", since=3)


@dataclass
class Model:
    """What a store is: a dictionary for every revision there was."""

    states: list[dict[Key, Entry]] = field(default_factory=lambda: [{}])
    events: list[tuple[int, str, Key]] = field(default_factory=list[tuple[int, str, Key]])

    def put(self, entry: Entry) -> None:
        kind = MODIFIED if entry.key in self.states[-1] else ADDED
        self.states.append({**self.states[-1], entry.key: entry})
        self.events.append((entry.revision, kind, entry.key))

    def drop(self, entry: Entry) -> None:
        self.states.append({key: value for key, value in self.states[-1].items() if key != entry.key})
        self.events.append((entry.revision, DELETED, entry.key))


KEYS = [pod(name, namespace) for namespace in ("a", "b") for name in ("x", "y", "z")]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "drop", "watch", "read", "reconnect"]), st.sampled_from(KEYS), st.booleans()
    ),
    max_size=60,
)


@given(STEPS)
@settings(deadline=None)
def test_any_schedule_of_writes_and_watchers_gives_what_the_model_says(steps: list[tuple[str, Key, bool]]) -> None:
    asyncio.run(_play(steps))


async def _play(steps: list[tuple[str, Key, bool]]) -> None:
    store, model = Store(limits=Limits(watcher=5)), Model()
    readers: list[_Reader] = []
    for step, key, blue in steps:
        if step == "put":
            model.put(await put(store, key, colour="blue" if blue else "red"))
        elif step == "drop" and store.get(key) is not None:
            model.drop(await drop(store, key))
        elif step == "watch":
            readers.append(_Reader(store, key.namespace if blue else None))
        elif step == "read" and readers:
            readers[len(key.name) % len(readers)].read()
        elif step == "reconnect" and readers:
            readers[0].reconnect()
    for revision, state in enumerate(model.states):
        listed = store.listing("pods", at=revision).entries
        assert {entry.key: entry for entry in listed} == state
        assert [entry.key for entry in listed] == sorted(entry.key for entry in listed)
    for reader in readers:
        reader.finish()
        expected = [
            one for one in model.events if one[0] > reader.begin and reader.namespace in (None, one[2].namespace)
        ]
        assert reader.seen == expected, "every event once, in order"


class _Reader:
    """Reads when told, reconnects from the last revision it saw when it was closed for slowness."""

    def __init__(self, store: Store, namespace: str | None) -> None:
        self.store, self.namespace = store, namespace
        self.begin = self.last = store.revision
        self.seen: list[tuple[int, str, Key]] = []
        self.watcher: Watcher = store.watch("pods", namespace)

    def read(self) -> None:
        for event in self.watcher.take():
            self.seen.append((event.revision, event.type, event.entry.key))
            self.last = event.revision
        if self.watcher.closed:
            self.watcher = self.store.watch("pods", self.namespace, since=self.last)

    def reconnect(self) -> None:
        self.watcher.close()
        self.watcher = self.store.watch("pods", self.namespace, since=self.last)

    def finish(self) -> None:
        while self.watcher.pending() or self.watcher.closed:
            self.read()
