"""The log of one run of a container: files of a bounded size, and readers that may follow.

Each line is written as the kubelet's container runtimes do: `TIME STREAM TAG TEXT`, TIME in RFC 3339 with nanoseconds,
TAG `F` for a whole line and `P` for the beginning of one that is too long or not ended yet. When a file is full a new
one is begun; with `files` of them the oldest goes. So a container that writes for ever takes no more room than
`files x size`, and readers that are too slow lose the oldest lines, as on a node.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from flyball.clock import Clock
from flyball.controlplane.apiserver.kubelets import LogOptions

__all__ = ["Bounds", "Log", "read_log"]

_LONGEST: Final = 16 * 1024
_BLOCK: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of a log is kept."""

    size: int = 10 * 1024 * 1024
    files: int = 2


class Line(NamedTuple):
    """One line of a file."""

    time: bytes
    stream: bytes
    whole: bool
    text: bytes


def _parse(raw: bytes) -> Line:
    time, stream, tag, text = raw.split(b" ", 3)
    return Line(time, stream, tag == b"F", text)


def stamp(moment: datetime) -> str:
    """Return a time as logs have it.

    >>> stamp(datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC))
    '2026-01-02T03:04:05.000006000Z'
    """
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}000Z"


class Log:
    """What one run of a container has written. Belongs to one event loop."""

    def __init__(self, path: Path, clock: Clock, bounds: Bounds) -> None:
        """Begin a log at `path`; older parts get a number behind it."""
        self.path = path
        self._clock = clock
        self._bounds = bounds
        self._file: BinaryIO | None = path.open("wb")
        self.written = 0
        """Bytes ever written."""
        self._starts = [0]
        """Where each file begins that is still there, in bytes ever written; the last one is `path` itself."""
        self._begun: dict[str, bytes] = {}
        self._bell = asyncio.Event()
        self._end = asyncio.Event()
        self.closed = False
        self.taps: list[Callable[[str, bytes], None]] = []
        """Called with each piece of output as it comes."""

    def write(self, stream: str, data: bytes) -> None:
        """Write what came on a stream (`stdout` or `stderr`)."""
        for tap in self.taps:
            tap(stream, data)
        now = stamp(self._clock.now()).encode() + b" " + stream.encode()
        *lines, rest = (self._begun.pop(stream, b"") + data).split(b"\n")
        out: list[bytes] = []
        for line in lines:
            while len(line) > _LONGEST:
                out.append(b"%b P %b\n" % (now, line[:_LONGEST]))
                line = line[_LONGEST:]
            out.append(b"%b F %b\n" % (now, line))
        while len(rest) >= _LONGEST:
            out.append(b"%b P %b\n" % (now, rest[:_LONGEST]))
            rest = rest[_LONGEST:]
        if rest:
            self._begun[stream] = rest
        self._append(out)

    def close(self) -> None:
        """Write what has no end of line, and let readers come to the end."""
        if self.closed:
            return
        now = stamp(self._clock.now()).encode()
        self._append([b"%b %b P %b\n" % (now, name.encode(), rest) for name, rest in self._begun.items()])
        self._begun.clear()
        self.closed = True
        self._end.set()
        if self._file is not None:
            self._file.close()
            self._file = None
        self._bell.set()

    def _append(self, lines: list[bytes]) -> None:
        if self._file is None or not lines:
            return
        for line in lines:
            if self.written - self._starts[-1] + len(line) > self._bounds.size and self.written > self._starts[-1]:
                self._turn()
            self._file.write(line)
            self.written += len(line)
        self._file.flush()
        self._bell.set()

    def _turn(self) -> None:
        """Begin a new file; the oldest one goes when there are too many."""
        assert self._file is not None
        self._file.close()
        older = len(self._starts)
        if older >= self._bounds.files:
            self._part(older - 1).unlink(missing_ok=True)
            del self._starts[0]
            older -= 1
        for number in range(older, 0, -1):
            self._part(number - 1).rename(self._part(number))
        self._file = self.path.open("wb")
        self._starts.append(self.written)

    def _part(self, number: int) -> Path:
        return self.path if number == 0 else self.path.with_name(f"{self.path.name}.{number}")

    def remove(self) -> None:
        """Remove the files."""
        self.close()
        for number in range(len(self._starts)):
            self._part(number).unlink(missing_ok=True)

    def tail(self, lines: int, size: int) -> str:
        """Return the last lines, of so many bytes at most."""
        kept: list[bytes] = []
        room = size
        for line in reversed(list(self._lines(self._starts[0], self.written))):
            if len(kept) >= lines or room <= 0:
                break
            kept.append(line.text[-room:] + (b"\n" if line.whole else b""))
            room -= len(kept[-1])
        return b"".join(reversed(kept))[-size:].decode(errors="replace")

    def _lines(self, begin: int, end: int) -> list[Line]:
        """Read the whole lines from one place to another; what is gone is left out."""
        raw = b"".join(self._bytes(begin, end))
        return [_parse(line) for line in raw.split(b"\n") if line]

    def _bytes(self, begin: int, end: int) -> list[bytes]:
        parts: list[bytes] = []
        for index, start in enumerate(self._starts):
            stop = self._starts[index + 1] if index + 1 < len(self._starts) else self.written
            low, high = max(begin, start), min(end, stop)
            if low < high:
                with suppress(OSError), self._part(len(self._starts) - 1 - index).open("rb") as file:
                    file.seek(low - start)
                    parts.append(file.read(high - low))
        return parts

    async def read(self, *, follow: bool, begin: int = 0) -> AsyncIterator[list[Line]]:
        """Give lines as they are there; followed, until the log is closed."""
        place = max(begin, self._starts[0])
        while True:
            closed = self.closed
            self._bell.clear()
            place = max(place, self._starts[0])
            while place < self.written:
                end = self._boundary(place)
                yield self._lines(place, end)
                place = max(end, self._starts[0])
            if closed or not follow:
                return
            if not self.closed:
                await self._bell.wait()

    async def end(self) -> None:
        """Wait until nothing more comes."""
        await self._end.wait()

    def _boundary(self, place: int) -> int:
        """Return the end of a whole line some way behind a place: readers take their time, and little memory."""
        if self.written - place <= _BLOCK:
            return self.written
        raw = b"".join(self._bytes(place, place + _BLOCK))
        cut = raw.rfind(b"\n") + 1
        return place + cut if cut else self.written


async def read_log(log: Log, options: LogOptions) -> AsyncIterator[bytes]:
    """Give the part of a log that was asked for, in pieces."""
    left = options.limit_bytes
    async for piece in _pieces(log, options):
        part = piece if left is None else piece[:left]
        if part:
            yield part
        if left is not None:
            left -= len(part)
            if left <= 0:
                return


async def _pieces(log: Log, options: LogOptions) -> AsyncIterator[bytes]:
    wanted = {"Stdout": b"stdout", "Stderr": b"stderr"}.get(options.stream)
    since = stamp(options.since).encode() if options.since is not None else b""
    tail = options.tail_lines
    last: deque[bytes] = deque(maxlen=tail)
    begun = b""
    place = log.written
    async for block in log.read(follow=options.follow and tail is None):
        out: list[bytes] = []
        for line in block:
            if (wanted is not None and line.stream != wanted) or line.time < since:
                continue
            begun += _shown(line, options.timestamps and not begun)
            if line.whole:
                out.append(begun)
                begun = b""
        if tail is not None:
            last += out
        elif out:
            yield b"".join(out)
    yield b"".join(last) + begun
    if tail is not None and options.follow:
        async for block in log.read(follow=True, begin=place):
            yield b"".join(
                _shown(line, options.timestamps)
                for line in block
                if (wanted is None or line.stream == wanted) and line.time >= since
            )


def _shown(line: Line, stamped: bool) -> bytes:
    end = b"\n" if line.whole else b""
    return b"%b %b%b" % (line.time, line.text, end) if stamped else line.text + end
