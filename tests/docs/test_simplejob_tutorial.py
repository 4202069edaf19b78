"""The tutorial "SimpleJob from a diagram", performed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support.tutorials import ROOT, Tutorial

PAGE = ROOT / "docs" / "tutorials" / "simplejob.md"


@pytest.mark.capability("S1")
def test_the_page_from_its_first_line_to_its_last(tmp_path: Path) -> None:
    with Tutorial(PAGE, tmp_path) as tutorial:
        if shutil.which("kubectl", path=tutorial.environment["PATH"]) is None:
            pytest.skip("there is no kubectl")
        tutorial.perform()
        assert not tutorial.terminals, "the page ends what it began"
    picture = ROOT / "docs" / "fsm" / "img" / "simplejob.svg"
    assert (tutorial.folder / "simplejob.svg").read_bytes() == picture.read_bytes(), "the picture is out of date"


def test_the_diagram_of_the_page_is_that_of_the_operator() -> None:
    assert (ROOT / "operators" / "simplejob" / "simplejob_reconciler.uml").read_text().rstrip() in PAGE.read_text()
