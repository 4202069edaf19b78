"""A hook of mkdocs: what our tests read behind a fence, and Markdown does not know, is taken out before a page is made.

A block that begins with ```` ```python no-run ```` would not be recognised as code otherwise.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["on_page_markdown"]

_MARK: Final = re.compile(r"^( *(?:`{3,}|~{3,})[\w-]+) no-run\b", re.MULTILINE)


def on_page_markdown(markdown: str, **_: object) -> str:
    """Give the page as mkdocs is to read it."""
    return _MARK.sub(r"\1", markdown)
