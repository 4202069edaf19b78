"""The store of the embedded API server: every object, its history, and who watches it.

Read `contract` first: what is promised, and the words. `mvcc` keeps the promises; `watcher` is the queue between the
store and one reader; `memory` and `sqlite` are the storages under it.
"""

from __future__ import annotations

from flyball.controlplane.apiserver.store.contract import (
    ADDED,
    DELETED,
    MODIFIED,
    Change,
    Contents,
    Draft,
    Entry,
    Event,
    Expired,
    Future,
    Key,
    Stale,
    Storage,
    StorageError,
)
from flyball.controlplane.apiserver.store.memory import MemoryStorage
from flyball.controlplane.apiserver.store.mvcc import Limits, Listing, Snapshot, Store
from flyball.controlplane.apiserver.store.sqlite import SqliteStorage
from flyball.controlplane.apiserver.store.watcher import Selection, Watcher

__all__ = [
    "ADDED",
    "DELETED",
    "MODIFIED",
    "Change",
    "Contents",
    "Draft",
    "Entry",
    "Event",
    "Expired",
    "Future",
    "Key",
    "Limits",
    "Listing",
    "MemoryStorage",
    "Selection",
    "Snapshot",
    "SqliteStorage",
    "Stale",
    "Storage",
    "StorageError",
    "Store",
    "Watcher",
]
