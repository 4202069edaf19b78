"""A cluster of its own for each test: an API server in this process, that starts in a few milliseconds.

    async with Cluster() as cluster:                  # in the test's own event loop
        await cluster.client.create(ConfigMap.new("a"))

    with Cluster() as cluster:                        # in a thread of its own, for tests without an event loop
        cluster.sync.create(ConfigMap.new("a"))
        subprocess.run(["kubectl", f"--kubeconfig={cluster.kubeconfig}", "get", "configmaps"])

Both kinds serve any number of clients, in the process and over TLS (the door to the network is opened when somebody
asks for `url`, `kubeconfig` or `config`; on loopback, at a free port). The state is in memory, unless `data` names a
file, and ends with the cluster. Any number of clusters may live in one process.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from flyball.client.client import Client
from flyball.client.transport import HttpRequest, HttpResponse, Transport, Upgraded
from flyball.clock import Clock
from flyball.controlplane.apiserver.faults import Faults
from flyball.controlplane.apiserver.request import User
from flyball.controlplane.apiserver.store import Snapshot
from flyball.controlplane.bootstrap import ADMIN
from flyball.controlplane.cluster import EmbeddedCluster
from flyball.controlplane.inprocess import InProcess
from flyball.errors import FlyballError
from flyball.framing import WebSocket
from flyball.framing.sockets import NORMAL
from flyball.testing.record import Requests

if TYPE_CHECKING:
    from flyball import sync
    from flyball.client.config import ClusterConfig
    from flyball.controller.definition import Controller
    from flyball.controlplane.apiserver.http import HttpDoor
    from flyball.controlplane.controllers.workloads import Workloads
    from flyball.controlplane.kubelet import MakeFleet, PodsMode
    from flyball.controlplane.kubelet.process import Processes
    from flyball.controlplane.kubelet.simulated import Stage
    from flyball.manager import Election, Manager

__all__ = ["Cluster", "ClusterError"]

T = TypeVar("T")


class ClusterError(FlyballError):
    """The cluster is not in a state in which this can be done."""


class Cluster:
    """An embedded cluster for tests.

    `clock` may be a `ManualClock`: everything in the cluster goes by it. `controllers=False` leaves only the API
    server, where no helping hand is wanted. `workloads=True` lets Deployments, ReplicaSets, Jobs and Pods progress on
    `nodes` nodes, whose Pods are simulated (`pods="simulate"`, `speed` times as fast), processes of this machine
    (`"process"`, with the choices of `processes`), or nobody's (`"none"`: no node either). `controllers` may also
    choose, as kube-controller-manager's `--controllers` does: `("*", "-job-controller")`. `stages` say how simulated
    Pods live instead of as usual. `seed` chooses the faults of rules with a probability, and the chance in stages.
    A cluster that is not entered starts with its first request.
    """

    def __init__(
        self,
        *,
        data: Path | None = None,
        clock: Clock | None = None,
        controllers: bool | Sequence[str] = True,
        workloads: bool = False,
        pods: PodsMode = "simulate",
        nodes: int = 1,
        speed: float = 1.0,
        stages: Sequence[Stage | Path] = (),
        processes: Processes | None = None,
        port: int = 0,
        seed: int = 0,
    ) -> None:
        """Nothing runs yet."""
        self.embedded = EmbeddedCluster(data=data, clock=clock, controllers=_loops(controllers, workloads=workloads))
        self.requests = Requests()
        """Every request with its user, verb, path and status, in the order of the answers."""
        self.faults = Faults(self.embedded.core, seed)
        """Rules for what shall go wrong."""
        self.embedded.server.after.append(self.requests.note)
        self.embedded.server.around = self.faults
        self._wanted_port = port
        self._workloads: Workloads | None = None
        if workloads:
            from flyball.controlplane.kubelet import fleet_for

            options = self._with_address(processes) if pods == "process" else processes
            fleet = fleet_for(pods, nodes=nodes, speed=speed, stages=stages, seed=seed, options=options)
            self._workloads = self._make_workloads(controllers, fleet)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None
        self._door: HttpDoor | None = None
        self._opening: asyncio.Task[None] | None = None
        self._folder: Path | None = None
        self._clients: list[Client | sync.Client] = []

    # Life

    async def start(self) -> None:
        """Start in the running event loop, unless it runs already."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
        await asyncio.shield(self._starting)

    async def _start(self) -> None:
        await self.embedded.start()
        if self._workloads is not None:
            await self._workloads.start()

    def _make_workloads(self, controllers: bool | Sequence[str], fleet: MakeFleet | None) -> Workloads:
        from flyball.controlplane.controllers.workloads import Workloads

        if isinstance(controllers, bool):
            controllers = ("*",) if controllers else ()
        return Workloads(
            self.embedded.transport,
            self.embedded.clock,
            fleet=fleet,
            controllers=controllers,
            kubelets=self.embedded.server.kubelets,
        )

    def _with_address(self, options: Processes | None) -> Processes:
        """Let Pods know where the API server listens; the door is opened when the first one asks."""
        from flyball.controlplane.kubelet.process import Processes

        return replace(options or Processes(), server=lambda: ("127.0.0.1", self._open().port))

    async def stop(self) -> None:
        """End all watches and close the door."""
        if self._opening is not None:
            await asyncio.gather(self._opening, return_exceptions=True)
        for client in self._clients:
            if isinstance(client, Client):
                await client.aclose()
        if self._workloads is not None:
            await self._workloads.stop()
        await self.embedded.stop()
        if self._door is not None:
            await self._door.close()
        self._sweep()

    def abandon(self) -> None:
        """Stop after the event loop has come to rest: what is left when a test is over."""
        loop = self._loop
        if loop is not None and not loop.is_closed() and not loop.is_running():
            loop.run_until_complete(self.stop())
        elif self._door is not None:
            self._door.let_go()
        self._sweep()

    def _sweep(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    async def __aenter__(self) -> Self:
        """Start in this event loop."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        await self.stop()

    def __enter__(self) -> Self:
        """Start in a thread of its own."""
        if self._loop is not None:
            raise ClusterError("this cluster runs already; make another one")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="flyball-cluster", daemon=True)
        self._thread.start()
        try:
            self.run(self.start())
        except BaseException:
            self._end_thread()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, and end the thread."""
        for client in self._clients:
            if not isinstance(client, Client):
                client.close()
        try:
            self.run(self.stop())
        finally:
            self._end_thread()

    def _end_thread(self) -> None:
        loop, thread = self._loop, self._thread
        assert loop is not None
        assert thread is not None

        async def finish() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await loop.shutdown_asyncgens()

        asyncio.run_coroutine_threadsafe(finish(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the cluster's thread and wait for it, such as `clock.advance(60)`."""
        if self._thread is None or self._loop is None:
            work.close()
            raise ClusterError("this cluster has no thread of its own: enter it by `with`, or await the coroutine")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    # Ways in

    @cached_property
    def transport(self) -> Transport:
        """The way in inside of the process, as the administrator; from any event loop."""
        return _Inside(self, ADMIN)

    @cached_property
    def client(self) -> Client:
        """A client inside of the process, as the administrator."""
        return self._known(Client(transport=self.transport))

    @cached_property
    def sync(self) -> sync.Client:
        """The same for code without an event loop. Only for a cluster that was entered by `with`."""
        from flyball.sync import Client as SyncClient

        client = SyncClient(transport=self.transport)
        self._clients.append(client)
        return client

    def client_as(self, user: str, groups: Sequence[str] = ()) -> Client:
        """A client inside of the process, as another user."""
        known = User(user, (*groups, "system:authenticated"))
        return self._known(Client(transport=_Inside(self, known)))

    def running(
        self,
        *controllers: Controller[Any],
        client: Client | None = None,
        leader_election: bool | Election = False,
        definitions: bool = True,
        wait: bool = True,
    ) -> AbstractAsyncContextManager[Manager]:
        """Controllers at work: `async with cluster.running(reconcile) as manager`.

        Their own kinds are installed first (unless `definitions` is False). The block begins when they work (unless
        `wait` is False). `client` is another one than the administrator's.
        """
        from flyball.testing.at_work import running

        return running(
            client or self.client,
            *controllers,
            leader_election=leader_election,
            definitions=definitions,
            wait=wait,
            clock=self.clock,
        )

    def _known(self, client: Client) -> Client:
        self._clients.append(client)
        return client

    @property
    def url(self) -> str:
        """Where the API server listens: `https://127.0.0.1:PORT`."""
        return self._open().url

    @cached_property
    def kubeconfig(self) -> Path:
        """A complete kubeconfig of the administrator; only the owner may read it. It goes with the cluster."""
        return self.kubeconfig_for(ADMIN.name, ADMIN.groups[:1])

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig that authenticates as another user, by client certificate."""
        from flyball.controlplane.kubeconfig import write_kubeconfig

        access = self.embedded.access(self.url, user, groups)
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="flyball-cluster-"))
        name = "".join(letter if letter.isalnum() else "-" for letter in user)
        path = self._folder / f"kubeconfig-{name}"
        write_kubeconfig(path, access)
        return path

    @property
    def config(self) -> ClusterConfig:
        """The way in over TLS as Flyball's client takes it."""
        from flyball.client.config import load_config

        return load_config(self.kubeconfig)

    def _open(self) -> HttpDoor:
        """Open the door to the network, once. Who connects early waits for a moment."""
        if self._door is None:
            loop = self._loop if self._loop is not None else _running_loop()
            if loop is None:
                raise ClusterError("the cluster does not run yet: enter it by `with` or `async with` first")
            door = self.embedded.door(port=self._wanted_port)
            door.bind()
            self._door = door
            if self._thread is not None and loop is not _running_loop():
                asyncio.run_coroutine_threadsafe(door.open(), loop).result()
            else:
                self._opening = loop.create_task(self._start_and_open(door))
        return self._door

    async def _start_and_open(self, door: HttpDoor) -> None:
        await self.start()
        await door.open()

    # The inside

    @property
    def clock(self) -> Clock:
        """The clock that everything in the cluster goes by."""
        return self.embedded.clock

    def snapshot(self) -> Snapshot:
        """Remember the state of the whole cluster."""
        self._expect_started()
        return self.embedded.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a remembered state. Watches end, and versions go on: they are never used twice."""
        self._expect_started()
        loop, thread = self._loop, self._thread
        if thread is None or loop is None or loop is _running_loop():
            self.embedded.restore(snapshot)
            return

        async def restore() -> None:
            self.embedded.restore(snapshot)

        self.run(restore())

    def _expect_started(self) -> None:
        if self._starting is None or not self._starting.done():
            raise ClusterError("the cluster does not run yet: enter it, or `await cluster.start()`")


def _loops(controllers: bool | Sequence[str], *, workloads: bool) -> bool | Sequence[str]:
    """The control loops that a choice means; of all or none nothing has to be loaded."""
    if isinstance(controllers, bool):
        return controllers
    from flyball.controlplane.controllers.catalogue import chosen, loops

    idle = chosen([one for one in controllers if one != "*"])
    if idle and not workloads:
        raise ClusterError(f"controllers={controllers!r}: {', '.join(idle)} would not run; add workloads=True")
    return loops(controllers)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class _Inside:
    """A transport that starts the cluster when it must, and crosses into its event loop when it is another one."""

    def __init__(self, cluster: Cluster, user: User) -> None:
        self._cluster = cluster
        self._direct = InProcess(cluster.embedded.server, user)

    @property
    def host(self) -> str:
        return self._direct.host

    async def send(self, request: HttpRequest) -> HttpResponse:
        cluster = self._cluster
        home = cluster._loop  # pyright: ignore[reportPrivateUsage]
        if home is None or home is asyncio.get_running_loop():
            await cluster.start()
            return await self._direct.send(request)
        answer = await _in(home, self._direct.send(request))
        return _UpgradedAcross(answer, home) if request.upgrade and answer.status == 101 else _Across(answer, home)

    async def close(self) -> None:
        """Hold nothing that could be let go."""


class _Across:
    """An answer that comes out of another event loop."""

    def __init__(self, answer: HttpResponse, home: asyncio.AbstractEventLoop) -> None:
        self._answer = answer
        self._home = home
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers

    async def read(self) -> bytes:
        return await _in(self._home, self._answer.read())

    async def chunks(self) -> AsyncIterator[bytes]:
        parts = self._answer.chunks()
        while True:
            part = await _in(self._home, _next(parts))
            if part is None:
                return
            yield part

    async def close(self) -> None:
        await _in(self._home, self._answer.close())


class _UpgradedAcross(_Across):
    """A WebSocket that leads into another event loop."""

    def __init__(self, answer: HttpResponse, home: asyncio.AbstractEventLoop) -> None:
        super().__init__(answer, home)
        self.socket: WebSocket = _SocketAcross(cast("Upgraded", answer).socket, home)


class _SocketAcross:
    def __init__(self, socket: WebSocket, home: asyncio.AbstractEventLoop) -> None:
        self._socket = socket
        self._home = home
        self.protocol = socket.protocol

    async def send(self, data: bytes) -> None:
        await _in(self._home, self._socket.send(data))

    async def receive(self) -> bytes | None:
        return await _in(self._home, self._socket.receive())

    async def close(self, code: int = NORMAL, reason: str = "") -> None:
        await _in(self._home, self._socket.close(code, reason))


async def _next(parts: AsyncIterator[bytes]) -> bytes | None:
    async for part in parts:
        return part
    return None


async def _in(home: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, home))
