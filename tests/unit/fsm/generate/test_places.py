"""Where a package goes and how it is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from flyball.fsm.generate.places import PlaceError, find_places


def test_the_current_folder_is_where_imports_start(tmp_path: Path) -> None:
    places = find_places(Path(), "machine", here=tmp_path)
    assert (places.module, places.package, places.tests) == (
        "machine",
        tmp_path / "machine",
        tmp_path / "tests" / "machine",
    )
    assert places.parents == ()
    assert not places.path_entry


def test_src_is_not_part_of_the_name(tmp_path: Path) -> None:
    places = find_places(Path("src/shop/controller"), "machine", here=tmp_path)
    assert places.module == "shop.controller.machine"
    assert places.root == tmp_path / "src"
    assert places.project == tmp_path
    assert places.parents == (tmp_path / "src/shop", tmp_path / "src/shop/controller")
    assert places.path_entry


def test_a_project_file_above_decides(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["src"]\n')
    (tmp_path / "deep").mkdir()
    places = find_places(Path("../src/shop"), "machine", here=tmp_path / "deep")
    assert (places.module, places.project) == ("shop.machine", tmp_path)
    assert not places.path_entry
    assert find_places(tmp_path / "lib", "machine", here=tmp_path).module == "lib.machine"


def test_a_chain_of_packages_decides_first(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    folder = tmp_path / "python" / "shop" / "inner"
    folder.mkdir(parents=True)
    for one in (folder, folder.parent):
        (one / "__init__.py").write_text("")
    places = find_places(folder / "new", "machine", here=tmp_path)
    assert places.module == "shop.inner.new.machine"
    assert places.root == tmp_path / "python"


def test_tests_go_where_they_are_asked_for(tmp_path: Path) -> None:
    places = find_places(Path("src/shop"), "machine", Path("checks"), here=tmp_path)
    assert places.tests == tmp_path / "checks" / "machine"
    assert places.tests_root == tmp_path / "checks"


def test_a_folder_that_is_no_identifier_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    with pytest.raises(PlaceError, match="'my-app' is no Python identifier"):
        find_places(Path("src/my-app"), "machine", here=tmp_path)


def test_a_broken_project_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[[[")
    with pytest.raises(PlaceError, match=r"cannot read .*pyproject\.toml"):
        find_places(Path("src/shop"), "machine", here=tmp_path)
