"""Diagrams as text, and what they mean, for the tests of this folder."""

from __future__ import annotations

from typing import Any

from flyball.fsm.compile import compile_text
from flyball.fsm.document import model_document


def model(text: str, file: str = "t.puml", **options: Any) -> dict[str, Any]:
    """The document of a text."""
    diagram, findings = compile_text(text, file, **options)
    return model_document(diagram, findings)


def of(*lines: str) -> dict[str, Any]:
    """The model of some lines below a title."""
    return model("\n".join(("title T", *lines)))


def transitions(*lines: str) -> list[dict[str, Any]]:
    """The transitions of state A."""
    found: list[dict[str, Any]] = of(*lines)["states"]["A"]["transitions"]
    return found


def only(line: str) -> dict[str, Any]:
    """The one transition of one line."""
    found = transitions(line)
    assert len(found) == 1
    return found[0]


def errors(*lines: str) -> list[str]:
    """The errors of some lines below a title."""
    found: list[str] = of(*lines)["errors"]
    return found
