"""Watches: what happened, from a version on, as lines that go out as they come."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final, Self

from flyball.clock import doze
from flyball.controlplane.apiserver.core import Core
from flyball.controlplane.apiserver.kinds import Kind
from flyball.controlplane.apiserver.negotiation import Form
from flyball.controlplane.apiserver.options import ListOptions
from flyball.controlplane.apiserver.reading import known_fields
from flyball.controlplane.apiserver.render import at_revision, encode, event_frame, metadata_only, object_bytes, shown
from flyball.controlplane.apiserver.selectors import selection
from flyball.controlplane.apiserver.status import StatusError, expired
from flyball.controlplane.apiserver.store import ADDED, Entry, Event, Expired, Watcher
from flyball.controlplane.apiserver.tables import table_bytes

__all__ = ["watch_stream"]

_INITIAL_EVENTS_END: Final = {"k8s.io/initial-events-end": "true"}
_MIN_TIMEOUT: Final = 1800
_LAST_BOOKMARK: Final = 2.0
"""So many seconds before its end a watch sends a bookmark, from which the next one can go on."""


def watch_stream(
    core: Core, kind: Kind, namespace: str, options: ListOptions, form: Form, include: str
) -> AsyncIterator[bytes]:
    """Start a watch now and return its lines. Raises BadRequest for a version that is none."""
    selected = selection(options.labels, options.fields, known_fields(kind))
    where = namespace if kind.namespaced and namespace else None
    version = _version(options)
    lines = _Lines(core, kind, form, include)
    initial = options.initial_events if options.initial_events is not None else version is None
    if options.initial_events and not core.watch_list:
        initial = True
    try:
        since = core.store.revision if initial or version is None else version
        if initial and version is not None and version > since:
            since = version
        watcher = core.store.watch(kind.storage, where, since=since, selection=selected)
    except Expired as gone:
        return _only(event_frame("ERROR", encode(expired(str(gone)).body()).rstrip()))
    first: list[Entry] = []
    if initial:
        listed = core.store.listing(kind.storage, where).entries
        first = listed if selected is None else [entry for entry in listed if selected(entry)]
    end = bool(options.initial_events and options.bookmarks)
    timeout = options.timeout if options.timeout is not None else _MIN_TIMEOUT + random.randrange(_MIN_TIMEOUT)  # noqa: S311
    parts = _stream(core, watcher, lines, first, end_of_initial=end, bookmarks=options.bookmarks, seconds=timeout)
    return _Watch(watcher, parts)


def _version(options: ListOptions) -> int | None:
    text = options.version
    if text in ("", "0"):
        return None
    if not text.isdecimal() or not text.isascii() or len(text) > 20:
        told = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise StatusError(500, "", told)
    return int(text)


async def _only(frame: bytes) -> AsyncIterator[bytes]:
    yield frame


class _Watch:
    """The lines of a watch; closing it lets go of the watcher, also when nobody has begun to read."""

    def __init__(self, watcher: Watcher, parts: AsyncGenerator[bytes]) -> None:
        self._watcher = watcher
        self._parts = parts

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._parts)

    async def aclose(self) -> None:
        self._watcher.close()
        await self._parts.aclose()


async def _stream(
    core: Core,
    watcher: Watcher,
    lines: _Lines,
    first: list[Entry],
    *,
    end_of_initial: bool,
    bookmarks: bool,
    seconds: float,
) -> AsyncGenerator[bytes]:
    """Give the initial state, then what happens, with bookmarks in between, until the time is up."""
    end = core.clock.monotonic() + seconds
    bell = asyncio.ensure_future(_ring(core, watcher, seconds, bookmarks))
    try:
        if first or end_of_initial:
            frames = [lines.added(entry) for entry in first]
            if end_of_initial:
                frames.append(lines.bookmark(core.store.revision, _INITIAL_EVENTS_END))
            yield b"".join(frames)
        while core.clock.monotonic() < end:
            events = await watcher.next()
            if events:
                yield b"".join(map(lines.of, events))
            elif watcher.closed:
                return
            elif bookmarks and core.clock.monotonic() < end:
                yield lines.bookmark(core.store.revision)
    finally:
        watcher.close()
        bell.cancel()


async def _ring(core: Core, watcher: Watcher, seconds: float, bookmarks: bool) -> None:
    """Wake the reader when a bookmark is due, now and then and shortly before the end, and at the end."""
    clock = core.clock
    end = clock.monotonic() + seconds
    while (left := end - clock.monotonic()) > 0:
        step = left
        if bookmarks:
            step = min(step, core.bookmark_seconds)
            step = min(step, left - _LAST_BOOKMARK) if left > _LAST_BOOKMARK else left
        await doze(clock, step)
        watcher.ring()


class _Lines:
    """Writes events in one form; the line of an event is made once for all who watch in this form."""

    def __init__(self, core: Core, kind: Kind, form: Form, include: str) -> None:
        self._core = core
        self._kind = kind
        self._form = form
        self._include = include
        self._id = (kind.api_version, form.as_, form.version, include)
        self._started = False

    def of(self, event: Event) -> bytes:
        if self._form.as_ == "Table":
            return self._line(event.type, event.entry, event)
        frame = event.frames.get(self._id)
        if frame is None:
            frame = event.frames[self._id] = self._line(event.type, event.entry, event)
        return frame

    def added(self, entry: Entry) -> bytes:
        return self._line(ADDED, entry, None)

    def _line(self, type_: str, entry: Entry, event: Event | None) -> bytes:
        body = self._body(entry)
        return event_frame(type_, body if event is None else at_revision(event, body))

    def _body(self, entry: Entry) -> bytes:
        if self._form.as_ == "Table":
            columns = not self._started
            self._started = True
            metadata = {"resourceVersion": str(entry.revision)}
            now = self._core.now()
            return table_bytes(self._kind, [entry], metadata, now, self._include, self._form.version, columns).rstrip()
        if self._form.as_.startswith("Partial"):
            return metadata_only(entry, self._form.version)
        return object_bytes(self._kind, entry)

    def bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        if not self._kind.builtin:
            metadata["creationTimestamp"] = None
        if annotations:
            metadata["annotations"] = annotations
        kind, api_version = self._kind.kind, self._kind.api_version
        if self._form.as_.startswith("Partial"):
            kind, api_version = "PartialObjectMetadata", f"meta.k8s.io/{self._form.version}"
        elif self._form.as_ == "Table":
            return self._table_bookmark(revision)
        obj = {"kind": kind, "apiVersion": api_version, "metadata": metadata}
        if kind == self._kind.kind:
            obj = shown(self._kind, obj)
        return event_frame("BOOKMARK", encode(obj).rstrip())

    def _table_bookmark(self, revision: int) -> bytes:
        metadata = {"resourceVersion": str(revision)}
        body = table_bytes(self._kind, [], metadata, self._core.now(), "None", self._form.version, columns=False)
        return event_frame("BOOKMARK", body.rstrip())
