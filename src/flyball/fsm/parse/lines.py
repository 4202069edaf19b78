"""One line of a diagram as the parser sees it, and the way back to its columns in the file.

PlantUML writes a line break inside a label as a backslash and an `n`. These two characters vanish before a line is
read, as they do in the tool this dialect comes from; the columns that findings tell are those of the file.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right

from flyball.fsm.model import Position

__all__ = ["Line", "split_lines"]

_BREAK = "\\n"
_ENDS = re.compile(r"\r\n|\r|\n")


def split_lines(text: str) -> list[str]:
    """The lines of a text, whichever of the three line ends it uses; a byte order mark is dropped."""
    return _ENDS.split(text.removeprefix("\ufeff"))


class Line:
    """`text` is what is read, `raw` what stands in the file, `stripped` the text without blanks around it."""

    __slots__ = ("_cuts", "_raw_cuts", "number", "raw", "stripped", "text")

    def __init__(self, number: int, raw: str) -> None:
        self.number = number
        self.raw = raw
        self.text = raw
        self._cuts: list[int] = []
        """Where line breaks stood, as places in `text`."""
        self._raw_cuts: list[int] = []
        if _BREAK in raw:
            self._cut()
        self.stripped = self.text.strip()

    def _cut(self) -> None:
        parts = self.raw.split(_BREAK)
        at = 0
        for part in parts[:-1]:
            at += len(part)
            self._cuts.append(at)
        self._raw_cuts = [cut + 2 * index for index, cut in enumerate(self._cuts)]
        self.text = "".join(parts)

    @property
    def has_breaks(self) -> bool:
        """Whether line breaks were cut out."""
        return bool(self._cuts)

    def breaks_between(self, start: int, end: int) -> bool:
        """Whether a line break was cut out between two places of `text`."""
        return bisect_left(self._cuts, start) < bisect_right(self._cuts, end)

    def position(self, index: int) -> Position:
        """Where the character at `index` of `text` stands in the file."""
        return Position(self.number, index + 1 + 2 * bisect_right(self._cuts, index))

    def breaks_before(self, column: int) -> int:
        """How many line breaks were cut out before a column (from 0) of `raw`."""
        return bisect_left(self._raw_cuts, column)

    def start(self) -> Position:
        """Where the first character that is no blank stands."""
        return self.position(len(self.text) - len(self.text.lstrip()))
