"""The process that owns a control plane's programs, so that they end with the test run, however it ends.

It is started as a file, needs only the standard library, and obeys lines of JSON on its standard input:

    {"start": NAME, "command": [...], "log": PATH, "environment": {...}}   -> {"pid": N}
    {"stop": NAME, "seconds": S}                                           -> {"code": N}  SIGTERM, later SIGKILL
    {"kill": NAME}                                                         -> {"code": N}  SIGKILL
    {"poll": NAME}                                                         -> {"code": N | null}

It ends, and everything it started ends with it, when its input is closed or when the process that started it dies in
any way, kill -9 included. The two are watched by file descriptors (the pipe; a pidfd), never by a parent-death signal:
that one fires when the *thread* that forked ends, and who starts a supervisor may do so from a thread. The programs
themselves are started from this process's only thread, so for them the parent-death signal is right: they die even when
the supervisor is killed. The last started program ends first. A folder named by the second argument is removed at the
end.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
PARENT_CHECK_SECONDS = 0.5

running: dict[str, subprocess.Popen[bytes]] = {}


def main() -> None:
    """Obey until the parent is gone."""
    parent, folder = int(sys.argv[1]), sys.argv[2]
    for name in ("SIGINT", "SIGHUP", "SIGPIPE"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    try:
        _obey(parent)
    finally:
        _end_all()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _stop(number: int, frame: object) -> None:
    sys.exit(128 + number)


def _obey(parent: int) -> None:
    parent_gone = _watch(parent)
    waited_for: list[int] = [0] if parent_gone is None else [0, parent_gone]
    pending = b""
    while True:
        if os.getppid() != parent:
            return
        ready, _, _ = select.select(waited_for, [], [], PARENT_CHECK_SECONDS if parent_gone is None else None)
        if parent_gone in ready:
            return
        if 0 not in ready:
            continue
        chunk = os.read(0, 65536)
        if not chunk:
            return
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            os.write(1, json.dumps(_answer(json.loads(line))).encode() + b"\n")


def _watch(process: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where the system has none."""
    if not hasattr(os, "pidfd_open"):
        return None
    with contextlib.suppress(OSError):
        return os.pidfd_open(process)
    return None


def _answer(order: dict[str, Any]) -> dict[str, Any]:
    try:
        if "start" in order:
            return {"pid": _start(order)}
        if "stop" in order:
            return {"code": _end(order["stop"], order.get("seconds", 10.0))}
        if "kill" in order:
            return {"code": _end(order["kill"], 0)}
        process = running.get(order["poll"])
        return {"code": None if process is None else process.poll()}
    except OSError as error:
        return {"error": str(error)}


def _start(order: dict[str, Any]) -> int:
    with Path(order["log"]).open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 (what to run is the owner's choice)
            order["command"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=os.environ | order.get("environment", {}),
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,
        )
    running[order["start"]] = process
    return process.pid


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for name in ("SIGINT", "SIGHUP", "SIGPIPE"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)


def _end(name: str, seconds: float) -> int | None:
    process = running.pop(name, None)
    if process is None:
        return None
    if seconds > 0 and process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(seconds)
    process.kill()
    return process.wait()


def _end_all() -> None:
    """Nobody needs what they would still write: the last started ends first, at once."""
    for name in reversed(list(running)):
        _end(name, 0)
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                break
        except ChildProcessError:
            break


if __name__ == "__main__":
    main()
