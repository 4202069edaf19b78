"""Commands beside a container's process (`exec`), and that process itself (`attach`), over channels of a WebSocket."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from flyball.controlplane.apiserver.kubelets import KubeletRefusal, Pod, Run, Streams
from flyball.controlplane.apiserver.request import Answer, Request
from flyball.controlplane.apiserver.status import bad_request, internal, method_not_allowed
from flyball.controlplane.apiserver.streaming.handshake import upgraded
from flyball.controlplane.apiserver.streaming.logs import refused
from flyball.controlplane.apiserver.streaming.old_commands import as_channels
from flyball.controlplane.apiserver.streaming.parameters import truth
from flyball.controlplane.apiserver.streaming.places import Running, running
from flyball.controlplane.apiserver.writing import Target
from flyball.framing import WebSocket
from flyball.framing.channels import CLOSE, ERROR, RESIZE, STDERR, STDIN, STDOUT, V4, V5, exit_status, read_size
from flyball.framing.pipes import Pipe

if TYPE_CHECKING:
    from flyball.controlplane.apiserver.server import ApiServer

__all__ = ["attach", "execute"]

_log = logging.getLogger("flyball.apiserver.streaming")

_PROTOCOLS: Final = (V5, V4)
_INPUT_ROOM: Final = 64 << 10
_MESSAGE: Final = 1 << 20

Work = Callable[[Pod, Run, Streams], Awaitable[int]]


async def execute(server: ApiServer, request: Request, target: Target) -> Answer:
    """Run a command in a container."""
    place = _place(server, request, target)
    run = _run(request, place.container, request.every("command"))
    return _answer(request, place.pod, run, place.kubelet.exec, needs_command=True)


async def attach(server: ApiServer, request: Request, target: Target) -> Answer:
    """Join the process of a container."""
    place = _place(server, request, target)
    return _answer(request, place.pod, _run(request, place.container, ()), place.kubelet.attach, needs_command=False)


def _place(server: ApiServer, request: Request, target: Target) -> Running:
    if request.method not in ("GET", "POST"):
        raise method_not_allowed()
    return running(server, target, request.first("container"))


def _run(request: Request, container: str, command: Sequence[str]) -> Run:
    tty = truth(request, "tty")
    return Run(
        container,
        tuple(command),
        stdin=truth(request, "stdin"),
        stdout=truth(request, "stdout"),
        stderr=truth(request, "stderr") and not tty,  # a terminal has one output
        tty=tty,
    )


def _answer(request: Request, pod: Pod, run: Run, work: Work, *, needs_command: bool) -> Answer:
    def talk(socket: WebSocket) -> Awaitable[None]:
        return _Channels(socket, run).carry(work, pod)

    def old_talk(socket: WebSocket) -> Awaitable[None]:
        switches = {STDIN: run.stdin, STDOUT: run.stdout, STDERR: run.stderr, ERROR: True, RESIZE: run.tty}
        return as_channels(socket, [channel for channel, wanted in switches.items() if wanted], talk)

    answer = upgraded(request, _PROTOCOLS, talk, old_protocol=V4, old_talk=old_talk)
    if not run.command and needs_command:
        raise bad_request("you must specify at least one command for the container")
    if not (run.stdin or run.stdout or run.stderr):
        raise bad_request("you must specify at least 1 of stdin, stdout, stderr")
    return answer


class _Channels:
    """The `Streams` of one run; what the client types is kept until the command reads it, up to a limit."""

    def __init__(self, socket: WebSocket, run: Run) -> None:
        self._socket = socket
        self._run = run
        self._gone = False
        self._input = Pipe(_INPUT_ROOM)
        if not run.stdin:
            self._input.end()
        self._resized = asyncio.Event()
        self._size: tuple[int, int] | None = None
        self._size_told: tuple[int, int] | None = None

    async def carry(self, work: Work, pod: Pod) -> None:
        """Let the kubelet work until it is done or the client has gone; tell the client how it ended."""
        lowest = STDOUT if self._run.stdout else STDERR if self._run.stderr else ERROR
        listening = asyncio.ensure_future(self._listen())
        working: asyncio.Future[dict[str, Any]] | None = None
        try:
            await self._send(lowest, b"")  # clients take this as the news that all is set up
            working = asyncio.ensure_future(self._work(work, pod))
            await asyncio.wait({working, listening}, return_when=asyncio.FIRST_COMPLETED)
            if working.done() and not self._gone:
                await self._send(ERROR, json.dumps(working.result()).encode())
        except ConnectionResetError:
            _log.debug("the client has gone: nobody is left to be told how %s ended", self._run)
        finally:
            await _ended(working, listening)

    async def _work(self, work: Work, pod: Pod) -> dict[str, Any]:
        """Let the kubelet work, and return the Status of how it ended."""
        try:
            return exit_status(await work(pod, self._run, self))
        except KubeletRefusal as refusal:
            return refused(refusal).body()
        except Exception:
            if not self._gone:
                _log.exception("a kubelet failed at %s", self._run)
            return internal("an error in the kubelet; the log of the server says where").body()

    # What the kubelet asks for

    async def read(self) -> bytes:
        return await self._input.read()

    async def write(self, data: bytes) -> None:
        if self._run.stdout and data:
            await self._send(STDOUT, data)

    async def write_error(self, data: bytes) -> None:
        if self._run.stderr and data:
            await self._send(STDERR, data)

    async def resized(self) -> tuple[int, int]:
        while not self._run.tty or self._size is None or self._size == self._size_told:
            self._resized.clear()
            await self._resized.wait()
        self._size_told = self._size
        return self._size

    async def _send(self, channel: int, data: bytes) -> None:
        head = bytes([channel])
        try:
            for start in range(0, len(data) or 1, _MESSAGE):
                await self._socket.send(head + data[start : start + _MESSAGE])
        except ConnectionResetError:
            self._gone = True
            raise

    # What the client sends

    async def _listen(self) -> None:
        """Take what the client sends, until it has gone."""
        while True:
            message = await self._socket.receive()
            if message is None:
                return
            await self._take(message)

    async def _take(self, message: bytes) -> None:
        if not message:
            return
        channel, data = message[0], message[1:]
        if channel == STDIN:
            await self._input.feed(data)
        elif channel == RESIZE:
            self._size = read_size(data) or self._size
            self._resized.set()
        elif channel == CLOSE and data == bytes([STDIN]) and self._socket.protocol == V5:
            self._input.end()


async def _ended(*tasks: asyncio.Future[Any] | None) -> None:
    """Cancel what is still under way, once, and wait for its end, even for somebody who is cancelled again.

    A client may go just when the server stops; what a kubelet does at the end must not be cut short by that.
    """
    known = [task for task in tasks if task is not None]
    for task in known:
        task.cancel()
    again: asyncio.CancelledError | None = None
    while not all(task.done() for task in known):
        try:
            await asyncio.wait(known)
        except asyncio.CancelledError as cancelled:
            again = cancelled
    await asyncio.gather(*known, return_exceptions=True)  # nobody has to ask how they ended
    if again is not None:
        raise again
