"""The back door of a running cluster: what its owner may do that is no business of the API, such as turning the clock.

A socket file that only its owner may open, in a folder that only its owner may enter. One line of JSON is a request,
one line the answer: `{"do": "now"}` and `{"do": "advance", "seconds": 600}` are answered by the time in the cluster
and the seconds by which its clock was turned, anything else by `{"error": "..."}`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from flyball.clock import TurnableClock
from flyball.errors import ConfigError

__all__ = ["AdminAnswer", "AdminDoor", "ask", "socket_of"]

_LONGEST_TURN: Final = 100 * 365 * 86_400.0
_LINE: Final = 65_536
_CONNECT_SECONDS: Final = 10.0


class AdminAnswer(msgspec.Struct, frozen=True):
    """What the clock of the cluster shows."""

    now: datetime
    turned: float
    """Seconds by which it was turned since the cluster was started."""


class _Asked(msgspec.Struct, forbid_unknown_fields=True):
    do: str
    seconds: float = 0.0


def socket_of(port: int, environ: Mapping[str, str] = os.environ) -> Path:
    """Return where the socket of the cluster lies that listens at a port. Raises ConfigError."""
    runtime = environ.get("XDG_RUNTIME_DIR")
    folder = Path(runtime) / "flyball" if runtime else Path(tempfile.gettempdir()) / f"flyball-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, parents=False, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise ConfigError(f"make the folder {folder}: {error.strerror or error}; set XDG_RUNTIME_DIR") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise ConfigError(f"{folder}: others can get at what lies there; remove it, or set XDG_RUNTIME_DIR")
    return folder / f"admin-{port}.sock"


class AdminDoor:
    """Answers on a socket file while the block lasts."""

    def __init__(self, clock: TurnableClock, path: Path) -> None:
        """Nothing is opened yet."""
        self._clock = clock
        self._path = path
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        """Open it; a file that a dead process has left is removed. Raises ConfigError."""
        listening = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            _remove_dead(self._path)
            listening.bind(str(self._path))
        except OSError as error:
            listening.close()
            raise ConfigError(f"listen on {self._path}: {error.strerror or error}; set XDG_RUNTIME_DIR") from None
        finally:
            os.umask(before)
        self._server = await asyncio.start_unix_server(self._serve, sock=listening, limit=_LINE)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it, and remove the file."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answer = await self._answer(await reader.readline())
            writer.write(msgspec.json.encode(answer) + b"\n")
            await writer.drain()
        except (ConnectionError, ValueError):
            pass  # it went away, or sent more than a line can hold
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> AdminAnswer | dict[str, Any]:
        try:
            asked = msgspec.json.decode(line, type=_Asked)
        except msgspec.MsgspecError as error:
            return {"error": f"this is no request: {error}"}
        if asked.do == "advance":
            if not 0 <= asked.seconds <= _LONGEST_TURN:
                return {"error": f"turn the clock by {asked.seconds:g} s: it goes forward only, 100 years at most"}
            await self._clock.advance(asked.seconds)
        elif asked.do != "now":
            return {"error": f"{asked.do!r} is not done here; there are advance and now"}
        return AdminAnswer(self._clock.now(), self._clock.turned)


def _remove_dead(path: Path) -> None:
    """Remove a socket file at which nobody answers."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX) as tried:
        try:
            tried.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)


def ask(path: Path, request: dict[str, Any]) -> AdminAnswer:
    """Ask the cluster behind a socket file, and wait for the answer. Raises ConfigError."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_CONNECT_SECONDS)
        try:
            connection.connect(str(path))
            connection.settimeout(None)
            connection.sendall(msgspec.json.encode(request) + b"\n")
            with connection.makefile("rb") as answers:
                line = answers.readline()
        except OSError as error:
            told = f"no cluster of yours answers at {path} ({error.strerror or error})"
            raise ConfigError(f"{told}; is it one of `flyball up` on this machine, and does it run?") from None
    try:
        found = msgspec.json.decode(line)
        if isinstance(found, dict) and "error" in found:
            raise ConfigError(str(found["error"]))
        return msgspec.convert(found, AdminAnswer)
    except msgspec.MsgspecError:
        raise ConfigError(f"what answers at {path} is no cluster of this version; stop it, and start one") from None
