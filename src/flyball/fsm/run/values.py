"""Texts of the diagram become values by annotation: `str`, `int`, `float`, `bool`, `timedelta`, enums, `Literal`,
`X | None`.
"""

from __future__ import annotations

import enum
import re
import types
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any, Literal, Union, get_args, get_origin

__all__ = ["UnknownType", "convert"]

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|d|h|m|s)")
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}
_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}


class UnknownType(TypeError):
    """An annotation that no text can be turned into."""


def convert(text: str, wanted: Any) -> Any:
    """The value of `text` for an annotation; ValueError when it is none, UnknownType when the annotation is not
    known.
    """
    if wanted is str or wanted is Any or wanted is object:
        return text
    simple = _SIMPLE.get(wanted) if isinstance(wanted, type) else None
    if simple is not None:
        return simple(text)
    if isinstance(wanted, type) and issubclass(wanted, enum.Enum):
        return _member(text, wanted)
    origin = get_origin(wanted)
    if origin is Annotated:
        return convert(text, get_args(wanted)[0])
    if origin is Literal:
        return _literal(text, get_args(wanted))
    if origin in (Union, types.UnionType):
        return _first(text, get_args(wanted))
    raise UnknownType(f"{wanted} is none of str, int, float, bool, timedelta, Enum, Literal")


def _bool(text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ValueError(f"{text!r} is neither true nor false")


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def _timedelta(text: str) -> timedelta:
    word = text.strip()
    sign, body = (-1, word[1:]) if word.startswith("-") else (1, word)
    pieces = _DURATION.findall(body)
    if not pieces or "".join(number + unit for number, unit in pieces) != body:
        raise ValueError(f"{text!r} is not a duration such as 5m or 1h30m")
    return sign * timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in pieces))


_SIMPLE: dict[type, Callable[[str], Any]] = {bool: _bool, int: _int, float: _float, timedelta: _timedelta}


def _member(text: str, wanted: type[enum.Enum]) -> enum.Enum:
    for member in wanted.__members__.values():
        if str(member.value) == text:
            return member
    if text in wanted.__members__:
        return wanted[text]
    raise ValueError(f"{text!r} is none of {', '.join(str(member.value) for member in wanted)}")


def _literal(text: str, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        if str(choice) == text:
            return choice
    raise ValueError(f"{text!r} is none of {', '.join(map(str, choices))}")


def _first(text: str, kinds: tuple[Any, ...]) -> Any:
    if type(None) in kinds and text.strip() == "":
        return None
    candidates = [kind for kind in kinds if kind is not type(None)]
    problems: list[str] = []
    for kind in sorted(candidates, key=lambda kind: kind is str):
        try:
            return convert(text, kind)
        except ValueError as error:
            problems.append(str(error))
    raise ValueError("; ".join(problems))
