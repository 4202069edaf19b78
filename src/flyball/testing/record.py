"""A record of what an embedded cluster was asked."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from flyball.controlplane.apiserver.request import Answer, Request, read_place, verb_of
from flyball.controlplane.apiserver.status import StatusError

__all__ = ["RecordedRequest", "Requests"]


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request, as access rules name it, and how it ended."""

    user: str
    verb: str
    path: str
    status: int
    """0 where the connection was broken off instead of an answer."""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    fault: str = ""
    """The fault that was injected, if one was."""


class Requests(Sequence[RecordedRequest]):
    """The requests in the order in which they were answered; the oldest go when there are too many."""

    def __init__(self, limit: int = 100_000) -> None:
        """Begin with none."""
        self._all: deque[RecordedRequest] = deque(maxlen=limit)

    def note(self, request: Request, answer: Answer) -> None:
        """Take a request and its answer down."""
        self._all.append(_recorded(request, answer))

    def of(self, verb: str = "", resource: str = "", user: str = "") -> list[RecordedRequest]:
        """Return the requests of a verb, a resource, a user; what is not named does not matter."""
        return [
            one
            for one in list(self._all)
            if verb in ("", one.verb) and resource in ("", one.resource) and user in ("", one.user)
        ]

    def clear(self) -> None:
        """Forget them all."""
        self._all.clear()

    @overload
    def __getitem__(self, place: int) -> RecordedRequest: ...
    @overload
    def __getitem__(self, place: slice) -> list[RecordedRequest]: ...
    def __getitem__(self, place: int | slice) -> RecordedRequest | list[RecordedRequest]:
        """Return one of them, or some."""
        return list(self._all)[place]

    def __iter__(self) -> Iterator[RecordedRequest]:
        """Go through them as they are now."""
        return iter(list(self._all))

    def __len__(self) -> int:
        """How many there are."""
        return len(self._all)

    def __repr__(self) -> str:
        """Show how many there are."""
        return f"<{len(self)} requests>"


def _recorded(request: Request, answer: Answer) -> RecordedRequest:
    try:
        place = read_place(request.path)
    except StatusError:
        place = None
    user, status, fault = request.user.name, answer.status, request.fault
    verb = verb_of(request, place)
    if answer.cut is not None:
        status = 0
    if place is None:
        return RecordedRequest(user, verb, request.path, status, fault=fault)
    group, _, resource, namespace, name, subresource = place
    return RecordedRequest(user, verb, request.path, status, group, resource, subresource, namespace, name, fault)
