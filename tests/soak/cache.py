"""A cache under a server that fails all the time: `python -m tests.soak.cache --events 1000000 --seed 1`.

A million writes, and between them cuts, errors, 410s, silence, duplicates and nonsense; handlers that are quick, slow
and failing; own writes among them. At the end the store must equal the server, each handler must have been told a
history that makes sense and leads to the same end, and no foreign change may have passed as our own.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
from dataclasses import dataclass, field
from random import Random

from tests.soak.faulty import FaultyServer

from flyball.api import ResourceType
from flyball.cache import CacheEvent, CacheOptions, Informer
from flyball.client import Client
from flyball.clock import ManualClock

WIDGETS = ResourceType("example.org", "v1", "Widget", "widgets")


@dataclass
class Mirror:
    """A handler that keeps its own copy, and minds that what it is told makes sense."""

    name: str
    objects: dict[str, str] = field(default_factory=dict[str, str])
    events: int = 0
    own: list[str] = field(default_factory=list[str])
    wrong: list[str] = field(default_factory=list[str])

    def tell(self, event: CacheEvent) -> None:
        self.events += 1
        name = event.key[1]
        known = self.objects.get(name)
        if event.own and event.new is not None:
            self.own.append(event.new.resource_version)
        if event.type == "added":
            self._expect(known is None, event)
        elif event.type == "updated":
            assert event.old is not None
            self._expect(known == event.old.resource_version, event)
        else:
            self._expect(known is not None, event)
            del self.objects[name]
            return
        assert event.new is not None
        self._expect(known is None or int(event.new.resource_version) > int(known), event)
        self.objects[name] = event.new.resource_version

    def _expect(self, right: bool, event: CacheEvent) -> None:
        if not right:
            self.wrong.append(f"{self.name}: {event.type} {event.object!r} after {self.objects.get(event.key[1])}")


@dataclass
class Outcome:
    """What came of a soak."""

    events: int
    told: int
    faults: dict[str, int]
    lists: int
    watches: int
    own: int
    wrong: list[str]


class Soak:
    """One run; the same seed is the same run, but for the turns of handlers, which depend on the machine."""

    def __init__(self, seed: int, *, trouble: float = 0.15, streaming: bool = False) -> None:
        self.random = Random(seed)
        self.clock = ManualClock(rounds=8)
        self.server = FaultyServer(Random(seed + 1), trouble=trouble)
        client = Client(transport=self.server, retry=None)
        options = CacheOptions(page_size=10, streaming=streaming)
        self.informer = Informer(client, WIDGETS, options=options, clock=self.clock)
        self.mirrors = [Mirror("quick"), Mirror("slow"), Mirror("failing")]
        self.ours: set[str] = set()
        self.noted: dict[str, int] = {}
        self.wrong: list[str] = []

    async def run(self, events: int) -> Outcome:
        """Make so many writes, then let the server heal and compare."""
        quick, slow, failing = self.mirrors

        async def slowly(event: CacheEvent) -> None:
            if self.random.random() < 0.001:
                await self.clock.sleep(self.random.random() * 30)
            slow.tell(event)

        def fail(event: CacheEvent) -> None:
            failing.tell(event)
            if self.random.random() < 0.001:
                raise RuntimeError("this handler fails now and then")

        self.informer.add_handler(quick.tell)
        self.informer.add_handler(slowly)
        self.informer.add_handler(fail)
        async with self.informer:
            while self.server.events < events:
                await self._burst(min(events - self.server.events, self.random.choice([1, 3, 20, 60, 300])))
            await self._quiet()
        self._compare()
        return self._outcome()

    async def _burst(self, count: int) -> None:
        for _ in range(count):
            if self.random.random() < 0.1:
                self._write_ourselves()
            else:
                self.server.write()
            if self.random.random() < 0.2:
                await asyncio.sleep(0)
        if self.random.random() < 0.02:
            self.server.compact(self.random.randrange(50))
        await self.clock.advance(self.random.choice([0.0, 0.0, 0.1, 2.0, 40.0]))

    def _write_ourselves(self) -> None:
        """A write whose answer is noted at once: before the watch can have brought it."""
        name = self.random.choice(self.server.names)
        before = self.server.versions.get(name)
        _, body = self.server.put(name)
        version = str(self.server.version)
        self.ours.add(version)
        self.informer.note_write(body, base="" if before is None else str(before))
        found = self.informer.peek(name, "ns")
        if found is None or int(found.resource_version) < self.server.version:
            self.wrong.append(f"{name}: wrote {version}, read {found!r}")

    async def _quiet(self) -> None:
        self.server.heal()
        for _ in range(500):
            await self.clock.advance(31.0)
            self.server.break_watches("bookmark")
            while any(registration.waiting for registration in self.informer.engine.handlers[::2]):  # noqa: ASYNC110
                await asyncio.sleep(0)
            if self._equal():
                return

    def _equal(self) -> bool:
        wanted = {name: str(version) for name, version in self.server.versions.items()}
        stored = {obj.name: obj.resource_version for obj in self.informer.store.list()}
        shown = {obj.name: obj.resource_version for obj in self.informer.peek_list()}
        return stored == shown == wanted and all(mirror.objects == wanted for mirror in self.mirrors)

    def _compare(self) -> None:
        if not self._equal():
            self.wrong.append("the store, or what a handler was told, differs from the server")
        if not self.informer.health.ok:
            self.wrong.append(f"the server is well, but health says: {self.informer.health.reason}")
        if len(self.informer.engine.overlay):
            self.wrong.append("own writes are still laid over the store")
        for mirror in self.mirrors:
            self.wrong += mirror.wrong[:5]
            foreign = [version for version in mirror.own if version not in self.ours]
            if foreign:
                self.wrong.append(f"{mirror.name}: foreign changes passed as own: {foreign[:5]}")

    def _outcome(self) -> Outcome:
        server, quick = self.server, self.mirrors[0]
        return Outcome(
            server.events, quick.events, server.faults, server.lists, server.watches, len(quick.own), self.wrong
        )


def main() -> int:
    """Run until so many writes were made; the result is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--streaming", action="store_true", help="begin with a watch-list")
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    begun = time.perf_counter()
    outcome = asyncio.run(Soak(args.seed, streaming=args.streaming).run(args.events))
    print(
        f"{outcome.events} writes, {outcome.told} events told, {outcome.own} of them our own, {outcome.lists} pages, "
    )
    print(f"{outcome.watches} watches in {time.perf_counter() - begun:.0f} s; faults: {outcome.faults}")
    for text in outcome.wrong:
        print(f"wrong: {text}", file=sys.stderr)
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
