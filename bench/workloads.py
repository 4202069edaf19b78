"""`python -m bench.workloads`: how quickly workloads progress, in the box and beside it on the real control plane.

`flyball up` runs in a process of its own, the load comes from this one, over TLS, as in a test. What is measured:

| measurement | what |
|---|---|
| many Pods | so many simulated nodes, so many Pods: until all of them are Running and Ready |
| a Job | from before the request that creates it to the watch event with `Complete`; one after the other |
| a Deployment | of 100 replicas: until all are available |
| SimpleJobs | 100 of the operator in `operators/simplejob`, run by `flyball run`: until all are Completed |

On the real side kube-apiserver and kube-controller-manager do their work, and our scheduler and simulated kubelet play
the Pods. CPU is that of the servers (and, for the real side, not of what plays the Pods). `--only NAME...`, `--pods N`,
`--nodes N` and `--jobs N` make it shorter.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop
from bench.common import ROOT, table

from flyball.api import DynamicObject, is_true
from flyball.client import Client, dynamic
from flyball.client.config import load_config
from flyball.errors import FlyballError
from flyball.k8s.apps.v1 import Deployment, DeploymentSpec
from flyball.k8s.batch.v1 import Job, JobSpec
from flyball.k8s.core.v1 import Container, Namespace, Pod, PodSpec, PodTemplateSpec, ServiceAccount
from flyball.k8s.meta.v1 import LabelSelector, ObjectMeta
from flyball.testing import RealCluster
from flyball.testing.nodes import BESIDE_PLAYED_NODES, PlayedNodes

PATIENCE = 600.0
WRITERS = 16
REPLICAS = 100
SIMPLE_JOBS = 100
AT_ONCE = {"simulate.flyball.dev/run-for": "0"}
SIMPLE_JOB = dynamic("jobs.example.com/v1alpha1", "SimpleJob")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Server:
    """A cluster that is measured."""

    name: str
    kubeconfig: Path
    processes: list[int]

    def cpu(self) -> float:
        """Seconds of processor time of its processes."""
        total = 0.0
        for process in self.processes:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / _TICKS
        return total

    def megabytes(self) -> float:
        """What its processes hold in memory."""
        sizes = (Path(f"/proc/{process}/statm").read_text().split()[1] for process in self.processes)
        return sum(int(size) * os.sysconf("SC_PAGE_SIZE") for size in sizes) / 1e6


@contextlib.contextmanager
def box(*wishes: str) -> Generator[Server]:
    """`flyball up` in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        command = [sys.executable, "-c", "from flyball.cli import main; main()", "up", "--port", "0"]
        process = subprocess.Popen(
            [*command, "--kubeconfig", str(kubeconfig), *wishes], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert process.stdout is not None
        if "is ready" not in process.stdout.readline():
            raise SystemExit(f"flyball up ended with {process.wait()}")
        try:
            yield Server("in the box", kubeconfig, [process.pid])
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()


@contextlib.contextmanager
def real() -> Generator[Server]:
    """kube-apiserver, etcd and kube-controller-manager, with nodes that we play."""
    with RealCluster(controllers=BESIDE_PLAYED_NODES) as cluster, PlayedNodes(cluster.config):
        yield Server("kube-controller-manager", cluster.kubeconfig, _processes(str(cluster.folder)))


def _processes(folder: str) -> list[int]:
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = place.read_bytes().split(b"\0")
            program = Path(words[0].decode()).name
            ours = any(folder.encode() in word for word in words)
            if ours and program in ("etcd", "kube-apiserver", "kube-controller-manager"):
                found.append(int(place.parent.name))
    return found


@contextlib.asynccontextmanager
async def client_of(server: Server) -> AsyncGenerator[Client]:
    """A client in a namespace of its own, in which Pods can be made."""
    name = f"bench-{time.monotonic_ns()}"
    async with Client(load_config(server.kubeconfig), namespace=name) as client:
        await client.create(Namespace.new(name))
        await until(lambda: _is_there(client), bool)
        yield client


async def _is_there(client: Client) -> bool:
    try:
        await client.get(ServiceAccount, "default")
    except FlyballError:
        return False
    return True


async def until(probe: Callable[[], Awaitable[Any]], right: Callable[[Any], bool], pause: float = 0.05) -> Any:
    """Ask again and again."""
    end = time.monotonic() + PATIENCE
    while not right(found := await probe()):
        if time.monotonic() > end:
            raise SystemExit(f"it does not happen within {PATIENCE:g} s; last seen: {found}")
        await asyncio.sleep(pause)
    return found


def pod_spec(**options: Any) -> PodSpec:
    """A Pod that asks for little."""
    return PodSpec(containers=[Container(name="c", image="busybox", command=["true"])], **options)


# -- measurements ------------------------------------------------------------------------------------------------------


async def many_pods(server: Server, nodes: int, pods: int) -> list[str]:
    """Make Pods, wait for all of them."""
    async with client_of(server) as client:
        memory, cpu, begun = server.megabytes(), server.cpu(), time.monotonic()
        numbers = iter(range(pods))

        async def make() -> None:
            for number in numbers:
                await client.create(Pod.new(f"pod-{number}", spec=pod_spec(restart_policy="Always")))

        await asyncio.gather(*(make() for _ in range(WRITERS)))
        created = time.monotonic() - begun
        await until(lambda: _not_running(client), lambda count: count == 0, pause=0.5)
        took, used = time.monotonic() - begun, server.cpu() - cpu
        held = server.megabytes() - memory
        found = [pod async for pod in client.list(Pod)]
        ready = sum(1 for pod in found if is_true(pod.status.conditions, "Ready"))
        assert (len(found), ready) == (pods, pods), (len(found), ready)
    return [
        f"{nodes:,} nodes, {pods:,} Pods",
        f"{created:.1f}",
        f"{took:.1f}",
        f"{pods / took:,.0f}",
        f"{used:.1f}",
        f"{1000 * used / pods:.2f}",
        f"{1000 * held / pods:.1f}",
    ]


async def _not_running(client: Client) -> int:
    async for _ in client.list(Pod, fields="status.phase!=Running", page_size=1):
        return 1
    return 0


async def job_latency(server: Server, count: int, annotations: dict[str, str]) -> list[str]:
    """Create Jobs one after the other; how long until each is complete."""
    async with client_of(server) as client:
        took: list[float] = []
        cpu = server.cpu()
        for number in range(count + 1):
            template = PodTemplateSpec(
                metadata=ObjectMeta(annotations=annotations), spec=pod_spec(restart_policy="Never")
            )
            begun = time.perf_counter()
            made = await client.create(Job.new(f"job-{number}", spec=JobSpec(template=template)))
            fields = f"metadata.name={made.metadata.name}"
            async with client.watch(Job, fields=fields, resource_version=made.metadata.resource_version) as watch:
                async for event in watch:
                    if is_true(event.object.status.conditions, "Complete"):
                        break
            if number:  # the first one pays for imports
                took.append((time.perf_counter() - begun) * 1000)
            else:
                cpu = server.cpu()
        used = 1000 * (server.cpu() - cpu) / count
    took.sort()
    p99 = took[min(len(took) - 1, int(len(took) * 0.99))]
    return [f"{statistics.median(took):.0f}", f"{p99:.0f}", f"{used:.0f}"]


async def deployment(server: Server) -> list[str]:
    """Create a Deployment, wait until all of it is available, then until it is gone again."""
    async with client_of(server) as client:
        labels = {"app": "bench"}
        template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod_spec())
        spec = DeploymentSpec(replicas=REPLICAS, selector=LabelSelector(match_labels=labels), template=template)
        cpu, begun = server.cpu(), time.monotonic()
        made = await client.create(Deployment.new("bench", spec=spec))
        version = made.metadata.resource_version
        async with client.watch(Deployment, fields="metadata.name=bench", resource_version=version) as watch:
            async for event in watch:
                if event.object.status.available_replicas == REPLICAS:
                    break
        took, used = time.monotonic() - begun, server.cpu() - cpu
    return [f"{took:.2f}", f"{used:.2f}"]


async def simple_jobs(server: Server) -> list[str]:
    """Create SimpleJobs while their operator runs, wait until all are Completed."""
    project = ROOT / "operators" / "simplejob"
    import yaml

    async with client_of(server) as client:
        for file in sorted((project / "config" / "crd").glob("*.yaml")):
            await client.apply(DynamicObject(yaml.safe_load(file.read_text())), field_manager="bench")
        await until(lambda: _is_served(client), bool)
        environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig), "FLYBALL_LOG_LEVEL": "error"}
        command = [sys.executable, "-c", "from flyball.cli import main; main()", "run", "simplejob"]
        operator = await asyncio.create_subprocess_exec(
            *command, cwd=project, env=environment, stderr=subprocess.DEVNULL
        )
        both = Server("", server.kubeconfig, [*server.processes, operator.pid])
        try:
            await _make_simple_jobs(client, "warm", 1)
            cpu, begun = both.cpu(), time.monotonic()
            await _make_simple_jobs(client, "bench", SIMPLE_JOBS)
            return [f"{time.monotonic() - begun:.1f}", f"{both.cpu() - cpu:.1f}"]
        finally:
            operator.send_signal(signal.SIGTERM)
            await operator.wait()


async def _make_simple_jobs(client: Client, prefix: str, count: int) -> None:
    spec = {"command": "true", "image": "busybox"}
    for number in range(count):
        body = {"apiVersion": "jobs.example.com/v1alpha1", "kind": "SimpleJob"}
        await client.create(DynamicObject({**body, "metadata": {"name": f"{prefix}-{number}"}, "spec": spec}))

    async def completed() -> int:
        found = await client.list(SIMPLE_JOB)
        return sum(
            1
            for one in found
            if one.metadata.name.startswith(prefix) and (one.get("status") or {}).get("phase") == "Completed"
        )

    await until(completed, lambda done: done == count)


async def _is_served(client: Client) -> bool:
    try:
        await client.list(SIMPLE_JOB)
    except FlyballError:
        return False
    return True


# -- tables ------------------------------------------------------------------------------------------------------------


def run(work: Any) -> Any:
    """Run a coroutine in a quick event loop."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def show_many(options: argparse.Namespace) -> None:
    """Many Pods on many nodes."""
    with box("--nodes", str(options.nodes)) as server:
        row = run(many_pods(server, options.nodes, options.pods))
    head = ["simulated", "created, s", "all Ready, s", "Pods/s", "CPU, s", "CPU per Pod, ms", "memory per Pod, kB"]
    print(table(head, [row]), end="\n\n", flush=True)


def show_jobs(options: argparse.Namespace) -> None:
    """One Job after the other."""
    rows: list[list[str]] = []
    with box() as server:
        rows.append(["simulated", *run(job_latency(server, options.jobs, AT_ONCE))])
    with box("--pods", "process") as server:
        rows.append(["as a process", *run(job_latency(server, options.jobs, {}))])
    if not options.no_real:
        with real() as server:
            rows.append([f"{server.name}, simulated", *run(job_latency(server, max(3, options.jobs // 10), AT_ONCE))])
    print(table(["Job, create -> Complete", "p50, ms", "p99, ms", "CPU, ms"], rows), end="\n\n", flush=True)


def show_deployment(options: argparse.Namespace) -> None:
    """A Deployment becomes available."""
    rows: list[list[str]] = []
    with box("--nodes", "2") as server:
        rows.append([server.name, *run(deployment(server))])
    if not options.no_real:
        with RealCluster(controllers=BESIDE_PLAYED_NODES) as cluster, PlayedNodes(cluster.config, nodes=2):
            server = Server("kube-controller-manager", cluster.kubeconfig, _processes(str(cluster.folder)))
            rows.append([server.name, *run(deployment(server))])
    print(table([f"Deployment of {REPLICAS}", "all available, s", "CPU, s"], rows), end="\n\n", flush=True)


def show_simple_jobs(options: argparse.Namespace) -> None:
    """The operator of operators/simplejob."""
    del options
    with box("--nodes", "2", "--speed", "100") as server:
        row = [server.name, *run(simple_jobs(server))]
    head = [f"{SIMPLE_JOBS} SimpleJobs", "all Completed, s", "CPU with the operator, s"]
    print(table(head, [row]), end="\n\n", flush=True)


SHOWS = {"many": show_many, "jobs": show_jobs, "deployment": show_deployment, "simplejobs": show_simple_jobs}


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.workloads", description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(SHOWS), choices=list(SHOWS))
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--no-real", action="store_true", help="leave the real control plane out")
    options = parser.parse_args()
    print(f"load of the machine at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n", flush=True)
    for name in options.only:
        SHOWS[name](options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
