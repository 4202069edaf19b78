"""A collection on a server that fails in every way that watches know, by a seeded schedule."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from multidict import CIMultiDict

from flyball.client.transport import HttpRequest
from flyball.errors import ConnectError, ConnectionLost, RequestTimeout

Json = dict[str, Any]
FAULTS = ("cut", "cut mid-line", "end", "error", "gone", "silence", "bare status", "nonsense")


@dataclass
class Reply:
    status: int = 200
    body: bytes = b""
    stream: AsyncGenerator[bytes] | None = None
    headers: CIMultiDict[str] = field(default_factory=lambda: CIMultiDict({"Content-Type": "application/json"}))

    async def read(self) -> bytes:
        return self.body

    async def chunks(self) -> AsyncIterator[bytes]:
        assert self.stream is not None
        async for piece in self.stream:
            yield piece

    async def close(self) -> None:
        if self.stream is not None:
            await self.stream.aclose()


def status(code: int, reason: str, message: str = "") -> Json:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }


class FaultyServer:
    """Serves one kind (`/apis/example.org/v1/widgets`, all namespaces) as a `Transport`.

    `trouble` is the chance of a fault per request, and per batch of events of a watch. `heal()` ends all faults.
    """

    host = "faulty:6443"

    def __init__(self, random: Random, *, trouble: float = 0.0, names: int = 30, keep: int = 2000) -> None:
        self.random = random
        self.trouble = trouble
        self.version = 100
        self.objects: dict[str, bytes] = {}
        self.versions: dict[str, int] = {}
        self.history: list[tuple[int, str, bytes]] = []
        self.first = 100
        self.events = 0
        self.faults: dict[str, int] = {}
        self.lists = 0
        self.watches = 0
        self.streaming = True
        self.asked: list[HttpRequest] = []
        self.names = [f"w{number}" for number in range(names)]
        self._keep = keep
        self.before: Callable[[dict[str, str]], Reply | Exception | None] | None = None
        self.open_watches = 0
        self._changed = asyncio.Event()
        self._broken = (0, "")
        self._snapshots: dict[int, list[bytes]] = {}
        self._uids = 0
        self._uid: dict[str, str] = {}

    # -- the world changes

    def write(self) -> tuple[str, bytes]:
        """One random write; returns its type and the object."""
        name = self.random.choice(self.names)
        if name not in self.objects:
            return self.put(name)
        return self.remove(name) if self.random.random() < 0.2 else self.put(name)

    def put(self, name: str, text: str = "") -> tuple[str, bytes]:
        self.version += 1
        kind = "MODIFIED" if name in self.objects else "ADDED"
        if kind == "ADDED":
            self._uids += 1
            self._uid[name] = f"uid-{self._uids}"
        body = self._body(name)
        self.objects[name], self.versions[name] = body, self.version
        return self._record(kind, body)

    def remove(self, name: str) -> tuple[str, bytes]:
        self.version += 1
        del self.objects[name], self.versions[name]
        return self._record("DELETED", self._body(name))

    def _body(self, name: str) -> bytes:
        return (
            f'{{"apiVersion":"example.org/v1","kind":"Widget","metadata":{{"name":"{name}","namespace":"ns",'
            f'"uid":"{self._uid[name]}","resourceVersion":"{self.version}"}},"spec":{{"size":{self.version}}}}}'
        ).encode()

    def _record(self, kind: str, body: bytes) -> tuple[str, bytes]:
        self.history.append((self.version, kind, body))
        if len(self.history) > self._keep:
            self.compact(self._keep // 2)
        self.events += 1
        self._changed.set()
        return kind, body

    def compact(self, left: int = 0) -> None:
        """Forget all but so many events."""
        gone = len(self.history) - left
        if gone > 0:
            self.first = self.history[gone - 1][0]
            del self.history[:gone]
        self._snapshots.clear()

    def heal(self) -> None:
        self.trouble = 0.0
        self._changed.set()

    def break_watches(self, fault: str) -> None:
        """Every open watch ends now in this way (`FAULTS`; `bookmark` only sends one)."""
        self._broken = (self._broken[0] + 1, fault)
        self._changed.set()

    def _strikes(self, chance: float | None = None) -> bool:
        return self.random.random() < (self.trouble if chance is None else chance)

    def _note(self, fault: str) -> None:
        self.faults[fault] = self.faults.get(fault, 0) + 1

    # -- Transport

    async def send(self, request: HttpRequest) -> Reply:
        self.asked.append(request)
        if len(self.asked) > 100:
            del self.asked[:50]
        query = dict(request.query)
        await asyncio.sleep(0)
        answer = self.before({**query, ":path": request.path}) if self.before is not None else None
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            return answer
        if self._strikes():
            return self._refuse()
        if query.get("watch") == "true":
            return self._watch(query)
        return self._list(query)

    async def close(self) -> None:
        return None

    def _refuse(self) -> Reply:
        fault = self.random.choice(["500", "429", "503", "connect", "lost", "401", "403", "404", "html"])
        self._note(fault)
        if fault == "connect":
            raise ConnectError("connection refused", host=self.host)
        if fault == "lost":
            raise ConnectionLost("broken", host=self.host)
        if fault == "html":
            return Reply(200, b"<html>please log in</html>", _once(b"<html>please log in</html>"))
        return refusal(int(fault), "")

    def _list(self, query: dict[str, str]) -> Reply:
        self.lists += 1
        if token := query.get("continue"):
            version, start = map(int, token.split("-"))
            items = self._snapshots.get(version)
            if items is None:
                self._note("token too old")
                return refusal(410, "Expired")
        else:
            version, start = self.version, 0
            items = [body for _, body in sorted(self.objects.items())]
            self._snapshots[version] = items
        size = int(query.get("limit") or 0) or len(items) or 1
        page = items[start : start + size]
        metadata: Json = {"resourceVersion": str(version)}
        if start + size < len(items):
            metadata["continue"] = f"{version}-{start + size}"
        head = b'{"apiVersion":"example.org/v1","kind":"WidgetList","items":[' + b",".join(page) + b'],"metadata":'
        return Reply(200, head + json.dumps(metadata).encode() + b"}")

    def _watch(self, query: dict[str, str]) -> Reply:
        self.watches += 1
        if query.get("sendInitialEvents") == "true" and not self.streaming:
            return refusal(422, "Invalid", "sendInitialEvents is forbidden")
        since = int(query.get("resourceVersion") or 0)
        if since and since < self.first and self._strikes(0.5):
            self._note("410 at once")
            return refusal(410, "Expired")
        return Reply(stream=self._counted(self._stream(since, query)))

    async def _counted(self, stream: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        self.open_watches += 1
        try:
            async for piece in stream:
                yield piece
        finally:
            self.open_watches -= 1
            await stream.aclose()

    async def _stream(self, since: int, query: dict[str, str]) -> AsyncGenerator[bytes]:
        if since and since < self.first:
            self._note("410 within")
            yield _frame("ERROR", status(410, "Expired", "too old resource version"))
            return
        if query.get("sendInitialEvents") == "true":
            since = self.version
            yield b"".join(_line("ADDED", body) for _, body in sorted(self.objects.items()))
            yield _bookmark(since, {"k8s.io/initial-events-end": "true"})
        seen, _ = self._broken
        while True:
            if self._broken[0] != seen:
                seen, fault = self._broken
                if fault != "bookmark":
                    async for piece in self._fault(fault, b"{}"):
                        yield piece
                    return
                yield _bookmark(self.version, {})
            batch = self._since(since)
            if since < self.first and not batch:
                yield _frame("ERROR", status(410, "Expired", "too old resource version"))
                return
            if not batch:
                self._changed.clear()
                if self._broken[0] == seen:
                    await self._changed.wait()
                continue
            if batch[0][0] > since + 1 and since < self.first:
                yield _frame("ERROR", status(410, "Expired", "too old resource version"))
                return
            fault = self.random.choice(FAULTS) if self._strikes() else ""
            sent = batch[: self.random.randrange(len(batch) + 1)] if fault else batch
            lines = b"".join(self._lines(sent))
            for piece in self._pieces(lines):
                yield piece
            since = sent[-1][0] if sent else since
            if fault:
                self._note(fault)
                async for piece in self._fault(fault, batch[-1][2]):
                    yield piece
                return
            if self._strikes(0.05):
                yield _bookmark(since, {})

    def _since(self, version: int) -> list[tuple[int, str, bytes]]:
        if not self.history or self.history[-1][0] <= version:
            return []
        # Every write is one version, so the place of a version is known.
        start = max(0, version + 1 - self.history[0][0])
        return self.history[start : start + 200]

    def _lines(self, batch: list[tuple[int, str, bytes]]) -> list[bytes]:
        lines = [_line(kind, body) for _, kind, body in batch]
        if self.trouble and lines and self._strikes(0.2):
            self._note("duplicate")
            place = self.random.randrange(len(lines))
            lines.insert(place, lines[place])
        if self.trouble and len(lines) > 1 and self._strikes(0.1):
            self._note("reordered")
            place = self.random.randrange(len(lines) - 1)
            lines[place], lines[place + 1] = lines[place + 1], lines[place]
        return lines

    def _pieces(self, lines: bytes) -> list[bytes]:
        if len(lines) < 3 or self.random.random() < 0.7:
            return [lines] if lines else []
        middle = self.random.randrange(1, len(lines) - 1)
        return [lines[:middle], lines[middle:]]

    async def _fault(self, fault: str, body: bytes) -> AsyncGenerator[bytes]:
        if fault == "cut":
            raise ConnectionLost("broken", host=self.host)
        if fault == "cut mid-line":
            yield _line("MODIFIED", body)[:30]
            raise ConnectionLost("broken", host=self.host)
        if fault == "error":
            yield _frame("ERROR", status(500, "InternalError", "etcd is away"))
        elif fault == "gone":
            yield _frame("ERROR", status(410, "Gone", "the watch cache was reset"))
        elif fault == "silence":
            raise RequestTimeout("silent", host=self.host)
        elif fault == "bare status":
            yield json.dumps(status(500, "InternalError")).encode() + b"\n"
        elif fault == "nonsense":
            yield b'{"type":"MODIFIED","object":{"metadata":[]}}\n'


def refusal(code: int, reason: str, message: str = "") -> Reply:
    body = json.dumps(status(code, reason, message)).encode()
    return Reply(code, body, _once(body))


async def _once(body: bytes) -> AsyncGenerator[bytes]:
    yield body


def _line(kind: str, body: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + body + b"}\n"


def _frame(kind: str, obj: Json) -> bytes:
    return _line(kind, json.dumps(obj).encode())


def _bookmark(version: int, annotations: dict[str, str]) -> bytes:
    metadata = {"resourceVersion": str(version), "annotations": annotations}
    return _frame("BOOKMARK", {"kind": "Widget", "apiVersion": "example.org/v1", "metadata": metadata})
