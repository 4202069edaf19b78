"""Lines of PlantUML that say how to draw: they are recognised, kept for the canonical form, and have no meaning.

Some of them are blocks. A block that never ends is an error, because everything behind it would vanish; one that can
also be a single line is taken as such.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["LayoutBlock", "is_layout", "layout_block"]

_WORDS: Final = re.compile(
    r"\s*(?:(?:skin|skinparam|hide|show|remove|restore|scale|legend|header|footer|caption|mainframe|newpage"
    r"|sepia|sprite|allow_?mixing|title)(?=\s|$)"
    r"|(?:left|right|center)\s+(?:header|footer)(?=\s|$)"
    r"|left\s+to\s+right\s+direction|top\s+to\s+bottom\s+direction"
    r"|end\s*(?:note|legend|header|footer|title)\s*$"
    r"|</?style>|!(?:theme|pragma)\b)",
    re.IGNORECASE,
)
_BRACED: Final = re.compile(r"\s*(?:skinparam|sprite)\b.*\{\s*", re.IGNORECASE)
_LEGEND: Final = re.compile(r"\s*legend\b(.*)", re.IGNORECASE)
_HEADER: Final = re.compile(r"\s*(?:(?:left|right|center)\s+)?(header|footer|title|caption)\s*", re.IGNORECASE)
_STYLE: Final = re.compile(r"\s*<style>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LayoutBlock:
    """How a block of layout ends; `braces` are counted instead. `required` says that it cannot be a single line."""

    name: str
    end: re.Pattern[str] | None
    required: bool

    @property
    def braces(self) -> bool:
        """Whether the block ends with the brace that pairs with its first."""
        return self.end is None


def is_layout(text: str) -> bool:
    """Whether a line begins with a word of layout."""
    return _WORDS.match(text) is not None


def layout_block(text: str) -> LayoutBlock | None:
    """The block that a line of layout opens, or None for a line that stands alone."""
    if _BRACED.fullmatch(text):
        return LayoutBlock(text.split()[0].lower(), None, required=True)
    if _STYLE.match(text) and "</style>" not in text.lower():
        return LayoutBlock("style", re.compile(r".*</style>\s*", re.IGNORECASE | re.DOTALL), required=True)
    legend = _LEGEND.fullmatch(text)
    if legend:
        words = set(legend[1].lower().split()) - {"left", "right", "top", "bottom", "center"}
        return LayoutBlock("legend", _end_of("legend"), required=not words)
    header = _HEADER.fullmatch(text)
    if header:
        name = header[1].lower()
        return LayoutBlock(name, _end_of(name), required=True)
    return None


def _end_of(name: str) -> re.Pattern[str]:
    return re.compile(rf"\s*end\s*{name}\s*", re.IGNORECASE)
