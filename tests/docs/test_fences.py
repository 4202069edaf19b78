"""Every block of code on every page is one for mkdocs, too: behind a fence stands only what it knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.docs_hook import on_page_markdown

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
FENCE = re.compile(r" *(`{3,}|~{3,})(.*)")
KNOWN = re.compile(r'([\w-]+( (title|linenums|hl_lines)="[^"]*")*)?')


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_fences_are_recognised(page: Path) -> None:
    opened = ""
    for line in on_page_markdown(page.read_text()).splitlines():
        fence = FENCE.fullmatch(line)
        if fence is None:
            continue
        if opened:
            opened = "" if fence[1].startswith(opened) and not fence[2].strip() else opened
        else:
            opened = fence[1]
            assert KNOWN.fullmatch(fence[2].strip()), line
    assert not opened, "a block is not closed"


def test_the_mark_is_taken_out_behind_fences_only() -> None:
    page = '```python no-run title="a.py"\nno-run = 1\n```\n\nno-run is a word; `python no-run` stays.\n'
    assert on_page_markdown(page) == page.replace("python no-run title", "python title")
