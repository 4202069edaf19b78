r"""Commands in containers.

    done = await client.exec("web-0", ["ls", "-l"])              # runs to its end: exit code, stdout, stderr
    print(done.exit_code, done.text)

    async with client.exec("web-0", ["sh"], stdin=True, tty=True) as shell:
        await shell.write("ls\n")
        async for part in shell.stdout: ...

Awaited, a command runs to its end and its output is kept in memory; entered, it is a `Process` to talk with. Leaving
the block before its end makes the kubelet end it. `attach` is the same with the process that the container runs anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, cast

from flyball.client.kinds import Ref
from flyball.client.refusals import RefusedRequest
from flyball.client.session import Session
from flyball.client.transport import HttpRequest, Upgraded
from flyball.errors import CommandFailed, ConnectionLost, MalformedAnswer, error_from_status
from flyball.framing import WebSocket
from flyball.framing.channels import CLOSE, ERROR, STDERR, STDIN, STDOUT, V4, V5, outcome, size_message
from flyball.framing.pipes import Pipe

__all__ = ["Exec", "ExecResult", "Output", "Process"]

_ROOM: Final = 1 << 20
_MESSAGE: Final = 32 << 10


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a command ended, and what it wrote."""

    exit_code: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """What it wrote to its standard output; bytes that are not UTF-8 are shown as U+FFFD."""
        return self.stdout.decode("utf-8", "replace")


class Output(Pipe):
    """What a process writes to one of its streams, as it comes; of one reader at a time.

    A stream that nobody reads holds the other one up when about a megabyte of it has come: read both, or ask for one.
    """

    def __init__(self) -> None:
        super().__init__(_ROOM)


class Process:
    """A process in a container, while it runs; what `async with client.exec(...)` gives."""

    def __init__(self, answer: Upgraded, action: str, host: str, given: bytes | None = None) -> None:
        self.stdout = Output()
        """What it writes; with a terminal, all that is shown there."""
        self.stderr = Output()
        self._answer = answer
        self._socket: WebSocket = answer.socket
        self._action = action
        self._host = host
        self._exit: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._tasks = [asyncio.ensure_future(self._listen())]
        if given is not None:
            self._tasks.append(asyncio.ensure_future(self._feed(given)))

    async def write(self, data: bytes | str) -> None:
        """Type something; returns when the server has room for more. Raises ConnectionLost when it is of no use."""
        raw = data.encode() if isinstance(data, str) else data
        for start in range(0, len(raw), _MESSAGE):
            await self._send(bytes([STDIN]) + raw[start : start + _MESSAGE])

    async def finish(self) -> None:
        """Say that nothing more will be typed. Refused where the server is too old to be told (before 1.30)."""
        if self._socket.protocol != V5:
            raise RefusedRequest(
                f"{self._action}: the server speaks {self._socket.protocol}, in which the end of input cannot be told; "
                "let the command end by itself (`head -c`, a last line), or use a server of 1.30 or newer"
            )
        await self._send(bytes([CLOSE, STDIN]))

    async def resize(self, columns: int, rows: int) -> None:
        """Tell the size of the terminal."""
        await self._send(size_message(columns, rows))

    async def wait(self) -> int:
        """Wait for the end; returns the exit code. What it wrote can still be read then.

        Raises the server's refusal where nothing was run, and ConnectionLost where the end will never be known.
        """
        return await asyncio.shield(self._exit)

    async def close(self) -> None:
        """Leave; a command that still runs is ended by its kubelet."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._exit.done():
            self._exit.exception()  # nobody has to ask
        await self._answer.close()

    async def _feed(self, data: bytes) -> None:
        try:
            await self.write(data)
            await self.finish()
        except ConnectionLost:
            return  # it did not want to read it all; how it ended is told elsewhere

    async def _send(self, message: bytes) -> None:
        try:
            await self._socket.send(message)
        except ConnectionError:
            raise self._lost("the process takes no more input") from None

    async def _listen(self) -> None:
        try:
            while (message := await self._socket.receive()) is not None:
                if len(message) > 1:
                    await self._take(message[0], message[1:])
        finally:
            if not self._exit.done():
                self._exit.set_exception(self._lost("the connection ended before the process did"))
            self.stdout.end()
            self.stderr.end()

    async def _take(self, channel: int, data: bytes) -> None:
        if channel == STDOUT:
            await self.stdout.feed(data)
        elif channel == STDERR:
            await self.stderr.feed(data)
        elif channel == ERROR and not self._exit.done():
            try:
                told = outcome(data)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                why = f"the outcome cannot be read ({error}); check what stands between here and the server"
                self._exit.set_exception(MalformedAnswer(why, host=self._host, action=self._action))
                return
            if isinstance(told, int):
                self._exit.set_result(told)
            else:
                self._exit.set_exception(error_from_status(told, action=self._action, host=self._host))

    def _lost(self, why: str) -> ConnectionLost:
        told = f"{why}; look whether the Pod still runs, and try again"
        return ConnectionLost(told, host=self._host, action=self._action)


class Exec:
    """A command that runs when this is awaited or entered; each time anew."""

    def __init__(
        self,
        session: Session,
        ref: Ref[Any],
        namespace: str | None,
        *,
        command: Sequence[str] | None,
        container: str | None,
        stdin: bytes | str | bool,
        tty: bool,
        check: bool,
        timeout: float | None,
    ) -> None:
        if isinstance(command, str):
            told = "there is no shell between; give a list of words, or ['sh', '-c', command]"
            raise RefusedRequest(f"exec in {ref.kind.word} {ref.name}: the command is one text: {told}")
        if command is not None and not command:
            raise RefusedRequest(f"exec in {ref.kind.word} {ref.name}: there is no command; name the program to run")
        self._session = session
        self._ref = ref
        self._namespace = namespace
        self._command = command
        self._stdin = stdin.encode() if isinstance(stdin, str) else stdin
        self._check = check
        self._timeout = timeout
        switches = {"stdin": self._wants_input, "stdout": True, "stderr": not tty, "tty": tty}
        self._query = (
            *(("command", word) for word in command or ()),
            *((("container", container),) if container else ()),
            *((name, "true") for name, wanted in switches.items() if wanted),
        )
        self._process: Process | None = None

    @property
    def _wants_input(self) -> bool:
        return self._stdin is not False

    def __await__(self) -> Generator[Any, None, ExecResult]:
        return self._run().__await__()

    async def __aenter__(self) -> Process:
        if self._process is not None:
            raise RefusedRequest("this process has been entered already; make another one")
        self._process = await self._start()
        return self._process

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.close()

    async def _run(self) -> ExecResult:
        if self._stdin is True:
            raise RefusedRequest(
                "nobody could type while this is awaited; give stdin=b'...', or use `async with` and write"
            )
        process = await self._start()
        try:
            out, err = await asyncio.gather(process.stdout.read_all(), process.stderr.read_all())
            result = ExecResult(await process.wait(), out, err)
        finally:
            await process.close()
        if self._check and result.exit_code:
            raise CommandFailed((await self._request(()))[0].action, result.exit_code, result.stdout, result.stderr)
        return result

    async def _start(self) -> Process:
        given = self._stdin if isinstance(self._stdin, bytes) else None
        # Where input must end, only a version that can tell so will do: nothing is run that could not finish.
        protocols = (V5, V4) if given is None else (V5,)
        request, where = await self._request(protocols)
        if self._session.options.dry_run:
            raise RefusedRequest(f"{request.action}: a dry-run client runs nothing; use a client without dry_run")
        answer = await self._session.open(request)
        socket: WebSocket | None = getattr(answer, "socket", None)
        if socket is None or socket.protocol not in protocols:
            await answer.close()
            why = "the server made no websocket of the connection; look at the proxies on the way"
            raise MalformedAnswer(why, host=where, action=request.action)
        return Process(cast("Upgraded", answer), request.action, where, given)

    async def _request(self, protocols: tuple[str, ...]) -> tuple[HttpRequest, str]:
        target = await self._session.one(self._ref, self._namespace)
        verb, path = ("attach to", "attach") if self._command is None else ("exec in", "exec")
        what = f": {' '.join(self._command)}"[:80] if self._command else ""
        request = self._session.request(
            "GET",
            target.path(path),
            action=f"{verb} {target.words}{what}",
            query=self._query,
            accept="application/json, */*",
            timeout=self._timeout,
            upgrade=protocols,
        )
        return request, self._session.transport.host
