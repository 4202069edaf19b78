"""Many writers and watchers on one API server with an SQLite file, then kill -9, and a look at what is left.

    python -m tests.soak.apiserver --seconds 60

Every object counts its own writes (`data.n`), across deletion and re-creation. So each watcher can tell whether it saw
every event exactly once and in order: the count goes up by one with each ADDED or MODIFIED, and a DELETED shows the
last one. Slow watchers let their buffers run full; the server closes them, and they resume from the version they had.
After the kill, the file must hold every acknowledged write, and nothing that was never asked for.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from tests.soak.wire import Broken, Connection, watch_lines

__all__ = ["Soak", "main"]

ROOT = Path(__file__).parents[2]
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
SELECTED = "labelSelector=soak"
NUDGE = "nudge"
WATCHER_LIMIT = 300
SLOW_BUFFER = 4096


class Metadata(msgspec.Struct):
    name: str = ""
    resourceVersion: str = ""


class Data(msgspec.Struct):
    n: str = "0"


class Object(msgspec.Struct):
    metadata: Metadata
    data: Data = msgspec.field(default_factory=Data)
    code: int = 0


class Event(msgspec.Struct):
    type: str
    object: Object


class Items(msgspec.Struct):
    metadata: Metadata
    items: list[Object]


read_event = msgspec.json.Decoder(Event).decode
read_object = msgspec.json.Decoder(Object).decode
read_items = msgspec.json.Decoder(Items).decode


@dataclass
class Fate:
    """What a writer knows of one object: its last acknowledged count, and what may have happened since."""

    count: int = 0
    there: bool = False
    asked: int | None = None
    """The count of a write that was sent and not answered."""
    deleting: bool = False


@dataclass
class Soak:
    """The load and what came of it."""

    port: int
    watchers: int
    writers: int
    slow: int
    objects: int = 4
    seed: int = 1
    fates: dict[str, Fate] = field(default_factory=dict[str, Fate])
    wrong: list[str] = field(default_factory=list[str])
    counts: Counter[str] = field(default_factory=Counter[str])
    newest: int = 0
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """The server has closed a watcher that was too slow, or a watch in its time."""
    stopping: bool = False
    """Writers end after the write they are at."""
    quiet: bool = False
    """All writes are acknowledged: watchers end when they have seen them."""

    # Writing

    async def write(self, number: int) -> None:
        """Create, change and delete objects of one's own until the server is gone or it is time to stop."""
        chance = random.Random(self.seed * 1000 + number)
        names = [f"w{number}-{index}" for index in range(self.objects)]
        with contextlib.suppress(Broken), Connection(self.port) as connection:
            while not self.stopping:
                name = chance.choice(names)
                fate = self.fates.setdefault(name, Fate())
                if not fate.there:
                    await self._put(connection, "POST", CONFIGMAPS, name, fate)
                elif chance.random() < 0.1:
                    await self._delete(connection, name, fate)
                else:
                    await self._put(connection, "PUT", f"{CONFIGMAPS}/{name}", name, fate)

    async def _put(self, connection: Connection, method: str, target: str, name: str, fate: Fate) -> None:
        fate.asked = fate.count + 1
        metadata = {"name": name, "labels": {"soak": "yes"}}
        body = json.dumps({"metadata": metadata, "data": {"n": str(fate.asked)}}).encode()
        code, answer = await connection.ask(method, target, body)
        if code not in (200, 201):
            self.wrong.append(f"{method} {name}: {code} {answer[:200]!r}")
            return
        fate.count, fate.there, fate.asked = fate.asked, True, None
        self.newest = max(self.newest, int(read_object(answer).metadata.resourceVersion))
        self.counts["writes"] += 1

    async def _delete(self, connection: Connection, name: str, fate: Fate) -> None:
        fate.deleting = True
        code, answer = await connection.ask("DELETE", f"{CONFIGMAPS}/{name}")
        if code != 200:
            self.wrong.append(f"DELETE {name}: {code} {answer[:200]!r}")
        fate.there, fate.deleting = False, False
        self.counts["writes"] += 1

    # Watching

    async def watch(self, number: int) -> dict[str, int]:
        """Follow all objects from the beginning, again and again when the watch ends; the counts that were seen."""
        slow = number < self.slow
        seen: dict[str, int] = {}
        version = "0"
        with contextlib.suppress(Broken):
            version = await self._list(seen)
            while not self._is_over(seen):
                version = await self._follow(number, seen, version, slow)
        return seen

    async def _list(self, seen: dict[str, int]) -> str:
        with Connection(self.port) as connection:
            code, answer = await connection.ask("GET", f"{CONFIGMAPS}?{SELECTED}")
        if code != 200:
            self.wrong.append(f"list: {code} {answer[:200]!r}")
        found = read_items(answer)
        seen.clear()
        seen.update((one.metadata.name, int(one.data.n)) for one in found.items)
        return found.metadata.resourceVersion

    async def _follow(self, number: int, seen: dict[str, int], version: str, slow: bool) -> str:
        target = f"{CONFIGMAPS}?watch=1&allowWatchBookmarks=1&{SELECTED}&resourceVersion={version}"
        self.counts["watches"] += 1
        lines = watch_lines(self.port, target, buffer=SLOW_BUFFER if slow else 0)
        try:
            async for some in lines:
                for line in some:
                    event = read_event(line)
                    if event.type == "ERROR":
                        self.counts["too old"] += 1
                        return await self._list(seen)
                    version = self._see(number, seen, event, version)
                if slow and not self.stopping:
                    await asyncio.sleep(0.3)
                if self._is_over(seen):
                    return version
        finally:
            await lines.aclose()
        self.counts["closed by the server"] += 1
        self.closed.set()
        return version

    def _see(self, number: int, seen: dict[str, int], event: Event, version: str) -> str:
        metadata, count = event.object.metadata, int(event.object.data.n)
        if int(metadata.resourceVersion) <= int(version) and event.type != "BOOKMARK":
            self.wrong.append(f"watcher {number}: {metadata.name} of {metadata.resourceVersion} came after {version}")
        if metadata.name != NUDGE and event.type in ("ADDED", "MODIFIED", "DELETED"):
            self.counts["events"] += 1
            expected = seen.get(metadata.name, 0) + (event.type != "DELETED")
            if metadata.name in seen and count != expected:
                self.wrong.append(f"watcher {number}: {event.type} {metadata.name} shows {count}, not {expected}")
            seen[metadata.name] = count
        return metadata.resourceVersion

    def _is_over(self, seen: dict[str, int]) -> bool:
        return self.quiet and all(seen.get(name) == fate.count for name, fate in self.fates.items() if fate.there)

    # The whole

    async def run(self, seconds: float) -> None:
        """Write and watch for so long; then the writers stop, and every watcher must catch up.

        Where the machine is so busy that no slow watcher was closed by then, it takes longer.
        """
        begun = time.perf_counter()
        watchers = [asyncio.ensure_future(self.watch(number)) for number in range(self.watchers)]
        writers = [asyncio.ensure_future(self.write(number)) for number in range(self.writers)]
        await asyncio.sleep(seconds)
        if self.slow:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.closed.wait(), 60)
        self.stopping = True
        await asyncio.gather(*writers)
        self.quiet = True
        self.counts["writes a second"] = round(self.counts["writes"] / (time.perf_counter() - begun))
        # One more write, so that watchers that have seen everything wake up and notice that it is over.
        nudge = asyncio.ensure_future(self._nudge())
        done, late = await asyncio.wait(watchers, timeout=60 + seconds)
        nudge.cancel()
        await asyncio.gather(nudge, return_exceptions=True)
        self.counts["events a second"] = round(self.counts["events"] / (time.perf_counter() - begun))
        for watcher in late:
            watcher.cancel()
            self.wrong.append("a watcher has not caught up")
        for watcher in done:
            for name, fate in self.fates.items():
                if fate.there and watcher.result().get(name) != fate.count:
                    self.wrong.append(f"a watcher ended with {name} at {watcher.result().get(name)}, not {fate.count}")

    async def _nudge(self) -> None:
        with Connection(self.port) as connection:
            await self._nudge_over(connection)

    async def _nudge_over(self, connection: Connection) -> None:
        body = {"metadata": {"name": NUDGE, "labels": {"soak": "yes"}}, "data": {"n": "0"}}
        await connection.ask("POST", CONFIGMAPS, json.dumps(body).encode())
        for turn in itertools.count(1):
            await asyncio.sleep(0.2)
            body["data"] = {"n": str(turn)}
            await connection.ask("PUT", f"{CONFIGMAPS}/{NUDGE}", json.dumps(body).encode())

    async def check_after_kill(self, port: int) -> None:
        """See that a server that was started again holds what was acknowledged."""
        with Connection(port) as connection:
            _, answer = await connection.ask("GET", f"{CONFIGMAPS}?{SELECTED}")
        found = read_items(answer)
        if int(found.metadata.resourceVersion) < self.newest:
            self.wrong.append(f"the revision went back from {self.newest} to {found.metadata.resourceVersion}")
        counts = {one.metadata.name: int(one.data.n) for one in found.items}
        for name, fate in self.fates.items():
            allowed: set[int | None] = {fate.count if fate.there else None}
            if fate.asked is not None:
                allowed.add(fate.asked)
            if fate.deleting:
                allowed.add(None)
            if counts.get(name) not in allowed:
                self.wrong.append(f"after the kill {name} is at {counts.get(name)}, not {allowed}")
            self.fates[name] = Fate(counts.get(name, fate.count), name in counts)
        for name in counts.keys() - self.fates.keys() - {NUDGE}:
            self.wrong.append(f"after the kill there is {name}, which nobody wrote")
        self.counts["objects after the kill"] = len(counts)
        await self._resume_after_kill(port)

    async def _resume_after_kill(self, port: int) -> None:
        """A watch from before the kill gets events or is told that it is too old; it is never left waiting."""
        lines = watch_lines(port, f"{CONFIGMAPS}?watch=1&timeoutSeconds=1&resourceVersion={max(1, self.newest // 2)}")
        types = [read_event(line).type async for some in lines for line in some]
        if types != ["ERROR"]:
            self.wrong.append(f"a watch from before the kill got {types[:5]}")


class Server:
    """The server in a process of its own."""

    def __init__(self, data: Path) -> None:
        command = [sys.executable, "-m", "tests.soak.server", str(data), str(WATCHER_LIMIT)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline() or 0)
        if not self.port:
            raise RuntimeError("the server has not started")

    def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.communicate(timeout=30)


async def soak(seconds: float, *, watchers: int, writers: int, slow: int, data: Path, kills: int = 1) -> Soak:
    """Load a server for so long, kill it while it is written to, start it again and look; so many times."""
    server = Server(data)
    load = Soak(server.port, watchers, writers, slow)
    try:
        await load.run(seconds)
        for _ in range(kills):
            load.stopping = load.quiet = False
            last = [asyncio.ensure_future(load.write(number)) for number in range(writers)]
            await asyncio.sleep(min(seconds, 0.5))
            server.end(signal.SIGKILL)
            await asyncio.gather(*last)
            server = Server(data)
            load.port = server.port
            await load.check_after_kill(server.port)
    finally:
        server.end(signal.SIGTERM)
    return load


def main(arguments: list[str] | None = None) -> int:
    """Run as a program: 0 when all is well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--watchers", type=int, default=200)
    parser.add_argument("--writers", type=int, default=64)
    parser.add_argument("--slow", type=int, default=10, help="so many of the watchers are slow")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        done = asyncio.run(
            soak(
                given.seconds,
                watchers=given.watchers,
                writers=given.writers,
                slow=given.slow,
                data=Path(folder) / "data",
            )
        )
    for name, count in sorted(done.counts.items()):
        print(f"{name:>24} {count:>12,}")
    for one in done.wrong[:20]:
        print(one)
    print("wrong:", len(done.wrong))
    return 1 if done.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
