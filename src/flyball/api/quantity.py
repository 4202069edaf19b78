"""Kubernetes quantities: `100m`, `1.5Gi`, `2e3`; exact, with the arithmetic and the canonical form of the API server.

Canonical: no precision lost, no fraction, the largest suffix that allows it. `1.5` is `1500m`, `1024Mi` is `1Gi`.
Precision ends at one nano (`1n`): finer values are rounded away from zero, as the server does it.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, ROUND_UP, Context, Decimal, InvalidOperation
from functools import total_ordering
from typing import Literal

__all__ = ["Quantity"]

Style = Literal["binary", "decimal", "exponent"]

_SHAPE = re.compile(r"^([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$")
_BINARY = {f"{letter}i": 10 * power for power, letter in enumerate("KMGTPE", start=1)}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}
_EXACT = Context(prec=200, rounding=ROUND_HALF_EVEN, Emax=10**6, Emin=-(10**6))
_NANO = Decimal("1e-9")
_LARGEST_BINARY = Decimal(2**63 - 1)


@total_ordering
class Quantity:
    """An exact amount. `str()` is the text it was made from, or the canonical text of a computed value.

    >>> Quantity("1Gi") + "512Mi"
    Quantity('1536Mi')
    >>> Quantity("0.5") == Quantity("500m")
    True
    >>> Quantity("1500m").canonical(), int(Quantity("1k"))
    ('1500m', 1000)
    """

    __slots__ = ("_style", "_text", "_value")
    _text: str | None
    _value: Decimal
    _style: Style

    def __init__(self, value: Quantity | str | float | Decimal = 0) -> None:
        """From text, a number or another quantity; ValueError says what is wrong with the text."""
        if isinstance(value, Quantity):
            self._text, self._value, self._style = value._text, value._value, value._style
        elif isinstance(value, str):
            self._value, self._style = _parse(value)
            self._text = value
        elif isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance] # JSON
            number = Decimal(str(value))
            if not number.is_finite():
                raise ValueError(f"{value!r} is not a quantity: it must be finite")
            self._value, self._style, self._text = _to_nano(number), "decimal", None
        else:
            raise TypeError(f"a quantity is made from text or a number, not from {type(value).__name__}")

    @classmethod
    def _computed(cls, value: Decimal, style: Style) -> Quantity:
        made = cls.__new__(cls)
        made._text, made._value, made._style = None, _to_nano(value), style
        return made

    @property
    def value(self) -> Decimal:
        """The exact number."""
        return self._value

    def canonical(self) -> str:
        """The text that the API server would write."""
        return _canonical(self._value, self._style)

    def __str__(self) -> str:
        return self.canonical() if self._text is None else self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __hash__(self) -> int:
        return hash(self._value)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            try:
                return self._value == Quantity(other)._value
            except ValueError:
                return False
        if isinstance(other, (Quantity, int, float, Decimal)):
            return self._value == Quantity(other)._value
        return NotImplemented

    def __lt__(self, other: Quantity | str | float | Decimal) -> bool:
        return self._value < Quantity(other)._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __int__(self) -> int:
        """Whole units, rounded up (as the server's Value())."""
        return int(self._value.to_integral_value(rounding=_away(self._value)))

    def __float__(self) -> float:
        return float(self._value)

    def milli(self) -> int:
        """Thousandths, rounded up (as the server's MilliValue())."""
        return int(Quantity._computed(_EXACT.multiply(self._value, Decimal(1000)), "decimal"))

    def __add__(self, other: Quantity | str | float | Decimal) -> Quantity:
        right = Quantity(other)
        return Quantity._computed(_EXACT.add(self._value, right._value), self._style if self else right._style)

    def __sub__(self, other: Quantity | str | float | Decimal) -> Quantity:
        right = Quantity(other)
        return Quantity._computed(_EXACT.subtract(self._value, right._value), self._style if self else right._style)

    def __rsub__(self, other: str | float | Decimal) -> Quantity:
        return Quantity(other) - self

    def __mul__(self, factor: float | Decimal) -> Quantity:
        return Quantity._computed(_EXACT.multiply(self._value, Decimal(str(factor))), self._style)

    def __truediv__(self, divisor: float | Decimal) -> Quantity:
        return Quantity._computed(_EXACT.divide(self._value, Decimal(str(divisor))), self._style)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Quantity:
        return Quantity._computed(-self._value, self._style)

    def __abs__(self) -> Quantity:
        return Quantity._computed(abs(self._value), self._style)


def _away(value: Decimal) -> str:
    return "ROUND_CEILING" if value >= 0 else "ROUND_FLOOR"


def _parse(text: str) -> tuple[Decimal, Style]:
    match = _SHAPE.match(text)
    if match is None:
        raise ValueError(
            f"{text!r} is not a quantity: write a number and a suffix, one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, e3"
        )
    number, suffix = Decimal(match[1]), match[2] or ""
    if suffix in _BINARY:
        value = min(abs(_EXACT.multiply(number, Decimal(2 ** _BINARY[suffix]))), _LARGEST_BINARY).copy_sign(number)
        return _to_nano(value), "binary" if abs(value) >= 1 or not value else "decimal"
    if suffix in _DECIMAL:
        return _to_nano(number.scaleb(_DECIMAL[suffix], _EXACT)), "decimal"
    try:
        return _to_nano(number.scaleb(int(suffix[1:]), _EXACT)), "exponent"
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a quantity: the exponent is out of range") from None


def _to_nano(value: Decimal) -> Decimal:
    """Rounded away from zero at one nano, without an exponent hidden in the digits."""
    if value.is_zero():
        return Decimal(0)
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -9:
        return value.quantize(_NANO, rounding=ROUND_UP, context=_EXACT)
    return value


def _canonical(value: Decimal, style: Style) -> str:
    if value.is_zero():
        return "0"
    if style == "binary" and abs(value) >= 1024 and value == value.to_integral_value(context=_EXACT):
        return _canonical_binary(int(value))
    sign, digits, exponent = value.normalize(_EXACT).as_tuple()
    assert isinstance(exponent, int)  # the value is finite
    number = int("".join(map(str, digits)))
    number, exponent = _to_thousands(number, exponent)
    minus = "-" if sign else ""
    if style == "exponent":
        return f"{minus}{number}e{exponent}" if exponent else f"{minus}{number}"
    if exponent > 18:
        number, exponent = number * 10 ** (exponent - 18), 18
    return f"{minus}{number}{_DECIMAL_SUFFIX[exponent]}"


def _to_thousands(number: int, exponent: int) -> tuple[int, int]:
    """The same value with an exponent that is a multiple of three, as large as it can be."""
    over = exponent % 3
    return number * 10**over, exponent - over


def _canonical_binary(number: int) -> str:
    power = 0
    while number % 1024 == 0 and power < 6:
        number, power = number // 1024, power + 1
    return f"{number}{'KMGTPE'[power - 1]}i" if power else str(number)
