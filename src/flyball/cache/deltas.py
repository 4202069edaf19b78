"""The delta queue: between a reflector that hears of changes and a consumer that works them off.

It keeps, per key, everything that happened since the consumer last took that key, in order. So the consumer sees every
change exactly once, and all the changes of a key together.

What it guarantees:

- the deltas of a key, applied in the order in which they come out, give the state of the object on the server;
- keys come out in the order in which they first got a delta; a key that has been taken and changes again goes behind;
- several deletes in a row are one; an object that vanished while nobody watched gets a delete whose object is the last
  known state (`final` is False);
- after `replace`, the consumer ends up with exactly the objects of the list.

`known` shows what the consumer has already: without it, `replace` cannot find what vanished before it was queued.
It belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import builtins
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple, Protocol

from flyball.cache.objects import CachedObject, Key

__all__ = ["Delta", "DeltaKind", "DeltaQueue", "Known"]

_ANY: Final = "*"

DeltaKind = Literal["added", "updated", "deleted", "replaced", "sync"]


class Delta(NamedTuple):
    """One change: what happened, and the object after it (of a delete: as it was last known)."""

    type: DeltaKind
    object: CachedObject
    final: bool = True
    """False for a delete that nobody saw: the object was missing in a list, and this is how it was seen last."""
    initial: bool = False
    """Part of a first list."""


class Known(Protocol):
    """What the consumer has: a `Store` is one."""

    def get(self, key: Key) -> CachedObject | None:
        """The object that the consumer has under this key."""
        ...

    def keys(self, namespace: str | None = None) -> builtins.list[Key]:
        """The keys that it has, of all or of one namespace."""
        ...

    def list(self, namespace: str | None = None) -> builtins.list[CachedObject]:
        """The objects that it has."""
        ...


class DeltaQueue:
    """See the module's text. It is a `Sink`: a reflector can feed it."""

    def __init__(self, known: Known | None = None, *, namespaces: Iterable[str | None] | None = None) -> None:
        """`known` is what the consumer has, `namespaces` those whose lists make it synced (default: one list, any)."""
        self._known = known
        # A bare object stands for one `replaced`: a first list has thousands of them, and lists of deltas are large.
        self._items: dict[Key, CachedObject | builtins.list[Delta]] = {}
        self._order: deque[Key] = deque()
        self._initial: set[Key] = set()
        self._unlisted: set[str | None] = set(namespaces) if namespaces is not None else {_ANY}
        self._filled = asyncio.Event()
        self.resource_version = ""
        """Up to which version of the collection everything is in here or was taken out."""

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: Key) -> bool:
        return key in self._items

    @property
    def has_synced(self) -> bool:
        """Whether the first list (of each namespace) came in and all of it was taken out."""
        return not self._unlisted and not self._initial

    # -- what reflectors tell ------------------------------------------------------------------------------------------

    def add(self, obj: CachedObject) -> None:
        """An object that was made."""
        self._put(Delta("added", obj))

    def update(self, obj: CachedObject) -> None:
        """An object that was changed."""
        self._put(Delta("updated", obj))

    def delete(self, obj: CachedObject) -> None:
        """An object that is gone, and nobody needs to hear of it who never knew it."""
        if obj.key in self._items or self._known is None or self._known.get(obj.key) is not None:
            self._put(Delta("deleted", obj))

    def replace(
        self, objects: Iterable[CachedObject], resource_version: str = "", *, namespace: str | None = None
    ) -> None:
        """The state of the whole collection, or of one namespace: what is not in it is gone."""
        listed = _ANY if _ANY in self._unlisted else namespace
        first = listed in self._unlisted
        present: set[Key] = set()
        items, known = self._items, self._known
        for obj in objects:
            key = obj.key
            present.add(key)
            last = known.get(key) if known is not None else None
            if last is None and key not in items:
                items[key] = obj
                self._order.append(key)
                continue
            waiting = self._waiting(key)
            if waiting:
                last = waiting[-1].object if waiting[-1].type != "deleted" else None
            if last is not None and last.uid != obj.uid:
                self._put(Delta("deleted", last, final=False))
            self._put(Delta("replaced", obj, True, first))
        for gone in self._vanished(present, namespace):
            self._put(Delta("deleted", gone, final=False))
        if first:
            self._initial = self._initial | present if self._initial else present
            self._unlisted.discard(listed)
        self.resource_version = resource_version
        self._filled.set()

    def bookmark(self, resource_version: str) -> None:
        """Nothing happened up to this version but what was told."""
        self.resource_version = resource_version

    def resync(self) -> None:
        """Give the consumer everything it knows once more, but for the keys of which there is news anyway."""
        if self._known is not None:
            for obj in self._known.list():
                if obj.key not in self._items:
                    self._put(Delta("sync", obj))

    def _vanished(self, present: set[Key], namespace: str | None) -> list[CachedObject]:
        gone: list[CachedObject] = []
        for key in self._items:
            if key not in present and (namespace is None or key[0] == namespace):
                last = self._waiting(key)[-1]
                gone += [last.object] if last.type != "deleted" else []
        if self._known is not None:
            for key in self._known.keys(namespace):
                if key not in present and key not in self._items:
                    known = self._known.get(key)
                    gone += [known] if known is not None else []
        return gone

    def _waiting(self, key: Key) -> builtins.list[Delta]:
        """The deltas of a key that wait, to be appended to; none when the key does not wait."""
        found = self._items.get(key)
        if found is None or isinstance(found, list):
            return found or []
        deltas = self._items[key] = [self._bare(key, found)]
        return deltas

    def _bare(self, key: Key, obj: CachedObject) -> Delta:
        return Delta("replaced", obj, True, key in self._initial)

    def _put(self, delta: Delta) -> None:
        waiting = self._waiting(delta.object.key)
        if not waiting:
            self._items[delta.object.key] = [delta]
            self._order.append(delta.object.key)
        elif delta.type == "deleted" and waiting[-1].type == "deleted":
            if not waiting[-1].final:
                waiting[-1] = delta
        else:
            waiting.append(delta)
        self._filled.set()

    # -- what consumers take -------------------------------------------------------------------------------------------

    def pop(self) -> tuple[Key, Sequence[Delta]]:
        """Take the next key with all its deltas; IndexError when nothing waits."""
        if not self._order:
            raise IndexError("the delta queue is empty; await wait() first")
        key = self._order.popleft()
        found = self._items.pop(key)
        deltas = found if isinstance(found, list) else [self._bare(key, found)]
        self._initial.discard(key)
        if not self._items:
            # Neither shrinks by itself, and a first list makes them large.
            self._items, self._initial = {}, set()
            self._filled.clear()
        return key, deltas

    async def wait(self) -> None:
        """Return when something waits to be taken, or when a list came in, which may be empty."""
        await self._filled.wait()
        if not self._items:
            self._filled.clear()
