"""Open streams for programs without an event loop: what `flyball.sync` gives where the client gives `async with`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, Protocol, TypeVar

from flyball.client.forwarding import LocalPort, PortForward
from flyball.client.processes import Exec, Output, Process
from flyball.client.refusals import RefusedRequest

__all__ = ["BlockingOutput", "BlockingPortForward", "BlockingProcess", "Wait"]

A = TypeVar("A")


class Wait(Protocol):
    """Runs a coroutine in the client's event loop and waits for what it gives."""

    def __call__(self, work: Coroutine[Any, Any, A], /) -> A: ...


class BlockingOutput:
    """What a process writes to one of its streams: iterate it, or `read`."""

    def __init__(self, output: Callable[[], Output], wait: Wait) -> None:
        self._output = output
        self._wait = wait

    def read(self) -> bytes:
        """Whatever has come, at least one byte; `b""` at the end."""
        return self._wait(self._output().read())

    def read_all(self) -> bytes:
        """All that comes until the end."""
        return self._wait(self._output().read_all())

    def __iter__(self) -> Iterator[bytes]:
        """Give what comes, as it comes."""
        while data := self.read():
            yield data


class BlockingProcess:
    """A process in a container, to be used in `with`; as `flyball.client.Process`, waiting for each step."""

    def __init__(self, start: Exec, wait: Wait) -> None:
        self._start = start
        self._wait = wait
        self._entered: Process | None = None
        self.stdout = BlockingOutput(lambda: self._process.stdout, wait)
        """What it writes; with a terminal, all that is shown there."""
        self.stderr = BlockingOutput(lambda: self._process.stderr, wait)

    def __enter__(self) -> BlockingProcess:
        self._entered = self._wait(self._start.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered = None
        self._wait(self._start.__aexit__(kind, error, trace))

    @property
    def _process(self) -> Process:
        if self._entered is None:
            raise RefusedRequest("the process runs only within `with`; enter it first")
        return self._entered

    def write(self, data: bytes | str) -> None:
        """Type something."""
        self._wait(self._process.write(data))

    def finish(self) -> None:
        """Say that nothing more will be typed."""
        self._wait(self._process.finish())

    def resize(self, columns: int, rows: int) -> None:
        """Tell the size of the terminal."""
        self._wait(self._process.resize(columns, rows))

    def wait(self) -> int:
        """Wait for the end; returns the exit code."""
        return self._wait(self._process.wait())


class BlockingPortForward:
    """A port of this machine, on loopback, behind which the port of a Pod lies while the `with` block runs."""

    def __init__(self, forward: PortForward, wait: Wait) -> None:
        self._forward = forward
        self._wait = wait

    def __enter__(self) -> LocalPort:
        return self._wait(self._forward.__aenter__())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wait(self._forward.__aexit__(kind, error, trace))
