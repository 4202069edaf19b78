"""Connections to ports of Pods, over both transports and both forms of the protocol."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from tests.support.servers import raw_server, unused_port
from tests.support.testkubelet import Kubelet, start_pod

from flyball.client import Client, HttpRequest, HttpResponse
from flyball.client.refusals import RefusedRequest
from flyball.client.transport import Send
from flyball.controlplane.apiserver.http import HttpDoor
from flyball.controlplane.bootstrap import ADMIN
from flyball.errors import ConfigError, ConnectionLost, Forbidden, ForwardFailed, NotFound
from flyball.framing.forwarding import CHANNELS
from flyball.testing import Cluster, eventually

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
async def old_client(cluster: Cluster) -> AsyncIterator[Client]:
    """A client of a server that knows no tunnels."""

    async def without_tunnels(request: HttpRequest, send: Send) -> HttpResponse:
        if request.upgrade:
            from dataclasses import replace

            request = replace(request, upgrade=(CHANNELS,))
        return await send(request)

    async with Client(cluster.config, retry=None, interceptors=[without_tunnels]) as client:
        yield client


@asynccontextmanager
async def listening(talk: Talk) -> AsyncGenerator[int]:
    async with raw_server(talk) as address:
        yield int(address.rpartition(":")[2])


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Tell how much came, once nothing more comes."""
    size = 0
    while data := await reader.read(65536):
        size += len(data)
    writer.write(str(size).encode())


@pytest.mark.capability("C8")
async def test_one_connection(client: Client, kubelet: Kubelet) -> None:
    async with listening(echo) as port:
        stream = await client.port_forward("web", port)
        await stream.write(b"hello")
        assert await stream.read() == b"hello"
        await stream.finish()
        assert await stream.read() == b""
        await stream.close()
        await stream.close()
    await eventually(lambda: not kubelet.connections)


async def test_the_end_of_one_direction_is_told(client: Client, kubelet: Kubelet) -> None:
    async with listening(count) as port, await client.port_forward("web", port) as stream:
        await stream.write(b"x" * 3_000_000)
        await stream.finish()
        assert await stream.read_all() == b"3000000"


async def test_a_local_port(client: Client, kubelet: Kubelet) -> None:
    async with listening(echo) as port, client.port_forward("web", port) as local:
        assert local.host == "127.0.0.1"
        assert local.address == f"127.0.0.1:{local.port}"

        async def talk(number: int) -> bytes:
            reader, writer = await asyncio.open_connection(local.host, local.port)
            writer.write(f"hello {number}".encode() * 10_000)
            writer.write_eof()
            came = await reader.read(-1)
            writer.close()
            return came

        came = await asyncio.gather(*(talk(number) for number in range(10)))
        assert came == [f"hello {number}".encode() * 10_000 for number in range(10)]
        await eventually(lambda: not kubelet.connections)
        reader, writer = await asyncio.open_connection(local.host, local.port)
        writer.write(b"left open")
        assert await reader.readexactly(9) == b"left open"
    assert await reader.read() == b""
    writer.close()
    await eventually(lambda: not kubelet.connections)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(local.host, local.port)


async def test_all_connections_share_one_tunnel(client: Client, cluster: Cluster, kubelet: Kubelet) -> None:
    async with listening(echo) as port, client.port_forward("web", port) as local:
        for _ in range(3):
            reader, writer = await asyncio.open_connection(local.host, local.port)
            writer.write(b"a")
            assert await reader.readexactly(1) == b"a"
            writer.close()
    asked = [one for one in cluster.requests if one.subresource == "portforward"]
    assert [(one.verb, one.resource, one.status) for one in asked] == [("get", "pods", 101)]


async def test_a_tunnel_that_breaks_is_made_anew(
    client: Client, cluster: Cluster, kubelet: Kubelet, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.faults.truncate(10_000, subresource="portforward", first=1)
    async with listening(echo) as port, client.port_forward("web", port) as local:
        reader, writer = await asyncio.open_connection(local.host, local.port)
        writer.write(b"x" * 50_000)
        assert len(await broken_off(reader)) < 50_000
        writer.close()
        reader, writer = await asyncio.open_connection(local.host, local.port)
        writer.write(b"x" * 50_000)
        assert len(await reader.readexactly(50_000)) == 50_000
        writer.close()


async def broken_off(reader: asyncio.StreamReader) -> bytes:
    came = b""
    try:
        while data := await reader.read(65536):
            came += data
    except ConnectionResetError:
        return came
    return came


async def test_nobody_listens(client: Client, kubelet: Kubelet, caplog: pytest.LogCaptureFixture) -> None:
    port = await unused_port()
    async with await client.port_forward("web", port) as stream:
        told = (
            rf"^forward to port {port} of Pod default/web: .*: error forwarding port {port} to pod web, uid .*: failed"
        )
        with pytest.raises(ForwardFailed, match=told):
            await stream.read()
    async with client.port_forward("web", port) as local:
        reader, writer = await asyncio.open_connection(local.host, local.port)
        assert await broken_off(reader) == b""
        writer.close()
        await eventually(lambda: "look whether the process in the Pod listens on that port" in caplog.text)


async def test_the_process_in_the_pod_hangs_up(client: Client, kubelet: Kubelet) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"go away")

    async with listening(greet) as port, await client.port_forward("web", port) as stream:
        assert await stream.read_all() == b"go away"
        with pytest.raises(ConnectionLost, match="the Pod takes no more"):
            await stream.write(b"x" * (64 << 20))


async def test_who_reads_slowly_makes_the_pod_wait(client: Client, kubelet: Kubelet) -> None:
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()
            sent += 65536

    async with listening(endless) as port, await client.port_forward("web", port) as stream:
        await stream.read()
        before = -1
        while sent != before:  # until it has come to rest, however large the buffers between are
            before = sent
            for _ in range(200):
                await asyncio.sleep(0)
        assert sent < 64 << 20


async def test_it_ends_with_the_server(client: Client, cluster: Cluster, kubelet: Kubelet) -> None:
    async with listening(echo) as port, await client.port_forward("web", port) as stream:
        await stream.write(b"hello")
        assert await stream.read() == b"hello"
        await cluster.embedded.stop()
        assert await stream.read() == b""
        with pytest.raises(ConnectionLost):
            await stream.write(b"x")
    assert not kubelet.connections


async def test_what_is_refused(client: Client, cluster: Cluster, kubelet: Kubelet) -> None:
    for port in (0, -1, 65_536):
        with pytest.raises(RefusedRequest, match=f"{port} is no port; give one from 1 to 65535"):
            client.port_forward("web", port)
    with pytest.raises(NotFound, match='forward to port 80 of Pod default/nobody: pods "nobody" not found'):
        await client.port_forward("nobody", 80)
    with pytest.raises(NotFound):
        async with client.port_forward("nobody", 80):
            pass
    with pytest.raises(RefusedRequest, match="a dry-run client connects to nothing"):
        await Client(transport=cluster.transport, dry_run=True).port_forward("web", 80)
    cluster.faults.status(403, subresource="portforward", first=1)
    with pytest.raises(Forbidden):
        await client.port_forward("web", 80)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"listen on 127.0.0.1:{number}: .*; choose another local port"):
            async with client.port_forward("web", 80, local=number):
                pass


async def test_a_kubelet_that_fails(client: Client, cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Kubelet):
        async def connect(self, pod: object, port: int) -> object:  # type: ignore[override]
            raise RuntimeError("the kubelet is broken")

    await start_pod(cluster.embedded.server, cluster.client, Failing(), "web")  # type: ignore[arg-type]
    async with await client.port_forward("web", 80) as stream:
        with pytest.raises(ForwardFailed, match="an error in the kubelet; the log of the server says where"):
            await stream.read()
    assert "the kubelet is broken" in caplog.text


# Without tunnels


async def test_one_connection_to_an_old_server(old_client: Client, kubelet: Kubelet) -> None:
    async with listening(echo) as port, await old_client.port_forward("web", port) as stream:
        await stream.write(b"hello")
        assert await stream.read() == b"hello"
        with pytest.raises(RefusedRequest, match="the server knows no tunnels"):
            await stream.finish()
    await eventually(lambda: not kubelet.connections)
    async with await old_client.port_forward("web", await unused_port()) as stream:
        with pytest.raises(ForwardFailed, match="failed to connect"):
            await stream.read()


async def test_a_local_port_to_an_old_server(old_client: Client, cluster: Cluster, kubelet: Kubelet) -> None:
    async with listening(echo) as port, old_client.port_forward("web", port) as local:
        for _ in range(3):
            reader, writer = await asyncio.open_connection(local.host, local.port)
            writer.write(b"hello" * 100_000)
            assert len(await reader.readexactly(500_000)) == 500_000
            writer.close()
        await eventually(lambda: not kubelet.connections)
    assert len([one for one in cluster.requests if one.subresource == "portforward"]) == 3


@pytest.fixture
async def url(cluster: Cluster) -> AsyncIterator[str]:
    door = HttpDoor(cluster.embedded.server, user=ADMIN)
    await door.open()
    yield f"{door.url}/api/v1/namespaces/default/pods/web/portforward"
    await door.close()


@pytest.mark.parametrize("protocols", [["v4.channel.k8s.io"], []])
async def test_channels_byte_by_byte(url: str, kubelet: Kubelet, protocols: list[str]) -> None:
    async with listening(echo) as port, aiohttp.ClientSession() as session:
        closed = await unused_port()
        path = f"{url}?ports={port}&ports={closed}"
        async with session.ws_connect(path, protocols=protocols) as found:
            assert found.protocol == (protocols or [None])[0]
            heads = [await found.receive_bytes() for _ in range(4)]
            first, second = port.to_bytes(2, "little"), closed.to_bytes(2, "little")
            assert heads == [b"\0" + first, b"\1" + first, b"\2" + second, b"\3" + second]
            told = await found.receive_bytes()
            assert told.startswith(b"\3error forwarding port ")
            await found.send_bytes(b"\0hello")
            assert await found.receive_bytes() == b"\0hello"
            await found.send_bytes(b"\1nobody reads this")
            await found.send_bytes(b"\x09nor this")
            await found.send_bytes(b"")
            await found.send_bytes(b"\0more")
            assert await found.receive_bytes() == b"\0more"
    await eventually(lambda: not kubelet.connections)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("", 'query parameter "ports" is required'),
        ("?ports=0", "0 is no port"),
        ("?ports=80,70000", "70000 is no port"),
    ],
)
async def test_channels_need_ports(url: str, kubelet: Kubelet, query: str, told: str) -> None:
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec-WebSocket-Protocol": "v4.channel.k8s.io",
    }
    async with aiohttp.ClientSession() as session, session.get(url + query, headers=headers) as answer:
        assert answer.status == 400
        assert told in (await answer.json())["message"]


async def test_a_tunnel_through_which_comes_no_spdy(
    url: str, kubelet: Kubelet, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    tunnel = "SPDY/3.1+portforward.k8s.io"
    async with aiohttp.ClientSession() as session, session.ws_connect(url, protocols=[tunnel]) as found:
        assert found.protocol == tunnel
        await found.send_bytes(b"\x80\x02 this is no SPDY")
        assert [message async for message in found] == []
        assert found.close_code == 1000
    assert "a port-forward ended: this is not SPDY/3.1" in caplog.text


# Without an event loop


def test_the_synchronous_front() -> None:
    kubelet = Kubelet()
    with Cluster() as cluster, socket.create_server(("127.0.0.1", 0)) as listener:
        cluster.run(start_pod(cluster.embedded.server, cluster.client, kubelet, "web"))
        with cluster.sync.port_forward("web", listener.getsockname()[1]) as local:
            here = socket.create_connection((local.host, local.port))
            there, _ = listener.accept()
            with here, there:
                here.sendall(b"hello")
                assert there.recv(5, socket.MSG_WAITALL) == b"hello"
                there.sendall(b"world")
                assert here.recv(5, socket.MSG_WAITALL) == b"world"
        with pytest.raises(NotFound), cluster.sync.port_forward("nobody", 80):
            pass
