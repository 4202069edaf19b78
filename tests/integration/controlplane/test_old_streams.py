"""Exec, attach and port-forward over SPDY without a WebSocket around it, as kubectl asked for them until 1.30."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.integration.controlplane.test_port_forward import echo, listening
from tests.support.testkubelet import Kubelet, start_pod

from flyball.controlplane.apiserver.http import HttpDoor
from flyball.controlplane.apiserver.kubelets import Run
from flyball.controlplane.bootstrap import ADMIN
from flyball.framing.spdy import SpdyConnection, SpdyStream
from flyball.testing import Cluster, eventually

OLD = Path("/usr/lib/google-cloud-sdk/bin")


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with Cluster() as cluster:
        yield cluster


@pytest.fixture
async def kubelet(cluster: Cluster) -> Kubelet:
    kubelet = Kubelet()
    await start_pod(cluster.embedded.server, cluster.client, kubelet, "web")
    return kubelet


@pytest.fixture
async def door(cluster: Cluster) -> AsyncIterator[HttpDoor]:
    door = HttpDoor(cluster.embedded.server, user=ADMIN)
    await door.open()
    yield door
    await door.close()


class Wire:
    """A connection to the door, as SPDY wants it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def read(self) -> bytes:
        try:
            return await self._reader.read(65536)
        except ConnectionError:
            return b""

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def close(self) -> None:
        self.writer.close()


async def ask(door: HttpDoor, path: str, *versions: str, method: str = "POST") -> tuple[bytes, Wire]:
    """Ask for SPDY; return the head of the answer and the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    lines = [f"{method} /api/v1/namespaces/default/pods/{path} HTTP/1.1", "Host: localhost"]
    lines += ["Connection: Upgrade", "Upgrade: SPDY/3.1"]
    lines += [f"X-Stream-Protocol-Version: {version}" for version in versions]
    writer.write("\r\n".join((*lines, "", "")).encode())
    return await reader.readuntil(b"\r\n\r\n"), Wire(reader, writer)


@asynccontextmanager
async def spdy(door: HttpDoor, path: str, version: str) -> AsyncGenerator[SpdyConnection]:
    head, wire = await ask(door, path, version, "v1.of.old")
    assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
    assert b"Upgrade: SPDY/3.1\r\n" in head
    assert f"X-Stream-Protocol-Version: {version}\r\n".encode() in head
    connection = SpdyConnection(wire, server=False)
    serving = asyncio.create_task(connection.serve())
    try:
        yield connection
    finally:
        await connection.close()
        await asyncio.gather(serving, return_exceptions=True)


async def opened(connection: SpdyConnection, *kinds: str) -> list[SpdyStream]:
    return [await connection.open({"streamType": kind}) for kind in kinds]


V4 = "v4.channel.k8s.io"


async def test_a_command(door: HttpDoor, kubelet: Kubelet) -> None:
    query = "command=sh&command=-c&command=cat;echo+err>%262;exit+3&stdin=1&stdout=1&stderr=1"
    async with spdy(door, f"web/exec?{query}", V4) as connection:
        error, stdin, stdout, stderr = await opened(connection, "error", "stdin", "stdout", "stderr")
        await stdin.write(b"typed" * 100_000)
        await stdin.finish()
        assert await stdout.incoming.read_all() == b"typed" * 100_000
        assert await stderr.incoming.read_all() == b"err\n"
        status = json.loads(await error.incoming.read_all())
        assert (status["reason"], status["details"]["causes"]) == (
            "NonZeroExitCode",
            [{"reason": "ExitCode", "message": "3"}],
        )
    assert kubelet.ended == kubelet.runs


async def test_a_terminal(door: HttpDoor, kubelet: Kubelet) -> None:
    async with spdy(door, "web/exec?command=sh&stdin=1&stdout=1&tty=1", V4) as connection:
        error, stdin, _, resize = await opened(connection, "error", "stdin", "stdout", "resize")
        await resize.write(b'{"Width":1,"Height":1}\n{"Width":90,"Height":20}\n')
        await stdin.write(b"until [ \"$(stty size)\" = '20 90' ]; do :; done; exit 0\n")
        assert json.loads(await error.incoming.read_all())["status"] == "Success"
    assert kubelet.runs == [Run("main", ("sh",), stdin=True, stderr=False, tty=True)]


async def test_who_hangs_up_ends_the_command(door: HttpDoor, kubelet: Kubelet) -> None:
    async with spdy(door, "web/exec?command=sleep&command=1000&stdout=1", V4) as connection:
        await opened(connection, "error", "stdout")
        await eventually(lambda: len(kubelet.runs) == 1)
    await eventually(lambda: kubelet.ended == kubelet.runs)


async def test_it_ends_with_the_server(door: HttpDoor, cluster: Cluster, kubelet: Kubelet) -> None:
    async with spdy(door, "web/attach?stdout=1", V4) as connection:
        _, stdout = await opened(connection, "error", "stdout")
        await eventually(lambda: len(kubelet.runs) == 1)
        await cluster.embedded.stop()
        assert await stdout.read() == b""
    assert kubelet.ended == kubelet.runs


async def test_streams_that_nobody_knows_are_refused(door: HttpDoor, kubelet: Kubelet) -> None:
    async with spdy(door, "web/exec?command=true&stdout=1", V4) as connection:
        with pytest.raises(ConnectionResetError, match="the stream was refused"):
            await opened(connection, "smell")
        await opened(connection, "error")
        with pytest.raises(ConnectionResetError, match="the stream was refused"):
            await opened(connection, "error")
        assert kubelet.runs == []
        await opened(connection, "stdout")
        await eventually(lambda: kubelet.ended == kubelet.runs != [])


async def test_faults(door: HttpDoor, cluster: Cluster, kubelet: Kubelet) -> None:
    cluster.faults.truncate(100, subresource="exec")
    async with spdy(door, "web/exec?command=yes&stdout=1", V4) as connection:
        _, stdout = await opened(connection, "error", "stdout")
        assert len(await stdout.incoming.read_all()) < 100
    await eventually(lambda: kubelet.ended == kubelet.runs)


async def test_ports(door: HttpDoor, kubelet: Kubelet) -> None:
    async with listening(echo) as port, spdy(door, "web/portforward", "portforward.k8s.io") as connection:
        named = {"port": str(port), "requestID": "0"}
        error = await connection.open({"streamType": "error", **named}, last=True)
        data = await connection.open({"streamType": "data", **named})
        await data.write(b"hello")
        assert await data.read() == b"hello"
        await data.finish()
        assert await data.read() == b""
        assert await error.incoming.read_all() == b""
    await eventually(lambda: not kubelet.connections)


@pytest.mark.parametrize(
    ("path", "versions", "told"),
    [
        ("web/exec?command=true&stdout=1", ["v3.channel.k8s.io", "channel.k8s.io"], b"403 Forbidden"),
        ("web/exec?command=true&stdout=1", [], b"403 Forbidden"),
        ("web/exec?command=true", [V4], b"400 Bad Request"),
        ("web/portforward", [V4], b"403 Forbidden"),
        ("nobody/exec?command=true&stdout=1", [V4], b"404 Not Found"),
    ],
)
async def test_what_is_refused(door: HttpDoor, kubelet: Kubelet, path: str, versions: list[str], told: bytes) -> None:
    for method in ("GET", "POST"):
        head, wire = await ask(door, path, *versions, method=method)
        assert head.startswith(b"HTTP/1.1 " + told)
        await wire.close()


@pytest.fixture
def box() -> Generator[tuple[Cluster, Kubelet]]:
    kubelet = Kubelet()
    with Cluster() as cluster:
        cluster.run(start_pod(cluster.embedded.server, cluster.client, kubelet, "web"))
        yield cluster, kubelet


@pytest.mark.parametrize("version", ["1.27", "1.28", "1.29", "1.30"])
def test_an_old_kubectl(box: tuple[Cluster, Kubelet], tmp_path: Path, version: str) -> None:
    program = OLD / f"kubectl.{version}"
    if not program.exists():
        pytest.skip(f"there is no {program}")
    start = [str(program), f"--kubeconfig={box[0].kubeconfig}", f"--cache-dir={tmp_path}"]

    def run(*words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([*start, *words], input=stdin, capture_output=True, timeout=60, check=False)

    done = run("exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout) == (3, b"out\n")
    assert done.stderr == b"err\ncommand terminated with exit code 3\n"
    data = bytes(range(256)) * 4096
    assert run("exec", "-i", "web", "--", "cat", stdin=data).stdout == data
    assert run("exec", "-i", "web", "--", "head", "-c", "3", stdin=data).stdout == data[:3]
    assert run("attach", "-i", "web", stdin=b"attached").stdout == b"attached"
