"""Logs, through a real API server from a kubelet that is only a web server here."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from tests.support.realclient import client_of, pod, pods_can_be_made

from flyball.api import DynamicObject
from flyball.client import Client, MergePatch, ref
from flyball.errors import BadRequest
from flyball.k8s.core.v1 import Container, Node, Pod
from flyball.testing.realcluster import RealCluster

pytestmark = pytest.mark.real


class Kubelet:
    """Answers `/containerLogs` with what it was asked, then with lines that a test lets go."""

    def __init__(self) -> None:
        self.queries: list[dict[str, str]] = []
        self.go_on = asyncio.Event()

    async def logs(self, request: web.Request) -> web.StreamResponse:
        self.queries.append(dict(request.query))
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        await response.write(f"container {request.match_info['container']}\n".encode())
        if request.query.get("follow") == "true":
            await self.go_on.wait()
            await response.write(b"second li")
            await response.write(b"ne\nthe end")
        return response


@asynccontextmanager
async def kubelet_of(cluster: RealCluster, client: Client, folder: Path) -> AsyncGenerator[tuple[Kubelet, str]]:
    pair = cluster.authority.server(["127.0.0.1"], "kubelet")
    (folder / "kubelet.crt").write_bytes(pair.certificate)
    (folder / "kubelet.key").write_bytes(pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "kubelet.crt", folder / "kubelet.key")
    kubelet, app = Kubelet(), web.Application()
    app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", kubelet.logs)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    name = f"node-of-{client.namespace}"
    await client.create(DynamicObject(apiVersion="v1", kind="Node", metadata={"name": name}))
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": runner.addresses[0][1]}},
    }
    await client.patch(ref(Node, name), MergePatch({"status": status}), subresource="status")
    try:
        yield kubelet, name
    finally:
        await client.delete(Node, name)
        await _hang_up(runner)
        await runner.cleanup()


async def _hang_up(runner: web.AppRunner) -> None:
    """End what the API server keeps open for later: it would answer a polite end only when it comes to it."""
    assert runner.server is not None
    for connection in runner.server.connections:
        if connection.transport is not None:
            connection.transport.abort()
    await asyncio.sleep(0)


async def test_logs_at_once_and_followed(real_cluster: RealCluster, tmp_path: Path) -> None:
    async with client_of(real_cluster) as c, kubelet_of(real_cluster, c, tmp_path) as (kubelet, node):
        await pods_can_be_made(c)
        made = await c.create(pod("p"))
        await c.bind(made, node)
        options = {"container": "c", "tailLines": "3", "timestamps": "true", "previous": "true", "sinceSeconds": "60"}
        asked = c.logs(made, container="c", tail=3, timestamps=True, previous=True, since=timedelta(minutes=1))
        assert await asked == "container c\n"
        assert {key: value for key, value in kubelet.queries[0].items() if key in options or key == "follow"} == {
            key: value for key, value in options.items() if key != "container"
        }
        lines: list[str] = []
        async for line in c.logs("p", follow=True):
            lines.append(line)
            kubelet.go_on.set()
        assert lines == ["container c", "second line", "the end"]
        await c.delete(ref(Pod, "p"), grace_period=0)


async def test_which_of_several_containers_must_be_said(real_cluster: RealCluster, tmp_path: Path) -> None:
    async with client_of(real_cluster) as c, kubelet_of(real_cluster, c, tmp_path) as (_, node):
        await pods_can_be_made(c)
        two = pod("p")
        two.spec.containers.append(Container(name="d", image="i"))
        await c.bind(await c.create(two), node)
        with pytest.raises(BadRequest, match=rf"^read the log of Pod {c.namespace}/p: .*choose one of: \[c d\]"):
            await c.logs("p")
        assert await c.logs("p", container="d") == "container d\n"
        await c.delete(ref(Pod, "p"), grace_period=0)
