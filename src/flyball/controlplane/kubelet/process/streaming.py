"""What clients ask of containers that run: logs, `exec`, `attach`, `port-forward`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from flyball.controlplane.apiserver.kubelets import Connection, KubeletRefusal, LogOptions, Run, Streams
from flyball.controlplane.kubelet.process.containers import Running
from flyball.controlplane.kubelet.process.guarding import Guard, GuardLost, NotStarted
from flyball.controlplane.kubelet.process.logs import read_log
from flyball.controlplane.kubelet.process.output import Feed, Pump, nothing, set_size

__all__ = ["attach", "connect", "execute", "logs"]

_NOT_FOUND: Final = 127
_CANNOT_RUN: Final = 126
_ROOM: Final = 16
"""Pieces of output that wait for a client before the process has to."""
_PIECE: Final = 64 * 1024


async def logs(running: Running | None, options: LogOptions, where: str) -> AsyncIterator[bytes]:
    """Give the log of a container. Raises KubeletRefusal before the first piece."""
    log = running.log if running is not None else None
    if options.previous and running is not None and not running.pausing:
        log = running.previous
        if log is None:
            raise KubeletRefusal(f'previous terminated container "{options.container}" in pod "{where}" not found')
    if log is None or running is None:
        waiting = running.known.waiting if running is not None else None
        reason = waiting.reason if waiting is not None else "ContainerCreating"
        raise KubeletRefusal(
            f'container "{options.container}" in pod "{where}" is waiting to start: {_why(reason, running)}'
        )
    yield b""
    async for piece in read_log(log, options):
        yield piece


def _why(reason: str, running: Running | None) -> str:
    if reason in ("ErrImagePull", "ImagePullBackOff"):
        return "image can't be pulled" if reason == "ErrImagePull" else "trying and failing to pull image"
    return reason if running is not None else "PodInitializing"


class _Way:
    """One way from a process to a client: the process waits when the client does not take it."""

    def __init__(self, descriptor: int, write: Callable[[bytes], Awaitable[None]]) -> None:
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._write = write
        self._pump = Pump(descriptor, self._take)
        self._pump.ended.add_done_callback(lambda _: self._queue.put_nowait(None))

    def _take(self, data: bytes) -> None:
        self._queue.put_nowait(data)
        if self._queue.qsize() >= _ROOM:
            self._pump.pause()

    async def run(self) -> None:
        while (data := await self._queue.get()) is not None:
            if self._queue.qsize() < _ROOM:
                self._pump.resume()
            await self._write(data)

    def close(self) -> None:
        self._pump.close()


async def execute(guard: Guard, running: Running | None, run: Run, streams: Streams) -> int:
    """Run a command beside a container's process. Raises KubeletRefusal."""
    if running is None or not running.runs or running.process is None or running.launch is None:
        raise KubeletRefusal(f"container {run.container} is not running", 500, "InternalError")
    terminal: int | None = None
    feed: Feed | None = None
    if run.tty:
        terminal, theirs = os.openpty()
        ends = (theirs, os.dup(theirs), os.dup(theirs))
        ways = [_Way(os.dup(terminal), streams.write)]
        feed = Feed(terminal, owned=False) if run.stdin else None
    else:
        out, out_end = os.pipe()
        error, error_end = os.pipe()
        ways = [_Way(out, streams.write), _Way(error, streams.write_error)]
        ends = (nothing(), out_end, error_end)
        if run.stdin:
            os.close(ends[0])
            stdin, ours = os.pipe()
            feed = Feed(ours)
            ends = (stdin, out_end, error_end)
    launch = replace(running.launch, argv=run.command, tty=run.tty)
    if run.tty:
        launch = replace(launch, env={"TERM": "xterm", **launch.env})
    process = guard.beside(running.process, launch, *ends)
    helpers: list[asyncio.Future[None]] = []
    sending = [asyncio.ensure_future(way.run()) for way in ways]
    if feed is not None:
        helpers.append(asyncio.ensure_future(_feed(streams, feed, end=not run.tty)))
    if terminal is not None:
        helpers.append(asyncio.ensure_future(_follow_size(streams, terminal)))
    try:
        await process.started()
        exit_ = await process.exit()
        await asyncio.wait(sending, timeout=None if run.stdout or run.stderr else 0)
        return exit_.code
    except NotStarted as failed:
        code = _NOT_FOUND if "not found" in str(failed) or "no such file" in str(failed) else _CANNOT_RUN
        message = f"OCI runtime exec failed: exec failed: unable to start container process: {failed}: unknown"
        await streams.write_error(f"{message}\r\n".encode())
        return code
    except GuardLost as lost:
        raise KubeletRefusal(str(lost), 500, "InternalError") from None
    finally:
        process.kill()
        for task in (*helpers, *sending):
            task.cancel()
        await asyncio.gather(*helpers, *sending, return_exceptions=True)
        for way in ways:
            way.close()
        if feed is not None:
            feed.close()
        if terminal is not None:
            os.close(terminal)


async def _feed(streams: Streams, feed: Feed, *, end: bool) -> None:
    while data := await streams.read():
        await feed.write(data)
    if end:
        feed.close()


async def _follow_size(streams: Streams, terminal: int) -> None:
    while True:
        columns, rows = await streams.resized()
        set_size(terminal, columns, rows)


async def attach(running: Running | None, run: Run, streams: Streams) -> int:
    """Join a container's process. Raises KubeletRefusal."""
    if running is None or not running.runs or running.process is None or running.log is None:
        raise KubeletRefusal(f"container {run.container} is not running", 500, "InternalError")
    process, log, spec = running.process, running.log, running.known.spec
    queue: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()

    def tap(stream: str, data: bytes) -> None:
        if queue.qsize() < _ROOM * _ROOM:  # who does not listen misses something; the log has it
            queue.put_nowait((stream, data))

    async def send() -> None:
        while True:
            stream, data = await queue.get()
            if stream == "stderr" and run.stderr:
                await streams.write_error(data)
            elif stream == "stdout" and run.stdout:
                await streams.write(data)
            queue.task_done()

    helpers = [asyncio.ensure_future(send())]
    if run.stdin and running.stdin is not None:
        once = bool(spec.stdin_once) and not spec.tty
        helpers.append(asyncio.ensure_future(_feed(streams, running.stdin, end=once)))
    if run.tty and running.terminal is not None:
        helpers.append(asyncio.ensure_future(_follow_size(streams, running.terminal)))
    log.taps.append(tap)
    try:
        exit_ = await process.exit()
        await log.end()
        await queue.join()
        return exit_.code
    finally:
        log.taps.remove(tap)
        for task in helpers:
            task.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)


class _Socket:
    """A connection to a port of a Pod."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        with suppress(ConnectionError):
            return await self._reader.read(_PIECE)
        return b""

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def finish(self) -> None:
        with suppress(OSError):
            self._writer.write_eof()

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


async def connect(address: str, port: int, where: str) -> Connection:
    """Connect to a port of a Pod. Raises KubeletRefusal."""
    try:
        reader, writer = await asyncio.open_connection(address, port)
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        raise KubeletRefusal(
            f"error forwarding port {port} to pod {where}: dial tcp {address}:{port}: connect: {reason}; "
            "let it listen on 0.0.0.0 or on the Pod's own address",
            500,
            "InternalError",
        ) from None
    return _Socket(reader, writer)
