"""Own writes: what a writer knows before the watch tells it.

After a write its answer is laid over the store, until the watch has come that far; reads look here first. And the
echo of the write, when the watch brings it, is recognised by its version.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flyball.cache.objects import CachedObject, Key, is_newer
from flyball.cache.store import Store

__all__ = ["Overlay"]


@dataclass(frozen=True, slots=True)
class _Entry:
    version: str
    uid: str
    object: CachedObject | None
    """None: the object is gone, or not selected any more."""
    deleted: bool
    values: Mapping[str, tuple[str, ...]]


class Overlay:
    """What was written and has not come back yet. Belongs to the event loop; reads may come from any thread."""

    def __init__(self, store: Store) -> None:
        """Over this store."""
        self._store = store
        self._entries: dict[Key, _Entry] = {}
        self._own: dict[Key, set[str]] = {}
        self._deletes: dict[Key, str] = {}

    def __len__(self) -> int:
        return len(self._entries)

    # -- reading -------------------------------------------------------------------------------------------------------

    def get(self, key: Key) -> CachedObject | None:
        """The newest version known."""
        entry = self._entries.get(key)
        if entry is None:
            return self._store.get(key)
        return entry.object

    def list(self, namespace: str | None) -> builtins.list[CachedObject]:
        """The newest versions known, of all or of one namespace."""
        if not self._entries:
            return self._store.list(namespace)
        return self._merged(
            lambda: self._store.list(namespace), lambda entry, key: namespace is None or key[0] == namespace
        )

    def by_index(self, name: str, value: str) -> builtins.list[CachedObject]:
        """The newest versions known for which the index gives this value."""
        if not self._entries:
            return self._store.by_index(name, value)
        return self._merged(
            lambda: self._store.by_index(name, value), lambda entry, key: value in self._values(entry, name)
        )

    def _values(self, entry: _Entry, name: str) -> tuple[str, ...]:
        known = entry.values.get(name)
        if known is None and entry.object is not None:
            return self._store.index_values(name, entry.object)
        return known or ()

    def _merged(
        self, stored: Callable[[], builtins.list[CachedObject]], selects: Callable[[_Entry, Key], bool]
    ) -> builtins.list[CachedObject]:
        with self._store.lock:
            entries = dict(self._entries)
            found = [obj for obj in stored() if obj.key not in entries]
            found += [entry.object for key, entry in entries.items() if entry.object and selects(entry, key)]
        return found

    # -- writes --------------------------------------------------------------------------------------------------------

    def written(self, obj: CachedObject, *, shown: bool) -> None:
        """This version was written; `shown` False: the informer's selectors do not select it any more."""
        values = {name: self._store.index_values(name, obj) for name in self._store.indexes}
        with self._store.lock:
            self._entries[obj.key] = _Entry(obj.resource_version, obj.uid, obj if shown else None, False, values)

    def deleted(self, key: Key, uid: str, version: str) -> None:
        """The object with this uid is gone."""
        with self._store.lock:
            self._entries[key] = _Entry(version, uid, None, True, {})
        self.deletes(key, uid)

    def is_own(self, key: Key, version: str) -> None:
        """The step to this version was made by us alone."""
        self._own.setdefault(key, set()).add(version)

    # -- the watch comes -----------------------------------------------------------------------------------------------

    def seen(self, obj: CachedObject, *, gone: bool) -> None:
        """The store has been brought to this version (or the object was removed from it)."""
        entry = self._entries.get(obj.key)
        if entry is None:
            return
        if entry.deleted:
            caught_up = gone or (bool(entry.uid) and obj.uid != entry.uid)
        else:
            caught_up = is_newer(entry.version, obj.resource_version) is not True
        if caught_up:
            with self._store.lock:
                self._entries.pop(obj.key, None)

    def claim(self, key: Key, version: str) -> bool:
        """Whether the step to this version was our own; what is not newer is forgotten."""
        own = self._own.get(key)
        if own is None:
            return False
        found = version in own
        left = {other for other in own if is_newer(other, version)}
        if left:
            self._own[key] = left
        else:
            del self._own[key]
        return found

    def deletes(self, key: Key, uid: str) -> None:
        """We deleted the object with this uid."""
        self._deletes[key] = uid

    def claim_delete(self, key: Key, uid: str) -> bool:
        """Whether we deleted this very object; asked once."""
        if self._deletes.get(key) != uid:
            return False
        del self._deletes[key]
        return True

    def settle(self, position: Callable[[Key], str], held: Callable[[Key], bool]) -> None:
        """The store is complete up to `position`: what is not newer has come, in whatever form."""
        for key, entry in list(self._entries.items()):
            passed = is_newer(entry.version, position(key)) is False
            if passed and (not entry.deleted or key not in self._store):
                with self._store.lock:
                    self._entries.pop(key, None)
        for key, versions in list(self._own.items()):
            if not held(key) and all(is_newer(version, position(key)) is False for version in versions):
                del self._own[key]
        for key in [key for key in self._deletes if key not in self._store and not held(key)]:
            del self._deletes[key]

    def clear(self) -> None:
        """Forget everything."""
        with self._store.lock:
            self._entries.clear()
            self._own.clear()
            self._deletes.clear()
