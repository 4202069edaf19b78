"""Moments and lengths of time: reading them from text, and what the functions of the language say of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from flyball.api.cel.errors import EvalError
from flyball.api.cel.operators import moment
from flyball.api.cel.overloads import Overload, member
from flyball.api.cel.types import DURATION, INT, STRING, TIMESTAMP
from flyball.api.cel.values import Duration, Timestamp
from flyball.api.duration import Duration as GoDuration

__all__ = ["LIBRARY", "parse_date", "parse_date_time", "parse_duration", "parse_word_duration", "timestamp_of"]

_RFC3339: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_LENIENT: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):?([0-9]{2}))?"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def timestamp_of(text: str) -> Timestamp:
    """Read RFC 3339. Raises `ValueError`."""
    return _read(_RFC3339, text)


def parse_date_time(text: str) -> Timestamp:
    """Read the value of a field of format `date-time`, which is a little more than RFC 3339. Raises `ValueError`."""
    return _read(_LENIENT, text)


def parse_date(text: str) -> Timestamp:
    """Read the value of a field of format `date`. Raises `ValueError`."""
    found = re.fullmatch(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", text)
    if found is None:
        raise ValueError(text)
    return Timestamp(_seconds(datetime(int(found[1]), int(found[2]), int(found[3]), tzinfo=UTC)))


def _seconds(day: datetime) -> int:
    return (day - _EPOCH) // timedelta(seconds=1)


def _read(shape: re.Pattern[str], text: str) -> Timestamp:
    found = shape.fullmatch(text)
    if found is None:
        raise ValueError(text)
    day = datetime(*map(int, found.group(1, 2, 3, 4, 5, 6)), tzinfo=UTC)  # type: ignore[arg-type, misc] # six numbers
    nanos = int((found[7] or "0")[:9].ljust(9, "0"))
    offset = 0
    if found[8]:
        if int(found[9]) > 24 or int(found[10]) >= 60:
            raise ValueError(text)
        offset = (int(found[9]) * 3600 + int(found[10]) * 60) * (-1 if found[8] == "-" else 1)
    return moment((_seconds(day) - offset) * 1_000_000_000 + nanos, offset)


def parse_duration(text: str) -> Duration:
    """Read a duration as Go writes it. Raises `ValueError`."""
    return Duration(GoDuration(text).nanoseconds)


_WORDS: Final = {
    "ns": 1,
    "nano": 1,
    "us": 1_000,
    "micro": 1_000,
    "ms": 1_000_000,
    "milli": 1_000_000,
    "s": 1_000_000_000,
    "sec": 1_000_000_000,
    "second": 1_000_000_000,
    "m": 60_000_000_000,
    "min": 60_000_000_000,
    "minute": 60_000_000_000,
    "h": 3_600_000_000_000,
    "hr": 3_600_000_000_000,
    "hour": 3_600_000_000_000,
    "d": 86_400_000_000_000,
    "day": 86_400_000_000_000,
    "w": 604_800_000_000_000,
    "week": 604_800_000_000_000,
}
_WORDED: Final = re.compile(r"([0-9]+)\s*([A-Za-z]+)")


def parse_word_duration(text: str) -> Duration:
    """Read the value of a field of format `duration`: Go's form, or numbers with words. Raises `ValueError`."""
    try:
        return parse_duration(text)
    except ValueError:
        total = 0
        for number, word in _WORDED.findall(text):
            name = word.lower()
            unit = (
                _WORDS.get(name) or _WORDS.get(name.removesuffix("s").removesuffix("second")) or _WORDS.get(name[:-1])
            )
            if unit is None:
                raise ValueError(text) from None
            total += int(number) * unit
        if not total:
            raise
        return Duration(total)


# --- functions --------------------------------------------------------------------------------------------------------

_OFFSET: Final = re.compile(r"[+-]?[0-9]+")


def _local(value: Timestamp, zone: str) -> datetime:
    """Return the calendar's view in a zone: a name of the IANA database, or hours and minutes."""
    hours, colon, minutes = zone.partition(":")
    if colon:
        for part in (hours, minutes):
            if _OFFSET.fullmatch(part) is None:
                raise EvalError(f'strconv.Atoi: parsing "{part}": invalid syntax')
        total = int(hours) * 60 + (-int(minutes) if zone.startswith("-") else int(minutes))
        return _moved(value, total * 60)
    if zone in ("", "UTC"):
        return value.date(0)
    try:
        return value.date(0).astimezone(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvalError(f"unknown time zone {zone}") from None


def _moved(value: Timestamp, offset: int) -> datetime:
    try:
        return (_EPOCH + timedelta(seconds=value.seconds + offset)).replace(tzinfo=UTC)
    except OverflowError:
        raise EvalError("timestamp overflow") from None


def _truncated(nanos: int, unit: int) -> int:
    return nanos // unit if nanos >= 0 else -(-nanos // unit)


_FIELDS: Final[list[tuple[str, str, Callable[[datetime], int]]]] = [
    ("getFullYear", "year", lambda day: day.year),
    ("getMonth", "month", lambda day: day.month - 1),
    ("getDayOfYear", "day_of_year", lambda day: day.timetuple().tm_yday - 1),
    ("getDayOfMonth", "day_of_month", lambda day: day.day - 1),
    ("getDate", "day_of_month_1_based", lambda day: day.day),
    ("getDayOfWeek", "day_of_week", lambda day: (day.weekday() + 1) % 7),
    ("getHours", "hours", lambda day: day.hour),
    ("getMinutes", "minutes", lambda day: day.minute),
    ("getSeconds", "seconds", lambda day: day.second),
]
_LENGTHS: Final = {
    "getHours": ("hours", 3_600_000_000_000),
    "getMinutes": ("minutes", 60_000_000_000),
    "getSeconds": ("seconds", 1_000_000_000),
    "getMilliseconds": ("milliseconds", 1_000_000),
}


def _field(name: str, id_: str, read: Callable[[datetime], int]) -> Iterable[Overload]:
    def utc(value: Any) -> int:
        return read(value.date(0))

    def in_zone(value: Any, zone: str) -> int:
        return read(_local(value, zone))

    yield member(name, f"timestamp_to_{id_}", [TIMESTAMP], INT, utc)
    yield member(name, f"timestamp_to_{id_}_with_tz", [TIMESTAMP, STRING], INT, in_zone)


def _millis(value: Timestamp, zone: str = "") -> int:
    _local(value, zone)
    return value.nanos // 1_000_000


def _length(name: str, id_: str, unit: int) -> Overload:
    return member(name, f"duration_to_{id_}", [DURATION], INT, lambda value: _truncated(value.nanos, unit))


LIBRARY: Final[tuple[Overload, ...]] = (
    *(overload for name, id_, read in _FIELDS for overload in _field(name, id_, read)),
    member("getMilliseconds", "timestamp_to_milliseconds", [TIMESTAMP], INT, _millis),
    member("getMilliseconds", "timestamp_to_milliseconds_with_tz", [TIMESTAMP, STRING], INT, _millis),
    *(_length(name, id_, unit) for name, (id_, unit) in _LENGTHS.items()),
)
