"""The builder of the real control plane: what it builds, keeps and says. Go is a stand-in here."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import real_control_plane

from flyball.testing.binaries import PROGRAMS, cache_folder

GO = """#!/bin/sh
if [ "$1" = env ]; then echo "$GO_SAYS"; exit 0; fi
echo "$@" >> "$GO_LOG"
shift; out=$2
case "$out" in *"$GO_FAILS_AT") exit 1;; esac
echo program > "$out"; chmod +x "$out"
"""


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A Go that writes down what it was asked to build."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "go").write_text(GO)
    (programs / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("FLYBALL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GO_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("GO_SAYS", "go1.26.1")
    monkeypatch.setenv("GO_FAILS_AT", "/nothing")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path / "log"


def test_builds_what_is_missing_and_only_that(log: Path) -> None:
    assert real_control_plane.main([]) == 0
    assert {path.name for path in cache_folder().iterdir()} == set(PROGRAMS)
    assert len(log.read_text().splitlines()) == 5
    (cache_folder() / "kubectl").unlink()
    assert real_control_plane.main([]) == 0
    assert log.read_text().splitlines()[5].endswith("k8s.io/kubernetes/cmd/kubectl")
    assert real_control_plane.main([]) == 0
    assert len(log.read_text().splitlines()) == 6


def test_the_version_is_compiled_in(log: Path) -> None:
    real_control_plane.main([])
    first = log.read_text().splitlines()[0]
    assert "version.gitVersion=v1.36.4" in first
    assert "version.gitMajor=1" in first
    assert "version.gitMinor=36" in first


def test_a_failed_build_leaves_nothing_half_done(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GO_FAILS_AT", "/kube-apiserver")
    assert real_control_plane.main([]) == 1
    assert {path.name for path in cache_folder().iterdir()} == {"etcd"}
    assert real_control_plane.main(["--if-possible"]) == 3


@pytest.mark.parametrize(("says", "words"), [("go1.25.3", "here is go1.25.3"), ("", "does not run")])
def test_an_old_go_is_one_clear_line(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], says: str, words: str
) -> None:
    monkeypatch.setenv("GO_SAYS", says)
    assert real_control_plane.main([]) == 3
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not log.exists()


def test_no_go_is_one_clear_line(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert real_control_plane.main(["--if-possible"]) == 3
    assert "no Go on this machine: install Go 1.26 or newer, or set KUBEBUILDER_ASSETS" in capsys.readouterr().err


def test_the_time_given_is_kept(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert real_control_plane.main(["--minutes", "0"]) == 3
    assert "not built in the time given" in capsys.readouterr().err


def test_given_assets_are_used_and_nothing_is_built(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    assert real_control_plane.main([]) == 3
    assert "lacks etcd, kube-apiserver" in capsys.readouterr().err
    for name in PROGRAMS:
        (assets / name).touch()
    assert real_control_plane.main([]) == 0
    assert not log.exists()
