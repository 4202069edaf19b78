"""Files that others replace while we run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flyball.client.rotating import RotatingFile
from flyball.clock import ManualClock
from flyball.errors import CredentialError


@pytest.mark.capability("C12")
def test_the_way_a_pods_files_are_replaced(tmp_path: Path) -> None:
    """The kubelet writes a new folder and turns a symbolic link."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(name)
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "token").symlink_to("..data/token")
    clock = ManualClock()
    file = RotatingFile("token file", tmp_path / "token", clock)
    assert file.read() == b"one"

    (tmp_path / "new").symlink_to("two")
    os.replace(tmp_path / "new", tmp_path / "..data")  # noqa: PTH105

    assert file.read() == b"one"
    clock.jump(1)
    assert file.read() == b"two"


def test_who_insists_gets_the_newest(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one")
    file = RotatingFile("f", tmp_path / "f", ManualClock())
    file.read()
    (tmp_path / "f").write_text("other")

    assert file.read() == b"one"
    assert file.read(insist=True) == b"other"


def test_a_file_that_has_not_changed_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_text("one")
    clock = ManualClock()
    file = RotatingFile("f", tmp_path / "f", clock)
    file.read()

    def forbidden(_: Path) -> bytes:
        raise AssertionError

    monkeypatch.setattr(Path, "read_bytes", forbidden)
    clock.jump(100)
    assert file.read() == b"one"


def test_what_could_never_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    with pytest.raises(CredentialError, match=f"CA {tmp_path}: it is a directory; look there"):
        RotatingFile("CA", tmp_path, clock, remedy="look there").read()
    with pytest.raises(CredentialError, match="no such file; check the path"):
        RotatingFile("CA", tmp_path / "none", clock).read()

    def denied(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "f").touch()
    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(CredentialError, match="not readable by this user"):
        RotatingFile("CA", tmp_path / "f", clock).read()
