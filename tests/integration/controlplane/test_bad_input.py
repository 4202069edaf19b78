"""Whatever comes in: the right failure, never a fault of the server, never a hang, never a lost object."""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import time
from collections import Counter
from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest
from tests.support.mutations import CRD, DEPLOYMENT, NS, WIDGET, Asked, mutated

from flyball.controlplane.apiserver.http import HttpDoor
from flyball.controlplane.bootstrap import ADMIN
from flyball.k8s.apps.v1 import Deployment
from flyball.k8s.core.v1 import ConfigMap, Namespace, ServiceAccount
from flyball.testing import Cluster

TOO_LARGE = 3 * 1024 * 1024 + 1
SECONDS = 20.0


class Plain:
    """A server without TLS, so that bytes can be sent as they are."""

    def __init__(self, cluster: Cluster, door: HttpDoor) -> None:
        self.cluster = cluster
        self.port = door.port

    async def raw(self, sent: bytes, *, end: bool = False) -> tuple[int, bytes]:
        """Send bytes (and no more, with `end`) on a connection of their own; the status and all that comes back."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(sent)
            if end:
                writer.write_eof()
            async with asyncio.timeout(SECONDS):
                back = await reader.read()
        except ConnectionResetError:
            back = b""
        finally:
            writer.close()
        return (int(back[9:12]) if back.startswith(b"HTTP/1.") else 0), back

    async def ask(self, asked: Asked) -> tuple[int, bytes]:
        query = "&".join(f"{quote(name)}={quote(value)}" for name, value in asked.query)
        target = asked.path.replace(" ", "%20") + (f"?{query}" if query else "")
        headers = {"Host": "localhost", "Connection": "close", "Content-Length": str(len(asked.body)), **asked.headers}
        head = f"{asked.method} {target} HTTP/1.1\r\n" + "".join(
            f"{key}: {value}\r\n" for key, value in headers.items()
        )
        return await self.raw(head.encode("latin1") + b"\r\n" + asked.body)


@pytest.fixture
async def plain() -> AsyncIterator[Plain]:
    async with Cluster() as cluster:
        door = HttpDoor(cluster.embedded.server, user=ADMIN, body_seconds=1.0)
        await door.open()
        try:
            yield await filled(Plain(cluster, door))
        finally:
            await door.close()


async def filled(server: Plain) -> Plain:
    """Create the objects that the requests are about."""
    await server.cluster.client.apply(ServiceAccount.new("default"), field_manager="setup", force=True)
    await server.cluster.client.create(Namespace.new("safe"))
    await server.cluster.client.create(ConfigMap.new("victim", data={"a": "b"}))
    await server.cluster.client.create(ConfigMap.new("untouched", namespace="safe"))
    for path, obj in (
        ("/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT),
        ("/apis/apps/v1/namespaces/safe/deployments", DEPLOYMENT),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD),
        ("/apis/example.com/v1/namespaces/default/widgets", WIDGET),
    ):
        code, told = await server.ask(Asked("POST", path, body=json.dumps(obj).encode()))
        assert code == 201, told
    return server


def is_the_servers_fault(code: int, answer: bytes) -> bool:
    """Some failures are 500 on every API server, with a text that says what was wrong with the request."""
    return code >= 500 and (code not in (500, 501, 504) or b"an error in the server" in answer)


async def test_two_thousand_requests_with_something_wrong(plain: Plain, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    seen: Counter[int] = Counter()
    slowest = 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for asked in mutated(2000, seed=20):
        begin = time.perf_counter()
        code, answer = await plain.ask(asked)
        slowest = max(slowest, time.perf_counter() - begin)
        seen[code] += 1
        assert not is_the_servers_fault(code, answer), (asked, caplog.text[-3000:])
        assert code or is_no_http(asked), asked
    assert slowest < SECONDS / 2
    assert caplog.text == ""
    refused = sum(count for code, count in seen.items() if 400 <= code < 500)
    assert refused > 1000, seen
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB
    await the_objects_are_there(plain)


def is_no_http(asked: Asked) -> bool:
    """What cannot be parsed is refused while its body is still on the way: its sender may miss the answer."""
    return asked.method in ("FOO", "CONNECTED") or not asked.path.isascii()


async def the_objects_are_there(plain: Plain) -> None:
    """What nobody asked to be deleted is there, and can be written."""
    client = plain.cluster.client
    for kind, name in ((ConfigMap, "untouched"), (Deployment, "d")):
        found = await client.get(kind, name, namespace="safe")
        found.metadata.labels = {**(found.metadata.labels or {}), "still": "there"}
        await client.patch(found)


@pytest.mark.parametrize("kind", ["application/json", "application/yaml"])
@pytest.mark.parametrize("unit", [b"[", b'{"a":', b"- ", b"? ", b"{a: "])
async def test_bodies_that_are_too_deep(plain: Plain, unit: bytes, kind: str) -> None:
    asked = Asked("POST", f"{NS}/configmaps", headers={"Content-Type": kind}, body=unit * 100_000)
    code, answer = await plain.ask(asked)
    assert code == 400, answer


async def test_yaml_that_grows(plain: Plain) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    body = "\n".join(lines).encode()
    headers = {"Content-Type": "application/yaml"}
    code, answer = await plain.ask(Asked("POST", f"{NS}/configmaps", headers=headers, body=body))
    assert code == 400
    assert b"aliases" in answer


async def test_bodies_that_are_too_large(plain: Plain) -> None:
    path, line = f"{NS}/configmaps", b"Host: localhost\r\nConnection: close\r\n"
    code, answer = await plain.ask(Asked("POST", path, body=b" " * TOO_LARGE))
    assert (code, b"Request entity too large: limit is 3145728" in answer) == (413, True)
    head = b"POST %b HTTP/1.1\r\n%bTransfer-Encoding: chunked\r\n\r\n" % (path.encode(), line)
    chunks = b"%x\r\n%b\r\n" % (1 << 20, b" " * (1 << 20))
    code, _ = await plain.raw(head + chunks * 4 + b"0\r\n\r\n")
    assert code == 413
    assert (await plain.raw(b"POST %b HTTP/1.1\r\n%bContent-Length: 99999999999\r\n\r\n" % (path.encode(), line)))[
        0
    ] == 413


async def test_a_slow_sender_is_given_up_and_holds_nobody(plain: Plain) -> None:
    head = f"POST {NS}/configmaps HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n".encode()
    _, slow = await asyncio.open_connection("127.0.0.1", plain.port)
    slow.write(head + b"{")
    assert (await plain.ask(Asked("GET", f"{NS}/configmaps")))[0] == 200
    reader, writer = await asyncio.open_connection("127.0.0.1", plain.port)
    writer.write(head + b'{"kind"')
    async with asyncio.timeout(SECONDS):
        assert (await reader.readline()).startswith(b"HTTP/1.1 408")
    for one in (slow, writer):
        one.close()


async def test_thousands_of_connections_that_say_nothing(plain: Plain) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = 2000
    if hard != resource.RLIM_INFINITY and hard < 3 * count:
        pytest.skip(f"this machine allows {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3 * count), hard))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        idle = [await asyncio.open_connection("127.0.0.1", plain.port) for _ in range(count)]
        for _, writer in idle[::2]:
            writer.write(b"GET /api/v1/names")
        begin = time.perf_counter()
        assert (await plain.ask(Asked("GET", f"{NS}/configmaps")))[0] == 200
        assert time.perf_counter() - begin < SECONDS / 2
        for _, writer in idle:
            writer.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # kB, both ends are in this process


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET  HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"x" * 200_000 + b"\r\n\r\n",
        b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100 + b"\r\n\r\n",
        b"POST /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
async def test_what_is_no_http(plain: Plain, sent: bytes) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", plain.port)
    writer.write(sent)
    writer.close()
    code, answer = await plain.raw(
        sent.replace(b"Host: localhost\r\n", b"Host: localhost\r\nConnection: close\r\n"), end=True
    )
    assert code in (0, 400, 403, 404), answer[:300]
    assert (await plain.ask(Asked("GET", f"{NS}/configmaps/victim")))[0] == 200


async def test_patterns_that_make_matching_slow(plain: Plain) -> None:
    widget = {**WIDGET, "metadata": {"name": "slow"}, "spec": {"text": "a" * 5000 + "!"}}
    path = "/apis/example.com/v1/namespaces/default/widgets"
    begin = time.perf_counter()
    code, answer = await plain.ask(Asked("POST", path, body=json.dumps(widget).encode()))
    assert code == 422, answer
    assert time.perf_counter() - begin < 2


async def test_many_requests_on_one_connection_and_then_nonsense(plain: Plain) -> None:
    one = b"GET /api/v1/namespaces/default/configmaps/victim HTTP/1.1\r\nHost: localhost\r\n\r\n"
    _, answer = await plain.raw(one * 50 + b"nonsense\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200 OK") in range(45, 51)  # what is read together with nonsense goes with it
    await the_objects_are_there(plain)
