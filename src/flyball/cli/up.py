"""`flyball up`: an embedded cluster for kubectl and everything else, until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib.util
import os
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flyball.errors import ConfigError

if TYPE_CHECKING:
    from flyball.clock import TurnableClock
    from flyball.controlplane.cluster import EmbeddedCluster
    from flyball.controlplane.kubeconfig import Access
    from flyball.controlplane.kubelet import PodsMode
    from flyball.controlplane.kubelet.process import Processes

__all__ = ["command"]

_PATH = click.Path(path_type=Path)
_PORT = 6443
_COLLECT = (20_000, 20, 50)
"""When Python's collector runs: seldom, because what a server keeps has no cycles, and each run makes all wait."""


@dataclass(frozen=True, slots=True)
class _Wishes:
    data: Path | None
    host: str
    port: int
    allow_remote: bool
    http_port: int | None
    unix_socket: Path | None
    load: tuple[Path, ...]
    kubeconfig: Path | None
    merge: bool
    pods: PodsMode
    nodes: int
    speed: float
    stages: tuple[Path, ...]
    seed: int
    controllers: tuple[str, ...]
    image: tuple[str, ...]
    images: Path | None
    allow_host_path: tuple[Path, ...]


@click.command("up")
@click.option("--data", type=_PATH, metavar="FILE", help="Keep the state in this SQLite file.  [default: in memory]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=_PORT, show_default=True, help="0 takes a free port.")
@click.option("--allow-remote", is_flag=True, help="Allow a --host that other machines can reach.")
@click.option("--http-port", type=click.IntRange(0, 65535), help="Serve plain HTTP too: loopback, no login.")
@click.option("--unix-socket", type=_PATH, metavar="PATH", help="Serve plain HTTP on a socket file too: no login.")
@click.option("--load", type=_PATH, multiple=True, metavar="DIR", help="Apply these YAML files first. Repeatable.")
@click.option("--kubeconfig", type=_PATH, metavar="PATH", help="Write a complete kubeconfig there.")
@click.option("--merge", is_flag=True, help="Add the cluster to your own kubeconfig and make it the current one.")
@click.option(
    "--pods",
    type=click.Choice(["simulate", "process", "none"]),
    default="simulate",
    show_default=True,
    help="What happens to Pods: they are played, run as processes of this machine, or there is no node for them.",
)
@click.option("--nodes", type=click.IntRange(0, 5000), default=1, show_default=True, help="How many nodes there are.")
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="How many times as fast simulated Pods live.",
)
@click.option(
    "--stages",
    type=_PATH,
    multiple=True,
    metavar="PATH",
    help="How simulated Pods live: a YAML file or folder of stages. Repeatable.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Where the chance of stages comes from.")
@click.option(
    "--controllers",
    default="*",
    show_default=True,
    metavar="NAMES",
    help="Which controllers run, as kube-controller-manager takes them: *, NAME, -NAME, separated by commas.",
)
@click.option(
    "--image",
    multiple=True,
    metavar="NAME=COMMAND",
    help="With --pods=process: let Pods use this image, which is a command of this machine. Repeatable.",
)
@click.option("--images", type=_PATH, metavar="FILE", help="With --pods=process: a YAML file of such images.")
@click.option(
    "--allow-host-path",
    type=_PATH,
    multiple=True,
    metavar="DIR",
    help="With --pods=process: let Pods use this folder as a hostPath volume. Repeatable.",
)
def command(**given: Any) -> None:
    """Start a Kubernetes API server in this process and serve it until Ctrl-C."""
    if importlib.util.find_spec("cryptography") is None:
        raise ConfigError("flyball up: the package cryptography is missing; install flyball[dev]")
    given["controllers"] = tuple(given["controllers"].split(","))
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(_Wishes(**given)))


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop


async def _serve(wishes: _Wishes) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C interrupts the program there
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with _running(wishes) as lines:
        gc.freeze()  # what is there now stays: the collector need not look at it again and again
        gc.set_threshold(*_COLLECT)
        click.echo("\n".join(lines))
        sys.stdout.flush()
        await stopped.wait()
    click.echo("The cluster has stopped.")


@contextlib.asynccontextmanager
async def _running(wishes: _Wishes) -> AsyncGenerator[list[str]]:
    """Run a cluster with its doors; give what a person is told about it."""
    from flyball.client import Client
    from flyball.clock import TurnableClock
    from flyball.controlplane.apiserver.http import HttpDoor
    from flyball.controlplane.bootstrap import ADMIN
    from flyball.controlplane.controllers.workloads import Workloads
    from flyball.controlplane.kubelet import fleet_for
    from flyball.controlplane.loading import apply_manifests, read_manifests

    manifests = [manifest for place in wishes.load for manifest in read_manifests(place)]
    async with contextlib.AsyncExitStack() as stack:
        clock = TurnableClock()
        cluster = _cluster(wishes, clock)
        stack.push_async_callback(cluster.stop)
        doors = [cluster.door(host=wishes.host, port=wishes.port, remote=wishes.allow_remote)]
        if wishes.http_port is not None:
            doors.append(HttpDoor(cluster.server, port=wishes.http_port, user=ADMIN))
        if wishes.unix_socket is not None:
            doors.append(HttpDoor(cluster.server, unix=wishes.unix_socket, user=ADMIN))
        for door in doors:
            stack.callback(door.let_go)
            door.bind()
        options = _processes(wishes, doors[0].port)
        fleet = fleet_for(
            wishes.pods,
            nodes=wishes.nodes,
            speed=wishes.speed,
            stages=wishes.stages,
            seed=wishes.seed,
            options=options,
        )
        await cluster.start(doors[0].port)
        if manifests:
            async with Client(transport=cluster.transport) as client:
                await apply_manifests(client, manifests)
        for door in doors:
            stack.push_async_callback(door.close)
            await door.open()
        stack.push_async_callback(cluster.stop)  # watches end before the doors close
        workloads = Workloads(
            cluster.transport,
            cluster.clock,
            fleet=fleet,
            controllers=wishes.controllers,
            kubelets=cluster.server.kubelets,
        )
        await stack.enter_async_context(workloads)
        if os.name == "posix":
            from flyball.controlplane.admin import AdminDoor, socket_of

            await stack.enter_async_context(AdminDoor(clock, socket_of(doors[0].port)))
        path = _hand_out(cluster.access(doors[0].url), wishes, stack)
        yield _told(wishes, path, [door.url for door in doors])


def _processes(wishes: _Wishes, port: int) -> Processes | None:
    """Read what was chosen for Pods as processes."""
    if wishes.pods != "process":
        if wishes.image or wishes.images or wishes.allow_host_path:
            raise ConfigError("--image, --images and --allow-host-path are for Pods that are run: add --pods=process")
        return None
    if os.name != "posix":
        return None  # which is refused with better words where it would be used
    if wishes.allow_remote:
        raise ConfigError(
            "--pods=process with --allow-remote: whoever reaches the cluster could run commands here as you; "
            "leave one of them out"
        )
    from flyball.controlplane.kubelet.process import Images, Processes

    images = Images.given(wishes.image, wishes.images)
    return Processes(images=images, host_paths=wishes.allow_host_path, server=lambda: (wishes.host, port))


def _cluster(wishes: _Wishes, clock: TurnableClock) -> EmbeddedCluster:
    from flyball.controlplane.apiserver.store import StorageError
    from flyball.controlplane.cluster import EmbeddedCluster
    from flyball.controlplane.controllers.catalogue import loops

    data = wishes.data
    try:
        return EmbeddedCluster(data=data, clock=clock, controllers=loops(wishes.controllers))
    except StorageError as error:
        if "locked" in str(error):
            raise ConfigError(f"{data}: another cluster has this file open; stop it, or name another file") from None
        raise ConfigError(f"{error}; name another file, or move it away") from None


def _hand_out(access: Access, wishes: _Wishes, stack: contextlib.AsyncExitStack) -> Path | None:
    """Write the kubeconfigs that were asked for, or one that goes with the cluster."""
    from flyball.controlplane.kubeconfig import merge_kubeconfig, write_kubeconfig

    path = wishes.kubeconfig
    if wishes.merge:
        from flyball.client.kubeconfig import default_paths

        merge_kubeconfig(default_paths(os.environ)[0][0], access)
        if path is None:
            return None
    if path is None:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="flyball-up-"))
        path = Path(folder) / "kubeconfig"
    try:
        write_kubeconfig(path, access)
    except OSError as error:
        raise ConfigError(f"write the kubeconfig {path}: {error.strerror or error}; name another place") from None
    return path


def _told(wishes: _Wishes, kubeconfig: Path | None, urls: list[str]) -> list[str]:
    from flyball.controlplane.apiserver.health import VERSION

    state = f"the state is kept in {wishes.data}" if wishes.data is not None else "the state ends with it"
    lines = [f"A Kubernetes API ({VERSION}) is ready at {urls[0]}; {state}.", ""]
    if kubeconfig is not None:
        lines.append(f"    export KUBECONFIG={kubeconfig.resolve()}")
    lines += ["    kubectl get namespaces", ""]
    lines += [f"Without TLS and without a login, as the administrator: {url}" for url in urls[1:]]
    if wishes.pods == "process":
        lines.append("Pods run commands on this machine, as you.")
    lines += [
        "Every authenticated user may do everything. This is no production cluster.",
        "Ctrl-C ends it.",
    ]
    return lines
