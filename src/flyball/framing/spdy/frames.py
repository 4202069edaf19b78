"""Frames of SPDY/3: how they look on the wire."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from flyball.framing.spdy.headers import HeaderError, HeaderReader, HeaderWriter

__all__ = ["CANCEL", "REFUSED", "Data", "Frame", "FrameReader", "FrameWriter", "GoAway", "Ping", "Reset", "SpdyError"]
__all__ += ["SynReply", "SynStream"]

_VERSION: Final = 3
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY, _HEADERS = 1, 2, 3, 6, 7, 8
_FIN: Final = 1
_HEAD: Final = 8
_ID: Final = 0x7FFFFFFF
_MOST_CONTROL: Final = 1 << 20

REFUSED: Final = 3
CANCEL: Final = 5


class SpdyError(ConnectionError):
    """The other side does not speak SPDY/3.1; the connection is of no use any more."""


@dataclass(frozen=True, slots=True)
class SynStream:
    """A new stream; with `last` its opener will send nothing on it."""

    stream: int
    headers: dict[str, str] = field(default_factory=dict[str, str])
    last: bool = False


@dataclass(frozen=True, slots=True)
class SynReply:
    """A stream was accepted."""

    stream: int
    headers: dict[str, str] = field(default_factory=dict[str, str])
    last: bool = False


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes of a stream; with `last` the sender sends nothing more."""

    stream: int
    data: bytes
    last: bool = False


@dataclass(frozen=True, slots=True)
class Reset:
    """A stream has ended in both directions."""

    stream: int
    status: int = CANCEL


@dataclass(frozen=True, slots=True)
class Ping:
    """To be sent back by the other side."""

    number: int


@dataclass(frozen=True, slots=True)
class GoAway:
    """The other side opens and accepts no more streams."""

    last_stream: int = 0


Frame: TypeAlias = SynStream | SynReply | Data | Reset | Ping | GoAway


class FrameWriter:
    """Turns frames into bytes, in the order in which they are sent: headers depend on those before."""

    def __init__(self) -> None:
        self._headers = HeaderWriter()

    def write(self, frame: Frame) -> bytes:
        """Return the bytes of a frame."""
        match frame:
            case Data(stream, data, last):
                return struct.pack(">II", stream, (_FIN << 24 if last else 0) | len(data)) + data
            case SynStream(stream, headers, last):
                return _control(_SYN_STREAM, struct.pack(">IIH", stream, 0, 0) + self._headers.pack(headers), last)
            case SynReply(stream, headers, last):
                return _control(_SYN_REPLY, struct.pack(">I", stream) + self._headers.pack(headers), last)
            case Reset(stream, status):
                return _control(_RST_STREAM, struct.pack(">II", stream, status))
            case Ping(number):
                return _control(_PING, struct.pack(">I", number))
            case GoAway(last_stream):
                return _control(_GOAWAY, struct.pack(">II", last_stream, 0))


def _control(kind: int, body: bytes, last: bool = False) -> bytes:
    return struct.pack(">HHI", 0x8000 | _VERSION, kind, (_FIN << 24 if last else 0) | len(body)) + body


class FrameReader:
    """Turns bytes into frames, however the bytes are cut into pieces. Kinds of frames that nobody uses are left out."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._headers = HeaderReader()

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """Give the frames that a piece completes. Raises SpdyError; nothing can be read after that."""
        buffer = self._buffer
        buffer += piece
        while len(buffer) >= _HEAD:
            first, second = struct.unpack_from(">II", buffer)
            flags, size = second >> 24, second & 0xFFFFFF
            control = bool(first >> 31)
            if control and (first >> 16 & 0x7FFF) != _VERSION:
                raise SpdyError(f"this is not SPDY/3.1: it begins with {bytes(buffer[:_HEAD])!r}")
            if control and size > _MOST_CONTROL:
                raise SpdyError(f"a control frame of {size} bytes is too long")
            if len(buffer) < _HEAD + size:
                return
            body = bytes(buffer[_HEAD : _HEAD + size])
            del buffer[: _HEAD + size]
            if control:
                frame = self._control(first & 0xFFFF, bool(flags & _FIN), body)
                if frame is not None:
                    yield frame
            else:
                yield Data(first & _ID, body, bool(flags & _FIN))

    def _control(self, kind: int, last: bool, body: bytes) -> Frame | None:
        try:
            match kind:
                case 1:
                    stream, _, _ = struct.unpack_from(">IIH", body)
                    return SynStream(stream & _ID, self._headers.unpack(body[10:]), last)
                case 2:
                    return SynReply(_number(body), self._headers.unpack(body[4:]), last)
                case 3:
                    stream, status = struct.unpack_from(">II", body)
                    return Reset(stream & _ID, status)
                case 6:
                    return Ping(struct.unpack_from(">I", body)[0])
                case 7:
                    return GoAway(_number(body))
                case 8:
                    self._headers.unpack(body[4:])  # of no interest, but the next block depends on it
                case _:
                    pass
        except (struct.error, HeaderError) as error:
            raise SpdyError(f"a control frame of kind {kind} cannot be read: {error}") from None
        return None


def _number(body: bytes) -> int:
    found: int = struct.unpack_from(">I", body)[0]
    return found & _ID
