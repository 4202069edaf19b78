"""Faults on purpose: rules that say which requests go wrong, and how.

    faults.status(503, retry_after=1, verb="create", resource="pods", first=2)
    faults.cut_after_commit(verb="update", resource="leases", probability=0.1)
    faults.drop_watch(after=3, resource="configmaps")

A rule takes a request by user, verb, resource, subresource, namespace and name (what is not given does not matter), and
of those the `first` so many, every `every`-th, each with `probability`, and only for `lasting` seconds. The first rule
that takes a request decides. With the same seed and the same requests the same faults happen. Each is noted with the
request's record. Order is never broken and nothing is told twice: a fault may lose an answer, never the truth.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypedDict, Unpack, cast

from flyball.controlplane.apiserver.core import Core
from flyball.controlplane.apiserver.past import Past
from flyball.controlplane.apiserver.render import draft, encode, event_frame, parse
from flyball.controlplane.apiserver.request import Answer, Place, Request, Upgrade, verb_of
from flyball.controlplane.apiserver.status import StatusError, expired
from flyball.controlplane.apiserver.store import Stale, Store
from flyball.framing import WebSocket

if TYPE_CHECKING:
    from flyball.controlplane.apiserver.server import ApiServer

__all__ = ["Faults", "Match", "Rule"]

Handle = Callable[["ApiServer", Request, Place | None], Awaitable[Answer]]

_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_WORDS: Final = {429: "too many requests, please try again later", 503: "the server is currently unable to handle it"}
_BOOKMARK: Final = b'{"type":"BOOKMARK"'


class Match(TypedDict, total=False):
    """Which requests a rule takes; all that is given must be so."""

    user: str
    verb: str
    """get, list, watch, create, update, patch, delete or deletecollection."""
    group: str
    resource: str
    """The plural: `pods`."""
    subresource: str
    namespace: str
    name: str
    first: int
    """Only so many requests."""
    skip: int
    """Not the first so many."""
    every: int
    """Only each so-many-th."""
    probability: float
    lasting: float
    """Only so many seconds from now on, by the cluster's clock."""


@dataclass(slots=True, eq=False)
class Rule:
    """One rule; `hits` counts the faults that it caused."""

    name: str
    handle: Handle
    match: Match
    until: float | None = None
    seen: int = 0
    hits: int = 0
    _faults: Faults | None = field(default=None, repr=False)

    def remove(self) -> None:
        """End the rule; stalled watches go on."""
        if self._faults is not None and self in self._faults.rules:
            self._faults.rules.remove(self)

    @property
    def active(self) -> bool:
        """Whether the rule still holds."""
        return self._faults is not None and self in self._faults.rules


class Faults:
    """The rules of one server, asked in the order in which they were made."""

    def __init__(self, core: Core, seed: int = 0) -> None:
        """Begin without rules."""
        self.rules: list[Rule] = []
        self._core = core
        self._random = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret

    def clear(self) -> None:
        """End all rules."""
        self.rules.clear()

    # What can go wrong

    def status(
        self, code: int, *, reason: str = "", message: str = "", retry_after: int | None = None, **match: Unpack[Match]
    ) -> Rule:
        """Answer with a failure; nothing is done."""
        words = message or _WORDS.get(code, "a fault was injected")

        async def handle(server: ApiServer, request: Request, place: Place | None) -> Answer:
            raise StatusError(code, reason or _REASONS.get(code, ""), words, {}, retry_after=retry_after)

        return self._add(f"status {code}", handle, match)

    def delay(self, seconds: float, **match: Unpack[Match]) -> Rule:
        """Do it later, by the cluster's clock."""

        async def handle(server: ApiServer, request: Request, place: Place | None) -> Answer:
            await self._core.clock.sleep(seconds)
            return await server.respond(request, place)

        return self._add("delay", handle, match)

    def cut_before_commit(self, **match: Unpack[Match]) -> Rule:
        """Break the connection off; nothing is done."""

        async def handle(server: ApiServer, request: Request, place: Place | None) -> Answer:
            return Answer(cut=0)

        return self._add("cut before commit", handle, match)

    def cut_after_commit(self, **match: Unpack[Match]) -> Rule:
        """Do it, and break the connection off instead of answering."""

        async def handle(server: ApiServer, request: Request, place: Place | None) -> Answer:
            await _unread(await server.respond(request, place))
            return Answer(cut=0)

        return self._add("cut after commit", handle, match)

    def truncate(self, size: int, **match: Unpack[Match]) -> Rule:
        """Do it, and break the connection off after so many bytes of the answer."""

        async def handle(server: ApiServer, request: Request, place: Place | None) -> Answer:
            answer = await server.respond(request, place)
            if answer.upgrade is not None:
                answer.upgrade = _cut_off(answer.upgrade, size)
            elif answer.stream is None:
                answer.cut = min(size, len(answer.body))
            else:
                answer.stream = _truncated(answer.stream, size)
            return answer

        return self._add("truncate", handle, match)

    def conflict(self, **match: Unpack[Match]) -> Rule:
        """Change the object (its version only) just before an update comes to it."""

        async def handle(server: ApiServer, request: Request, place: Place | None) -> Answer:
            await _bump(self._core, place)
            return await server.respond(request, place)

        return self._add("conflict", handle, match)

    def stale(self, revisions: int, **match: Unpack[Match]) -> Rule:
        """Answer reads from the past, so many revisions late; never older than the request insists on."""

        async def handle(server: ApiServer, request: Request, place: Place | None) -> Answer:
            asked = request.first("resourceVersion")
            least = int(asked) if asked.isdecimal() and asked.isascii() and len(asked) < 20 else 0
            revision = max(self._core.store.revision - revisions, least)
            late = cast("Store", Past(self._core.store, revision))
            view = server.over(replace(self._core, store=late))
            return await view.respond(request, place)

        return self._add("stale", handle, match)

    def drop_watch(self, *, after: int = 0, **match: Unpack[Match]) -> Rule:
        """Break a watch off after so many events."""
        return self._on_watch("drop watch", after, _drop, match)

    def close_watch(self, *, after: int = 0, **match: Unpack[Match]) -> Rule:
        """End a watch cleanly after so many events."""
        return self._on_watch("close watch", after, _end, match)

    def expire_watch(self, *, after: int = 0, **match: Unpack[Match]) -> Rule:
        """Tell a watcher after so many events that history does not reach back so far (410)."""
        return self._on_watch("expire watch", after, _expire, match)

    def stall_watch(self, *, after: int = 0, **match: Unpack[Match]) -> Rule:
        """Send nothing more after so many events; the connection stays open until the rule is removed."""

        async def stall(rule: Rule) -> bytes | None:
            while rule.active:
                await self._core.clock.sleep(0.05)
            return b""

        return self._on_watch("stall watch", after, stall, match)

    def skip_bookmarks(self, **match: Unpack[Match]) -> Rule:
        """Send watches without their bookmarks."""

        async def handle(server: ApiServer, request: Request, place: Place | None) -> Answer:
            answer = await server.respond(request, place)
            if answer.stream is not None:
                answer.stream = _without_bookmarks(answer.stream)
            return answer

        return self._add("skip bookmarks", handle, {"verb": "watch", **match})

    # How rules are asked

    def _on_watch(self, name: str, after: int, then: Callable[[Rule], Awaitable[bytes | None]], match: Match) -> Rule:
        async def handle(server: ApiServer, request: Request, place: Place | None) -> Answer:
            answer = await server.respond(request, place)
            if answer.stream is not None:
                answer.stream = _after(answer.stream, after, lambda: then(rule))
            return answer

        rule = self._add(name, handle, {"verb": "watch", **match})
        return rule

    def _add(self, name: str, handle: Handle, match: Match) -> Rule:
        lasting = match.get("lasting")
        until = None if lasting is None else self._core.clock.monotonic() + lasting
        rule = Rule(name, handle, match, until, _faults=self)
        self.rules.append(rule)
        return rule

    async def __call__(self, server: ApiServer, request: Request, place: Place | None) -> Answer:
        """Answer a request, or let it go wrong."""
        rule = next((rule for rule in self.rules if self._takes(rule, request, place)), None)
        if rule is None:
            return await server.respond(request, place)
        rule.hits += 1
        request.fault = rule.name
        return await rule.handle(server, request, place)

    def _takes(self, rule: Rule, request: Request, place: Place | None) -> bool:
        match = rule.match
        if rule.until is not None and self._core.clock.monotonic() >= rule.until:
            return False
        if not _is_meant(match, request, place):
            return False
        rule.seen += 1
        turn = rule.seen - match.get("skip", 0)
        if turn <= 0 or turn % match.get("every", 1):
            return False
        if "first" in match and rule.hits >= match["first"]:
            return False
        return "probability" not in match or self._random.random() < match["probability"]


def _is_meant(match: Match, request: Request, place: Place | None) -> bool:
    if "user" in match and match["user"] != request.user.name:
        return False
    if "verb" in match and match["verb"] != verb_of(request, place):
        return False
    return all(
        place is not None and wanted == found
        for wanted, found in (
            (match.get("group"), place and place.group),
            (match.get("resource"), place and place.resource),
            (match.get("subresource"), place and place.subresource),
            (match.get("namespace"), place and place.namespace),
            (match.get("name"), place and place.name),
        )
        if wanted is not None
    )


async def _bump(core: Core, place: Place | None) -> None:
    if place is None or not place.name:
        return
    kind = core.kinds.find(place.group, place.version, place.resource)
    entry = core.store.get(core.key(kind, place.namespace, place.name))
    if entry is None:
        return
    obj = parse(kind, entry)
    try:
        await core.store.commit(entry.key, entry, lambda revision: draft(kind, obj, revision))
    except Stale:
        return  # somebody else has changed it: as good


def _cut_off(upgrade: Upgrade, size: int) -> Upgrade:
    """Let the connection break off when so many bytes have been sent over it."""

    async def talk(socket: WebSocket) -> None:
        limited = _Limited(socket, size)
        talking = asyncio.ensure_future(upgrade.talk(limited))
        cut = asyncio.ensure_future(limited.spent.wait())
        try:
            await asyncio.wait({talking, cut}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (talking, cut):
                task.cancel()
            await asyncio.gather(talking, cut, return_exceptions=True)
        if limited.spent.is_set():
            raise ConnectionAbortedError

    return replace(upgrade, talk=talk)


class _Limited:
    """A WebSocket over which only so many bytes go out."""

    def __init__(self, socket: WebSocket, size: int) -> None:
        self._socket = socket
        self._left = size
        self.protocol = socket.protocol
        self.receive = socket.receive
        self.close = socket.close
        self.spent = asyncio.Event()

    async def send(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            self.spent.set()
            await asyncio.get_running_loop().create_future()  # until whoever sends is cancelled
        await self._socket.send(data)


async def _unread(answer: Answer) -> None:
    close = getattr(answer.stream, "aclose", None)
    if close is not None:
        await close()


async def _truncated(stream: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
    try:
        async for part in stream:
            if len(part) >= size:
                yield part[:size]
                raise ConnectionAbortedError
            size -= len(part)
            yield part
    finally:
        await _unread(Answer(stream=stream))


async def _after(
    stream: AsyncIterator[bytes], count: int, then: Callable[[], Awaitable[bytes | None]]
) -> AsyncIterator[bytes]:
    """Give so many events, then what the fault gives: None is the end, an empty text lets the stream go on."""
    try:
        left: int | None = count
        if left == 0:
            last = await then()
            if last is None:
                return
            yield last
            left = None
        async for part in stream:
            if left is None:
                yield part
                continue
            for line in part.splitlines(keepends=True):
                if left == 0:
                    last = await then()
                    if last is None:
                        return
                    left = None
                    yield last
                yield line
                if left is not None and not line.startswith(_BOOKMARK):
                    left -= 1
    finally:
        await _unread(Answer(stream=stream))


async def _drop(rule: Rule) -> bytes | None:
    raise ConnectionAbortedError


async def _end(rule: Rule) -> bytes | None:
    return None


async def _expire(rule: Rule) -> bytes | None:
    return event_frame("ERROR", encode(expired("too old resource version").body()).rstrip())


async def _without_bookmarks(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        async for part in stream:
            kept = b"".join(line for line in part.splitlines(keepends=True) if not line.startswith(_BOOKMARK))
            if kept:
                yield kept
    finally:
        await _unread(Answer(stream=stream))
