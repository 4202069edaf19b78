"""A load generator that costs little: raw sockets under asyncio, requests rendered before the clock starts.

    python -m bench.load '{"kubeconfig": "...", "mode": "create", "connections": 16, "seconds": 3, "prefix": "a"}'

Prints one line of JSON. Modes: `create` (configmaps, for `seconds` or `count` of them), `get` (one configmap), `list`
(all configmaps), `watch` (each connection watches configmaps until it has seen `count` of them created).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import math
import ssl
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

try:
    from uvloop import new_event_loop
except ImportError:
    from asyncio import new_event_loop

BODY = '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"%s","labels":{"app":"bench"}},"data":{"key":"%s"}}'
ADDED = b'{"type":"ADDED"'
CONFIGMAPS = "/api/v1/namespaces/%s/configmaps"


class Way:
    """Where a kubeconfig leads."""

    def __init__(self, kubeconfig: str) -> None:
        config = yaml.safe_load(Path(kubeconfig).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        parts = urlsplit(cluster["server"])
        self.host, self.port = parts.hostname or "127.0.0.1", parts.port
        self.tls = None
        if parts.scheme == "https":
            authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
            self.tls = ssl.create_default_context(cadata=authority)
            with tempfile.NamedTemporaryFile() as file:
                file.write(base64.b64decode(user["client-certificate-data"]) + b"\n")
                file.write(base64.b64decode(user["client-key-data"]))
                file.flush()
                self.tls.load_cert_chain(file.name)


class Connection(asyncio.Protocol):
    """One connection that sends the next request as soon as the answer is there."""

    def __init__(
        self, requests: Any, codes: dict[int, int], times: list[float], stop: asyncio.Event, count: float
    ) -> None:
        self._count = count
        self._requests = requests
        self._codes = codes
        self._times = times
        self._stop = stop
        self._buffer = bytearray()
        self._need = -1
        self._chunked = False
        self._transport: Any = None
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def begin(self) -> None:
        self._begun = time.perf_counter()
        self._transport.write(next(self._requests))

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self._codes[-1] = self._codes.get(-1, 0) + 1
            self.done.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._need < 0 and not self._chunked:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self._buffer[:end]).lower()
            self._code = int(head[9:12])
            place = head.find(b"content-length: ")
            if place >= 0:
                self._need = end + 4 + int(head[place + 16 :].partition(b"\r")[0])
            else:
                self._chunked = True
        if self._chunked:
            if not self._buffer.endswith(b"0\r\n\r\n"):
                return
        elif len(self._buffer) < self._need:
            return
        self._times.append(time.perf_counter() - self._begun)
        self._codes[self._code] = self._codes.get(self._code, 0) + 1
        self._buffer.clear()
        self._need, self._chunked = -1, False
        if len(self._times) >= self._count:
            self._stop.set()
        if self._stop.is_set():
            self.done.set_result(None)
            self._transport.close()
        else:
            self.begin()


def requests(spec: dict[str, Any], number: int, host: str) -> Any:
    """Render the requests of one connection, without end."""
    common = f"Host: {host}\r\nUser-Agent: bench/1\r\nAccept: application/json\r\n"
    path = CONFIGMAPS % spec.get("namespace", "default")
    if spec["mode"] == "create":
        index = 0
        while True:
            body = BODY % (f"{spec['prefix']}-{number}-{index}", "x" * 100)
            head = (
                f"POST {path} HTTP/1.1\r\n{common}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            yield (head + body).encode()
            index += 1
    where = f"{path}/{spec['name']}" if spec["mode"] == "get" else path
    one = f"GET {where} HTTP/1.1\r\n{common}\r\n".encode()
    while True:
        yield one


class Watching(asyncio.Protocol):
    """One watch that counts what is created."""

    def __init__(self, request: bytes, count: int) -> None:
        self._request = request
        self._left = count
        self._tail = b""
        self.first = 0.0
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        transport.write(self._request)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the server has ended a watch"))

    def data_received(self, data: bytes) -> None:
        seen = self._tail + data
        found = seen.count(ADDED)
        self._tail = seen[-len(ADDED) + 1 :]
        if found and not self.first:
            self.first = time.perf_counter()
        self._left -= found
        if self._left <= 0 and not self.done.done():
            self.done.set_result(time.perf_counter())


async def watch(spec: dict[str, Any]) -> dict[str, Any]:
    """Watch until every connection has seen everything."""
    way = Way(spec["kubeconfig"])
    loop = asyncio.get_running_loop()
    path = CONFIGMAPS % spec["namespace"]
    request = f"GET {path}?watch=1&resourceVersion={spec['version']} HTTP/1.1\r\nHost: {way.host}\r\n\r\n".encode()
    watches = [
        (await loop.create_connection(lambda: Watching(request, spec["count"]), way.host, way.port, ssl=way.tls))[1]
        for _ in range(spec["connections"])
    ]
    await asyncio.sleep(0.5)
    print("watching", flush=True)
    ends = await asyncio.gather(*(one.done for one in watches))
    seconds = max(ends) - min(one.first for one in watches)
    events = spec["count"] * spec["connections"]
    return {"count": events, "seconds": seconds, "rate": events / seconds}


async def run(spec: dict[str, Any]) -> dict[str, Any]:
    """Load a server for so long."""
    if spec["mode"] == "watch":
        return await watch(spec)
    way = Way(spec["kubeconfig"])
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    codes: dict[int, int] = {}
    times: list[float] = []
    connections: list[Connection] = []
    for number in range(spec["connections"]):
        _, connection = await loop.create_connection(
            lambda number=number: Connection(
                requests(spec, number, way.host), codes, times, stop, spec.get("count", math.inf)
            ),
            way.host,
            way.port,
            ssl=way.tls,
        )
        connections.append(connection)
    begin, used = time.perf_counter(), time.process_time()
    for connection in connections:
        connection.begin()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), spec.get("seconds"))
    stop.set()
    await asyncio.gather(*(connection.done for connection in connections))
    seconds = time.perf_counter() - begin
    times.sort()
    return {
        "count": len(times),
        "seconds": seconds,
        "rate": len(times) / seconds,
        "p50": times[len(times) // 2] if times else 0,
        "p99": times[int(len(times) * 0.99)] if times else 0,
        "codes": codes,
        "cpu": (time.process_time() - used) / seconds,
    }


def main() -> None:
    """Run what the first argument says."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        print(json.dumps(runner.run(run(json.loads(sys.argv[1])))))


if __name__ == "__main__":
    main()
