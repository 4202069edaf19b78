"""How objects are watched: a reflector feeds a store, an informer tells handlers, a cache shares informers.

    LIST + WATCH bytes -> Reflector -> DeltaQueue -> Store (+ indexes) -> handlers, each with its own buffer
                                                       ^ own writes are laid over it until the watch catches up

What the room promises.

- **Nothing is missed.** After a gap everything is listed anew, and what vanished meanwhile is told with its last known
  state. A handler that is slow or fails costs nobody else an event.
- **Bytes, not objects.** The store holds each object as compact JSON and a small record of its metadata; a read decodes
  an object of the reader's own. So nothing is shared, nothing is copied, and memory stays small.
- **Read your own writes.** What a writer makes known is served from then on, although the watch is late; its echo is
  marked as `own`, and never a change of somebody else.
- **It waits.** Kinds that are not served yet, missing permissions and servers that are away are named in `health`, with
  since when; they end nothing.

Every part can be used alone. Reading order: `objects` (what is held), `reflector` (how it comes), `deltas` (how it is
queued), `store` and `indexes` (how it is found), `events` and `informer` (who is told), `overlay` (own writes),
`options` and `informers` (the cache of a whole process), `policy` (kinds that nobody declared), `health`.
"""

from __future__ import annotations

from flyball.cache.backoff import Backoff
from flyball.cache.deltas import Delta, DeltaQueue
from flyball.cache.events import CacheEvent, EventHandler
from flyball.cache.handlers import Registration
from flyball.cache.health import Health, MissingPermission
from flyball.cache.indexes import IndexFunction, by_controller_uid, by_label, by_namespace, by_owner_uid
from flyball.cache.informer import Informer
from flyball.cache.informers import InformerCache, NotCached, Write
from flyball.cache.metrics import NO_METRICS, Metrics
from flyball.cache.objects import CachedObject, Key
from flyball.cache.options import AllExcept, CacheOptions
from flyball.cache.policy import ReadPolicy
from flyball.cache.reflector import Reflector, Sink
from flyball.cache.store import Store, UnknownIndex

__all__ = [
    "NO_METRICS",
    "AllExcept",
    "Backoff",
    "CacheEvent",
    "CacheOptions",
    "CachedObject",
    "Delta",
    "DeltaQueue",
    "EventHandler",
    "Health",
    "IndexFunction",
    "Informer",
    "InformerCache",
    "Key",
    "Metrics",
    "MissingPermission",
    "NotCached",
    "ReadPolicy",
    "Reflector",
    "Registration",
    "Sink",
    "Store",
    "UnknownIndex",
    "Write",
    "by_controller_uid",
    "by_label",
    "by_namespace",
    "by_owner_uid",
]
