"""A store as it was some revisions ago, for reads that shall come late."""

from __future__ import annotations

from flyball.controlplane.apiserver.store import Entry, Expired, Key, Listing, Selection, Store, Watcher

__all__ = ["Past"]


class Past:
    """Reads of a `Store` at a revision of its history; where history does not reach, of the present."""

    def __init__(self, store: Store, revision: int) -> None:
        """Look at the store as it was at that revision."""
        self._store = store
        self._at = min(revision, store.revision)

    @property
    def revision(self) -> int:
        """The revision that is looked at."""
        return self._at

    def get(self, key: Key) -> Entry | None:
        """Return what was stored at a place."""
        found = self.listing(key.resource, key.namespace or None).entries
        return next((entry for entry in found if entry.key == key), None)

    def listing(self, resource: str, namespace: str | None = None, at: int | None = None) -> Listing:
        """Return the entries of a resource as they were."""
        try:
            return self._store.listing(resource, namespace, self._at if at is None else at)
        except Expired:
            return self._store.listing(resource, namespace)

    async def reach(self, revision: int) -> None:
        """Wait until a revision can be read."""
        await self._store.reach(revision)

    def watch(
        self,
        resource: str,
        namespace: str | None = None,
        *,
        since: int | None = None,
        selection: Selection | None = None,
    ) -> Watcher:
        """Follow a resource from the past on: what has happened since comes as events."""
        return self._store.watch(resource, namespace, since=self._at if since is None else since, selection=selection)
