"""Commands and ports, through a real API server to a node whose kubelet is played by the test."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from tests.support.realclient import client_of, pod, pods_can_be_made
from tests.support.servers import raw_server, unused_port
from tests.support.testkubelet import Kubelet

from flyball.api import DynamicObject
from flyball.client import Client, HttpRequest, HttpResponse, MergePatch, ref
from flyball.client.transport import Send
from flyball.controlplane.apiserver.kubelets import Run
from flyball.controlplane.apiserver.request import Upgrade
from flyball.controlplane.apiserver.streaming import Sessions, commands, forwarding
from flyball.controlplane.apiserver.upgrading import upgrade_connection
from flyball.errors import ApiError, BadRequest, CommandFailed, ForwardFailed, InternalError, NotFound
from flyball.framing import WebSocket
from flyball.framing.channels import V4, V5
from flyball.framing.forwarding import CHANNELS, TUNNEL
from flyball.k8s.core.v1 import Container, Node, Pod
from flyball.testing import eventually
from flyball.testing.realcluster import RealCluster

pytestmark = pytest.mark.real

PASSED_ON = "ExtendWebSocketsToKubelet"
"""The feature of a node to which a real API server hands WebSockets on as they are."""


class Front:
    """The addresses of a kubelet, as a real API server asks for them."""

    def __init__(self) -> None:
        self.kubelet = Kubelet()
        self.protocols: list[str] = []
        self._sessions = Sessions()

    async def exec(self, request: web.Request) -> web.StreamResponse:
        given = {name: request.query.get(name) == "1" for name in ("input", "output", "error", "tty")}
        run = Run(
            request.match_info["container"],
            tuple(request.query.getall("command", [])),
            stdin=given["input"],
            stdout=given["output"],
            stderr=given["error"],
            tty=given["tty"],
        )
        work = self.kubelet.exec if request.path.startswith("/exec/") else self.kubelet.attach

        def talk(socket: WebSocket) -> Awaitable[None]:
            return commands._Channels(socket, run).carry(work, {})  # pyright: ignore[reportPrivateUsage]

        return await self._upgrade(request, (V5, V4), talk)

    async def forward(self, request: web.Request) -> web.StreamResponse:
        metadata = {"name": request.match_info["pod"], "uid": "the-uid"}
        place = forwarding._Place({"metadata": metadata}, self.kubelet)  # pyright: ignore[reportPrivateUsage]
        ports = [int(port) for port in request.query.get("port", "").split(",") if port]

        def talk(socket: WebSocket) -> Awaitable[None]:
            if socket.protocol == TUNNEL:
                return forwarding._Tunnelled(place).carry(socket)  # pyright: ignore[reportPrivateUsage]
            return forwarding._channels(place, ports, socket)  # pyright: ignore[reportPrivateUsage]

        return await self._upgrade(request, (TUNNEL, CHANNELS), talk)

    async def _upgrade(
        self, request: web.Request, known: tuple[str, ...], talk: Callable[[WebSocket], Awaitable[None]]
    ) -> web.StreamResponse:
        offered = [one.strip() for one in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
        protocol = next(one for one in offered if one in known)
        self.protocols.append(protocol)
        return await upgrade_connection(request, Upgrade(protocol, talk), self._sessions)


@asynccontextmanager
async def front_of(cluster: RealCluster, client: Client, folder: Path) -> AsyncGenerator[Front]:
    """A node with a kubelet, and the Pod `p` on it."""
    pair = cluster.authority.server(["127.0.0.1"], "kubelet")
    (folder / "kubelet.crt").write_bytes(pair.certificate)
    (folder / "kubelet.key").write_bytes(pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "kubelet.crt", folder / "kubelet.key")
    front, app = Front(), web.Application()
    for path in ("/exec", "/attach"):
        app.router.add_get(path + "/{namespace}/{pod}/{container}", front.exec)
    app.router.add_get("/portForward/{namespace}/{pod}", front.forward)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    async with node_of(client, runner.addresses[0][1], PASSED_ON):
        try:
            yield front
        finally:
            await runner.cleanup()


@asynccontextmanager
async def node_of(client: Client, port: int, *features: str) -> AsyncGenerator[None]:
    await pods_can_be_made(client)
    name = f"node-of-{client.namespace}"
    await client.create(DynamicObject(apiVersion="v1", kind="Node", metadata={"name": name}))
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "declaredFeatures": list(features),
    }
    await client.patch(ref(Node, name), MergePatch({"status": status}), subresource="status")
    await client.bind(await client.create(pod("p")), name)
    try:
        yield
    finally:
        await client.delete(ref(Pod, "p"), grace_period=0)
        await client.delete(Node, name)


def only(protocol: str) -> dict[str, object]:
    """The options of a client that speaks one subprotocol."""

    async def narrow(request: HttpRequest, send: Send) -> HttpResponse:
        return await send(replace(request, upgrade=(protocol,)) if request.upgrade else request)

    return {"interceptors": [narrow], "retry": None}


@pytest.mark.capability("C8")
@pytest.mark.parametrize("protocol", [V5, V4])
async def test_commands(real_cluster: RealCluster, tmp_path: Path, protocol: str) -> None:
    async with client_of(real_cluster, **only(protocol)) as c, front_of(real_cluster, c, tmp_path) as front:
        done = await c.exec("p", ["sh", "-c", "echo out; echo err >&2; exit 3"])
        assert (done.exit_code, done.stdout, done.stderr) == (3, b"out\n", b"err\n")
        words = ["printf", "%s|", "two words", "", "a&b=c", "ä"]
        assert (await c.exec("p", words)).text == "two words||a&b=c|ä|"
        with pytest.raises(CommandFailed):
            await c.exec("p", ["false"], check=True)
        async with c.exec("p", ["sh"], stdin=True, tty=True) as shell:
            await shell.resize(90, 20)
            await shell.write("until [ \"$(stty size)\" = '20 90' ]; do :; done; exit 7\n")
            assert await shell.wait() == 7
        async with c.exec("p", ["sleep", "1000"]):
            await eventually(lambda: len(front.kubelet.runs) == 5)
        await eventually(lambda: front.kubelet.ended == front.kubelet.runs)
        assert set(front.protocols) == {protocol}


async def test_input_that_ends(real_cluster: RealCluster, tmp_path: Path) -> None:
    async with client_of(real_cluster) as c, front_of(real_cluster, c, tmp_path) as front:
        data = bytes(range(256)) * 4096
        assert (await c.exec("p", ["cat"], stdin=data)).stdout == data
        assert (await c.attach("p", stdin=b"attached")).text == "attached"
        assert set(front.protocols) == {V5}


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


@pytest.fixture
async def listening() -> AsyncIterator[int]:
    async with raw_server(echo) as address:
        yield int(address.rpartition(":")[2])


@pytest.mark.capability("C8")
@pytest.mark.parametrize("protocol", [TUNNEL, CHANNELS])
async def test_ports(real_cluster: RealCluster, tmp_path: Path, listening: int, protocol: str) -> None:
    async with client_of(real_cluster, **only(protocol)) as c, front_of(real_cluster, c, tmp_path) as front:
        async with c.port_forward("p", listening) as local:
            for _ in range(3):
                reader, writer = await asyncio.open_connection(local.host, local.port)
                writer.write(b"hello" * 20_000)
                assert await reader.readexactly(100_000) == b"hello" * 20_000
                writer.close()
        async with await c.port_forward("p", await unused_port()) as stream:
            with pytest.raises(ForwardFailed, match="failed to connect to localhost"):
                await stream.read()
        assert set(front.protocols) == {protocol}
        await eventually(lambda: not front.kubelet.connections)


async def test_what_the_server_refuses(real_cluster: RealCluster) -> None:
    """The embedded API server's answers are held to those recorded from a real one in tests/differential."""
    async with client_of(real_cluster) as c:
        await pods_can_be_made(c)
        two = pod("two")
        two.spec.containers.append(Container(name="d", image="i"))
        await c.create(two)
        with pytest.raises(NotFound, match=rf'^exec in Pod {c.namespace}/nobody: true: pods "nobody" not found'):
            await c.exec("nobody", ["true"])
        with pytest.raises(BadRequest, match=r"choose one of: \[c d\]"):
            await c.exec("two", ["true"])
        with pytest.raises(BadRequest, match="container z is not valid for pod two"):
            await c.attach("two", container="z")
        with pytest.raises(BadRequest, match="pod two does not have a host assigned"):
            await c.exec("two", ["true"], container="c")
        with pytest.raises(BadRequest, match="pod two does not have a host assigned"):
            await c.port_forward("two", 80)
        await c.delete(ref(Pod, "two"), grace_period=0)


async def test_a_node_that_cannot_be_reached(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster, retry=None) as c, node_of(c, await unused_port()):
        with pytest.raises(InternalError, match="connection refused"):
            await c.exec("p", ["true"])
        with pytest.raises(ApiError, match=r"error dialing backend: .* connection refused"):
            await c.port_forward("p", 80)
