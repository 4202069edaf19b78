"""Sources: where the keys of a controller come from.

| source | wakes the controller for |
|---|---|
| `For(Kind)` | the object itself; every controller has one |
| `Owns(Kind)` | the owner of the object that changed (group and kind of the owner reference are compared) |
| `Watches(Kind, mapper)` | what `mapper` says; it is asked about the object before and after the change |
| `Channel()` | what the program sends: events from outside of the cluster |

A source never tells a reconciler what happened: it turns an event into keys, or drops it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import Parameter, signature
from typing import Any, Generic, TypeVar

from flyball.api import DynamicObject, PartialObjectMetadata, Resource, ResourceType
from flyball.cache.events import CacheEvent
from flyball.cache.objects import CachedObject
from flyball.client.kinds import Kind, kind_from
from flyball.client.selectors import FieldQuery, LabelQuery
from flyball.controller.predicates import Predicate, all_of, default_for, resource_version_changed
from flyball.controller.request import Request

__all__ = ["AnyKind", "Channel", "For", "Mapper", "Owns", "Source", "Watches", "requests_of_owner"]

T = TypeVar("T")

AnyKind = type[Resource] | Kind[Any] | ResourceType
Mapped = Iterable[Request | str | tuple[str | None, str]] | Request | None
Mapper = Callable[..., Mapped]
"""`mapper(obj)`, or `mapper(obj, primaries)` with the informer of the controller's own kind, to look up who refers to
the object. It answers requests, names (in the object's namespace) or (namespace, name) pairs."""


@dataclass(frozen=True)
class Source:
    """What all sources that watch a kind have in common."""

    given: AnyKind
    """The kind: a class, `dynamic(...)`, `metadata_of(...)`, a `ResourceType`."""
    predicates: Sequence[Predicate] = field(default=(), kw_only=True)
    """All of them must let an event pass; default: see the module `predicates`."""
    namespace: str | None = field(default=None, kw_only=True)
    labels: LabelQuery | None = field(default=None, kw_only=True)
    fields: FieldQuery | None = field(default=None, kw_only=True)

    @property
    def kind(self) -> Kind[Any]:
        """The kind in the one form that verbs know."""
        return kind_from(self.given)

    def passes(self) -> Predicate:
        """All predicates in one."""
        return all_of(self.predicates) if self.predicates else resource_version_changed


@dataclass(frozen=True)
class For(Source):
    """The kind that the controller is for."""

    def passes(self) -> Predicate:
        """All predicates in one."""
        return all_of(self.predicates) if self.predicates else default_for


@dataclass(frozen=True)
class Owns(Source):
    """A kind of children: the owner of the changed object is looked at.

    Only the owner that is marked as controller counts, unless `any_owner` is set.
    """

    any_owner: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Watches(Source):
    """Any kind, with a function that says whom a change concerns."""

    mapper: Mapper

    def ask(self, view: CachedObject, primaries: Any) -> Iterable[Request]:
        """Ask the mapper about one state of the object."""
        found: Any = view.decode(self.kind)
        answer = self.mapper(found, primaries) if self._wants_primaries else self.mapper(found)
        return _requests(answer, view.namespace)

    @cached_property
    def _wants_primaries(self) -> bool:
        places = [
            one
            for one in signature(self.mapper).parameters.values()
            if one.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        ]
        return len(places) > 1


def _requests(answer: Mapped, namespace: str | None) -> Iterable[Request]:
    if answer is None:
        return ()
    if isinstance(answer, Request):
        return (answer,)
    if isinstance(answer, str):
        raise TypeError(f"a mapper answers a list of names, not the one text {answer!r}; write [{answer!r}]")
    found: list[Request] = []
    for one in answer:
        if isinstance(one, Request):
            found.append(one)
        elif isinstance(one, str):
            found.append(Request(namespace, one))
        else:
            found.append(Request(*one))
    return found


def requests_of_owner(event: CacheEvent, primary: ResourceType, *, any_owner: bool = False) -> Iterable[Request]:
    """The owners of this kind that the object has, or had before the change."""
    found: dict[Request, None] = {}
    for view in (event.old, event.new):
        for owner in view.record.owners if view is not None else ():
            if owner.kind != primary.kind or not owner.name or not (any_owner or owner.controller):
                continue
            group, _, version = (owner.api_version or "").rpartition("/")
            if group == primary.group and version:
                assert view is not None
                found[Request(view.namespace if primary.namespaced else None, owner.name)] = None
    return found


class Channel(Generic[T]):
    """Wakes controllers for reasons that the API server does not know: a webhook, a queue, a timer, a database.

        channel = Channel()
        @controller(Bucket, channels=[channel])
        ...
        channel.send("default/pictures", reason="the cloud says it changed")

    `send` may be called from any thread. What is sent while no controller runs is dropped: at its start a controller
    looks at every object anyway.
    """

    def __init__(self, mapper: Callable[[T], Mapped] | None = None, *, name: str = "channel") -> None:
        """`mapper` turns what is sent into requests; without one, requests, names or objects are sent."""
        self._mapper = mapper
        self.name = name
        self._listeners: dict[Callable[[Request, str], None], asyncio.AbstractEventLoop] = {}

    def send(self, event: Any, *, reason: str = "") -> None:
        """Wake every controller that listens, for the objects that this event concerns."""
        words = reason or self.name
        for request in self._requests(event):
            for listener, loop in list(self._listeners.items()):
                if not loop.is_closed():
                    loop.call_soon_threadsafe(listener, request, words)

    def _requests(self, event: Any) -> Iterable[Request]:
        if self._mapper is not None:
            return _requests(self._mapper(event), None)
        if isinstance(event, Request):
            return (event,)
        if isinstance(event, str):
            namespace, _, name = event.rpartition("/")
            return (Request(namespace or None, name),)
        if isinstance(event, Resource | DynamicObject | PartialObjectMetadata):
            return (Request(event.metadata.namespace or None, event.metadata.name),)
        raise TypeError(
            f"{self.name}: cannot tell which object {type(event).__name__} means; "
            "send a Request, 'namespace/name' or an object, or give the channel a mapper"
        )

    def listen(self, listener: Callable[[Request, str], None]) -> None:
        """Begin to wake a controller, in the event loop that runs now."""
        self._listeners[listener] = asyncio.get_running_loop()

    def leave(self, listener: Callable[[Request, str], None]) -> None:
        """Stop waking it."""
        self._listeners.pop(listener, None)
