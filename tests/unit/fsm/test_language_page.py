"""The language page: its diagrams are right, its pictures are ours, its table of findings is whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flyball.fsm.compile import judged
from flyball.fsm.draw import Overlay, format_text, hits_of, to_svg
from flyball.fsm.parse import CODES, load

FSM = Path(__file__).parents[3] / "docs" / "fsm"
SOURCES = sorted((FSM / "img").glob("*.puml"))


def test_the_diagrams_of_the_page_have_no_errors() -> None:
    findings = judged(load(FSM / "language.md", "all"))
    assert [str(one) for one in findings if one.severity == "error"] == []


def test_every_code_is_explained() -> None:
    page = (FSM / "language.md").read_text(encoding="utf-8")
    assert [code for code in CODES if f"`{code}`" not in page and not code.startswith("I-")] == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_pictures_are_what_draw_makes(source: Path) -> None:
    """To make one again: flyball fsm draw docs/fsm/img/X.puml -o docs/fsm/img/X.svg."""
    diagram = load(source).diagrams[0]
    assert source.with_suffix(".svg").read_text(encoding="utf-8") == to_svg(diagram)
    text = source.read_text(encoding="utf-8")
    assert format_text(text, str(source)) == text


def test_the_picture_with_hits_is_what_draw_makes() -> None:
    diagram = load(FSM / "img" / "simplejob.puml").diagrams[0]
    hits = hits_of(json.loads((FSM / "img" / "simplejob.trace.json").read_text(encoding="utf-8")))
    drawn = to_svg(diagram, Overlay(hits, "UpdatingStatus", traced=True))
    assert (FSM / "img" / "simplejob-hits.svg").read_text(encoding="utf-8") == drawn
