"""Cutting a stream of chunks into lines, for watches and logs.

HTTP libraries limit the length of a line (aiohttp: 64 kB) or search the whole buffer again with every chunk. A watch
event can be as large as an object may be, and larger (a list of 20 MB in one event is seen in the wild), so this one
has no limit and looks at each byte once.
"""

from __future__ import annotations

__all__ = ["LineSplitter"]


class LineSplitter:
    r"""Turns chunks of any size into whole lines.

    Guarantees: lines come out in order and without their newline; the time is linear in the number of bytes, whatever
    the chunks' sizes; nothing is dropped: what follows the last newline is kept until more comes, and `rest` shows it.

    >>> splitter = LineSplitter()
    >>> splitter.feed(b"one\ntw")
    [b'one']
    >>> splitter.feed(b"o\n\nthree")
    [b'two', b'']
    >>> splitter.rest()
    b'three'
    """

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes."""
        pieces = chunk.split(b"\n")
        last = pieces.pop()
        if pieces and self._parts:
            self._parts.append(pieces[0])
            pieces[0] = b"".join(self._parts)
            self._parts = []
        if last:
            self._parts.append(last)
        return pieces

    def rest(self) -> bytes:
        """What came after the last newline."""
        return b"".join(self._parts)
