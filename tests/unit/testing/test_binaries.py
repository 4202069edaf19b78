"""Where the programs of a real control plane are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from flyball.testing.binaries import BinariesMissing, cache_folder, find_binaries


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("FLYBALL_CACHE", "XDG_CACHE_HOME", "KUBEBUILDER_ASSETS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def programs(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_folder() == tmp_path / ".cache/flyball/control-plane/v1.36.4"
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder() == Path("/xdg/flyball/control-plane/v1.36.4")
    monkeypatch.setenv("FLYBALL_CACHE", "/own")
    assert cache_folder() == Path("/own/control-plane/v1.36.4")


def test_nothing_there_is_said_in_one_line_with_the_remedy() -> None:
    with pytest.raises(BinariesMissing, match=r"etcd and kube-apiserver not in .*make real-control-plane") as caught:
        find_binaries()
    assert "\n" not in str(caught.value)


def test_the_cache_folder_is_used() -> None:
    folder = programs(cache_folder(), "etcd", "kube-apiserver")
    found = find_binaries()
    assert found.folder == folder
    assert not found.has("kubectl")
    with pytest.raises(BinariesMissing, match="kubectl is not in"):
        found.path("kubectl")


def test_assets_go_before_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    programs(cache_folder(), "etcd", "kube-apiserver")
    assets = programs(tmp_path / "assets", "etcd")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    with pytest.raises(BinariesMissing, match=r"kube-apiserver not in .*assets \(KUBEBUILDER_ASSETS\)"):
        find_binaries()
    programs(assets, "kube-apiserver")
    assert find_binaries().folder == assets


def test_a_file_that_cannot_be_run_does_not_count() -> None:
    folder = programs(cache_folder(), "etcd", "kube-apiserver")
    (folder / "etcd").chmod(0o644)
    with pytest.raises(BinariesMissing, match="etcd not in"):
        find_binaries()
