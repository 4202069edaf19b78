"""Where the files of a package go, and how the package is imported.

The folder from which imports start is found, in this order: above a chain of `__init__.py` files; `src` below the
nearest pyproject.toml; the folder of that pyproject.toml; `src` below the current folder; the output folder itself.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flyball.errors import FlyballError

__all__ = ["PlaceError", "Places", "find_places", "project_file", "settings"]


class PlaceError(FlyballError):
    """The package cannot be where it was asked for."""


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of one package."""

    package: Path
    """The folder of the package."""
    module: str
    """How it is imported: `simplejob.controller.statemachine`."""
    root: Path
    """The folder from which imports start."""
    project: Path
    """The folder of pyproject.toml, or what takes its place."""
    tests: Path
    """The folder of the package's tests."""
    parents: tuple[Path, ...] = ()
    """Folders between the root and the package: packages too."""
    path_entry: bool = False
    """Whether the tests must make the root importable themselves, because no project file says that it is."""

    @property
    def top(self) -> str:
        """The first part of the module's name: the application."""
        return self.module.partition(".")[0]

    @property
    def tests_root(self) -> Path:
        """The folder that holds the tests of all packages."""
        return self.tests.parent


def find_places(
    output: Path, package: str, tests: Path | None = None, *, here: Path | None = None, new_project: bool = False
) -> Places:
    """Decide where a package in `output` belongs; `new_project` for one whose pyproject.toml will be written `here`."""
    current = (here or Path.cwd()).absolute()
    parent = _normal(current / output)
    file = None if new_project else project_file(parent)
    root = _root(parent, file, current)
    parts = parent.relative_to(root).parts
    odd = next((part for part in parts if not part.isidentifier()), None)
    if odd is not None:
        raise PlaceError(
            f"{parent} cannot hold a package: {odd!r} is no Python identifier; choose another --output, "
            f"or put a pyproject.toml into the folder from which imports start"
        )
    project = file.parent if file is not None else root.parent if root.name == "src" else root
    folder = parent / package
    tests_root = _normal(current / tests) if tests is not None else project / "tests"
    return Places(
        folder,
        ".".join((*parts, package)),
        root,
        project,
        tests_root / package,
        tuple(root.joinpath(*parts[: count + 1]) for count in range(len(parts))),
        root != project and not new_project and not _declares(file, root),
    )


def project_file(folder: Path) -> Path | None:
    """The nearest pyproject.toml, from a folder upwards."""
    return next(
        (one / "pyproject.toml" for one in (folder, *folder.parents) if (one / "pyproject.toml").is_file()), None
    )


def settings(file: Path | None, *tables: str) -> Mapping[str, Any]:
    """A table of a pyproject.toml; empty when there is none."""
    if file is None:
        return {}
    try:
        found: Any = tomllib.loads(file.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise PlaceError(f"cannot read {file}: {problem}; correct it first") from problem
    for name in tables:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _root(parent: Path, file: Path | None, current: Path) -> Path:
    above = parent
    while not above.is_dir():
        above = above.parent
    chain = above
    while (chain / "__init__.py").is_file():
        chain = chain.parent
    if chain != above:
        return chain
    base = file.parent if file is not None else current
    if parent.is_relative_to(base):
        inside = parent.relative_to(base).parts
        if inside[:1] == ("src",):
            return base / "src"
        if file is not None:
            return base
    return parent


def _declares(file: Path | None, root: Path) -> bool:
    """Whether pytest's settings put the root on the path."""
    if file is None:
        return False
    found = settings(file, "tool", "pytest", "ini_options").get("pythonpath", [])
    entries = found.split() if isinstance(found, str) else found
    return any(_normal(file.parent / str(entry)) == root for entry in entries)


def _normal(path: Path) -> Path:
    return Path(*path.parts[:1], *_without_dots(path.parts[1:]))


def _without_dots(parts: tuple[str, ...]) -> list[str]:
    kept: list[str] = []
    for part in parts:
        if part == ".." and kept:
            kept.pop()
        elif part not in (".", ".."):
            kept.append(part)
    return kept
