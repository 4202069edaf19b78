"""What handlers are told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple, TypeAlias

from flyball.cache.objects import CachedObject, Key

__all__ = ["CacheEvent", "EventHandler", "EventKind"]

EventKind = Literal["added", "updated", "deleted"]


class CacheEvent(NamedTuple):
    """One change of one object, told after the store and its indexes show it.

    | type | old | new |
    |---|---|---|
    | added | None | the object |
    | updated | as it was | as it is; the same object as `old` in a resync |
    | deleted | as it was last known | None |

    An object that was deleted and made again while nobody watched gives a `deleted` and an `added`.
    """

    type: EventKind
    old: CachedObject | None
    new: CachedObject | None
    initial: bool = False
    """Part of what was there when the handler, or the informer, began."""
    own: bool = False
    """The echo of a write that was made known by `note_write`: nobody else changed anything in this step."""

    @property
    def object(self) -> CachedObject:
        """The object as it is, or as it was last."""
        found = self.new if self.new is not None else self.old
        assert found is not None, "an event is about an object"
        return found

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.object.key


EventHandler: TypeAlias = Callable[[CacheEvent], Awaitable[None] | None]
"""Called with one event at a time, in order. It should be quick; if it is not, only its own events wait."""
