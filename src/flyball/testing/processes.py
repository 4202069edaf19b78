"""Programs that end with the process that started them, however it ends.

    with Supervisor(folder) as supervisor:
        supervisor.start("etcd", [...], log=folder / "etcd.log")

`Supervisor` guarantees: nothing it started outlives the process that made it, kill -9 included; Ctrl-C in a terminal
does not reach the programs before their owner has said so; one order at a time, from any thread. It does not restart
anything.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from flyball.errors import FlyballError

__all__ = ["ProcessError", "Supervisor", "free_port"]

_SCRIPT = Path(__file__).with_name("_supervisor.py")
_STOP_SECONDS = 10.0


class ProcessError(FlyballError):
    """A program could not be started, or ended when it should not."""


class Supervisor:
    """Starts and ends programs through a small process that outlives a kill -9 just long enough to clean up."""

    def __init__(self, folder_to_remove: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._logs: dict[str, Path] = {}
        self._pids: dict[str, int] = {}
        self._process = subprocess.Popen(  # noqa: S603 (our own script)
            [sys.executable, "-I", "-S", str(_SCRIPT), str(os.getpid()), str(folder_to_remove or "")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The supervising process itself."""
        return self._process.pid

    @property
    def pids(self) -> dict[str, int]:
        """The process ids of the programs, by name, as they were last started."""
        return dict(self._pids)

    def start(
        self, name: str, command: Sequence[str], *, log: Path, environment: Mapping[str, str] | None = None
    ) -> int:
        """Start a program under a name of its own; its output is appended to the log. Gives its process id."""
        self._logs[name] = log
        order = {"start": name, "command": list(command), "log": str(log), "environment": dict(environment or {})}
        self._pids[name] = int(self._ask(order)["pid"])
        return self._pids[name]

    def stop(self, name: str, seconds: float = _STOP_SECONDS) -> int | None:
        """Ask a program to end (SIGTERM), insist after some seconds. Gives its exit code, None if it was not there."""
        code: int | None = self._ask({"stop": name, "seconds": seconds})["code"]
        return code

    def kill(self, name: str) -> int | None:
        """End a program at once, as a crash would (SIGKILL)."""
        code: int | None = self._ask({"kill": name})["code"]
        return code

    def exit_code(self, name: str) -> int | None:
        """The exit code of a program that ended by itself; None while it runs or when it was never started."""
        code: int | None = self._ask({"poll": name})["code"]
        return code

    def check(self, name: str) -> None:
        """Raise ProcessError with the last lines of the log when the program has ended."""
        code = self.exit_code(name)
        if code is not None:
            raise ProcessError(f"{name} ended with exit code {code}; the end of its log:\n{self.log_end(name)}")

    def log_end(self, name: str, lines: int = 15) -> str:
        """The last lines that a program wrote."""
        log = self._logs.get(name)
        if log is None or not log.is_file():
            return "(no log)"
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])

    def close(self) -> None:
        """End everything that still runs, the last started first."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        into, out = self._process.stdin, self._process.stdout
        if into is None or out is None or into.closed:
            raise ProcessError("the supervisor is closed")
        with self._lock:
            try:
                into.write(json.dumps(order).encode() + b"\n")
                into.flush()
            except BrokenPipeError:
                raise ProcessError(f"the supervisor (process {self.pid}) is gone") from None
            line = out.readline()
        if not line:
            raise ProcessError(f"the supervisor (process {self.pid}) is gone")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ProcessError(f"{order.get('start') or order}: {answer['error']}")
        return answer


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
