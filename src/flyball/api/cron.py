"""Cron schedules as Kubernetes reads them, and the moments they mean.

A schedule is five fields (minute, hour, day of the month, month, day of the week) of `*`, `?`, numbers, names, ranges,
steps and lists; or `@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`, `@midnight`, `@hourly`; or `@every 1h30m`,
which counts from the moment before. When both kinds of days are restricted, one of them is enough.

A moment is one at which a clock on the wall shows what the fields say. An hour that the clock leaves out when summer
begins has none; one that it shows twice when summer ends has two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import product
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from flyball.api.duration import Duration

__all__ = ["BadSchedule", "Every", "Fields", "Schedule", "parse_schedule", "time_zone"]

_YEARS: Final = 5
"""A schedule that has no moment within so many years has none."""
_SECOND: Final = timedelta(seconds=1)
_SHORT: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_BOUNDS: Final[tuple[tuple[int, int, Mapping[str, int]], ...]] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: place + 1 for place, name in enumerate(_MONTHS)}),
    (0, 6, {name: place for place, name in enumerate(_DAYS)}),
)


class BadSchedule(ValueError):
    """A schedule that cannot be read; the message is the one that a Kubernetes API server gives."""


def time_zone(name: str) -> tzinfo:
    """Return the time zone of a name, `BadSchedule` when there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadSchedule(f"unknown time zone {name}") from None


@dataclass(frozen=True, slots=True)
class Every:
    """A moment follows the other after this time, in whole seconds."""

    delay: timedelta

    def next(self, after: datetime) -> datetime | None:
        """Return the first moment after another one, in UTC."""
        return after.astimezone(UTC).replace(microsecond=0) + self.delay


@dataclass(frozen=True, slots=True)
class Fields:
    """What minute, hour and date may be, on the clocks of a zone."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    any_day: bool
    """Whether one of the two kinds of days is not restricted, so that the other one decides."""
    zone: tzinfo = UTC

    def next(self, after: datetime) -> datetime | None:
        """Return the first moment after another one, in UTC; None when there is none within five years."""
        local = after.astimezone(self.zone)
        day, last_year = local.date(), local.year + _YEARS
        while day.year <= last_year:
            if day.month not in self.months:
                day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
                continue
            if self._is_day(day):
                earliest = local.time() if day == local.date() else time.min
                found = next((one for one in self._moments(day, earliest) if one > after), None)
                if found is not None:
                    return found
            day += timedelta(days=1)
        return None

    def _is_day(self, day: date) -> bool:
        by_number, by_name = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return (by_number and by_name) if self.any_day else (by_number or by_name)

    def _moments(self, day: date, earliest: time) -> Iterator[datetime]:
        """Give the moments of a day in order; those before a time of that day may be left out."""
        walls = (datetime.combine(day, time(hour, minute)) for hour, minute in product(self.hours, self.minutes))
        if self._is_even(day):
            start = datetime.combine(day, earliest.replace(second=0, microsecond=0))
            return (wall.replace(tzinfo=self.zone).astimezone(UTC) for wall in walls if wall >= start)
        return iter(sorted({moment for wall in walls for moment in self._all(wall)}))

    def _is_even(self, day: date) -> bool:
        """Tell whether the clocks are not set anew on a day or close to it."""
        noon = datetime.combine(day, time(12), tzinfo=UTC)
        offsets = {(noon + timedelta(hours=hours)).astimezone(self.zone).utcoffset() for hours in (-36, -12, 0, 12, 36)}
        return len(offsets) == 1

    def _all(self, wall: datetime) -> Iterator[datetime]:
        """Give the moments at which the clocks show a time: none, one or two."""
        for fold in (0, 1):
            moment = wall.replace(tzinfo=self.zone, fold=fold).astimezone(UTC)
            if moment.astimezone(self.zone).replace(tzinfo=None) == wall:
                yield moment


Schedule = Fields | Every


def parse_schedule(text: str, zone: tzinfo = UTC) -> Schedule:
    """Read a schedule, for the clocks of a zone (which `TZ=...` or `CRON_TZ=...` before it overrides).

    >>> parse_schedule("*/15 9-17 * * mon-fri").next(datetime(2026, 1, 2, 17, 45, tzinfo=UTC))
    datetime.datetime(2026, 1, 5, 9, 0, tzinfo=datetime.timezone.utc)
    """
    if not text:
        raise BadSchedule("empty spec string")
    if text.startswith(("TZ=", "CRON_TZ=")):
        name, _, text = text.partition("=")[2].partition(" ")
        try:
            zone = time_zone(name)
        except BadSchedule as error:
            raise BadSchedule(f"provided bad location {name}: {error}") from None
        text = text.strip()
    if text.startswith("@every "):
        return Every(_delay(text))
    if text.startswith("@") and text not in _SHORT:
        raise BadSchedule(f"unrecognized descriptor: {text}")
    fields = _SHORT.get(text, text).split()
    if len(fields) != len(_BOUNDS):
        raise BadSchedule(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    read = [_field(field, *bounds) for field, bounds in zip(fields, _BOUNDS, strict=True)]
    (minutes, _), (hours, _), (days, star), (months, _), (weekdays, other) = read
    return Fields(tuple(sorted(minutes)), tuple(sorted(hours)), days, months, weekdays, star or other, zone)


def _delay(text: str) -> timedelta:
    duration = text.removeprefix("@every ")
    try:
        delay = Duration(duration).to_timedelta()
    except ValueError:
        wrong = "missing unit in" if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)", duration) else "invalid"
        raise BadSchedule(f'failed to parse duration {text}: time: {wrong} duration "{duration}"') from None
    return max(_SECOND, timedelta(seconds=delay // _SECOND))


def _field(field: str, low: int, high: int, names: Mapping[str, int]) -> tuple[frozenset[int], bool]:
    """Read a field; return its numbers, and whether it is open."""
    numbers: set[int] = set()
    is_open = False
    for part in filter(None, field.split(",")):
        found, star = _range(part, low, high, names)
        numbers.update(found)
        is_open = is_open or star
    return frozenset(numbers), is_open


def _range(part: str, low: int, high: int, names: Mapping[str, int]) -> tuple[range, bool]:
    pieces = part.split("/")
    ends = pieces[0].split("-")
    star = ends[0] in ("*", "?")
    if star:
        start, stop = low, high
    else:
        start = stop = _number(ends[0], names)
        if len(ends) == 2:
            stop = _number(ends[1], names)
        elif len(ends) > 2:
            raise BadSchedule(f"too many hyphens: {part}")
    step = 1
    if len(pieces) == 2:
        step = _number(pieces[1], {})
        stop = high if len(ends) == 1 else stop
    elif len(pieces) > 2:
        raise BadSchedule(f"too many slashes: {part}")
    if start < low:
        raise BadSchedule(f"beginning of range ({start}) below minimum ({low}): {part}")
    if stop > high:
        raise BadSchedule(f"end of range ({stop}) above maximum ({high}): {part}")
    if start > stop:
        raise BadSchedule(f"beginning of range ({start}) beyond end of range ({stop}): {part}")
    if step == 0:
        raise BadSchedule(f"step of range should be a positive number: {part}")
    return range(start, stop + 1, step), star and step == 1


def _number(text: str, names: Mapping[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise BadSchedule(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    number = int(text) if len(text) < 20 else 1 << 63
    if not -(1 << 63) <= number < 1 << 63:
        raise BadSchedule(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": value out of range')
    if number < 0:
        raise BadSchedule(f"negative number ({number}) not allowed: {text}")
    return number
