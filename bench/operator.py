"""`python -m bench.operator`: one small operator in several frameworks, against one real API server.

Ten thousand custom resources with a spec of two numbers and a text of 300 bytes. Each contender is started alone and
measured from outside, twice: once it only looks at objects, once it writes the status of each.

| column | what |
|---|---|
| start | from the start of the process to its first line of code after imports |
| synced | from the start of the process until everything is listed |
| first pass | from the start of the process until every object was looked at once |
| CPU so far | of the contender, until then |
| memory, peak | resident memory after it, and the most there was |
| p50, p99 | from before the PATCH of a change to the beginning of the pass over it, at 100 changes a second |
| CPU | of the contender, for those changes |
| statuses | writing all 10,000 statuses, from the start of the process |
| memory | resident memory after that |
| 2,000 changed | until the statuses of 2,000 objects that were changed at once are right |

`--only NAME...`, `--count N` and `--changes N` make it shorter. kopf comes from the package registry into an
environment of its own, controller-runtime and kube-rs are built where Go and Rust are; what cannot be had is left out,
with a line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvloop
from bench.common import CACHE, ROOT, table

from flyball.api import DynamicObject, ResourceType, crd_of
from flyball.client import Client, MergePatch, ref
from flyball.errors import FlyballError
from flyball.testing import RealCluster, eventually

HERE = Path(__file__).parent / "operators"
THING = ResourceType("bench.example.org", "v1", "Thing", "things", True)
KOPF = "1.45.0"
TEXT = "x" * 300
PATIENCE = 600.0


class Missing(Exception):
    """A contender cannot be had here."""


@dataclass(frozen=True)
class Contender:
    """How one of them is started."""

    title: str
    prepare: Callable[[], list[str]]
    env: Mapping[str, str] = field(default_factory=dict[str, str])


def flyball() -> list[str]:
    """Our own, in this environment."""
    return [sys.executable, "-m", "bench.operators.flyball_operator"]


def kopf() -> list[str]:
    """In an environment of its own."""
    folder = CACHE / "bench-kopf-venv"
    program = folder / "bin" / "kopf"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        wanted = [str(folder / "bin" / "pip"), "install", "--quiet", f"kopf[uvloop]=={KOPF}"]
        if subprocess.run(wanted).returncode:
            shutil.rmtree(folder)
            raise Missing("kopf could not be installed")
    return [str(program), "run", "--standalone", "--all-namespaces", "--quiet", str(HERE / "kopf_operator.py")]


def controller_runtime() -> list[str]:
    """Built once."""
    folder = CACHE / "bench-go"
    program = folder / "operator"
    source = HERE / "controller_runtime"
    if program.exists() and (folder / "main.go").read_text() == (source / "main.go").read_text():
        return [str(program)]
    if shutil.which("go") is None:
        raise Missing("Go is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    for file in source.iterdir():
        shutil.copy(file, folder)
    env = {**os.environ, "GOFLAGS": "-mod=mod"}
    for command in (["go", "mod", "tidy"], ["go", "build", "-o", "operator", "."]):
        if subprocess.run(command, cwd=folder, env=env).returncode:
            raise Missing("the Go program could not be built")
    return [str(program)]


def kube_rs() -> list[str]:
    """Built once."""
    folder = CACHE / "bench-rust"
    program = folder / "target" / "release" / "operator"
    source = HERE / "kube_rs"
    parts = ("Cargo.toml", "src/main.rs")
    if program.exists() and all((folder / one).read_text() == (source / one).read_text() for one in parts):
        return [str(program)]
    if shutil.which("cargo") is None:
        raise Missing("Rust is not installed")
    shutil.copytree(source, folder, dirs_exist_ok=True)
    if subprocess.run(["cargo", "build", "--quiet", "--release"], cwd=folder).returncode:
        raise Missing("the Rust program could not be built")
    return [str(program)]


CONTENDERS = {
    "flyball": Contender("Flyball", flyball),
    "controller-runtime": Contender("controller-runtime 0.24", controller_runtime),
    "kube-rs": Contender("kube-rs 5", kube_rs),
    "kopf-event": Contender(f"kopf {KOPF} `on.event`", kopf, {"BENCH_STYLE": "event"}),
    "kopf": Contender(f"kopf {KOPF} `on.create/resume/update`", kopf, {"BENCH_STYLE": "usual"}),
}


# --- a process that is measured ---------------------------------------------------------------------------------------


class Process:
    """A contender at work."""

    def __init__(self, process: asyncio.subprocess.Process, begun: float, out: Path) -> None:
        self._process = process
        self._out = out
        self.begun = begun
        self.said: dict[str, float] = {}
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if found := re.fullmatch(rb"([a-z-]+) ([0-9.]+)\n", line):
                self.said.setdefault(found[1].decode(), float(found[2]))

    def since_start(self, what: str) -> float | None:
        """Seconds from the start of the process."""
        return self.said[what] - self.begun if what in self.said else None

    async def until(self, what: str) -> None:
        """Wait until it says so."""
        ended = time.monotonic() + PATIENCE
        while what not in self.said:
            if self._process.returncode is not None:
                raise Missing(f"it ended with exit code {self._process.returncode}")
            if time.monotonic() > ended:
                raise Missing(f"{what} did not come within {PATIENCE:g} s")
            await asyncio.sleep(0.02)

    def memory(self) -> tuple[float, float]:
        """Megabytes: now, and the most so far."""
        text = Path(f"/proc/{self._process.pid}/status").read_text()
        now, peak = (int(re.search(rf"{name}:\s+(\d+)", text)[1]) / 1000 for name in ("VmRSS", "VmHWM"))  # type: ignore[index]
        return now, peak

    def cpu(self) -> float:
        """Seconds of CPU so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def end(self) -> dict[int, float]:
        """Stop it; what it saw, by number."""
        self._process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), 120)
        except TimeoutError:
            self._process.kill()
        await self._reading
        if not self._out.exists():
            return {}
        return {int(number): moment for number, moment in json.loads(self._out.read_text()).items()}

    async def kill(self) -> None:
        """Leave nothing behind."""
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        await self._reading


@asynccontextmanager
async def started(
    contender: Contender, cluster: RealCluster, count: int, folder: Path, **env: str
) -> AsyncGenerator[Process]:
    """Start a contender."""
    command = contender.prepare()
    out = folder / "seen.json"
    out.unlink(missing_ok=True)
    mine = {
        **os.environ,
        **contender.env,
        "KUBECONFIG": str(cluster.kubeconfig),
        "BENCH_COUNT": str(count),
        "BENCH_OUT": str(out),
        **env,
    }
    with (folder / "errors.log").open("ab") as errors:
        begun = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *command, env=mine, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=errors
        )
    running = Process(process, begun, out)
    try:
        yield running
    finally:
        await running.kill()


# --- the world --------------------------------------------------------------------------------------------------------


async def in_parallel(work: Iterable[Awaitable[object]], width: int = 24) -> None:
    """All of it, so many at once."""
    waiting = iter(work)

    async def worker() -> None:
        for one in waiting:
            await one

    await asyncio.gather(*(worker() for _ in range(width)))


async def make_things(client: Client, count: int) -> None:
    """Install the kind and make the objects."""
    from bench.operators.kind import Thing

    await client.create(DynamicObject(crd_of(Thing)))
    await eventually(lambda: client.list(THING), lambda found: found == [], timeout=30)

    async def make(number: int) -> None:
        await client.create(
            DynamicObject(
                apiVersion="bench.example.org/v1",
                kind="Thing",
                metadata={"name": f"thing-{number:05d}", "namespace": "default"},
                spec={"a": number, "b": 0, "text": TEXT},
            )
        )

    await in_parallel(make(number) for number in range(count))


async def change(client: Client, place: int, number: int) -> None:
    """Write a new number into an object."""
    await client.patch(ref(THING, f"thing-{place:05d}", namespace="default"), MergePatch({"spec": {"b": number}}))


@dataclass
class Found:
    """What was measured of one contender."""

    start: float | None = None
    synced: float | None = None
    first_pass: float | None = None
    cpu_so_far: float | None = None
    memory: float | None = None
    peak: float | None = None
    p50: float | None = None
    p99: float | None = None
    lost: int = 0
    cpu: float | None = None
    statuses: float | None = None
    memory_after: float | None = None
    converged: float | None = None


class Bench:
    """One run over all contenders."""

    def __init__(self, cluster: RealCluster, client: Client, count: int, changes: int, folder: Path) -> None:
        self.cluster = cluster
        self.client = client
        self.count = count
        self.changes = changes
        self.folder = folder
        self.numbers = 0
        self.epoch = 0

    def errors(self) -> str:
        """The last that contenders wrote to standard error."""
        return (self.folder / "errors.log").read_text(errors="replace")[-2000:]

    async def measure(self, contender: Contender) -> Found:
        """Everything about one of them."""
        found = Found()
        await self._look(contender, found)
        await self._write(contender, found)
        return found

    async def _look(self, contender: Contender, found: Found) -> None:
        async with started(contender, self.cluster, self.count, self.folder) as process:
            await process.until("first-pass")
            await asyncio.sleep(2)
            found.start, found.synced = process.since_start("started"), process.since_start("synced")
            found.first_pass = process.since_start("first-pass")
            found.memory, found.peak = process.memory()
            before = found.cpu_so_far = process.cpu()
            sent = await self._steadily(100)
            await asyncio.sleep(2)
            found.cpu = process.cpu() - before
            seen = await process.end()
        waits = sorted(seen[number] - moment for number, moment in sent.items() if number in seen)
        found.lost = len(sent) - len(waits)
        if waits:
            found.p50, found.p99 = statistics.median(waits), waits[int(len(waits) * 0.99)]

    async def _steadily(self, per_second: int) -> dict[int, float]:
        """Changes at a steady pace; when each was about to be sent."""
        sent: dict[int, float] = {}
        tasks: list[asyncio.Task[None]] = []
        begun = time.monotonic()
        for step in range(self.changes):
            await asyncio.sleep(max(0.0, begun + step / per_second - time.monotonic()))
            self.numbers += 1
            sent[self.numbers] = time.monotonic()
            tasks.append(asyncio.create_task(change(self.client, (step * 7) % self.count, self.numbers)))
        await asyncio.gather(*tasks)
        return sent

    async def _write(self, contender: Contender, found: Found) -> None:
        self.epoch += 1_000_000
        env = {"BENCH_STATUS": "1", "BENCH_EPOCH": str(self.epoch)}
        async with started(contender, self.cluster, self.count, self.folder, **env) as process:
            await self._until_right(range(self.count))
            found.statuses = time.monotonic() - process.begun
            await asyncio.sleep(1)
            found.memory_after = process.memory()[0]
            begun = time.monotonic()
            changed = range(0, self.count, max(1, self.count // self.changes))
            first = self.numbers
            self.numbers += len(changed)
            await in_parallel(change(self.client, place, first + step + 1) for step, place in enumerate(changed))
            await self._until_right(changed)
            found.converged = time.monotonic() - begun

    async def _until_right(self, places: Iterable[int]) -> None:
        """Wait until the statuses of these objects fit their specs; asks the server as little as it can."""
        names = {f"thing-{place:05d}" for place in places}
        listing = await self.client.list(THING, namespace="default", page_size=None)
        wrong = {one.metadata.name for one in listing if not self._is_right(one)} & names
        version = listing.resource_version
        ended = time.monotonic() + PATIENCE
        while wrong:
            if time.monotonic() > ended:
                raise Missing(f"{len(wrong)} statuses were not written within {PATIENCE:g} s")
            async for event in self.client.watch(THING, namespace="default", resource_version=version):
                version = event.object.metadata.resource_version
                if self._is_right(event.object):
                    wrong.discard(event.object.metadata.name)
                elif event.object.metadata.name in names:
                    wrong.add(event.object.metadata.name)
                if not wrong:
                    break

    def _is_right(self, thing: DynamicObject) -> bool:
        return (thing.get("status") or {}).get("seen") == thing["spec"]["b"] + self.epoch


# --- the program ------------------------------------------------------------------------------------------------------


def shown(seconds: float | None) -> str:
    """`0.63 s`, `3.1 ms`."""
    if seconds is None:
        return "-"
    return f"{seconds * 1000:.1f} ms" if seconds < 0.1 else f"{seconds:.2f} s"


def megabytes(value: float | None) -> str:
    """`51 MB`."""
    return "-" if value is None else f"{value:,.0f} MB"


def report(found: Mapping[str, Found], count: int, changes: int) -> str:
    """Two tables: looking, and writing."""
    looking = [
        [
            CONTENDERS[name].title,
            shown(one.start),
            shown(one.synced),
            shown(one.first_pass),
            shown(one.cpu_so_far),
            f"{megabytes(one.memory)} ({megabytes(one.peak)})",
            shown(one.p50),
            shown(one.p99),
            shown(one.cpu) + (f", {one.lost} not seen" if one.lost else ""),
        ]
        for name, one in found.items()
    ]
    writing = [
        [CONTENDERS[name].title, shown(one.statuses), megabytes(one.memory_after), shown(one.converged)]
        for name, one in found.items()
    ]
    head = ["start", "synced", "first pass", "CPU so far", "memory (peak)", "p50", "p99", f"CPU, {changes:,} changes"]
    return "\n\n".join(
        [
            table([f"{count:,} objects, looking", *head], looking),
            table(
                [f"{count:,} objects, writing", "all statuses", "memory after", f"{changes:,} changed at once"], writing
            ),
        ]
    )


async def run(only: list[str], count: int, changes: int) -> str:
    """Measure them one after the other."""
    found: dict[str, Found] = {}
    with RealCluster() as cluster, tempfile.TemporaryDirectory() as folder:
        async with Client(cluster.config, namespace="default") as client:
            await make_things(client, count)
            bench = Bench(cluster, client, count, changes, Path(folder))
            for name in only:
                try:
                    found[name] = await bench.measure(CONTENDERS[name])
                except (Missing, FlyballError) as error:
                    print(f"{CONTENDERS[name].title} was left out: {error}\n{bench.errors()}", file=sys.stderr)
                else:
                    print(f"{name}: {found[name]}", file=sys.stderr)
    return report(found, count, changes)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.operator", description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(CONTENDERS), choices=list(CONTENDERS))
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--changes", type=int, default=2_000)
    options = parser.parse_args()
    print(uvloop.run(run(options.only, options.count, options.changes)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
