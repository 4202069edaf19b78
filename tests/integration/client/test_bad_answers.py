"""What a person reads when a client meets a server that is none: one line with host, cause and remedy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest
from aiohttp import web
from tests.support.servers import http_server, unused_port

from flyball.client import Client, ClusterConfig
from flyball.errors import ApiError, ConnectError, FlyballError, MalformedAnswer, RequestTimeout, ServiceUnavailable
from flyball.k8s.core.v1 import ConfigMap

CHECK = "check that the server address is a Kubernetes API server and that no proxy or login page stands before it"


@dataclass
class Server:
    """Answers every request alike; a test sets how."""

    url: str = ""
    status: int = 200
    kind: str = "application/json"
    body: bytes = b""
    silent: bool = False

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    async def answer(self, _: web.Request) -> web.Response:
        if self.silent:
            await asyncio.Event().wait()
        return web.Response(status=self.status, body=self.body, headers={"Content-Type": self.kind})


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    found = Server()
    async with http_server(found.answer) as url:
        found.url = url
        yield found


async def get(client: Client) -> object:
    return await client.get(ConfigMap, "a", namespace="default")


async def listing(client: Client) -> object:
    return await client.list(ConfigMap, namespace="default")


async def refusal(
    server: Server,
    kind: type[FlyballError],
    ask: Callable[[Client], Awaitable[object]] = get,
    silence: float | None = None,
) -> str:
    async with Client(ClusterConfig(server=server.url), retry=None, timeout=silence) as client:
        with pytest.raises(FlyballError) as caught:
            await ask(client)
    assert type(caught.value) is kind, repr(caught.value)
    line = str(caught.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize("ask", [get, listing])
async def test_a_login_page(server: Server, ask: Callable[[Client], Awaitable[object]]) -> None:
    server.kind, server.body = "text/html", b"<!doctype html><title>Please log in</title>"

    line = await refusal(server, MalformedAnswer, ask)

    assert server.host in line
    assert 'the answer is HTML titled "Please log in"' in line
    assert line.endswith(CHECK)


async def test_a_page_of_a_proxy(server: Server) -> None:
    server.status, server.kind, server.body = 503, "text/html", b"<html><h1>No server is available</h1></html>"

    line = await refusal(server, ServiceUnavailable)

    assert f'HTTP 503 from {server.host}: the answer is HTML titled "No server is available"' in line
    assert line.endswith(CHECK)


@pytest.mark.parametrize("ask", [get, listing])
@pytest.mark.parametrize("body", [b'{"kind":"ConfigMap","metadata":', b"", b"[]", b"null"])
async def test_malformed_json(server: Server, body: bytes, ask: Callable[[Client], Awaitable[object]]) -> None:
    server.body = body

    line = await refusal(server, MalformedAnswer, ask)

    assert server.host in line
    assert CHECK in line


async def test_a_status_with_a_reason_nobody_knows(server: Server) -> None:
    server.status = 418
    server.body = b'{"kind":"Status","status":"Failure","reason":"Teapot","message":"short and stout","code":418}'

    assert (await refusal(server, ApiError)).endswith("Teapot: short and stout")


async def test_silence(server: Server) -> None:
    server.silent = True

    line = await refusal(server, RequestTimeout, silence=0.05)

    assert line.endswith(f"{server.host}: the server was silent for 0.05 s; look at its load, or set a longer timeout")


async def test_nobody_there() -> None:
    server = Server(url=f"http://127.0.0.1:{await unused_port()}")

    line = await refusal(server, ConnectError)

    assert f"{server.host}: connection refused; check that the server runs" in line
