"""Predicates: which events of the cache may reach the queue.

A predicate looks at one event and says whether it matters. Predicates are combined with `&`, `|` and `~`:

    predicates=[generation_changed | labels_changed]
    Owns(Pod, predicates=[~status_changed])

Several predicates in a list must all let an event pass. Objects that were made or deleted always pass the ready-made
ones: they only compare what was with what is.

`default_for` is what a controller uses for its own kind unless it is told otherwise: generation, annotations, the mark
of deletion, or finalizers have changed. So a status that somebody else writes does not wake it, and its own never
does. A kind whose objects have no generation (a ConfigMap) passes with every change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from flyball.cache.events import CacheEvent
from flyball.cache.objects import CachedObject

__all__ = [
    "Predicate",
    "all_of",
    "annotations_changed",
    "condition_changed",
    "default_for",
    "deletion_changed",
    "everything",
    "finalizers_changed",
    "generation_changed",
    "labels_changed",
    "predicate",
    "resource_version_changed",
    "status_changed",
]


class Predicate:
    """A question about an event; made by `@predicate` from a function that answers it."""

    __slots__ = ("_ask", "name")

    def __init__(self, ask: Callable[[CacheEvent], bool], name: str = "") -> None:
        """`ask` sees the event and must be quick; `name` is for people."""
        self._ask = ask
        self.name = name or getattr(ask, "__name__", "predicate")

    def __call__(self, event: CacheEvent) -> bool:
        """Tell whether the event matters."""
        return self._ask(event)

    def __and__(self, other: Predicate) -> Predicate:
        """Both."""
        return Predicate(lambda event: self._ask(event) and other._ask(event), f"({self.name} & {other.name})")

    def __or__(self, other: Predicate) -> Predicate:
        """One of the two at least."""
        return Predicate(lambda event: self._ask(event) or other._ask(event), f"({self.name} | {other.name})")

    def __invert__(self) -> Predicate:
        """The opposite, for changes; what was made or deleted still passes."""
        return Predicate(lambda event: event.type != "updated" or not self._ask(event), f"~{self.name}")

    def __repr__(self) -> str:
        """Its name, as it was put together."""
        return f"<predicate {self.name}>"


def predicate(ask: Callable[[CacheEvent], bool]) -> Predicate:
    """Make a predicate of a function: `@predicate def big(event): return len(event.object.raw) > 1000`."""
    return Predicate(ask)


def all_of(predicates: Iterable[Predicate]) -> Predicate:
    """One predicate that holds when all of these hold."""
    combined = everything
    for one in predicates:
        combined = one if combined is everything else combined & one
    return combined


def _changed(differs: Callable[[CachedObject, CachedObject], bool], name: str) -> Predicate:
    def ask(event: CacheEvent) -> bool:
        if event.old is None or event.new is None:
            return True
        return event.old is not event.new and differs(event.old, event.new)

    return Predicate(ask, name)


class _Annotated(msgspec.Struct):
    annotations: msgspec.Raw = msgspec.Raw()


class _Head(msgspec.Struct):
    metadata: _Annotated | None = None
    status: msgspec.Raw = msgspec.Raw()


_head = msgspec.json.Decoder(_Head).decode
_plain = msgspec.json.Decoder().decode


def _value(raw: msgspec.Raw) -> Any:
    return _plain(raw) if len(raw) else None


def _annotations_differ(old: CachedObject, new: CachedObject) -> bool:
    if b'"annotations"' not in old.raw and b'"annotations"' not in new.raw:
        return False
    before, after = _head(old.raw).metadata, _head(new.raw).metadata
    empty = _Annotated()
    return (_value((before or empty).annotations) or {}) != (_value((after or empty).annotations) or {})


def _status_differs(old: CachedObject, new: CachedObject) -> bool:
    return bool(_value(_head(old.raw).status) != _value(_head(new.raw).status))


class _Stated(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Conditions(msgspec.Struct):
    conditions: list[_Stated] | None = None


class _Told(msgspec.Struct):
    status: _Conditions | None = None


_told = msgspec.json.Decoder(_Told).decode


def condition_changed(type: str) -> Predicate:
    """The truth of a condition in the status has changed: `condition_changed("Ready")` for Pods."""

    def truth(view: CachedObject) -> str:
        status = _told(view.raw).status
        return next((one.status for one in (status and status.conditions) or () if one.type == type), "")

    return _changed(lambda old, new: truth(old) != truth(new), f"{type} changed")


def _generation_differs(old: CachedObject, new: CachedObject) -> bool:
    if not old.record.generation and not new.record.generation:
        return old.resource_version != new.resource_version
    return old.record.generation != new.record.generation


everything = Predicate(lambda event: True, "everything")
"""Every event, also the repetitions of a resync."""

resource_version_changed = _changed(lambda old, new: old.resource_version != new.resource_version, "version changed")
"""Anything was written; only the repetitions of a resync are dropped. The default for what a controller owns or
watches."""

generation_changed = _changed(_generation_differs, "generation changed")
"""What the object asks for has changed; of a kind without generations: anything."""

labels_changed = _changed(lambda old, new: old.record.labels != new.record.labels, "labels changed")
"""A label was set, changed or taken away."""

annotations_changed = _changed(_annotations_differ, "annotations changed")
"""An annotation was set, changed or taken away."""

deletion_changed = _changed(
    lambda old, new: old.record.deletion_timestamp != new.record.deletion_timestamp, "deletion changed"
)
"""Somebody asked for its deletion."""

finalizers_changed = _changed(
    lambda old, new: (old.record.finalizers or []) != (new.record.finalizers or []), "finalizers changed"
)
"""A finalizer was added or has done its work."""

status_changed = _changed(_status_differs, "status changed")
"""The status says something else."""

default_for = generation_changed | annotations_changed | deletion_changed | finalizers_changed
"""What wakes a controller for objects of its own kind, unless it is told otherwise."""
