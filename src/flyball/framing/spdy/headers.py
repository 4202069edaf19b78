"""Headers of streams: names and values, compressed over the whole life of a connection."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final

__all__ = ["DICTIONARY", "HeaderError", "HeaderReader", "HeaderWriter"]

_WORDS: Final = """
options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age
allow authorization cache-control connection content-base content-encoding content-language content-length
content-location content-md5 content-range content-type date etag expect expires from host if-match
if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma
proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade
user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie
keep-alive origin
"""
_REST: Final = (
    b"100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Author"
    b"itative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 No"
    b"t Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Au"
    b"g Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,"
    b"image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,def"
    b"late,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _with_length(text: bytes) -> bytes:
    return len(text).to_bytes(4, "big") + text


DICTIONARY: Final = b"".join(_with_length(word.replace("_", " ").encode()) for word in _WORDS.split()) + _REST
"""What compressor and decompressor know beforehand: a constant of SPDY/3, known by its checksum 0xe3c6a7c2."""

_MOST_BYTES: Final = 1 << 20
_MOST_HEADERS: Final = 1000


class HeaderError(ValueError):
    """A block of headers cannot be read; nothing after it can be read either."""


class HeaderWriter:
    """Packs the headers that one side sends."""

    def __init__(self) -> None:
        self._zlib = zlib.compressobj(zdict=DICTIONARY)

    def pack(self, headers: Mapping[str, str]) -> bytes:
        """Return a block. Names go out in lower case."""
        pairs = b"".join(
            _with_length(name.lower().encode()) + _with_length(value.encode()) for name, value in headers.items()
        )
        plain = len(headers).to_bytes(4, "big") + pairs
        return self._zlib.compress(plain) + self._zlib.flush(zlib.Z_SYNC_FLUSH)


class HeaderReader:
    """Unpacks the headers that the other side sends, block after block."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(zdict=DICTIONARY)

    def unpack(self, block: bytes) -> dict[str, str]:
        """Return the headers of a block, names in lower case; of several values the first. Raises HeaderError."""
        try:
            plain = self._zlib.decompress(block, _MOST_BYTES)
        except zlib.error as error:
            raise HeaderError(f"the headers are not packed as SPDY/3 packs them: {error}") from None
        if self._zlib.unconsumed_tail:
            raise HeaderError(f"the headers have more than {_MOST_BYTES} bytes")
        return _pairs(plain)


def _pairs(plain: bytes) -> dict[str, str]:
    place = 0

    def number() -> int:
        nonlocal place
        place += 4
        if place > len(plain):
            raise HeaderError("the headers end in the middle")
        return int.from_bytes(plain[place - 4 : place], "big")

    def text() -> str:
        nonlocal place
        size = number()
        place += size
        if place > len(plain):
            raise HeaderError("the headers end in the middle")
        return plain[place - size : place].decode("utf-8", "replace")

    count = number()
    if count > _MOST_HEADERS:
        raise HeaderError(f"there are more than {_MOST_HEADERS} headers")
    headers: dict[str, str] = {}
    for _ in range(count):
        name = text().lower()
        headers.setdefault(name, text().partition("\0")[0])
    return headers
