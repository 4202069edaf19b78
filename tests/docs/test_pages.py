"""The code on the pages of the documentation runs.

Every ```python block of a page runs, in order, in one module per page and in an empty folder; `await` works at the top
level; a block marked `no-run` is only compiled. A traceback shows the page and the line.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import linecache
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"])
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>.*)$")


@dataclass(frozen=True, slots=True)
class Block:
    """Python of a page: where it begins, and whether it is to be run."""

    line: int
    code: str
    run: bool


def blocks(text: str) -> list[Block]:
    """The Python blocks of a page; `line` is that of their first line of code."""
    found: list[Block] = []
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        opening = FENCE.match(lines[number])
        number += 1
        if opening is None:
            continue
        start, indent = number, len(opening["indent"])
        while number < len(lines) and lines[number].strip() != opening["fence"]:
            number += 1
        words = opening["info"].split()
        if words and words[0] == "python":
            code = "\n".join(line[indent:] for line in lines[start:number])
            found.append(Block(start + 1, code, "no-run" not in words[1:]))
        number += 1
    return found


def compiled(block: Block, page: str) -> CodeType:
    """The block's code, whose lines are those of the page."""
    source = "\n" * (block.line - 1) + block.code
    code: CodeType = compile(source, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return code


def run(page: Path, name: str) -> None:
    """Run a whole page, as a module of its own: classes find their module, `inspect` finds their source."""
    text = page.read_text()
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    module = ModuleType("page_of_the_documentation")
    module.__file__ = name
    sys.modules[module.__name__] = module
    try:
        asyncio.run(run_blocks(blocks(text), name, module.__dict__))
    finally:
        del sys.modules[module.__name__]


async def run_blocks(found: list[Block], name: str, namespace: dict[str, Any]) -> None:
    """Run the blocks in one namespace and one event loop."""
    for block in found:
        code = compiled(block, name)
        if block.run:
            result = eval(code, namespace)
            if code.co_flags & inspect.CO_COROUTINE:
                await result


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_the_code_of_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(page, str(page))


PAGE = """
# A page

```python
import asyncio
x = 1
```

- in a list:

  ```python
  await asyncio.sleep(0)
  y = x + 1
  ```

```python no-run
1 / 0
```

```console
$ not python
```

````markdown
```python
raise SystemError("inside another fence")
```
````

```python
assert y == 2
boom = 1 / 0
```
"""


def test_a_traceback_shows_the_page_and_the_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    with pytest.raises(ZeroDivisionError) as caught:
        run(page, "page.md")
    last = caught.traceback[-1]
    line = PAGE.splitlines().index("boom = 1 / 0")
    assert (str(last.frame.code.raw.co_filename), last.lineno) == ("page.md", line)
    assert linecache.getline("page.md", line + 1) == "boom = 1 / 0\n"


def test_code_that_does_not_run_must_still_be_python(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python no-run\ndef def\n```\n")
    with pytest.raises(SyntaxError):
        run(page, "page.md")
