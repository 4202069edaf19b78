"""`flyball crd`: the CRDs of classes, and one line for what goes wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.support.everything import Everything, EverythingOld

from flyball.api import crd_of

KINDS = '''
from flyball.api import Resource, Spec

class ShellSpec(Spec):
    size: int = 1
    """How many.

    Or how few.
    """

class Shell(Resource, group="example.org", version="v1", storage=True):
    """A shell."""
    spec: ShellSpec

class OldShell(Resource, group="example.org", version="v1alpha1", kind="Shell"):
    spec: ShellSpec

class Box(Resource, group="example.org", version="v1"):
    spec: ShellSpec
'''
ROOT = Path(__file__).parents[3]


def flyball(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", "from flyball.cli import main; main()", "crd", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kinds.py").write_text(KINDS)
    return tmp_path


@pytest.mark.parametrize("place", ["kinds", "kinds.py", "./kinds.py"])
def test_one_class(folder: Path, place: str) -> None:
    done = flyball(f"{place}:Box", cwd=folder)
    assert done.stderr == ""
    crd = yaml.safe_load(done.stdout)
    assert crd["metadata"]["name"] == "boxes.example.org"
    size = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]
    assert size["description"] == "How many.\n\nOr how few."


def test_several_classes_are_versions_of_a_kind_or_kinds(folder: Path) -> None:
    done = flyball("kinds:Shell", "kinds:OldShell", "kinds:Box", cwd=folder)
    shells, boxes = yaml.safe_load_all(done.stdout)
    assert [version["name"] for version in shells["spec"]["versions"]] == ["v1", "v1alpha1"]
    assert boxes["spec"]["names"]["kind"] == "Box"
    assert flyball("kinds", cwd=folder).stdout == done.stdout


def test_a_file_called_like_a_module_of_python(folder: Path) -> None:
    (folder / "operator.py").write_text(KINDS)
    assert "boxes.example.org" in flyball("operator.py:Box", cwd=folder).stdout


def test_it_prints_what_the_library_says() -> None:
    done = flyball("tests/support/everything.py", cwd=ROOT)
    assert yaml.safe_load(done.stdout) == crd_of(Everything, EverythingOld)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nowhere:Box", "nowhere: no such module, here or installed; name a module or a .py file"),
        ("nowhere.py:Box", "nowhere.py: no such file; name a Python file or an importable module"),
        ("kinds:Bax", "kinds:Bax: kinds has no class Bax; it has Shell, OldShell, Box"),
        ("kinds:ShellSpec", "kinds:ShellSpec: it is no kind; name a class derived from Resource with a group"),
        ("kinds:OldShell", None),
        ("empty", "empty: it defines no kind; derive a class from Resource"),
        ("broken", "broken: it cannot be imported: SyntaxError: "),
        ("needs", "needs: it cannot be imported: No module named 'not_there'; install what it needs"),
        ("fails.py", "fails.py: it cannot be imported: ZeroDivisionError: division by zero"),
        ("wrong.py", "Wrong.spec: Any says nothing about the value; say that anything is kept"),
    ],
)
def test_failures_are_one_line(folder: Path, words: str, message: str | None) -> None:
    (folder / "empty.py").write_text("")
    (folder / "broken.py").write_text("def")
    (folder / "needs.py").write_text("import not_there")
    (folder / "fails.py").write_text("1 / 0")
    (folder / "wrong.py").write_text(
        "from typing import Any\nfrom flyball.api import Resource\n"
        "class Wrong(Resource, group='a.b', version='v1'):\n    spec: Any\n"
    )
    done = flyball(words, cwd=folder)
    if message is None:
        assert done.returncode == 0
        return
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert message in done.stderr


def test_nothing_named_is_wrong_usage(folder: Path) -> None:
    assert flyball(cwd=folder).returncode == 2
