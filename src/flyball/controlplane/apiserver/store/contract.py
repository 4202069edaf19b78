"""What the store promises, and the words it is promised in.

The store keeps every version of every object that somebody may still ask for. It guarantees:

* One integer revision for everything. A committed write takes the next one; it is never used again and never goes
  back, also after a restart on durable storage.
* A write is visible to every read that begins after the write was acknowledged, and to no read before it is durable.
* A write names what it replaces. When something else is there, it fails with `Stale` and nothing has changed.
* A watcher gets the events of its resource in the order of their revisions, each exactly once, or it is told that it
  cannot (`Expired` at the start, a closed stream with `slow` set when it does not drain).
* An entry never changes after it was committed, so readers need no copies and no locks.

It does not know what an object is: it keeps bytes, and beside them the few values that reading needs (labels and the
fields that can be selected by). It does not validate, and it does not call anybody but its watchers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol

__all__ = [
    "ADDED",
    "DELETED",
    "MODIFIED",
    "Change",
    "Contents",
    "Draft",
    "Entry",
    "Event",
    "EventType",
    "Expired",
    "Future",
    "Key",
    "Stale",
    "Storage",
    "StorageError",
]

EventType = Literal["ADDED", "MODIFIED", "DELETED"]
ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"


class Key(NamedTuple):
    """The place of an object: its resource (`pods`, `deployments.apps`), namespace (empty at cluster scope), name."""

    resource: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Draft:
    """What a writer wants to be stored; the store adds the revision."""

    body: bytes
    """The object as JSON text."""
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    """Values of the fields that a field selector may name."""
    api_version: str = ""
    """The version that the body is written in."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One committed version of an object."""

    key: Key
    body: bytes
    revision: int
    created: int
    """The revision at which the object came into being."""
    uid: str
    labels: Mapping[str, str]
    fields: Mapping[str, str]
    api_version: str


@dataclass(frozen=True, slots=True)
class Event:
    """A committed change. For DELETED, `entry` is the last state with the revision of the deletion."""

    type: EventType
    entry: Entry
    previous: Entry | None
    frames: dict[object, bytes] = field(default_factory=dict[object, bytes], compare=False, repr=False)
    """Renderings of the event, made once per form by whoever needs one first and shared by all watchers."""

    @property
    def revision(self) -> int:
        """The revision of the change."""
        return self.entry.revision


class Change(NamedTuple):
    """What storage has to keep of one commit: the new entry, or None where the object is gone."""

    key: Key
    revision: int
    entry: Entry | None


class Contents(NamedTuple):
    """What storage held when it was opened."""

    revision: int
    entries: Iterable[Entry]


class Storage(Protocol):
    """Where entries survive the process.

    `write` returns when every change of the batch is durable, all of them or, with an exception, none. Batches are
    written one after the other, never two at once. `load` is called once, before the first `write`.
    """

    durable: bool
    """False when there is nothing to wait for: the store then commits without a task switch."""

    def load(self) -> Contents:
        """Give back all that was acknowledged before."""
        ...

    async def write(self, batch: list[Change]) -> None:
        """Make a batch of changes durable."""
        ...

    async def close(self) -> None:
        """Let go of files; nothing may be written afterwards."""
        ...


class Stale(Exception):
    """Something else is stored than the writer had seen; `present` is what is there now."""

    def __init__(self, key: Key, present: Entry | None) -> None:
        """Name the place and what is there."""
        super().__init__(f"{key.resource} {key.namespace}/{key.name} changed in between")
        self.key = key
        self.present = present


class Expired(Exception):
    """A revision was asked for whose history is gone; `oldest` is the first that can still be followed."""

    def __init__(self, asked: int, oldest: int) -> None:
        """Name both revisions."""
        super().__init__(f"too old resource version: {asked} ({oldest})")
        self.asked = asked
        self.oldest = oldest


class Future(Exception):
    """A revision was asked for that does not exist yet."""

    def __init__(self, asked: int, present: int) -> None:
        """Name both revisions."""
        super().__init__(f"Too large resource version: {asked}, current: {present}")
        self.asked = asked
        self.present = present


class StorageError(Exception):
    """Durable storage failed; the store takes no more writes, because it cannot keep its promises."""


Build = Callable[[int], Draft]
"""Makes the draft once its revision is known (it stands in the body as resourceVersion)."""
