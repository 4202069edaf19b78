"""The string formats that an API server checks; every other format is only a remark."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import datetime
from email.utils import parseaddr
from typing import Final

__all__ = ["checker"]

Check = Callable[[str], bool]


def checker(format_: str) -> Check | None:
    """Return the check of a format, or None when it is not checked. Dashes in the name do not count."""
    return _CHECKS.get(format_) or _CHECKS.get(format_.replace("-", ""))


def _matches(pattern: str, flags: int = re.ASCII) -> Check:
    compiled = re.compile(pattern, flags)
    return lambda text: compiled.fullmatch(text) is not None


def _is_date(text: str) -> bool:
    return _parses(text, "%Y-%m-%d") and re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) is not None


def _parses(text: str, layout: str) -> bool:
    try:
        datetime.strptime(text, layout)
    except ValueError:
        return False
    return True


_DATE_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)T(\d\d):(\d\d):(\d\d)(\.\d{1,9})?(Z|[+-]\d\d:?\d\d)", re.ASCII | re.IGNORECASE
)


def _is_date_time(text: str) -> bool:
    found = _DATE_TIME.fullmatch(text)
    if found is None or not _is_date(found[1]):
        return False
    return int(found[2]) < 24 and int(found[3]) < 60 and int(found[4]) < 60


_DURATION_UNITS = "ns|us|µs|μs|ms|s|m|h"
_is_go_duration = _matches(rf"[-+]?(0|(\d+(\.\d*)?|\.\d+)({_DURATION_UNITS})((\d+(\.\d*)?|\.\d+)({_DURATION_UNITS}))*)")
_WORDS = "d|day|days|h|hour|hours|m|min|mins|minute|minutes|s|sec|secs|second|seconds|w|week|weeks"
_is_word_duration = _matches(
    rf"((\d+)\s*({_WORDS}|ms|milli|millis|millisecond|milliseconds|us|micro|micros|microsecond|microseconds"
    r"|ns|nano|nanos|nanosecond|nanoseconds|hr|hrs))+",
    re.ASCII | re.IGNORECASE,
)


def _is_duration(text: str) -> bool:
    return _is_go_duration(text) or _is_word_duration(text)


def _is_byte(text: str) -> bool:
    try:
        base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_ipv4(text: str) -> bool:
    return _parses_as(ipaddress.IPv4Address, text)


def _is_ipv6(text: str) -> bool:
    return "%" not in text and _parses_as(ipaddress.IPv6Address, text)


def _is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    if not slash or not length.isdecimal() or "%" in address or (len(length) > 1 and length[0] == "0"):
        return False
    return _parses_as(lambda value: ipaddress.ip_network(value, strict=False), text)


def _parses_as(make: Callable[[str], object], text: str) -> bool:
    try:
        make(text)
    except ValueError:
        return False
    return True


def _is_email(text: str) -> bool:
    address = parseaddr(text)[1]
    local, at, domain = address.rpartition("@")
    return bool(local and at and domain) and " " not in address and ".." not in address


_LABEL = r"[a-zA-Z0-9\u00a0-\U0010ffff](?:[a-zA-Z0-9\u00a0-\U0010ffff-]{0,61}[a-zA-Z0-9\u00a0-\U0010ffff])?"
_is_host = _matches(rf"{_LABEL}|(?:{_LABEL}\.)+[a-zA-Z\u00a0-\U0010ffff]{{2,63}}", 0)


def _is_hostname(text: str) -> bool:
    return len(text) <= 255 and _is_host(text)


def _is_uri(text: str) -> bool:
    if not text or any(ord(character) <= 0x20 or character == "\x7f" for character in text):
        return False
    if re.search(r"%(?![0-9a-fA-F]{2})", text):
        return False
    return text.startswith("/") or re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:", text) is not None


_is_mac = _matches(
    r"([0-9a-fA-F]{2}([:-])[0-9a-fA-F]{2}(\2[0-9a-fA-F]{2}){4}((\2[0-9a-fA-F]{2}){2}|(\2[0-9a-fA-F]{2}){14})?)"
    r"|([0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2}((\.[0-9a-fA-F]{4}){1}|(\.[0-9a-fA-F]{4}){7})?)"
)


def _digits_of(text: str) -> str:
    return re.sub(r"[\s-]", "", text)


def _is_isbn10(text: str) -> bool:
    digits = _digits_of(text)
    if re.fullmatch(r"\d{9}[\dX]", digits, re.ASCII) is None:
        return False
    values = [10 if digit == "X" else int(digit) for digit in digits]
    return sum(weight * value for weight, value in zip(range(1, 11), values, strict=True)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = _digits_of(text)
    if re.fullmatch(r"\d{13}", digits, re.ASCII) is None:
        return False
    return sum((3 if place % 2 else 1) * int(digit) for place, digit in enumerate(digits)) % 10 == 0


_is_card = _matches(
    r"4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11}"
)


def _is_creditcard(text: str) -> bool:
    digits = re.sub(r"\D+", "", text)
    if not _is_card(digits):
        return False
    doubled = [int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


_CHANNEL = r"(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"
_HEX = "[0-9a-fA-F]"


def _is_short_name(text: str) -> bool:
    return len(text) <= 63 and re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", text) is not None


def _is_long_name(text: str) -> bool:
    return len(text) <= 253 and all(
        re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", part) is not None for part in text.split(".")
    )


_CHECKS: Final[dict[str, Check]] = {
    "bsonobjectid": _matches(f"{_HEX}{{24}}"),
    "byte": _is_byte,
    "cidr": _is_cidr,
    "creditcard": _is_creditcard,
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": _is_email,
    "hexcolor": _matches(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8s-long-name": _is_long_name,
    "k8s-short-name": _is_short_name,
    "mac": _is_mac,
    "password": lambda text: True,
    "rgbcolor": _matches(rf"rgb\(\s*{_CHANNEL}\s*,\s*{_CHANNEL}\s*,\s*{_CHANNEL}\s*\)"),
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "uri": _is_uri,
    "uuid": _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}"),
    "uuid3": _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?3{_HEX}{{3}}-?{_HEX}{{4}}-?{_HEX}{{12}}"),
    "uuid4": _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?4{_HEX}{{3}}-?[89abAB]{_HEX}{{3}}-?{_HEX}{{12}}"),
    "uuid5": _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?5{_HEX}{{3}}-?[89abAB]{_HEX}{{3}}-?{_HEX}{{12}}"),
}
