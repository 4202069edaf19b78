"""The embedded API server beside the real one, in one run: the same load over TLS, from processes of their own.

    python -m bench.apiserver [--seconds 3] [--rounds 3]

The two take turns, so that both meet the same machine; each number is the median of the rounds. The real one is etcd
and kube-apiserver without controllers. The load comes from `bench.load`, which needs about a tenth of what it makes
others do, and runs on the same machine, as a test does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.common import ROOT, table

from flyball import sync
from flyball.client.config import load_config
from flyball.k8s.core.v1 import ConfigMap, Namespace
from flyball.testing.binaries import BinariesMissing
from flyball.testing.realcluster import RealCluster

MANY = 10_000
WATCHERS = 100
EVENTS = 500

Numbers = dict[str, list[float]]


@dataclass
class Contender:
    """A server that runs."""

    name: str
    kubeconfig: Path
    processes: list[int]

    def load(self, mode: str, **spec: Any) -> dict[str, Any]:
        """Run the load generator once."""
        done = subprocess.run(self._command(mode, spec), capture_output=True, text=True, cwd=ROOT, check=True)
        result: dict[str, Any] = json.loads(done.stdout)
        bad = {code: count for code, count in result.get("codes", {}).items() if code not in ("200", "201")}
        if bad:
            raise SystemExit(f"{self.name}: {mode} got {bad}")
        return result

    def fan_out(self, namespace: str) -> float:
        """Events per second that reach many watchers of one resource."""
        with sync.Client(load_config(self.kubeconfig)) as client:
            client.create(Namespace.new(namespace))
            version = client.list(ConfigMap, namespace=namespace).resource_version
        # The namespace's own ConfigMap may come as well: one more event does no harm.
        spec = {"namespace": namespace, "version": version, "count": EVENTS, "connections": WATCHERS}
        watching = subprocess.Popen(self._command("watch", spec), stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert watching.stdout is not None
        watching.stdout.readline()
        self.load("create", namespace=namespace, prefix="f", connections=4, count=EVENTS)
        out, _ = watching.communicate(timeout=120)
        return float(json.loads(out)["rate"])

    def _command(self, mode: str, spec: dict[str, Any]) -> list[str]:
        return [
            sys.executable,
            "-m",
            "bench.load",
            json.dumps({"kubeconfig": str(self.kubeconfig), "mode": mode, **spec}),
        ]

    def megabytes(self) -> float:
        """What its processes hold in memory."""
        sizes = (Path(f"/proc/{process}/statm").read_text().split()[1] for process in self.processes)
        return sum(int(size) * os.sysconf("SC_PAGE_SIZE") for size in sizes) / 1e6


@contextlib.contextmanager
def embedded(numbers: Numbers) -> Generator[Contender]:
    """`flyball up` in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        begin = time.perf_counter()
        command = [sys.executable, "-m", "flyball.cli", "up", "--port", "0", "--kubeconfig", str(kubeconfig)]
        if not (ROOT / "src/flyball/cli/__main__.py").exists():
            command[1:3] = ["-c", "from flyball.cli import main; main()"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert process.stdout is not None
        if "is ready" not in process.stdout.readline():
            raise SystemExit(f"flyball up ended with {process.wait()}")
        numbers.setdefault("ready", []).append(time.perf_counter() - begin)
        try:
            yield Contender("embedded", kubeconfig, [process.pid])
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()


@contextlib.contextmanager
def real(numbers: Numbers) -> Generator[Contender]:
    """The real one: etcd and kube-apiserver."""
    begin = time.perf_counter()
    with RealCluster(controllers=False) as cluster:
        numbers.setdefault("ready", []).append(time.perf_counter() - begin)
        yield Contender("kube-apiserver", cluster.kubeconfig, _processes(str(cluster.folder)))


def _processes(folder: str) -> list[int]:
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = place.read_bytes().split(b"\0")
            if Path(words[0].decode()).name in ("etcd", "kube-apiserver") and any(
                folder.encode() in word for word in words
            ):
                found.append(int(place.parent.name))
    return found


def measure(contender: Contender, numbers: Numbers, turn: int, seconds: float) -> None:
    """One round."""
    for connections in (1, 16, 64):
        spec = {"prefix": f"r{turn}c{connections}", "connections": connections, "seconds": seconds}
        _note(numbers, f"create {connections}", contender.load("create", **spec))
    spec = {"name": f"r{turn}c1-0-0", "connections": 16, "seconds": seconds}
    _note(numbers, "get", contender.load("get", **spec))
    numbers.setdefault("fan-out", []).append(contender.fan_out(f"fan-{turn}"))
    _note(numbers, "list", contender.load("list", namespace="many", connections=1, seconds=seconds))


def _note(numbers: Numbers, what: str, result: dict[str, Any]) -> None:
    numbers.setdefault(what, []).append(result["rate"])
    numbers.setdefault(f"{what} p99", []).append(result["p99"])


def fill(contender: Contender, numbers: Numbers) -> None:
    """Create many objects and see what they take."""
    with sync.Client(load_config(contender.kubeconfig)) as client:
        client.create(Namespace.new("many"))
    numbers["memory empty"] = [contender.megabytes()]
    contender.load("create", namespace="many", prefix="m", connections=16, count=MANY)
    numbers["memory"] = [contender.megabytes()]


ROWS = (
    ("creates/s, 1 connection", "create 1", "{:,.0f}", True),
    ("creates/s, 16 connections", "create 16", "{:,.0f}", True),
    ("creates/s, 64 connections", "create 64", "{:,.0f}", True),
    ("p99 of a create, 16 connections, ms", "create 16 p99", "{:.1f}", False),
    ("GETs/s, 16 connections", "get", "{:,.0f}", True),
    (f"LISTs of {MANY:,} a second, 1 connection", "list", "{:.1f}", True),
    (f"events/s to {WATCHERS} watchers", "fan-out", "{:,.0f}", True),
    ("ready after, s", "ready", "{:.2f}", False),
    ("memory at the start, MB", "memory empty", "{:.0f}", False),
    (f"memory after {MANY:,} objects, MB", "memory", "{:.0f}", False),
)


def row(label: str, what: str, form: str, more_is_better: bool, found: dict[str, Numbers]) -> list[str]:
    """One line of the table, with the ratio in our favour."""
    scale = 1000 if what.endswith("p99") else 1
    ours, theirs = (statistics.median(found[name][what]) * scale for name in ("embedded", "kube-apiserver"))
    ratio = ours / theirs if more_is_better else theirs / ours
    return [label, form.format(ours), form.format(theirs), f"{ratio:.1f} x"]


def main() -> int:
    """Measure both and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.apiserver", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    found: dict[str, Numbers] = {"embedded": {}, "kube-apiserver": {}}
    try:
        with embedded(found["embedded"]) as ours, real(found["kube-apiserver"]) as theirs:
            for contender in (ours, theirs):
                fill(contender, found[contender.name])
            for turn in range(options.rounds):
                for contender in (ours, theirs):
                    measure(contender, found[contender.name], turn, options.seconds)
        for start in (embedded, real):
            with start(found["embedded" if start is embedded else "kube-apiserver"]):
                pass
    except BinariesMissing as missing:
        print(f"left out: {missing}")
        return 0
    rows = [row(*each, found) for each in ROWS]
    print(table(("", "embedded", "kube-apiserver + etcd", "better by"), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
