"""Notes and comments: text for people, never parsed, never lost."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from flyball.fsm.parse.labels import NAME

__all__ = ["NoteStart", "is_note_end", "note_start"]

_WORD: Final = re.compile(r"\s*(?:floating\s+)?[hr]?note(?=[\s\"])\s*(.*)", re.IGNORECASE)
_SIDE: Final = re.compile(
    rf"(?:left|right|top|bottom)(?:\s+of\s+(?P<state>{NAME}|\"[^\"]*\"))?\s*(?:#[^\s:]+)?\s*(?P<colon>:)?(?P<text>.*)",
    re.IGNORECASE,
)
_ALIAS: Final = re.compile(rf"\"(?P<text>[^\"]*)\"\s*as\s+(?P<alias>{NAME})\s*(?:#\S+)?\s*", re.IGNORECASE)
_NAMED: Final = re.compile(rf"as\s+(?P<alias>{NAME})\s*(?:#\S+)?\s*", re.IGNORECASE)
_END: Final = re.compile(r"\s*end\s*[hr]?note\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NoteStart:
    """The first line of a note. `text` is None when the text is in the lines that follow."""

    text: str | None
    state: str | None = None
    attached: bool = False
    alias: str | None = None


def note_start(text: str) -> NoteStart | None:
    """What a line that begins a note says, or None for any other line."""
    word = _WORD.fullmatch(text)
    if word is None or word[1].startswith((":", "-", "<")):
        return None
    rest = word[1].strip()
    side = _SIDE.fullmatch(rest)
    if side:
        state = side["state"].strip('"') if side["state"] else None
        inline = side["text"].strip() if side["colon"] else None
        return NoteStart(inline, state, attached=state is None)
    alias = _ALIAS.fullmatch(rest)
    if alias:
        return NoteStart(alias["text"], alias=alias["alias"])
    named = _NAMED.fullmatch(rest)
    if named:
        return NoteStart(None, alias=named["alias"])
    _, colon, inline = rest.partition(":")
    return NoteStart(inline.strip() if colon else None)


def is_note_end(text: str) -> bool:
    """Whether a line ends a note."""
    return _END.fullmatch(text) is not None
