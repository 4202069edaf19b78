"""What the API server asks of whoever runs the Pods of a node, and who that is.

The server knows objects, not processes. For the log of a container, for `exec`, `attach` and `port-forward` it turns to
the `Kubelet` of the Pod's node, which registers itself in `Kubelets` under the node's name when it starts and takes
itself out when it stops. A kubelet that cannot do what it is asked for raises `KubeletRefusal`; the server answers the
client with its code and message. A Pod whose node has no kubelet here is answered as upstream answers for a node that
cannot be reached.

The server checks what is asked before it asks: the Pod is there, the container is one of the Pod's, the options are
sound. Kubelets get the stored Pod as plain values.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

__all__ = ["Connection", "Kubelet", "KubeletRefusal", "Kubelets", "LogOptions", "Run", "Streams"]

Pod = Mapping[str, Any]


class KubeletRefusal(Exception):
    """A kubelet cannot do this: `code` and the message go to the client as a Status."""

    def __init__(self, message: str, code: int = 400, reason: str = "BadRequest") -> None:
        """Say why."""
        super().__init__(message)
        self.code = code
        self.reason = reason


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Which part of a container's log is wanted."""

    container: str
    follow: bool = False
    previous: bool = False
    tail_lines: int | None = None
    since: datetime | None = None
    timestamps: bool = False
    limit_bytes: int | None = None
    stream: str = "All"
    """`All`, `Stdout` or `Stderr`."""


@dataclass(frozen=True, slots=True)
class Run:
    """What is to be run in a container (`exec`), or what is wanted of its main process (`attach`: no command)."""

    container: str
    command: tuple[str, ...] = ()
    stdin: bool = False
    stdout: bool = True
    stderr: bool = True
    tty: bool = False


class Streams(Protocol):
    """The client's end of an `exec` or `attach`.

    `read` gives what the client typed, and `b""` when it will type no more (at once, when stdin was not asked for).
    `write` and `write_error` return when the client's side has room again. `resized` gives the size of the client's
    terminal, columns and rows, each time it changes; it never returns when there is no terminal. When the client goes
    away, the task that runs the call is cancelled: what it started must end then.
    """

    async def read(self) -> bytes: ...
    async def write(self, data: bytes) -> None: ...
    async def write_error(self, data: bytes) -> None: ...
    async def resized(self) -> tuple[int, int]: ...


class Connection(Protocol):
    """One connection to a port of a Pod. `read` gives `b""` at the end; `finish` says that nothing more is written."""

    async def read(self) -> bytes: ...
    async def write(self, data: bytes) -> None: ...
    async def finish(self) -> None: ...
    async def close(self) -> None: ...


class Kubelet(Protocol):
    """Whoever runs the Pods of a node."""

    def logs(self, pod: Pod, options: LogOptions) -> AsyncIterator[bytes]:
        """Give the log in parts; followed, until the container ends.

        The first part may raise `KubeletRefusal`. A followed log that has nothing yet begins with an empty part, so
        that the client is answered at once. The server has refused already, by the Pod's status, what has not started
        or has no earlier run.
        """
        ...

    async def exec(self, pod: Pod, run: Run, streams: Streams) -> int:
        """Run a command beside the container's process; return its exit code, 128 + n for a signal."""
        ...

    async def attach(self, pod: Pod, run: Run, streams: Streams) -> int:
        """Join the container's process; return its exit code when it ends."""
        ...

    async def connect(self, pod: Pod, port: int) -> Connection:
        """Connect to a port of the Pod."""
        ...


class Kubelets:
    """The kubelets of a cluster, by the names of their nodes."""

    def __init__(self) -> None:
        """Nobody is there yet."""
        self._known: dict[str, Kubelet] = {}

    def register(self, node: str, kubelet: Kubelet) -> None:
        """Let a kubelet answer for a node."""
        self._known[node] = kubelet

    def leave(self, node: str, kubelet: Kubelet) -> None:
        """Let it answer no more; harmless when another one has taken its place."""
        if self._known.get(node) is kubelet:
            del self._known[node]

    def of(self, node: str) -> Kubelet | None:
        """Return who answers for a node."""
        return self._known.get(node)
