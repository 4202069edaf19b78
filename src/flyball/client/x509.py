"""The one thing we need to know of a certificate ourselves: until when it is valid."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime

__all__ = ["certificate_expiry"]

_VERSION, _UTC_TIME = 0xA0, 0x17
_VALIDITY = 3
"""The place of the validity in a certificate after serial number, algorithm and issuer."""


def certificate_expiry(pem: bytes) -> datetime | None:
    """The end of the validity of the first certificate in a PEM text; None when it cannot be told."""
    try:
        text = pem.decode("ascii")
        start = text.index(ssl.PEM_HEADER)
        end = text.index(ssl.PEM_FOOTER, start) + len(ssl.PEM_FOOTER)
        certificate = _items(ssl.PEM_cert_to_DER_cert(text[start:end]))[0][1]
        fields = _items(_items(certificate)[0][1])
        if fields[0][0] == _VERSION:
            del fields[0]
        tag, value = _items(fields[_VALIDITY][1])[1]
        form = "%y%m%d%H%M%SZ" if tag == _UTC_TIME else "%Y%m%d%H%M%SZ"
        return datetime.strptime(value.decode("ascii"), form).replace(tzinfo=UTC)
    except (ValueError, IndexError):
        return None


def _items(der: bytes) -> list[tuple[int, bytes]]:
    """The tags and contents that follow each other in a piece of DER."""
    items: list[tuple[int, bytes]] = []
    at = 0
    while at < len(der):
        tag, length = der[at], der[at + 1]
        at += 2
        if length & 0x80:
            size = length & 0x7F
            length = int.from_bytes(der[at : at + size], "big")
            at += size
        items.append((tag, der[at : at + length]))
        at += length
    return items
