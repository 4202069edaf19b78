"""A request and an answer, apart from how they travel, and what the path of a request means."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

from flyball.controlplane.apiserver.status import bad_request
from flyball.framing import WebSocket

__all__ = ["ANONYMOUS", "Answer", "Place", "Request", "Upgrade", "User", "header_safe", "read_place", "verb_of"]


@dataclass(frozen=True, slots=True)
class User:
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


@dataclass(slots=True)
class Request:
    """What a client asks. Names of headers are in lower case."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    user: User = ANONYMOUS
    warnings: list[str] = field(default_factory=list[str])
    """What the client is told beside the answer; handlers add to it."""

    fault: str = ""
    """The fault that was injected on the way."""

    def first(self, name: str) -> str:
        """Return the first value of a query parameter, or an empty text."""
        return next((value for key, value in self.query if key == name), "")

    def every(self, name: str) -> list[str]:
        """Return all values of a query parameter."""
        return [value for key, value in self.query if key == name]

    def flag(self, name: str) -> bool:
        """Tell whether a query parameter is set to something true."""
        for key, value in self.query:
            if key == name:
                return value.lower() not in ("0", "f", "false")
        return False


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What becomes of a connection whose client asked for a WebSocket: one side of a talk."""

    protocol: str
    """The subprotocol that was chosen."""
    talk: Callable[[WebSocket], Awaitable[None]]
    """Talks until there is no more to say. It is given a WebSocket, or with `raw` the connection itself in the shape of
    one, whose messages are pieces that mean nothing. It is cancelled when the client has gone or the server stops; it
    may raise ConnectionAbortedError, and the connection breaks off."""
    raw: str = ""
    """What the connection becomes instead of a WebSocket: `SPDY/3.1`."""


@dataclass(slots=True)
class Answer:
    """What a client gets: a body, a stream of parts that each go out at once, or (101) another kind of connection."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    warnings: list[str] = field(default_factory=list[str])
    """The values of its `Warning` headers."""
    stream: AsyncIterator[bytes] | None = None
    upgrade: Upgrade | None = None
    cut: int | None = None
    """After how many bytes the connection breaks off, where a fault wants that."""


class Place(NamedTuple):
    """Where in the API a path leads."""

    group: str
    version: str
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""


_NAMESPACE_PARTS = frozenset({"status", "finalize"})


def read_place(path: str) -> Place | None:
    """Read a path below `/api` or `/apis`; None for every other path and for the roots of discovery.

    Raises BadRequest for a path that cannot be one, such as one with empty or dotted parts.
    """
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) >= 2:
        group, rest = "", parts[1:]
    elif parts[0] == "apis" and len(parts) >= 3:
        group, rest = parts[1], parts[2:]
    else:
        return None
    for part in rest:
        if not part or part in (".", "..") or "/" in part or "%" in part:
            raise bad_request(f"the path {path} has a part that is no name: {part!r}")
    return _place(group, rest[0], rest[1:])


def _place(group: str, version: str, rest: list[str]) -> Place:
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) >= 3 and (group or len(rest) > 3 or rest[2] not in _NAMESPACE_PARTS):
        namespace, rest = rest[1], rest[2:]
    resource, name, *below = [*rest, "", ""][: max(len(rest), 2)]
    return Place(group, version, resource, namespace, name, "/".join(below))


_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def verb_of(request: Request, place: Place | None) -> str:
    """Name what is asked for as access rules do."""
    verb = _VERBS.get(request.method, request.method.lower())
    if place is None or not place.resource:
        return verb
    if verb == "get" and request.flag("watch"):
        return "watch"
    return verb if place.name else {"get": "list", "delete": "deletecollection"}.get(verb, verb)


def header_safe(text: str) -> str:
    """Quote a text as a quoted-string of a header; what cannot travel in a header is left out."""
    plain = "".join(character for character in text if character.isprintable())
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
