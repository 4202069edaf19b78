"""The store itself: present state, history, watchers, and commits in batches."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from flyball.clock import Clock, RealClock
from flyball.controlplane.apiserver.store.contract import (
    ADDED,
    DELETED,
    MODIFIED,
    Build,
    Change,
    Draft,
    Entry,
    Event,
    EventType,
    Expired,
    Future,
    Key,
    Stale,
    Storage,
    StorageError,
)
from flyball.controlplane.apiserver.store.memory import MemoryStorage
from flyball.controlplane.apiserver.store.watcher import Selection, Watcher

__all__ = ["Limits", "Listing", "Snapshot", "Store"]

_Place = tuple[str, str]
"""Namespace and name: the order of lists."""


class Limits(NamedTuple):
    """How much history and how slow a watcher the store bears."""

    history: int = 20_000
    """Events kept per resource, however young they are."""
    history_seconds: float = 300.0
    """Older events go, once there are more than `history_floor` of them."""
    history_floor: int = 1_000
    watcher: int = 10_000
    """Events that may wait for one watcher."""


class Listing(NamedTuple):
    """Entries in order of namespace and name, and the revision at which this was the whole truth."""

    entries: list[Entry]
    revision: int


class Snapshot(NamedTuple):
    """Everything that is stored, at one revision. Entries never change, so it is only references."""

    resources: dict[str, dict[_Place, Entry]]
    revision: int


class _Past(NamedTuple):
    event: Event
    at: float


class _Resource:
    """One resource: its entries, their order, its history and its watchers."""

    __slots__ = ("entries", "history", "oldest", "order", "watchers")

    def __init__(self, oldest: int) -> None:
        self.entries: dict[_Place, Entry] = {}
        self.order: list[_Place] = []
        self.history: deque[_Past] = deque()
        self.oldest = oldest
        """A watch may start at this revision or later."""
        self.watchers: list[Watcher] = []

    def replace(self, entries: dict[_Place, Entry]) -> None:
        self.entries = entries
        self.order = sorted(entries)

    def put(self, place: _Place, entry: Entry) -> None:
        if place not in self.entries:
            insort(self.order, place)
        self.entries[place] = entry

    def drop(self, place: _Place) -> None:
        del self.entries[place]
        del self.order[bisect_left(self.order, place)]


class _Commit(NamedTuple):
    key: Key
    expected: Entry | None
    build: Build
    delete: bool
    done: asyncio.Future[Entry]


class Store:
    """Keeps the objects of a cluster as `contract` promises. Belongs to one event loop."""

    def __init__(
        self, storage: Storage | None = None, *, clock: Clock | None = None, limits: Limits | None = None
    ) -> None:
        """Load what the storage holds; a store without storage begins empty."""
        self._storage: Storage = storage if storage is not None else MemoryStorage()
        self._clock: Clock = clock if clock is not None else RealClock()
        self._limits = limits if limits is not None else Limits()
        self._resources: dict[str, _Resource] = {}
        self._queue: deque[_Commit] = deque()
        self._writer: asyncio.Task[None] | None = None
        self._broken: StorageError | None = None
        self._advanced: list[asyncio.Future[None]] = []
        self.restored: list[Callable[[], None]] = []
        """Called after a snapshot was restored."""
        contents = self._storage.load()
        self._assigned = self._revision = self._first = contents.revision
        for entry in contents.entries:
            self._resource(entry.key.resource).entries[entry.key.namespace, entry.key.name] = entry
        for resource in self._resources.values():
            resource.replace(resource.entries)

    # Reading

    @property
    def revision(self) -> int:
        """The revision of the newest write that can be read."""
        return self._revision

    def get(self, key: Key) -> Entry | None:
        """Return what is stored at a place."""
        resource = self._resources.get(key.resource)
        return None if resource is None else resource.entries.get((key.namespace, key.name))

    def listing(self, resource: str, namespace: str | None = None, at: int | None = None) -> Listing:
        """Return the entries of a resource, in order, now or as they were at a revision that history still reaches."""
        stored = self._resources.get(resource)
        if at is not None and at > self._revision:
            raise Future(at, self._revision)
        if stored is None:
            if at is not None and at < self._first:
                raise Expired(at, self._first)
            return Listing([], self._revision if at is None else at)
        if at is None or at == self._revision:
            return Listing(_ordered(stored.entries, stored.order, namespace), self._revision)
        entries = self._as_of(stored, at)
        return Listing(_ordered(entries, sorted(entries), namespace), at)

    def count(self, resource: str) -> int:
        """Return how many objects a resource has."""
        stored = self._resources.get(resource)
        return 0 if stored is None else len(stored.entries)

    def resources(self) -> list[str]:
        """Name the resources that have objects."""
        return sorted(name for name, stored in self._resources.items() if stored.entries)

    async def reach(self, revision: int) -> None:
        """Wait until a revision can be read."""
        while self._revision < revision:
            waiting = asyncio.get_running_loop().create_future()
            self._advanced.append(waiting)
            await waiting

    def _as_of(self, stored: _Resource, revision: int) -> dict[_Place, Entry]:
        if revision < stored.oldest:
            raise Expired(revision, stored.oldest)
        entries = dict(stored.entries)
        for event, _ in reversed(stored.history):
            if event.revision <= revision:
                break
            place = (event.entry.key.namespace, event.entry.key.name)
            if event.previous is None:
                entries.pop(place, None)
            else:
                entries[place] = event.previous
        return entries

    # Watching

    def watch(
        self,
        resource: str,
        namespace: str | None = None,
        *,
        since: int | None = None,
        selection: Selection | None = None,
        limit: int | None = None,
    ) -> Watcher:
        """Follow a resource from now on, or from just after a revision: one of its history, or one still to come."""
        stored = self._resource(resource)
        start = self._revision if since is None else since
        if start < stored.oldest:
            raise Expired(start, stored.oldest)
        watcher = Watcher(namespace, selection, limit or self._limits.watcher, start, self._forget(stored))
        if start < self._revision:
            watcher.replay(_after(stored.history, start))
        stored.watchers.append(watcher)
        return watcher

    def watchers(self, resource: str) -> int:
        """Return how many follow a resource."""
        stored = self._resources.get(resource)
        return 0 if stored is None else len(stored.watchers)

    def compact(self, revision: int | None = None) -> None:
        """Forget the history up to a revision (all of it by default): older starts are `Expired` from now on."""
        upto = self._revision if revision is None else min(revision, self._revision)
        self._first = max(self._first, upto)
        for stored in self._resources.values():
            while stored.history and stored.history[0].event.revision <= upto:
                stored.history.popleft()
            stored.oldest = max(stored.oldest, upto)

    def close_watchers(self, resource: str) -> None:
        """End every watch of a resource, as when its kind is taken away."""
        stored = self._resources.get(resource)
        for watcher in list(stored.watchers) if stored is not None else ():
            watcher.close()

    # Writing

    @property
    def durable(self) -> bool:
        """Tell whether writes are kept in a file: then one that was asked for is seen only some time later."""
        return self._storage.durable

    async def commit(self, key: Key, expected: Entry | None, build: Build) -> Entry:
        """Store what `build` makes, in place of `expected` (None: of nothing). Raises `Stale` or `StorageError`."""
        return await self._submit(key, expected, build, delete=False)

    async def delete(self, key: Key, expected: Entry, build: Build) -> Entry:
        """Remove `expected`; `build` makes its last state, which watchers get with the revision of the deletion."""
        return await self._submit(key, expected, build, delete=True)

    async def _submit(self, key: Key, expected: Entry | None, build: Build, *, delete: bool) -> Entry:
        if self._broken is not None:
            raise self._broken
        if not self._storage.durable:
            change, event = self._prepare(key, expected, build, delete=delete, pending={})
            self._publish(event)
            return event.entry if change.entry is None else change.entry
        done: asyncio.Future[Entry] = asyncio.get_running_loop().create_future()
        self._queue.append(_Commit(key, expected, build, delete, done))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self._write(), name="store writer")
        return await asyncio.shield(done)

    async def _write(self) -> None:
        """Write what has queued up, batch by batch, and publish each batch once it is durable."""
        while self._queue:
            commits = list(self._queue)
            self._queue.clear()
            batch: list[Change] = []
            published: list[tuple[_Commit, Event]] = []
            refused: list[tuple[_Commit, Exception]] = []
            pending: dict[Key, Entry | None] = {}
            for commit in commits:
                try:
                    change, event = self._prepare(
                        commit.key, commit.expected, commit.build, delete=commit.delete, pending=pending
                    )
                except Exception as reason:
                    refused.append((commit, reason))
                    continue
                pending[commit.key] = change.entry
                batch.append(change)
                published.append((commit, event))
            try:
                if batch:
                    await self._storage.write(batch)
            except Exception as error:
                self._break(
                    StorageError(f"the write to storage failed: {error}; the server takes no more writes"), commits
                )
                return
            for commit, event in published:
                self._publish(event)
                if not commit.done.done():
                    commit.done.set_result(event.entry)
            for commit, refusal in refused:  # after publishing: who tries again then reads what was in the way
                _fail(commit.done, refusal)

    def _prepare(
        self, key: Key, expected: Entry | None, build: Build, *, delete: bool, pending: dict[Key, Entry | None]
    ) -> tuple[Change, Event]:
        present = pending[key] if key in pending else self.get(key)
        if present is not expected:
            raise Stale(key, present)
        revision = self._assigned + 1
        draft = build(revision)
        self._assigned = revision
        entry = _entry(key, draft, revision, revision if expected is None else expected.created)
        kind: EventType = DELETED if delete else ADDED if expected is None else MODIFIED
        return Change(key, revision, None if delete else entry), Event(kind, entry, expected)

    def _publish(self, event: Event) -> None:
        entry = event.entry
        stored = self._resource(entry.key.resource)
        place = (entry.key.namespace, entry.key.name)
        if event.type == DELETED:
            stored.drop(place)
        else:
            stored.put(place, entry)
        self._revision = entry.revision
        self._remember(stored, event)
        for watcher in tuple(stored.watchers):
            watcher.offer(event)
        if self._advanced:
            waiting, self._advanced = self._advanced, []
            for one in waiting:
                if not one.done():
                    one.set_result(None)

    def _remember(self, stored: _Resource, event: Event) -> None:
        now = self._clock.monotonic()
        history = stored.history
        history.append(_Past(event, now))
        limits = self._limits
        while len(history) > limits.history or (
            len(history) > limits.history_floor and now - history[0].at > limits.history_seconds
        ):
            stored.oldest = history.popleft().event.revision

    def _break(self, error: StorageError, commits: list[_Commit]) -> None:
        self._broken = error
        commits.extend(self._queue)
        self._queue.clear()
        for commit in commits:
            _fail(commit.done, error)

    def reindex(self, resource: str, fields: Callable[[Entry], Mapping[str, str] | None]) -> None:
        """Give entries other values to be selected by, where `fields` has any; their bodies and revisions stay."""
        stored = self._resource(resource)
        for place, entry in stored.entries.items():
            values = fields(entry)
            if values is not None:
                stored.entries[place] = replace(entry, fields=values)

    # The whole

    def snapshot(self) -> Snapshot:
        """Remember everything that is stored now."""
        return Snapshot({name: dict(stored.entries) for name, stored in self._resources.items()}, self._revision)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot. The revision does not go back; history is gone and every watch ends.

        Only for a store in memory: nothing is written to storage.
        """
        if self._storage.durable:
            raise StorageError("a durable store cannot be restored from memory; start from a copy of its file")
        self._assigned = self._revision = self._first = self._revision + 1
        for name, stored in self._resources.items():
            stored.replace(dict(snapshot.resources.get(name, {})))
            stored.history.clear()
            stored.oldest = self._revision
            for watcher in list(stored.watchers):
                watcher.close()
        for follow in self.restored:
            follow()

    async def close(self) -> None:
        """Finish the writes under way, end every watch, and close the storage."""
        if self._writer is not None:
            await asyncio.gather(self._writer, return_exceptions=True)
        for name in self._resources:
            self.close_watchers(name)
        self._broken = self._broken or StorageError("the store is closed")
        await self._storage.close()

    def _resource(self, name: str) -> _Resource:
        stored = self._resources.get(name)
        if stored is None:
            stored = self._resources[name] = _Resource(self._first)
        return stored

    @staticmethod
    def _forget(stored: _Resource) -> Callable[[Watcher], None]:
        def forget(watcher: Watcher) -> None:
            if watcher in stored.watchers:
                stored.watchers.remove(watcher)

        return forget


def _entry(key: Key, draft: Draft, revision: int, created: int) -> Entry:
    return Entry(key, draft.body, revision, created, draft.uid, draft.labels, draft.fields, draft.api_version)


def _ordered(entries: dict[_Place, Entry], order: list[_Place], namespace: str | None) -> list[Entry]:
    if namespace is None:
        return [entries[place] for place in order]
    first = bisect_left(order, (namespace, ""))
    last = bisect_left(order, (namespace + "\0", ""))
    return [entries[place] for place in order[first:last]]


def _after(history: deque[_Past], revision: int) -> list[Event]:
    newer: list[Event] = []
    for event, _ in reversed(history):
        if event.revision <= revision:
            break
        newer.append(event)
    newer.reverse()
    return newer


def _fail(waiting: asyncio.Future[Entry], error: Exception) -> None:
    if not waiting.done():
        waiting.set_exception(error)
        waiting.exception()
