"""The kubelet's side of the guard: processes to start, to signal and to wait for.

What is promised: everything that was started ends when this process ends in whatever way, kill -9 included, and when
`stop` has returned. What is not: without namespaces, a process that left its group and whose guard was killed by
somebody may live on.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from flyball.controlplane.kubelet.process.launching import Launch
from flyball.errors import FlyballError

__all__ = ["Exit", "Guard", "GuardLost", "Isolation", "NotStarted", "Process"]

_PROGRAM: Final = Path(__file__).with_name("_guard.py")
_LENGTH: Final = struct.Struct("!I")
_ANSWERS: Final = 65536


class GuardLost(FlyballError):
    """The guard has ended, and with it everything that ran."""


class NotStarted(FlyballError):
    """A command could not be run. `step` is where: `exec` for the command itself, `cwd`, `start`, or
    `gone` when the container in which it should run has ended.
    """

    def __init__(self, message: str, step: str) -> None:
        """Say why."""
        super().__init__(message)
        self.step = step


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: its code, 128 + n for a signal, and whether its memory was the reason."""

    code: int
    oom: bool = False


@dataclass(frozen=True, slots=True)
class Isolation:
    """What of isolation works on this machine."""

    namespaces: bool
    """Mount, PID, UTS and IPC namespaces."""
    user: bool
    """They need a user namespace, in which there is one user only."""
    why: str
    """Why there are no namespaces."""
    cgroups: tuple[str, ...]
    """The resources that control groups limit."""


class Process:
    """Something that the guard was asked to start."""

    def __init__(self, guard: Guard, name: str) -> None:
        """Nothing is known of it yet."""
        loop = asyncio.get_running_loop()
        self._guard = guard
        self.name = name
        self.starting: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[Exit] = loop.create_future()
        """Done when everything in it has ended; cancelled when it was never started."""
        self.starting.add_done_callback(_looked_at)

    async def started(self) -> None:
        """Wait until the command runs. Raises NotStarted, GuardLost."""
        await asyncio.shield(self.starting)

    async def exit(self) -> Exit:
        """Wait until everything in it has ended."""
        return await asyncio.shield(self.ended)

    def signal(self, number: int) -> None:
        """Send a signal to the first process; harmless when it has ended."""
        if not self.ended.done():
            self._guard.order({"do": "signal", "id": self.name, "number": number})

    def kill(self) -> None:
        """End everything in it at once."""
        if not self.ended.done():
            self._guard.order({"do": "kill", "id": self.name})


def _looked_at(future: asyncio.Future[Any]) -> None:
    """Nobody need wait for it."""
    if not future.cancelled():
        future.exception()


class Guard:
    """Starts the guard with the first process, and speaks to it."""

    def __init__(self, folder: Path) -> None:
        """`folder` is for what passes between the two; only the owner may look into it."""
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._waiting: deque[tuple[bytes, list[int]]] = deque()
        self._known: dict[str, Process] = {}
        self._answers = b""
        self._isolation: asyncio.Future[Isolation] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def isolation(self) -> Isolation:
        """What works here; starts the guard."""
        self._begin()
        assert self._isolation is not None
        return await asyncio.shield(self._isolation)

    @property
    def pid(self) -> int:
        """The number of the guard's process; 0 when it does not run."""
        return self._process.pid if self._process is not None else 0

    def start(self, launch: Launch, stdin: int, stdout: int, stderr: int) -> Process:
        """Start a container; the descriptors are closed here."""
        return self._launch({"do": "start"}, launch, [stdin, stdout, stderr])

    def beside(self, container: Process, launch: Launch, stdin: int, stdout: int, stderr: int) -> Process:
        """Start a command in the surroundings of a container; the descriptors are closed here."""
        return self._launch({"do": "exec", "in": container.name}, launch, [stdin, stdout, stderr])

    def _launch(self, order: dict[str, Any], launch: Launch, ends: list[int]) -> Process:
        self._begin()
        process = Process(self, uuid4().hex)
        path = self._folder / f"{process.name}.json"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(launch.plain()).encode())
        self._known[process.name] = process
        self.order({**order, "id": process.name, "spec": str(path)}, ends)
        return process

    def order(self, order: dict[str, Any], ends: list[int] | None = None) -> None:
        """Send an order; it is sent in its turn when the guard has no ear for it now."""
        raw = json.dumps(order).encode()
        self._waiting.append((_LENGTH.pack(len(raw)) + raw, ends or []))
        self._send()

    def _begin(self) -> None:
        if self._socket is not None:
            return
        if self._process is not None:
            self._process.wait()  # it has closed its end, so it is about to end: another one takes its place
        (self._folder / "root").mkdir(parents=True, exist_ok=True)
        self._loop = asyncio.get_running_loop()
        self._isolation = self._loop.create_future()
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-I", "-S", str(_PROGRAM), str(theirs.fileno()), str(self._folder)]
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={"PATH": os.environ.get("PATH", "")},
            pass_fds=[theirs.fileno()],
            cwd="/",
        )
        theirs.close()
        ours.setblocking(False)
        self._socket = ours
        self._loop.add_reader(ours.fileno(), self._read)

    def _send(self) -> None:
        assert self._loop is not None
        while self._waiting:
            data, ends = self._waiting[0]
            if self._socket is None:
                sent = len(data)
            else:
                try:
                    sent = socket.send_fds(self._socket, [data], ends)
                except (BlockingIOError, InterruptedError):
                    self._loop.add_writer(self._socket.fileno(), self._send)
                    return
                except OSError:
                    self._lost()
                    return
            for end in ends:
                os.close(end)
            if sent < len(data):
                self._waiting[0] = (data[sent:], [])
            else:
                self._waiting.popleft()
        if self._socket is not None:
            self._loop.remove_writer(self._socket.fileno())

    def _read(self) -> None:
        if self._socket is None:
            return
        try:
            data = self._socket.recv(_ANSWERS)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._lost()
            return
        *lines, self._answers = (self._answers + data).split(b"\n")
        for line in lines:
            self._hear(json.loads(line))

    def _hear(self, word: dict[str, Any]) -> None:
        if "hello" in word:
            told = word["hello"]
            assert self._isolation is not None
            if not self._isolation.done():
                self._isolation.set_result(
                    Isolation(bool(told["namespaces"]), bool(told["user"]), told["why"], tuple(told["cgroups"]))
                )
            return
        process = self._known.get(word["id"])
        if process is None:
            return
        if word["is"] == "started":
            _resolve(process.starting, None)
            return
        del self._known[word["id"]]
        if word["is"] == "refused":
            if not process.starting.done():
                process.starting.set_exception(NotStarted(word["message"], word["step"]))
            process.ended.cancel()
        else:
            _resolve(process.starting, None)
            _resolve(process.ended, Exit(word["code"], word["oom"]))

    def _lost(self) -> None:
        """Take note of the guard's end: nothing runs any more."""
        if self._socket is not None and self._loop is not None:
            self._loop.remove_reader(self._socket.fileno())
            self._loop.remove_writer(self._socket.fileno())
            self._socket.close()
            self._socket = None
        for _, ends in self._waiting:
            for end in ends:
                os.close(end)
        self._waiting.clear()
        self._answers = b""
        if self._isolation is not None and not self._isolation.done():
            self._isolation.add_done_callback(_looked_at)
            self._isolation.set_exception(GuardLost("the guard of processes did not start; see its words on stderr"))
        for process in self._known.values():
            if not process.starting.done():
                process.starting.set_exception(GuardLost("the guard of processes has ended"))
            _resolve(process.ended, Exit(128 + signal.SIGKILL))
        self._known.clear()

    async def stop(self) -> None:
        """End everything; return when nothing is left."""
        process = self._process
        if process is None:
            return
        self._lost()
        await asyncio.to_thread(process.wait)
        self._process = None
        with suppress(OSError):
            (self._folder / "root").rmdir()


def _resolve(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)
