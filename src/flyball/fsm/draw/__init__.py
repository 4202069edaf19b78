"""Diagrams written down: for people (SVG, a terminal), for other tools (Mermaid, DOT), and as canonical text.

Promises:

* nothing but Python is needed, and the same diagram gives the same bytes on every machine;
* the canonical form keeps what a diagram means, its comments and its notes; formatting it again changes nothing;
* a drawing shows every state and transition, and what an `Overlay` adds: how often, and where the machine is now.

Reading order: `words` (what stands in states and on arrows), `overlay`, `canonical`; then the drawing of our own:
`measure` (widths of text), `layered` and `places` (rows, order, horizontal places of one level), `scene` (levels in
levels), `svg`; `plain` is for terminals, `mermaid` and `dot` for other tools.
"""

from __future__ import annotations

from flyball.fsm.draw.canonical import document_text, format_text
from flyball.fsm.draw.dot import to_dot
from flyball.fsm.draw.mermaid import from_mermaid, is_mermaid, to_mermaid
from flyball.fsm.draw.overlay import Overlay, OverlayError, hits_of
from flyball.fsm.draw.plain import to_plain
from flyball.fsm.draw.svg import to_svg

__all__ = [
    "Overlay",
    "OverlayError",
    "document_text",
    "format_text",
    "from_mermaid",
    "hits_of",
    "is_mermaid",
    "to_dot",
    "to_mermaid",
    "to_plain",
    "to_svg",
]
