"""The lines of a diagram, one object each, before anybody asks what they mean together.

Every line of the text is in exactly one statement, so that the text can be written again from them: the canonical form
works on statements, the model is built from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from flyball.fsm.model import Call, Position
from flyball.fsm.parse.labels import Label

__all__ = [
    "Arrow",
    "Behaviour",
    "Blank",
    "Close",
    "Comment",
    "Declaration",
    "Described",
    "Layout",
    "Marker",
    "NoteLink",
    "NoteText",
    "Statement",
    "Title",
    "Unknown",
]


@dataclass(frozen=True, slots=True)
class Blank:
    """An empty line."""

    position: Position


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment, of one line or several."""

    position: Position
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Lines that say how to draw, not what to do."""

    position: Position
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """Lines that were not understood; a finding says so."""

    position: Position
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Marker:
    """`@startuml` or `@enduml`."""

    position: Position
    lines: tuple[str, ...]
    start: bool


@dataclass(frozen=True, slots=True)
class Title:
    """The title as written."""

    position: Position
    text: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoteText:
    """A note: at a state (`state`), at the state mentioned last (`attached`), or for itself."""

    position: Position
    lines: tuple[str, ...]
    text: str
    state: str | None = None
    attached: bool = False
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class NoteLink:
    """A line between a note that stands for itself and a state."""

    position: Position
    alias: str
    state: str
    raw: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """A transition; source and target are as written, `reverse` says that they were written the other way round."""

    position: Position
    source: str
    target: str
    source_at: Position
    target_at: Position
    arrow: str
    label: Label | None
    label_text: str
    """What is behind the colon, as written."""
    reverse: bool
    raw: str


@dataclass(frozen=True, slots=True)
class Behaviour:
    """An action of a state."""

    position: Position
    state: str
    kind: Literal["entry", "do", "exit"]
    call: Call
    explicit: bool
    """Whether `do /` was written."""
    text: str
    """The call as written."""
    raw: str


@dataclass(frozen=True, slots=True)
class Described:
    """A description of a state in several words."""

    position: Position
    state: str
    text: str
    raw: str


@dataclass(frozen=True, slots=True)
class Declaration:
    """`state X`, with a text, stereotypes and styles, perhaps the beginning of a block."""

    position: Position
    state: str
    text: str
    stereotypes: tuple[str, ...]
    styles: tuple[str, ...]
    """Colours, tags and links, as written."""
    opens: bool
    raw: str
    supported: bool = field(default=True)
    """False when a stereotype was refused."""


@dataclass(frozen=True, slots=True)
class Close:
    """The end of a composite."""

    position: Position
    raw: str


Statement: TypeAlias = (
    Arrow
    | Behaviour
    | Blank
    | Close
    | Comment
    | Declaration
    | Described
    | Layout
    | Marker
    | NoteLink
    | NoteText
    | Title
    | Unknown
)
