"""Durations as Go writes them: `1h30m0s`, `1.5s`, `250ms`; exact to the nanosecond."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from functools import total_ordering

__all__ = ["Duration"]

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,
    "\u03bcs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_WHOLE = re.compile(rf"[+-]?(?:{_PART.pattern})+")
_LIMIT = 2**63


@total_ordering
class Duration:
    """A length of time. `str()` is the text it was made from, or Go's form of a computed one.

    >>> Duration("90m") + Duration("1.5s")
    Duration('1h30m1.5s')
    >>> Duration(timedelta(minutes=5)).seconds
    300.0
    """

    __slots__ = ("_text", "nanoseconds")
    nanoseconds: int
    _text: str | None

    def __init__(self, value: Duration | str | timedelta | float = 0) -> None:
        """From Go's text, a timedelta, or a number of seconds."""
        self._text = None
        if isinstance(value, Duration):
            self.nanoseconds, self._text = value.nanoseconds, value._text
        elif isinstance(value, str):
            self.nanoseconds, self._text = _parse(value), value
        elif isinstance(value, timedelta):
            self.nanoseconds = ((value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds) * 1_000
        elif isinstance(value, (int, float)) and not isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance] # JSON
            self.nanoseconds = int(Decimal(str(value)) * _UNITS["s"])
        else:
            raise TypeError(f"a duration is made from text, seconds or a timedelta, not from {type(value).__name__}")

    @classmethod
    def of_nanoseconds(cls, nanoseconds: int) -> Duration:
        """Exactly so many nanoseconds."""
        made = cls()
        made.nanoseconds = nanoseconds
        return made

    @property
    def seconds(self) -> float:
        """The length in seconds."""
        return self.nanoseconds / _UNITS["s"]

    def to_timedelta(self) -> timedelta:
        """The same as a timedelta (to the microsecond)."""
        return timedelta(microseconds=self.nanoseconds // 1_000)

    def __str__(self) -> str:
        return _format(self.nanoseconds) if self._text is None else self._text

    def __repr__(self) -> str:
        return f"Duration({str(self)!r})"

    def canonical(self) -> str:
        """Go's own form, whatever the text was."""
        return _format(self.nanoseconds)

    def __hash__(self) -> int:
        return hash(self.nanoseconds)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (Duration, timedelta)):
            return self.nanoseconds == Duration(other).nanoseconds
        return NotImplemented

    def __lt__(self, other: Duration | timedelta) -> bool:
        return self.nanoseconds < Duration(other).nanoseconds

    def __bool__(self) -> bool:
        return self.nanoseconds != 0

    def __add__(self, other: Duration | timedelta) -> Duration:
        return Duration.of_nanoseconds(self.nanoseconds + Duration(other).nanoseconds)

    def __sub__(self, other: Duration | timedelta) -> Duration:
        return Duration.of_nanoseconds(self.nanoseconds - Duration(other).nanoseconds)

    def __mul__(self, factor: float) -> Duration:
        return Duration.of_nanoseconds(int(self.nanoseconds * Decimal(str(factor))))

    def __neg__(self) -> Duration:
        return Duration.of_nanoseconds(-self.nanoseconds)

    __rmul__ = __mul__


def _parse(text: str) -> int:
    if text in ("0", "+0", "-0"):
        return 0
    if _WHOLE.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a duration: write numbers with units, such as 1h30m, 1.5s or 250ms")
    total = sum(int(Decimal(number) * _UNITS[unit]) for number, unit in _PART.findall(text))
    total = -total if text.startswith("-") else total
    if not -_LIMIT <= total < _LIMIT:
        raise ValueError(f"{text!r} is not a duration: it is longer than 290 years")
    return total


def _format(nanoseconds: int) -> str:
    if nanoseconds == 0:
        return "0s"
    sign, rest = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    for unit in ("ns", "\u00b5s", "ms"):
        if rest < _UNITS[unit] * 1000:
            return f"{sign}{_decimal(rest, _UNITS[unit])}{unit}"
    hours, rest = divmod(rest, _UNITS["h"])
    minutes, rest = divmod(rest, _UNITS["m"])
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{head}{_decimal(rest, _UNITS['s'])}s"


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    if not rest:
        return str(whole)
    return f"{whole}.{str(rest).rjust(len(str(unit)) - 1, '0').rstrip('0')}"
