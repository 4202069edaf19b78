"""Events for people: what the operator did, and what kept it from doing it.

What the recorder guarantees:

- It never fails a pass, and never makes one wait: events are sent in the background, and what cannot be sent is counted
  and dropped.
- The same event (object, type, reason, text) is one Event on the server. Said again within six minutes it becomes a
  series with a count, which is written at 2, 4, 8, ... and at the end.
- Events of one process are named in the order in which they were said.
- An object has a bucket of 25 events that fills by one in five minutes; more are dropped and counted.

What it does not: keep events for ever, or in order between objects.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import socket
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal
from uuid import uuid4

from flyball.api import ResourceType
from flyball.cache import NO_METRICS, Metrics
from flyball.client import Client, MergePatch, ref
from flyball.client.kinds import kind_of
from flyball.clock import Clock, RealClock
from flyball.errors import FlyballError, NotFound, one_line
from flyball.k8s.core.v1 import ObjectReference
from flyball.k8s.events.v1 import Event
from flyball.k8s.meta.v1 import ObjectMeta

__all__ = ["EventRecorder", "EventType"]

EventType = Literal["Normal", "Warning"]

log = logging.getLogger(__name__)

SERIES: Final = 360.0
BURST: Final = 25
REFILL: Final = 300.0
_REMEMBERED: Final = 4096
_WAITING: Final = 1000
_NOTE: Final = 1024
_TURN: Final = 0.005
"""Seconds of sending after which others get their turn, where sending never has to wait."""


@dataclass(slots=True)
class _Series:
    name: str
    namespace: str
    last: float
    when: datetime
    count: int = 1
    written: int = 1


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled: float


@dataclass(slots=True)
class _Said:
    """Something to be sent."""

    about: ObjectReference
    namespace: str
    type: EventType
    reason: str
    note: str
    action: str
    reporter: str
    when: datetime
    moment: float
    key: bytes = field(init=False)

    def __post_init__(self) -> None:
        text = "\0".join(
            (self.about.uid or "", self.about.name or "", self.type, self.reason, self.note, self.reporter)
        )
        self.key = hashlib.blake2b(text.encode(), digest_size=16).digest()


class EventRecorder:
    """Sends Events (events.k8s.io/v1) in the background; see the module for what it guarantees."""

    def __init__(
        self,
        client: Client,
        *,
        reporter: str = "flyball",
        clock: Clock | None = None,
        metrics: Metrics = NO_METRICS,
        instance: str | None = None,
    ) -> None:
        """`reporter` is who says it unless `record` is told otherwise; `instance` defaults to host and process."""
        self._client = client
        self._reporter = reporter
        self._instance = (instance or f"{socket.gethostname()}-{os.getpid()}")[:128]
        self._clock: Clock = clock if clock is not None else RealClock()
        self._metrics = metrics
        self._series: OrderedDict[bytes, _Series] = OrderedDict()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._waiting: deque[_Said] = deque()
        self._sender: asyncio.Task[None] | None = None
        self._created = 0

    def record(
        self, about: Any, type: EventType, reason: str, message: str, *, action: str = "", reporter: str | None = None
    ) -> None:
        """Say something about an object. Call it in the event loop; it returns at once."""
        source = kind_of(about).source
        metadata = about.metadata
        reference = ObjectReference(
            api_version=source.api_version,
            kind=source.kind,
            name=metadata.name,
            namespace=metadata.namespace or None,
            uid=metadata.uid or None,
            resource_version=metadata.resource_version or None,
        )
        if isinstance(source, ResourceType) and not source.namespaced:
            reference.namespace = None
        now = self._clock.monotonic()
        if len(self._waiting) >= _WAITING or not self._take_token(metadata.uid or metadata.name, now):
            self._metrics.counter("flyball_events_dropped_total", reason="rate")
            return
        note = one_line(message)
        self._waiting.append(
            _Said(
                about=reference,
                namespace=reference.namespace or "default",
                type=type,
                reason=reason[:128],
                note=note if len(note) <= _NOTE else f"{note[: _NOTE - 3]}...",
                action=(action or reason)[:128],
                reporter=reporter or self._reporter,
                when=self._clock.now(),
                moment=now,
            )
        )
        if self._sender is None or self._sender.done():
            self._sender = asyncio.get_running_loop().create_task(self._send_all(), name="event recorder")

    def _take_token(self, uid: str, now: float) -> bool:
        bucket = self._buckets.get(uid)
        if bucket is None:
            bucket = self._buckets[uid] = _Bucket(BURST, now)
            if len(self._buckets) > _REMEMBERED:
                self._buckets.popitem(last=False)
        bucket.tokens = min(BURST, bucket.tokens + (now - bucket.filled) / REFILL)
        bucket.filled = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    async def flush(self) -> None:
        """Wait until everything that was said has been sent or dropped."""
        while self._sender is not None and not self._sender.done():
            await asyncio.wait([self._sender])

    async def stop(self) -> None:
        """Send what waits, and the counts of series that were not written yet."""
        await self.flush()
        for series in self._series.values():
            if series.written < series.count:
                await self._quietly(self._write_count(series))

    async def _send_all(self) -> None:
        turn_ends = time.perf_counter() + _TURN
        while self._waiting:
            await self._quietly(self._send(self._waiting.popleft()))
            if time.perf_counter() > turn_ends:
                await asyncio.sleep(0)
                turn_ends = time.perf_counter() + _TURN

    async def _quietly(self, sending: Any) -> None:
        try:
            await sending
        except asyncio.CancelledError:
            raise
        except FlyballError as error:
            self._metrics.counter("flyball_events_dropped_total", reason=type(error).__name__)
            log.debug("an event could not be sent: %s", error)
        except Exception:
            self._metrics.counter("flyball_events_dropped_total", reason="bug")
            log.exception("an event could not be sent")

    async def _send(self, said: _Said) -> None:
        series = self._series.get(said.key)
        if series is not None and said.moment - series.last < SERIES:
            series.count += 1
            series.last, series.when = said.moment, said.when
            self._series.move_to_end(said.key)
            if series.count < 2 * series.written or await self._write_count(series):
                return
        await self._create(said)

    async def _create(self, said: _Said) -> None:
        name = f"{(said.about.name or 'event')[:200]}.{self._suffix(said.when)}"
        event = Event(
            metadata=ObjectMeta(name=name, namespace=said.namespace),
            event_time=said.when,
            reporting_controller=said.reporter,
            reporting_instance=self._instance,
            action=said.action,
            reason=said.reason,
            regarding=said.about,
            note=said.note,
            type=said.type,
        )
        await self._client.create(event)
        self._series[said.key] = _Series(name, said.namespace, said.moment, said.when)
        if len(self._series) > _REMEMBERED:
            self._series.popitem(last=False)
        self._metrics.counter("flyball_events_total", type=said.type)

    def _suffix(self, when: datetime) -> str:
        """Names in the order of time: so people see them who list events by name, as `kubectl describe` does."""
        self._created += 1
        return f"{int(when.timestamp() * 1e6):014x}{self._created % 0x10000:04x}{uuid4().hex[:6]}"

    async def _write_count(self, series: _Series) -> bool:
        """Write how often it was said; False when the event is not there any more."""
        body = {"series": {"count": series.count, "lastObservedTime": _micro(series.when)}}
        series.written = series.count
        try:
            await self._client.patch(ref(Event, series.name, namespace=series.namespace), MergePatch(body))
        except NotFound:
            return False
        return True


def _micro(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
