"""The door on the network: what HTTP asks of it, and that it lets go of those who have gone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from flyball.controlplane.apiserver.http import HttpDoor, is_loopback
from flyball.controlplane.bootstrap import ADMIN
from flyball.errors import ConfigError
from flyball.k8s.core.v1 import ConfigMap
from flyball.testing import Cluster, eventually

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def door() -> AsyncIterator[tuple[Cluster, HttpDoor]]:
    async with Cluster() as cluster:
        opened = HttpDoor(cluster.embedded.server, user=ADMIN)
        await opened.open()
        yield cluster, opened
        await opened.close()


async def talk(port: int, *sent: bytes) -> bytes:
    """Send, piece by piece, and read until the server ends the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in sent:
        writer.write(piece)
        await asyncio.sleep(0.05)
    back = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return back


def head(method: str, path: str, *more: str, close: bool = True) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *more, *(["Connection: close"] if close else [])]
    return "\r\n".join((*lines, "", "")).encode()


async def test_a_body_in_chunks(door: tuple[Cluster, HttpDoor]) -> None:
    cluster, opened = door
    body = json.dumps({"metadata": {"name": "a"}}).encode()
    chunks = b"".join(b"1\r\n%b\r\n" % body[i : i + 1] for i in range(len(body))) + b"0\r\n\r\n"
    back = await talk(opened.port, head("POST", CONFIGMAPS, "Transfer-Encoding: chunked"), chunks[:50], chunks[50:])
    assert back.startswith(b"HTTP/1.1 201 Created\r\n")
    assert (await cluster.client.get(ConfigMap, "a")).metadata.name == "a"


async def test_a_client_that_waits_to_be_told_to_go_on(door: tuple[Cluster, HttpDoor]) -> None:
    body = json.dumps({"metadata": {"name": "a"}}).encode()
    more = (f"Content-Length: {len(body)}", "Expect: 100-continue")
    back = await talk(door[1].port, head("POST", CONFIGMAPS, *more), body)
    assert back.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n")


async def test_head_has_no_body(door: tuple[Cluster, HttpDoor]) -> None:
    back = await talk(door[1].port, head("HEAD", "/api/v1/namespaces/default"))
    assert back.startswith(b"HTTP/1.1 200 OK\r\n")
    assert back.endswith(b"\r\n\r\n")
    assert b"Content-Length: " in back


async def test_http_1_0(door: tuple[Cluster, HttpDoor]) -> None:
    back = await talk(door[1].port, b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
    assert back.endswith(b"\r\n\r\nok")
    back = await talk(
        door[1].port, f"GET {CONFIGMAPS}?watch=1&timeoutSeconds=1 HTTP/1.0\r\nHost: localhost\r\n\r\n".encode()
    )
    assert b"chunked" not in back


async def test_ten_thousand_requests_on_one_connection(door: tuple[Cluster, HttpDoor]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", door[1].port)
    one = head("GET", "/healthz", close=False)
    for _ in range(100):
        writer.write(one * 100)
        for _ in range(100):
            answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
            assert answer.startswith(b"HTTP/1.1 200 OK")
            assert await reader.readexactly(2) == b"ok"
    writer.close()


async def test_a_watch_begins_at_once_and_ends_when_its_reader_has_gone(door: tuple[Cluster, HttpDoor]) -> None:
    cluster, opened = door

    def watchers() -> int:
        return cluster.embedded.store.watchers("podtemplates")

    reader, writer = await asyncio.open_connection("127.0.0.1", opened.port)
    writer.write(head("GET", "/api/v1/podtemplates?watch=1", close=False))
    told = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    assert told.startswith(b"HTTP/1.1 200 OK")
    await eventually(watchers, lambda count: count == 1)
    writer.close()

    await eventually(watchers, lambda count: count == 0)


async def test_watches_end_cleanly_when_the_server_stops() -> None:
    async with Cluster() as cluster:
        opened = HttpDoor(cluster.embedded.server, user=ADMIN)
        await opened.open()
        reader, writer = await asyncio.open_connection("127.0.0.1", opened.port)
        writer.write(head("GET", f"{CONFIGMAPS}?watch=1&resourceVersion=1", close=False))
        await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
        await cluster.embedded.stop()
        assert await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), 10)
        await opened.close()
        writer.close()


def test_loopback_only() -> None:
    cluster = Cluster()
    with pytest.raises(ConfigError, match="--allow-remote"):
        HttpDoor(cluster.embedded.server, host="0.0.0.0")
    with pytest.raises(ConfigError, match="plain HTTP is for loopback only"):
        HttpDoor(cluster.embedded.server, host="192.0.2.1", remote=True)
    assert [is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost", "0.0.0.0", "example.com")] == [
        True,
        True,
        True,
        True,
        False,
        False,
    ]


async def test_a_socket_file_is_the_owners(tmp_path: Path) -> None:
    async with Cluster() as cluster:
        opened = HttpDoor(cluster.embedded.server, unix=tmp_path / "api.sock", user=ADMIN)
        await opened.open()
        assert (tmp_path / "api.sock").stat().st_mode & 0o777 == 0o600
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "api.sock"))
        writer.write(head("GET", "/healthz"))
        assert (await asyncio.wait_for(reader.read(), 10)).endswith(b"ok")
        writer.close()
        await opened.close()
        assert not (tmp_path / "api.sock").exists()
