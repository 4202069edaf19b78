"""The tutorial "Your first machine", performed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.tutorials import ROOT, Tutorial

PAGE = ROOT / "docs" / "fsm" / "first-machine.md"


@pytest.mark.capability("S1")
def test_the_page_from_its_first_line_to_its_last(tmp_path: Path) -> None:
    with Tutorial(PAGE, tmp_path) as tutorial:
        tutorial.perform()
        picture = PAGE.parent / "img" / "first-machine.svg"
        drawn = tutorial.folder / "traffic.svg"
        assert drawn.read_bytes() == picture.read_bytes(), "the picture of the page is out of date"
