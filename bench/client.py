"""Requests per second against a real API server: `python -m bench.client`.

Each contender has a process of its own and the server to itself: GET of a Deployment (a pod template of 4 kB) and
create of a small ConfigMap, with 1, 16 and 64 requests in flight, two seconds each. Server and client share the
machine, so the quicker the client, the more of it is left for the server; at one in flight the server's own time
dominates.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any, Final

from bench.common import ROOT, Json, peers_python, pod, table, version_of

from flyball.api import DynamicObject
from flyball.client import Client, load_config
from flyball.k8s.apps.v1 import Deployment
from flyball.k8s.core.v1 import ConfigMap, Namespace
from flyball.sync import Client as SyncClient
from flyball.testing.realcluster import RealCluster

IN_FLIGHT: Final = (1, 16, 64)
DATA: Final = {f"key-{number}": "value " * 8 for number in range(4)}

Operation = Callable[[], Awaitable[object]]
Blocking = Callable[[], object]


# -- contenders: each gives its two operations -------------------------------------------------------------------------


async def flyball_asynchronous(stack: AsyncExitStack, kubeconfig: Path, namespace: str) -> tuple[Operation, Operation]:
    """Typed objects, one event loop."""
    client = await stack.enter_async_context(Client(load_config(kubeconfig), namespace=namespace))
    names = map("a-{}".format, itertools.count())
    return lambda: client.get(Deployment, "web"), lambda: client.create(ConfigMap.new(next(names), data=DATA))


async def lightkube_asynchronous(
    stack: AsyncExitStack, kubeconfig: Path, namespace: str
) -> tuple[Operation, Operation]:
    """Dataclasses over httpx."""
    import lightkube  # type: ignore
    from lightkube.models.meta_v1 import ObjectMeta  # type: ignore
    from lightkube.resources import apps_v1, core_v1  # type: ignore

    config = lightkube.KubeConfig.from_file(str(kubeconfig))
    client: Any = lightkube.AsyncClient(config=config, namespace=namespace)
    names = map("l-{}".format, itertools.count())
    return (
        lambda: client.get(apps_v1.Deployment, "web"),
        lambda: client.create(core_v1.ConfigMap(metadata=ObjectMeta(name=next(names)), data=DATA)),
    )


async def official_asynchronous(stack: AsyncExitStack, kubeconfig: Path, namespace: str) -> tuple[Operation, Operation]:
    """Generated models over aiohttp."""
    import kubernetes_asyncio as library  # type: ignore

    await library.config.load_kube_config(config_file=str(kubeconfig))
    api: Any = await stack.enter_async_context(library.client.ApiClient())
    apps, core = library.client.AppsV1Api(api), library.client.CoreV1Api(api)
    names = map("k-{}".format, itertools.count())
    return (
        lambda: apps.read_namespaced_deployment("web", namespace),
        lambda: core.create_namespaced_config_map(namespace, {"metadata": {"name": next(names)}, "data": DATA}),
    )


async def kr8s_asynchronous(stack: AsyncExitStack, kubeconfig: Path, namespace: str) -> tuple[Operation, Operation]:
    """Dicts over httpx."""
    import kr8s.asyncio  # type: ignore
    from kr8s.asyncio import objects  # pyright: ignore

    api: Any = await kr8s.asyncio.api(kubeconfig=str(kubeconfig), namespace=namespace)
    names = map("r-{}".format, itertools.count())

    def create() -> Awaitable[object]:
        metadata = {"name": next(names), "namespace": namespace}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": DATA}
        made: Awaitable[object] = objects.ConfigMap(body, api=api).create()
        return made

    return lambda: objects.Deployment.get("web", namespace=namespace, api=api), create


def flyball_synchronous(stack: ExitStack, kubeconfig: Path, namespace: str) -> tuple[Blocking, Blocking]:
    """`flyball.sync`, one client for all threads."""
    client = stack.enter_context(SyncClient(load_config(kubeconfig), namespace=namespace))
    names = map("s-{}".format, itertools.count())
    return lambda: client.get(Deployment, "web"), lambda: client.create(ConfigMap.new(next(names), data=DATA))


def official_synchronous(stack: ExitStack, kubeconfig: Path, namespace: str) -> tuple[Blocking, Blocking]:
    """Generated models over urllib3, in threads."""
    import kubernetes as library  # type: ignore

    configuration: Any = library.client.Configuration()
    configuration.connection_pool_maxsize = max(IN_FLIGHT)
    library.config.load_kube_config(config_file=str(kubeconfig), client_configuration=configuration)
    api: Any = stack.enter_context(library.client.ApiClient(configuration))
    apps, core = library.client.AppsV1Api(api), library.client.CoreV1Api(api)
    names = map("o-{}".format, itertools.count())
    return (
        lambda: apps.read_namespaced_deployment("web", namespace),
        lambda: core.create_namespaced_config_map(namespace, {"metadata": {"name": next(names)}, "data": DATA}),
    )


ASYNCHRONOUS: Final = {
    "flyball": flyball_asynchronous,
    "lightkube": lightkube_asynchronous,
    "kubernetes_asyncio": official_asynchronous,
    "kr8s": kr8s_asynchronous,
}
SYNCHRONOUS: Final = {"flyball-sync": flyball_synchronous, "kubernetes": official_synchronous}
CONTENDERS: Final = ("flyball", "flyball-sync", "lightkube", "kr8s", "kubernetes_asyncio", "kubernetes")


# -- measuring ---------------------------------------------------------------------------------------------------------


async def rate(operation: Operation, in_flight: int, duration: float) -> float:
    """Operations per second with so many tasks, after one for each to warm up."""
    await asyncio.gather(*(operation() for _ in range(in_flight)))
    done, end = 0, time.perf_counter() + duration

    async def worker() -> None:
        nonlocal done
        while time.perf_counter() < end:
            await operation()
            done += 1

    begun = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(in_flight)))
    return done / (time.perf_counter() - begun)


def thread_rate(operation: Blocking, in_flight: int, duration: float) -> float:
    """The same with threads."""
    with ThreadPoolExecutor(in_flight) as pool:
        list(pool.map(lambda _: operation(), range(in_flight)))
        begun = time.perf_counter()
        end = begun + duration

        def worker(_: int) -> int:
            done = 0
            while time.perf_counter() < end:
                operation()
                done += 1
            return done

        done = sum(pool.map(worker, range(in_flight)))
        return done / (time.perf_counter() - begun)


def measure_threads(name: str, kubeconfig: Path, namespace: str, duration: float) -> Json:
    """Both operations of one contender that blocks."""
    with ExitStack() as stack:
        operations = SYNCHRONOUS[name](stack, kubeconfig, namespace)
        return {
            verb: [thread_rate(operation, count, duration) for count in IN_FLIGHT]
            for verb, operation in zip(("get", "create"), operations, strict=True)
        }


async def measure(name: str, kubeconfig: Path, namespace: str, duration: float) -> Json:
    """Both operations of one contender, here."""
    if name in SYNCHRONOUS:
        return await asyncio.to_thread(measure_threads, name, kubeconfig, namespace, duration)
    async with AsyncExitStack() as stack:
        operations = await ASYNCHRONOUS[name](stack, kubeconfig, namespace)
        return {
            verb: [await rate(operation, count, duration) for count in IN_FLIGHT]
            for verb, operation in zip(("get", "create"), operations, strict=True)
        }


def in_its_own_process(name: str, cluster: RealCluster, duration: float) -> Json:
    """Both operations of one contender, in an environment that holds it and in a namespace of its own."""
    namespace = f"bench-{name.replace('_', '-')}"
    with SyncClient(cluster.config, namespace=namespace, on_warning=lambda _: None) as client:
        client.create(Namespace.new(namespace))
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": pod(0)["spec"]}
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        client.create(DynamicObject(apiVersion="apps/v1", kind="Deployment", metadata={"name": "web"}, spec=spec))
    command = [str(peers_python()), "-m", "bench.client", "--measure", name, "--seconds", str(duration)]
    command += ["--kubeconfig", str(cluster.kubeconfig), "--namespace", namespace]
    quiet = {**os.environ, "PYTHONWARNINGS": "ignore"}
    answer = subprocess.run(command, cwd=ROOT, env=quiet, stdout=subprocess.PIPE, check=True, text=True)
    found: Json = json.loads(answer.stdout.splitlines()[-1])
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.client", description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(CONTENDERS), choices=CONTENDERS)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--measure", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--kubeconfig", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--namespace", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        found = asyncio.run(measure(options.measure, options.kubeconfig, options.namespace, options.seconds))
        print(json.dumps(found))
        return 0
    with RealCluster(controllers=False) as cluster:
        results = {name: in_its_own_process(name, cluster, options.seconds) for name in options.only}
    for verb, what in (("get", "GET of a Deployment"), ("create", "create of a ConfigMap")):
        head = [f"{what}, per second", *(f"{count} in flight" for count in IN_FLIGHT)]
        rows = [
            [name + version_of(name), *(f"{value:,.0f}" for value in found[verb])] for name, found in results.items()
        ]
        print(table(head, rows), end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
