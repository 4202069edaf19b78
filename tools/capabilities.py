"""Count the promises that tests keep, and write `docs/capabilities.md`.

    tools/capabilities.py            write the page
    tools/capabilities.py --check    exit with 1 when the page is stale or a mark names no row

The rows are in `tools/capabilities.toml`. A test keeps a row by the mark `@pytest.mark.capability("ID")`, on itself,
its class or its module (`pytestmark`). Tests are read, never imported. Where a test runs follows from its place and its
marks: `bench/` is `make bench`, the mark `real` is `make test-real`, everything else is `make test`.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ROWS = Path("tools/capabilities.toml")
PAGE = Path("docs/capabilities.md")
FOLDERS = ("tests", "operators", "bench")
PEERS = ("Go family", "kube-rs", "Java SDK")
WORDS = {"Y": "yes", "P": "in part", "N": "no", "-": ""}


class StaleError(Exception):
    """The page does not say what the tests say, or a test names a row that is not there."""


@dataclass(frozen=True, slots=True)
class Row:
    """One promise."""

    id: str
    room: str
    promise: str
    peers: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Keeper:
    """A test that keeps a promise, and the command that runs it."""

    file: str
    test: str
    runs_in: str


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks that matter here, of one test."""

    ids: frozenset[str] = frozenset()
    real: bool = False

    def __or__(self, other: Marks) -> Marks:
        return Marks(self.ids | other.ids, self.real or other.real)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description="Count the promises that tests keep.")
    parser.add_argument("--check", action="store_true", help="fail when the page is stale, write nothing")
    options = parser.parse_args(arguments)
    try:
        page = render(root)
        if options.check:
            _compare(root / PAGE, page)
        else:
            (root / PAGE).write_text(page)
    except StaleError as error:
        print(f"capabilities: {error}", file=sys.stderr)
        return 1
    return 0


def _compare(path: Path, page: str) -> None:
    if not path.is_file() or path.read_text() != page:
        raise StaleError(f"{PAGE} is stale: run `make generate`")


# -- reading the tests


def keepers(root: Path) -> dict[str, list[Keeper]]:
    """The tests of each row, by its id."""
    found: dict[str, list[Keeper]] = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            for ids, keeper in _of_file(path, str(path.relative_to(root))):
                for row in ids:
                    found.setdefault(row, []).append(keeper)
    return found


def _of_file(path: Path, name: str) -> Generator[tuple[frozenset[str], Keeper]]:
    source = path.read_text()
    if "capability(" not in source:
        return
    module = ast.parse(source, filename=name)
    for test, marks in _tests(module.body, _assigned_marks(module.body), ""):
        if marks.ids:
            runs_in = "make bench" if name.startswith("bench/") else "make test-real" if marks.real else "make test"
            yield marks.ids, Keeper(name, test, runs_in)


def _tests(body: Iterable[ast.stmt], outer: Marks, prefix: str) -> Generator[tuple[str, Marks]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            inner = outer | _marks(node.decorator_list) | _assigned_marks(node.body)
            yield from _tests(node.body, inner, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            marks = _marks(node.decorator_list)
            if node.name.startswith("test") or marks.ids:
                yield f"{prefix}{node.name}", outer | marks


def _assigned_marks(body: Iterable[ast.stmt]) -> Marks:
    """What `pytestmark = ...` says."""
    found = Marks()
    for node in body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets):
            values = node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
            found |= _marks(values)
    return found


def _marks(decorators: Iterable[ast.expr]) -> Marks:
    found = Marks()
    for decorator in decorators:
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = ast.unparse(call)
        if name.endswith("mark.real"):
            found |= Marks(real=True)
        elif name.endswith("mark.capability") and isinstance(decorator, ast.Call):
            ids = [node.value for node in decorator.args if isinstance(node, ast.Constant)]
            found |= Marks(frozenset(str(row) for row in ids))
    return found


# -- writing the page


def render(root: Path) -> str:
    """The whole page."""
    data = tomllib.loads((root / ROWS).read_text())
    rows = [Row(**row) for row in data["rows"]]
    kept = keepers(root)
    unknown = sorted(set(kept) - {row.id for row in rows})
    if unknown:
        where = kept[unknown[0]][0]
        raise StaleError(f"{where.file}: {where.test} is marked with {unknown[0]}, which is no row of {ROWS}")
    lines = [
        "<!-- Generated by tools/capabilities.py; do not edit. -->",
        "",
        "# The promises, counted",
        "",
        "Each row is one promise of Flyball. It counts as kept when at least one test that would fail without it",
        "names it. The rows of what the best SDKs have say who has it: the Go family (controller-runtime,",
        "kubebuilder, operator-sdk), kube-rs, the Java SDK.",
        "",
    ]
    lines += _summary(data["sections"], rows, kept)
    for letter, title in data["sections"].items():
        lines += _section(title, [row for row in rows if row.id[0] == letter], kept, data["remarks"])
    return "\n".join(lines)


def _summary(sections: dict[str, Any], rows: list[Row], kept: dict[str, list[Keeper]]) -> list[str]:
    lines = ["| | promises | kept |", "|---|---|---|"]
    for letter, title in sections.items():
        mine = [row for row in rows if row.id[0] == letter]
        lines.append(f"| {title} | {len(mine)} | {sum(row.id in kept for row in mine)} |")
    return [*lines, f"| together | {len(rows)} | {sum(row.id in kept for row in rows)} |", ""]


def _section(title: str, rows: list[Row], kept: dict[str, list[Keeper]], remarks: dict[str, str]) -> list[str]:
    compared = any(row.peers.strip("N") for row in rows)
    heads = ["id", "promise", "room", *(PEERS if compared else ()), "kept by", "runs in"]
    lines = [f"## {title}", "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in rows:
        mine = sorted(kept.get(row.id, ()))
        peers = [WORDS[letter] for letter in row.peers] if compared else []
        promise = f"{row.promise} ({remarks[row.id]})" if row.id in remarks else row.promise
        runs_in = ", ".join(sorted({f"`{keeper.runs_in}`" for keeper in mine}))
        lines.append(f"| {' | '.join([row.id, promise, row.room, *peers, _tests_of(mine) or '-', runs_in])} |")
    return [*lines, ""]


def _tests_of(mine: list[Keeper]) -> str:
    """File by file, each test once."""
    files: dict[str, list[str]] = {}
    for keeper in mine:
        files.setdefault(keeper.file, []).append(f"`{keeper.test}`")
    return "<br>".join(f"{file}: {', '.join(tests)}" for file, tests in files.items())


if __name__ == "__main__":
    sys.exit(main())
