"""What Kubernetes adds for patterns, quantities, versions and named formats."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final, Protocol, cast

from flyball.api.cel.errors import EvalError
from flyball.api.cel.operators import NO_OVERLOAD
from flyball.api.cel.overloads import Overload, function, member, size_of, tenth
from flyball.api.cel.standard import pattern_cost
from flyball.api.cel.strings import go_quoted
from flyball.api.cel.types import BOOL, DOUBLE, INT, QUANTITY, SEMVER, STRING, list_of
from flyball.api.cel.values import Opaque
from flyball.api.quantity import Quantity
from flyball.api.structural.patterns import PatternError, compile_pattern

__all__ = ["LIBRARY", "SEARCHES", "Amount", "Version"]

SEARCHES: Final = frozenset({"matches", "find", "findAll"})
"""Functions whose second argument is a pattern."""


def _once(args: Sequence[Any], result: Any) -> int:
    return tenth(size_of(args[0]))


# --- patterns ---------------------------------------------------------------------------------------------------------


class _Match(Protocol):
    def group(self, index: int) -> str: ...
    def start(self) -> int: ...
    def end(self) -> int: ...


class _Searchable(Protocol):
    def search(self, text: str) -> _Match | None: ...
    def finditer(self, text: str) -> Iterable[_Match]: ...


def _pattern(text: str) -> _Searchable:
    try:
        return cast("_Searchable", compile_pattern(text))
    except PatternError as error:
        raise EvalError(f"Illegal regex: {error}") from None


def _find(text: str, pattern: str) -> str:
    found = _pattern(pattern).search(text)
    return "" if found is None else found.group(0)


def _find_all(text: str, pattern: str, count: int = -1) -> list[str]:
    made: list[str] = []
    end = -1
    for found in _pattern(pattern).finditer(text):
        if len(made) == count:
            break
        if found.start() != found.end() or found.start() != end:
            made.append(found.group(0))
        end = found.end()
    return made


def _declare_patterns() -> Iterable[Overload]:
    texts = list_of(STRING)
    yield member("find", "string_find_string", [STRING, STRING], STRING, _find, pattern_cost)
    yield member("findAll", "string_find_all_string", [STRING, STRING], texts, _find_all, pattern_cost)
    yield member("findAll", "string_find_all_string_int", [STRING, STRING, INT], texts, _find_all, pattern_cost)


# --- quantities -------------------------------------------------------------------------------------------------------


class Amount(Opaque):
    """A quantity, kept as Kubernetes keeps it: as a number and a power of ten while that fits, else exactly."""

    __slots__ = ("power", "value")
    type_name = "kubernetes.Quantity"

    def __init__(self, value: Decimal, power: int | None) -> None:
        """Take the value, and the power of ten it is written with."""
        self.value = value
        self.power = power

    def equals(self, other: Any) -> bool:
        """Compare with another quantity."""
        if not isinstance(other, Amount):
            raise EvalError(NO_OVERLOAD)
        return self.value == other.value

    def __str__(self) -> str:
        """Write it in its canonical form."""
        return Quantity(self.value).canonical()

    @property
    def is_integer(self) -> bool:
        """Whether it is written without a fraction, and fits into 64 bits."""
        return self.power is not None and self.power >= 0 and abs(self.value) < 2**63


_SHAPE: Final = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_POWERS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DIGITS: Final = 18
_WRONG: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def _quantity(text: str) -> Amount:
    found = _SHAPE.fullmatch(text)
    if found is None or not text:
        raise EvalError(_WRONG)
    try:
        value = Quantity(text).value
    except ValueError:
        raise EvalError("unable to parse quantity's suffix") from None
    return Amount(value, _power(found[2] or "", found[3] or "", found[4], value))


def _power(whole: str, rest: str, suffix: str, value: Decimal) -> int | None:
    """Return the power of ten that the number is kept with, or None when it is too long for that."""
    digits = len(whole or "0") + len(rest)
    if suffix.endswith("i"):
        exponent = 10 * ("KMGTPE".index(suffix[0]) + 1)
        short = not rest and 15 - len(whole or "0") - int(exponent * 3 / 10) - 1 >= 0
        return 0 if short and abs(value) < 2**63 else None
    power = _POWERS[suffix] if suffix in _POWERS else int(suffix[1:])
    return power - len(rest) if digits <= _DIGITS and power - len(rest) >= -9 else None


def _is_quantity(text: str) -> bool:
    try:
        _quantity(text)
    except EvalError:
        return False
    return True


def _sum(one: Amount, other: Any, sign: int) -> Amount:
    right = other if isinstance(other, Amount) else Amount(Decimal(other), 0)
    value = one.value + right.value * sign
    if one.power is None or right.power is None:
        return Amount(value, None)
    if not right.value:
        return Amount(value, one.power)
    if not one.value:
        return Amount(value, right.power)
    power = min(one.power, right.power)
    return Amount(value, power if abs(value.scaleb(-power)) < 2**63 else None)


def _integer(amount: Amount) -> int:
    if not amount.is_integer:
        raise EvalError("cannot convert value to integer")
    return int(amount.value)


def _sign(value: Any) -> int:
    return int(value > 0) - int(value < 0)


def _declare_quantities() -> Iterable[Overload]:
    two = [QUANTITY, QUANTITY]
    yield function("quantity", "string_to_quantity", [STRING], QUANTITY, _quantity, _once)
    yield function("isQuantity", "is_quantity_string", [STRING], BOOL, _is_quantity, _once)
    yield function("sign", "quantity_sign", [QUANTITY], INT, lambda amount: _sign(amount.value))
    yield member("isGreaterThan", "quantity_is_greater_than", two, BOOL, lambda one, other: one.value > other.value)
    yield member("isLessThan", "quantity_is_less_than", two, BOOL, lambda one, other: one.value < other.value)
    yield member("compareTo", "quantity_compare_to", two, INT, lambda one, other: _sign(one.value - other.value))
    yield member("asApproximateFloat", "quantity_get_float", [QUANTITY], DOUBLE, lambda amount: float(amount.value))
    yield member("asInteger", "quantity_get_int", [QUANTITY], INT, _integer)
    yield member("isInteger", "quantity_is_integer", [QUANTITY], BOOL, lambda amount: amount.is_integer)
    for name, sign in (("add", 1), ("sub", -1)):

        def call(one: Amount, other: Any, sign: int = sign) -> Amount:
            return _sum(one, other, sign)

        yield member(name, f"quantity_{name}", two, QUANTITY, call)
        yield member(name, f"quantity_{name}_int", [QUANTITY, INT], QUANTITY, call)


# --- versions ---------------------------------------------------------------------------------------------------------


class Version(Opaque):
    """A semantic version; what follows a plus sign does not count."""

    __slots__ = ("before", "numbers", "text")
    type_name = "kubernetes.Semver"

    def __init__(self, text: str) -> None:
        """Read a version. Raises `EvalError`."""
        self.text = text
        if not text:
            raise EvalError("Version string empty")
        parts = text.split(".", 2)
        if len(parts) != 3:
            raise EvalError("No Major.Minor.Patch elements found")
        patch, plus, build = parts[2].partition("+")
        patch, dash, before = patch.partition("-")
        pairs = zip(("Major", "Minor", "Patch"), (*parts[:2], patch), strict=True)
        self.numbers = tuple(_number(name, part) for name, part in pairs)
        self.before = tuple(map(_identifier, before.split("."))) if dash else ()
        for part in build.split(".") if plus else ():
            if not part:
                raise EvalError("Build meta data is empty")
            if not _ALPHANUMERIC.fullmatch(part):
                raise EvalError(f"Invalid character(s) found in build meta data {go_quoted(part)}")

    def equals(self, other: Any) -> bool:
        """Compare with another version."""
        if not isinstance(other, Version):
            raise EvalError(NO_OVERLOAD)
        return self.compare(other) == 0

    def compare(self, other: Version) -> int:
        """Return -1, 0 or 1; a version before a release is less than the release."""
        mine: tuple[Any, ...] = (self.numbers, not self.before, self.before)
        others: tuple[Any, ...] = (other.numbers, not other.before, other.before)
        return (mine > others) - (mine < others)


_ALPHANUMERIC: Final = re.compile(r"[0-9A-Za-z-]+")


def _number(name: str, part: str) -> int:
    if re.fullmatch(r"[0-9]*", part) is None:
        raise EvalError(f"Invalid character(s) found in {name.lower()} number {go_quoted(part)}")
    if len(part) > 1 and part[0] == "0":
        raise EvalError(f"{name} number must not contain leading zeroes {go_quoted(part)}")
    return _parsed(part)


def _parsed(part: str) -> int:
    if not part:
        raise EvalError('strconv.ParseUint: parsing "": invalid syntax')
    if len(part) > 20 or int(part) >= 2**64:
        raise EvalError(f"strconv.ParseUint: parsing {go_quoted(part)}: value out of range")
    return int(part)


def _identifier(part: str) -> tuple[bool, int, str]:
    """Return what orders the parts of a version before a release: numbers first."""
    if not part:
        raise EvalError("Prerelease is empty")
    if re.fullmatch(r"[0-9]+", part):
        if len(part) > 1 and part[0] == "0":
            words = "Numeric PreRelease version must not contain leading zeroes"
            raise EvalError(f"{words} {go_quoted(part)}")
        return (False, _parsed(part), "")
    if not _ALPHANUMERIC.fullmatch(part):
        raise EvalError(f"Invalid character(s) found in prerelease {go_quoted(part)}")
    return (True, 0, part)


def _version(text: str, normalize: bool = False) -> Version:
    if not normalize:
        return Version(text)
    parts = text.removeprefix("v").split(".", 2)
    for place, part in enumerate(parts):
        if len(part) > 1:
            bare = part.lstrip("0")
            parts[place] = bare if bare[:1].isdigit() and bare.isascii() else f"0{bare}"
            if bare and not bare[0].isdigit() and not part.startswith("0"):
                parts[place] = f"0{bare}"
    if len(parts) < 3:
        if set("+-") & set(parts[-1]):
            raise EvalError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return Version(".".join(parts))


def _is_version(text: str, normalize: bool = False) -> bool:
    try:
        _version(text, normalize)
    except EvalError:
        return False
    return True


def _declare_versions() -> Iterable[Overload]:
    two = [SEMVER, SEMVER]
    yield function("semver", "string_to_semver", [STRING], SEMVER, _version, _once)
    yield function("semver", "string_bool_to_semver", [STRING, BOOL], SEMVER, _version, _once)
    yield function("isSemver", "is_semver_string", [STRING], BOOL, _is_version, _once)
    yield function("isSemver", "is_semver_string_bool", [STRING, BOOL], BOOL, _is_version, _once)
    compare = Version.compare
    yield member("isGreaterThan", "semver_is_greater_than", two, BOOL, lambda one, other: compare(one, other) > 0)
    yield member("isLessThan", "semver_is_less_than", two, BOOL, lambda one, other: compare(one, other) < 0)
    yield member("compareTo", "semver_compare_to", two, INT, compare)
    for place, name in enumerate(("major", "minor", "patch")):

        def part(version: Version, place: int = place) -> int:
            return version.numbers[place]

        yield member(name, f"semver_{name}", [SEMVER], INT, part)


LIBRARY: Final[tuple[Overload, ...]] = (*_declare_patterns(), *_declare_quantities(), *_declare_versions())
