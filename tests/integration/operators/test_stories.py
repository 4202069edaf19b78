"""The stories of the operators, typed again: what kubectl prints is what is written down."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support.tutorials import ROOT, Tutorial

STORIES = sorted((ROOT / "operators").glob("*/STORY.md"))


@pytest.mark.parametrize("story", STORIES, ids=[one.parent.name for one in STORIES])
def test_a_story_typed_again(story: Path, tmp_path: Path) -> None:
    project = tmp_path / story.parent.name
    shutil.copytree(story.parent, project, ignore=shutil.ignore_patterns(".*", "__pycache__", "tests"))
    with Tutorial(story, project) as tutorial:
        if shutil.which("kubectl", path=tutorial.environment["PATH"]) is None:
            pytest.skip("there is no kubectl")
        tutorial.perform()
        assert not tutorial.terminals, "the story ends what it began"
