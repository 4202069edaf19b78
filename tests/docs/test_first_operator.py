"""The tutorial "Your first operator", performed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support.tutorials import ROOT, Tutorial


@pytest.mark.capability("S10")
def test_the_page_from_its_first_line_to_its_last(tmp_path: Path) -> None:
    with Tutorial(ROOT / "docs" / "tutorials" / "first-operator.md", tmp_path) as tutorial:
        if shutil.which("kubectl", path=tutorial.environment["PATH"]) is None:
            pytest.skip("there is no kubectl")
        tutorial.perform()
        assert not tutorial.terminals, "the page ends what it began"
