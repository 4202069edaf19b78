"""What an operator costs that has nothing to do: `python -m bench.idle`.

Each operator is a process of its own, started by `flyball run`, against a cluster in the box that is served by this
process over TLS: with health checks, metrics and everything on as by default. It gets ten objects, brings them to
rest, and is then left alone. The memory is what is resident at the end; the CPU is what the process used meanwhile, as
a share of one core.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from bench.common import ROOT, table

from flyball.api import DynamicObject
from flyball.client import dynamic
from flyball.testing import Cluster, eventually

BUDGET = (60.0, 0.5)
OBJECTS = 10
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Contender:
    """An operator: how it is started, and what it looks after."""

    name: str
    folder: Path
    target: str
    api: str
    kind: dict[str, Any]


SHELL = {"apiVersion": "my-first-operator.jgato.io/v1alpha1", "kind": "MyOwnShell"}
CONTENDERS = (
    Contender("the one-file operator", ROOT, "examples/my_own_shell.py", "examples/my_own_shell.py", SHELL),
    Contender("operators/myownshell", ROOT / "operators" / "myownshell", "myownshell", "myownshell.api", SHELL),
)


def flyball(*words: str) -> list[str]:
    """The command line of `flyball`."""
    return [str(Path(sys.executable).with_name("flyball")), *words]


def used(process: int) -> tuple[float, float]:
    """Seconds of CPU and megabytes of memory of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return (int(fields[11]) + int(fields[12])) / TICKS, pages * PAGE / 1e6


async def at_rest(cluster: Cluster) -> None:
    """Make the objects, and wait until their operator has told of each."""
    kind = dynamic(SHELL["apiVersion"], SHELL["kind"])
    for number in range(OBJECTS):
        metadata = {"name": f"demo-{number}", "namespace": "default"}
        await cluster.client.create(DynamicObject(**SHELL, metadata=metadata, spec={"size": 2}))

    async def told() -> bool:
        found = await cluster.client.list(kind, namespace="default")
        return all((one.get("status") or {}).get("observedGeneration") for one in found)

    await eventually(told, timeout=60)


def measure(one: Contender, seconds: float) -> tuple[float, float]:
    """Memory in MB and CPU in percent of one operator."""
    with Cluster(workloads=True) as cluster:
        environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "FLYBALL_LOG_LEVEL": "warning"}
        crd = subprocess.run(flyball("crd", one.api), cwd=one.folder, check=True, capture_output=True, text=True).stdout
        cluster.run(cluster.client.create(DynamicObject(yaml.safe_load(crd))))
        process = subprocess.Popen(
            flyball("run", one.target, "--health-port", "0", "--metrics-port", "0"), cwd=one.folder, env=environment
        )
        try:
            cluster.run(at_rest(cluster))
            cluster.run(asyncio.sleep(min(5.0, seconds)))
            began, (before, _) = time.monotonic(), used(process.pid)
            cluster.run(asyncio.sleep(seconds))
            after, memory = used(process.pid)
            return memory, 100 * (after - before) / (time.monotonic() - began)
        finally:
            process.terminate()
            process.wait(60)


def main() -> int:
    """Print a table; the result is 1 where a budget was exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each is left alone")
    seconds = parser.parse_args().seconds
    rows: list[list[str]] = []
    kept = True
    for one in CONTENDERS:
        memory, cpu = measure(one, seconds)
        kept = kept and memory < BUDGET[0] and cpu < BUDGET[1]
        rows.append([one.name, f"{memory:.1f}", f"{cpu:.2f}"])
    rows.append(["budget", f"< {BUDGET[0]:.0f}", f"< {BUDGET[1]}"])
    print(table(["operator, idle", "MB resident", "% of a core"], rows))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
