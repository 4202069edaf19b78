"""How wide a text is, without a font: generous widths of a wide sans serif, so that any font fits."""

from __future__ import annotations

import unicodedata
from typing import Final

__all__ = ["shortened", "text_width", "wrapped"]

_GROUPS: Final = (
    (0.29, "iIjl'|!"),
    (0.35, " .,:;/\\[]-"),
    (0.41, '()tfr"{}'),
    (0.54, "sczxvykJ_*"),
    (0.60, "aegopqbdhnuFLTEZ"),
    (0.66, "0123456789ABCKPRSVXY?+=<>"),
    (0.79, "DGHNOQUw&"),
    (0.98, "mMW@%"),
)
_WIDTHS: Final = {char: width for width, chars in _GROUPS for char in chars}


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """The width of a text in the units of its size."""
    units = sum(_WIDTHS.get(char) or _unknown(char) for char in text)
    return units * size * (1.1 if bold else 1.0)


def _unknown(char: str) -> float:
    if unicodedata.combining(char):
        return 0.0
    return 1.05 if unicodedata.east_asian_width(char) in "WF" else 0.72


def shortened(text: str, length: int) -> str:
    """The text, or its beginning and an ellipsis."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def wrapped(text: str, length: int) -> list[str]:
    """The text in lines of about `length` characters, broken at blanks and behind commas."""
    lines: list[str] = []
    line = ""
    for word in text.replace(",", ", ").split():
        if line and len(line) + 1 + len(word) > length:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line] if line else lines
