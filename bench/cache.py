"""How quickly a cache is ready, and how large it is then: 10,000 custom resources on a real API server.

`python -m bench.cache` starts a control plane, fills it, and syncs in a process of its own, several times. Memory is
that of the whole process: interpreter, client and cache.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.common import ROOT, Json, resident, table

NAMESPACES = 10
GROUP, PLURAL = "bench.example.org", "things"


def crd() -> Json:
    """The kind that is cached: a spec of two numbers and a text, and a status."""
    number, text = {"type": "integer"}, {"type": "string"}
    spec = {"type": "object", "properties": {"size": number, "weight": number, "text": text}}
    status = {"type": "object", "properties": {"ready": number, "observedGeneration": number}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": PLURAL, "singular": "thing"},
            "versions": [version],
        },
    }


def thing(index: int) -> Json:
    """One object: about 300 bytes of text in its spec."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Thing",
        "metadata": {
            "name": f"thing-{index:05d}",
            "namespace": f"bench-{index % NAMESPACES}",
            "labels": {"app": f"app-{index % 50}"},
        },
        "spec": {"size": index % 7, "weight": index, "text": f"{index:05d}-" + "x" * 294},
    }


async def fill(config: Any, count: int) -> None:
    """Install the kind and make the objects."""
    from flyball.api import DynamicObject
    from flyball.client import Client, dynamic
    from flyball.testing.eventually import eventually

    async with Client(config, field_manager="bench") as client:
        for number in range(NAMESPACES):
            await client.create(
                DynamicObject({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"bench-{number}"}})
            )
        await client.create(DynamicObject(crd()))
        kind = dynamic(f"{GROUP}/v1", "Thing")

        async def served() -> bool:
            await client.list(kind, namespace="*")
            return True

        await eventually(served, timeout=30)
        numbers = iter(range(count))

        async def make() -> None:
            for index in numbers:
                await client.create(DynamicObject(thing(index)))

        await asyncio.gather(*(make() for _ in range(16)))


async def sync(args: argparse.Namespace) -> Json:
    """One sync in this process, and what it cost."""
    from flyball.api import ResourceType
    from flyball.cache import CacheOptions, InformerCache
    from flyball.client import Client, load_config

    kind = ResourceType(GROUP, "v1", "Thing", PLURAL)
    async with Client(load_config(args.kubeconfig)) as client:
        await client.request("GET", "/version")
        gc.collect()
        before, cpu, begun = resident(), time.process_time(), time.perf_counter()
        cache = InformerCache(client, defaults=CacheOptions(page_size=args.page_size, streaming=args.streaming))
        informer = cache.informer(kind)
        told = [0]

        def count(event: object) -> None:
            told[0] += 1

        informer.add_handler(count)
        await cache.start()
        await cache.wait_synced()
        seconds = time.perf_counter() - begun
        cpu = time.process_time() - cpu
        await asyncio.sleep(1)
        pause = time.perf_counter()
        gc.collect()
        pause = time.perf_counter() - pause
        result = {
            "seconds": seconds,
            "cpu": cpu,
            "objects": len(informer.store),
            "told": told[0],
            "before": before,
            "after": resident(),
            "peak": peak(),
            "pause": pause,
        }
        await cache.stop()
    return result


def peak() -> int:
    """The most memory that this process ever had, in bytes."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def child(kubeconfig: Path, args: argparse.Namespace, page_size: int | None, streaming: bool) -> Json:
    """Sync once in a new process."""
    command = [sys.executable, "-m", "bench.cache", "--kubeconfig", str(kubeconfig), "--page-size", str(page_size or 0)]
    if streaming:
        command.append("--streaming")
    if args.uvloop:
        command.append("--uvloop")
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, env=os.environ)
    found: Json = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(kubeconfig: Path, args: argparse.Namespace) -> None:
    """Every way to get the first state, each several times; the best counts."""
    rows: list[list[str]] = []
    ways: list[tuple[str, int | None, bool]] = [
        (f"pages of {size}" if size else "one page", size, False) for size in args.sizes
    ]
    ways.append(("watch-list", None, True))
    for name, size, streaming in ways:
        runs = [child(kubeconfig, args, size, streaming) for _ in range(args.repeat)]
        best = min(runs, key=lambda run: run["seconds"])
        rows.append(
            [
                name,
                f"{best['seconds']:.3f} s",
                f"{best['cpu']:.3f} s",
                f"{best['before'] / 2**20:.1f} MB",
                f"{min(run['after'] for run in runs) / 2**20:.1f} MB",
                f"{min(run['peak'] for run in runs) / 2**20:.1f} MB",
                f"{best['pause'] * 1000:.1f} ms",
            ]
        )
    print(table(["first state by", "synced after", "CPU", "before", "memory after", "peak", "full collection"], rows))


def main() -> int:
    """Run the comparison, or one sync of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="*", default=[500, 2000, 0])
    parser.add_argument("--page-size", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--streaming", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--uvloop", action="store_true")
    parser.add_argument("--kubeconfig", help="use this cluster, which holds the objects already (one sync is measured)")
    args = parser.parse_args()
    if args.kubeconfig:
        args.page_size = args.page_size or None
        if args.uvloop:
            import uvloop

            print(json.dumps(uvloop.run(sync(args))))
        else:
            print(json.dumps(asyncio.run(sync(args))))
        return 0
    from flyball.testing.realcluster import RealCluster

    with RealCluster() as cluster:
        begun = time.perf_counter()
        asyncio.run(fill(cluster.config, args.objects))
        print(f"{args.objects} objects made in {time.perf_counter() - begun:.0f} s\n", flush=True)
        compare(cluster.kubeconfig, args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
