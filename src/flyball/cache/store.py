"""The store: the last known version of each object, and indexes over them.

What it guarantees:

- any number of threads and tasks may read while one writes; every query is answered from one state of the store;
- an index shows every change at the same moment as `get` does, and its function runs once per change;
- what is handed out cannot be changed (`CachedObject`).

It does not know the server. Who feeds it (a `Reflector` directly, or an `Informer`) decides how fresh it is.
"""

from __future__ import annotations

import builtins
import logging
import threading
from collections.abc import Collection, Iterable, Mapping

from flyball.cache.indexes import IndexFunction
from flyball.cache.objects import CachedObject, Key
from flyball.errors import FlyballError

__all__ = ["Store", "UnknownIndex"]

log = logging.getLogger(__name__)


class UnknownIndex(FlyballError, LookupError):
    """A lookup by an index that the store does not have."""


class _Index:
    __slots__ = ("entries", "function", "name")

    def __init__(self, name: str, function: IndexFunction) -> None:
        self.name = name
        self.function = function
        self.entries: dict[str, dict[Key, CachedObject]] = {}

    def values(self, obj: CachedObject) -> tuple[str, ...]:
        try:
            return tuple(dict.fromkeys(self.function(obj)))
        except Exception:
            log.exception("index %s: its function failed on %r; the object is not in this index", self.name, obj)
            return ()

    def replace(self, key: Key, before: tuple[str, ...], after: tuple[str, ...], obj: CachedObject | None) -> None:
        for value in before:
            if value not in after:
                bucket = self.entries[value]
                bucket.pop(key, None)
                if not bucket:
                    del self.entries[value]
        if obj is not None:
            for value in after:
                self.entries.setdefault(value, {})[key] = obj


class Store:
    """See the module's text. It can be fed by a `Reflector` without anything between: it is a `Sink`."""

    def __init__(self, indexes: Mapping[str, IndexFunction] | None = None) -> None:
        """Empty; `indexes` are functions by name, more can be added at any time."""
        self.lock = threading.RLock()
        """Held by every operation; hold it to make several one."""
        self.resource_version = ""
        """The version of the whole collection up to which this store is known to be complete, if it is fed so."""
        self._objects: dict[Key, CachedObject] = {}
        self._indexes: dict[str, _Index] = {}
        self._values: dict[Key, builtins.list[tuple[str, ...]]] = {}
        for name, function in (indexes or {}).items():
            self.add_index(name, function)

    # -- reading -------------------------------------------------------------------------------------------------------

    def get(self, key: Key) -> CachedObject | None:
        """The object of this key."""
        return self._objects.get(key)

    def list(self, namespace: str | None = None) -> builtins.list[CachedObject]:
        """All objects, or those of one namespace."""
        with self.lock:
            if namespace is None:
                return list(self._objects.values())
            if "by_namespace" in self._indexes:
                return list(self._bucket("by_namespace", namespace).values())
            return [obj for key, obj in self._objects.items() if key[0] == namespace]

    def keys(self, namespace: str | None = None) -> builtins.list[Key]:
        """The keys of all objects, or of those of one namespace."""
        with self.lock:
            if namespace is None:
                return list(self._objects)
            return [key for key in self._objects if key[0] == namespace]

    def by_index(self, name: str, value: str) -> builtins.list[CachedObject]:
        """The objects that the index function `name` gave `value` for; `UnknownIndex` when there is no such index."""
        with self.lock:
            return list(self._bucket(name, value).values())

    def index_values(self, name: str, obj: CachedObject) -> tuple[str, ...]:
        """Under which values the index `name` would show this object, whether it is in the store or not."""
        return self._index(name).values(obj)

    @property
    def indexes(self) -> Collection[str]:
        """The names of the indexes."""
        return tuple(self._indexes)

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: Key) -> bool:
        return key in self._objects

    # -- indexes -------------------------------------------------------------------------------------------------------

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Index all objects, present and future, by what `function` gives; another function of that name is refused."""
        with self.lock:
            known = self._indexes.get(name)
            if known is not None:
                if known.function is not function:
                    raise ValueError(f"index {name!r} is there already, with another function; use another name")
                return
            index = _Index(name, function)
            for key, obj in self._objects.items():
                values = index.values(obj)
                index.replace(key, (), values, obj)
                self._values.setdefault(key, []).append(values)
            self._indexes[name] = index

    def _index(self, name: str) -> _Index:
        index = self._indexes.get(name)
        if index is None:
            known = ", ".join(sorted(self._indexes)) or "none"
            raise UnknownIndex(f"there is no index {name!r} (there are: {known}); add it with add_index")
        return index

    def _bucket(self, name: str, value: str) -> dict[Key, CachedObject]:
        return self._index(name).entries.get(value, {})

    # -- writing -------------------------------------------------------------------------------------------------------

    def put(self, obj: CachedObject) -> CachedObject | None:
        """Keep this version in place of the one before, which is returned."""
        with self.lock:
            before = self._objects.get(obj.key)
            self._objects[obj.key] = obj
            if self._indexes:
                self._reindex(obj.key, obj)
            return before

    def remove(self, key: Key) -> CachedObject | None:
        """Forget an object; returns it."""
        with self.lock:
            before = self._objects.pop(key, None)
            if before is not None and self._indexes:
                self._reindex(key, None)
            return before

    def clear(self) -> None:
        """Forget everything but the index functions."""
        with self.lock:
            self._objects.clear()
            self._values.clear()
            for index in self._indexes.values():
                index.entries.clear()

    def _reindex(self, key: Key, obj: CachedObject | None) -> None:
        before = self._values.pop(key, None)
        after: builtins.list[tuple[str, ...]] = []
        for position, index in enumerate(self._indexes.values()):
            values = index.values(obj) if obj is not None else ()
            index.replace(key, before[position] if before is not None else (), values, obj)
            after.append(values)
        if obj is not None:
            self._values[key] = after

    # -- as a sink of a reflector --------------------------------------------------------------------------------------

    def replace(
        self, objects: Iterable[CachedObject], resource_version: str = "", *, namespace: str | None = None
    ) -> None:
        """Make the store (or its part of one namespace) hold exactly these objects."""
        with self.lock:
            present = {obj.key: obj for obj in objects}
            for key in self.keys(namespace):
                if key not in present:
                    self.remove(key)
            for obj in present.values():
                self.put(obj)
            self.resource_version = resource_version

    def add(self, obj: CachedObject) -> None:
        """An object that was made."""
        self.put(obj)

    def update(self, obj: CachedObject) -> None:
        """An object that was changed."""
        self.put(obj)

    def delete(self, obj: CachedObject) -> None:
        """An object that is gone."""
        self.remove(obj.key)

    def bookmark(self, resource_version: str) -> None:
        """Nothing happened up to this version but what was told."""
        self.resource_version = resource_version
