"""A kubelet for tests of the API server's streams: real processes on this machine, logs that a test writes itself."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import signal
import struct
import termios
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from flyball.api import DynamicObject
from flyball.client import Client, MergePatch, ref
from flyball.controlplane.apiserver.kubelets import Connection, KubeletRefusal, LogOptions, Pod, Run, Streams
from flyball.controlplane.apiserver.server import ApiServer
from flyball.errors import AlreadyExists
from flyball.k8s.core.v1 import Node
from flyball.k8s.core.v1 import Pod as PodKind

__all__ = ["NODE", "Journal", "Kubelet", "Line", "start_pod"]

NODE = "test-node"


class Line:
    """One line of a log, without its newline."""

    def __init__(self, text: str, *, at: datetime | None = None, stream: str = "Stdout") -> None:
        self.text = text
        self.at = at or datetime.now(UTC)
        self.stream = stream


class Journal:
    """What a container wrote, and whether it may write more."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.ended = False
        self._news = asyncio.Event()

    def write(self, *lines: Line | str) -> None:
        """Write lines, as if the container did."""
        self.lines += [Line(line) if isinstance(line, str) else line for line in lines]
        self._wake()

    def end(self) -> None:
        """End the container."""
        self.ended = True
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def news(self) -> None:
        """Wait until something has happened."""
        await self._news.wait()


class Kubelet:
    """Runs commands of `exec` as they are, here; `attach` runs what `main` names; ports are this machine's."""

    def __init__(self) -> None:
        self.journals: dict[tuple[str, str, bool], Journal] = {}
        self.main: dict[str, Sequence[str]] = {}
        """By container: the command that stands for its process."""
        self.runs: list[Run] = []
        self.ended: list[Run] = []
        """The runs that are over, however they ended."""
        self.readers = 0
        """How many read a log now."""
        self.refusal: KubeletRefusal | None = None
        """What is raised instead of everything."""
        self.connections: set[_Socket] = set()

    def journal(self, pod: str, container: str = "main", *, previous: bool = False) -> Journal:
        """What a container of a Pod wrote."""
        return self.journals.setdefault((pod, container, previous), Journal())

    async def logs(self, pod: Pod, options: LogOptions) -> AsyncIterator[bytes]:
        if self.refusal is not None:
            raise self.refusal
        journal = self.journal(pod["metadata"]["name"], options.container, previous=options.previous)
        lines = [line for line in journal.lines if options.since is None or line.at >= options.since]
        if options.tail_lines is not None:
            lines = lines[len(lines) - min(options.tail_lines, len(lines)) :]
        left = options.limit_bytes
        seen = len(journal.lines)
        self.readers += 1
        try:
            yield b""
            while True:
                for line in lines:
                    raw = _raw(line, options.timestamps)
                    yield raw if left is None else raw[:left]
                    if left is not None:
                        left -= min(left, len(raw))
                        if not left:
                            return
                if not options.follow or journal.ended:
                    return
                while len(journal.lines) == seen and not journal.ended:
                    await journal.news()
                lines, seen = journal.lines[seen:], len(journal.lines)
        finally:
            self.readers -= 1

    async def exec(self, pod: Pod, run: Run, streams: Streams) -> int:
        return await self._run(run, run.command, streams)

    async def attach(self, pod: Pod, run: Run, streams: Streams) -> int:
        return await self._run(run, self.main.get(run.container, ("cat",)), streams)

    async def _run(self, run: Run, command: Sequence[str], streams: Streams) -> int:
        if self.refusal is not None:
            raise self.refusal
        self.runs.append(run)
        try:
            work = _in_terminal if run.tty else _in_pipes
            return await work(command, streams)
        except FileNotFoundError:
            raise KubeletRefusal(f'exec: "{command[0]}": executable file not found in $PATH', 500) from None
        finally:
            self.ended.append(run)

    async def connect(self, pod: Pod, port: int) -> Connection:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError as error:
            raise KubeletRefusal(f"failed to connect to localhost:{port} inside the pod: {error.strerror}") from None
        connection = _Socket(self, reader, writer)
        self.connections.add(connection)
        return connection


def _raw(line: Line, timestamps: bool) -> bytes:
    stamp = line.at.isoformat(timespec="microseconds").replace("+00:00", "000Z ") if timestamps else ""
    return f"{stamp}{line.text}\n".encode()


async def _in_pipes(command: Sequence[str], streams: Streams) -> int:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    feeding = asyncio.create_task(_feed(streams, process.stdin))
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_copy(process.stdout, streams.write))
            group.create_task(_copy(process.stderr, streams.write_error))
        return _code(await process.wait())
    finally:
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.gather(process.stdout.read(), process.stderr.read())  # `wait` waits for their ends too
        await process.wait()


def _code(code: int) -> int:
    return code if code >= 0 else 128 - code


async def _feed(streams: Streams, pipe: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await streams.read():
            pipe.write(data)
            await pipe.drain()
    pipe.close()


async def _copy(pipe: asyncio.StreamReader, write: Any) -> None:
    while data := await pipe.read(32 << 10):
        await write(data)


async def _in_terminal(command: Sequence[str], streams: Streams) -> int:
    ours, theirs = pty.openpty()

    def lead() -> None:
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # tests that run in the background ignore it
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        preexec_fn=lead,
    )
    os.close(theirs)
    loop = asyncio.get_running_loop()
    os.set_blocking(ours, False)

    async def show() -> None:
        while True:
            ready = loop.create_future()
            loop.add_reader(ours, lambda ready=ready: ready.done() or ready.set_result(None))
            try:
                await ready
            finally:
                loop.remove_reader(ours)
            try:
                data = os.read(ours, 32 << 10)
            except OSError:  # the last process on the terminal has ended
                return
            if not data:
                return
            await streams.write(data)

    async def typed() -> None:
        while data := await streams.read():
            os.write(ours, data)

    async def resized() -> None:
        while True:
            columns, rows = await streams.resized()
            fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    helpers = [asyncio.create_task(typed()), asyncio.create_task(resized())]
    showing = asyncio.create_task(show())
    try:
        await showing
        return _code(await process.wait())
    finally:
        for task in (*helpers, showing):
            task.cancel()
        await asyncio.gather(*helpers, showing, return_exceptions=True)
        os.close(ours)
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


class _Socket:
    def __init__(self, kubelet: Kubelet, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._kubelet = kubelet
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        try:
            return await self._reader.read(32 << 10)
        except ConnectionError:
            return b""

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def finish(self) -> None:
        self._writer.write_eof()

    async def close(self) -> None:
        self._kubelet.connections.discard(self)
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


async def start_pod(
    server: ApiServer,
    client: Client,
    kubelet: Kubelet | None,
    name: str,
    *containers: str,
    state: dict[str, Any] | None = None,
    last: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    node: str = NODE,
    known: Sequence[str] | None = None,
) -> None:
    """Make a Pod that runs on the node of the test kubelet (or whose containers are in another state).

    `known` names the containers that its status tells of; default: all.
    """
    if kubelet is not None:
        server.kubelets.register(node, kubelet)
    with suppress(AlreadyExists):
        await client.create(Node.new(node))
    names = containers or ("main",)
    metadata = {"name": name, "namespace": "default", "labels": labels or {}}
    spec = {
        "nodeName": node,
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": one, "image": "busybox", "ports": [{"containerPort": 80}]} for one in names],
    }
    await client.create(DynamicObject({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    shown = {"running": {"startedAt": now}} if state is None else state
    statuses = [
        {
            "name": one,
            "image": "busybox",
            "imageID": "",
            "ready": "running" in shown,
            "started": "running" in shown,
            "restartCount": 0,
            "state": shown,
            "lastState": last or {},
        }
        for one in (names if known is None else known)
    ]
    phase = "Running" if "running" in shown else "Pending"
    conditions = [{"type": one, "status": "True", "lastTransitionTime": now} for one in ("Ready", "ContainersReady")]
    status = {"phase": phase, "startTime": now, "conditions": conditions, "containerStatuses": statuses}
    await client.patch(ref(PodKind, name, namespace="default"), MergePatch({"status": status}), subresource="status")
