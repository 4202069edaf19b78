"""Counting promises: which marks count, where tests run, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import capabilities

ROWS = """
rows = [
  { id = "S1", room = "fsm", promise = "Machines" },
  { id = "C1", room = "client", peers = "YP-", promise = "One client" },
  { id = "C2", room = "client", peers = "NNN", promise = "Apply" },
]
[sections]
S = "Systems"
C = "Others"
[remarks]
C2 = "alpha elsewhere"
"""
TESTS = """
import pytest

@pytest.mark.capability("S1")
def test_one(): ...

@pytest.mark.capability("C1", "S1")
class TestBoth:
    @pytest.mark.real
    async def test_two(self): ...
    def helper(self): ...

@pytest.mark.parametrize("x", [1])
def test_without(x): ...
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("tools", "docs", "tests", "bench"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tools/capabilities.toml").write_text(ROWS)
    (tmp_path / "tests/test_a.py").write_text(TESTS)
    return tmp_path


def test_marks_of_functions_and_classes_count(root: Path) -> None:
    found = capabilities.keepers(root)
    assert [(keeper.test, keeper.runs_in) for keeper in found["S1"]] == [
        ("test_one", "make test"),
        ("TestBoth.test_two", "make test-real"),
    ]
    assert [keeper.test for keeper in found["C1"]] == ["TestBoth.test_two"]
    assert set(found) == {"S1", "C1"}


def test_marks_of_a_module_count(root: Path) -> None:
    text = "import pytest\npytestmark = [pytest.mark.real, pytest.mark.capability('C2')]\ndef test_it(): ...\n"
    (root / "tests/test_b.py").write_text(text)
    (root / "bench/test_c.py").write_text("@mark.capability('C2')\ndef measure(): ...\n")
    places = [(keeper.file, keeper.runs_in) for keeper in capabilities.keepers(root)["C2"]]
    assert places == [("tests/test_b.py", "make test-real"), ("bench/test_c.py", "make bench")]


def test_the_page_says_what_is_kept_and_what_is_not(root: Path) -> None:
    page = capabilities.render(root)
    assert "| together | 3 | 2 |" in page
    assert (
        "| C1 | One client | client | yes | in part |  | tests/test_a.py: `TestBoth.test_two` | `make test-real` |"
        in page
    )
    assert "| C2 | Apply (alpha elsewhere) | client | no | no | no | - |  |" in page
    assert "| S1 | Machines | fsm | tests/test_a.py: `TestBoth.test_two`, `test_one` |" in page


def test_check_finds_a_stale_page(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert capabilities.main(["--check"], root) == 1
    assert "docs/capabilities.md is stale: run `make generate`" in capsys.readouterr().err
    assert capabilities.main([], root) == 0
    assert capabilities.main(["--check"], root) == 0
    (root / "tests/test_a.py").unlink()
    assert capabilities.main(["--check"], root) == 1


def test_a_mark_that_names_no_row_is_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "tests/test_a.py").write_text("@pytest.mark.capability('C99')\ndef test_x(): ...\n")
    assert capabilities.main([], root) == 1
    assert "tests/test_a.py: test_x is marked with C99" in capsys.readouterr().err


def test_the_rows_of_the_project_are_complete() -> None:
    import tomllib

    rows = tomllib.loads((capabilities.ROOT / capabilities.ROWS).read_text())["rows"]
    expected = [f"{letter}{n}" for letter, last in (("S", 17), ("C", 84), ("N", 20)) for n in range(1, last + 1)]
    assert [row["id"] for row in rows] == expected
