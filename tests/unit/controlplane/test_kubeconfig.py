"""Kubeconfigs that are whole, private, and merged without loss."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml

from flyball.client.config import load_config
from flyball.controlplane.kubeconfig import Access, merge_kubeconfig, write_kubeconfig
from flyball.controlplane.pki import CertificateAuthority, Keys
from flyball.errors import ConfigError


@pytest.fixture
def access() -> Access:
    authority = CertificateAuthority()
    pair = authority.client("jane", ["dev"])
    return Access("https://127.0.0.1:6443", authority.certificate, pair.certificate, pair.key)


def test_a_complete_one(tmp_path: Path, access: Access) -> None:
    path = tmp_path / "config"
    path.write_text("something longer that was there before\n" * 100)
    path.chmod(0o644)
    write_kubeconfig(path, access)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    config = load_config(path)
    assert (config.server, config.namespace, config.context) == ("https://127.0.0.1:6443", "default", "flyball")
    assert (config.client_cert_data, config.client_key_data) == (access.certificate, access.key)
    assert [file.name for file in tmp_path.iterdir()] == ["config"]


def test_by_token(tmp_path: Path) -> None:
    write_kubeconfig(tmp_path / "config", Access("https://127.0.0.1:1", b"", token="t"))
    assert load_config(tmp_path / "config").token == "t"


def test_merged_twice_it_stands_once(tmp_path: Path, access: Access) -> None:
    path = tmp_path / "kube" / "config"
    merge_kubeconfig(path, access)
    config = yaml.safe_load(path.read_text())
    config["clusters"].insert(0, {"name": "mine", "cluster": {"server": "https://example.com"}})
    config["preferences"] = {"colors": True}
    path.write_text(yaml.safe_dump(config))
    merge_kubeconfig(path, access)
    again = yaml.safe_load(path.read_text())
    assert [one["name"] for one in again["clusters"]] == ["mine", "flyball"]
    assert [len(again[part]) for part in ("users", "contexts")] == [1, 1]
    assert again["preferences"] == {"colors": True}


def test_a_link_stays_a_link(tmp_path: Path, access: Access) -> None:
    (tmp_path / "real").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    merge_kubeconfig(tmp_path / "link", access)
    assert (tmp_path / "link").is_symlink()
    assert load_config(tmp_path / "real").context == "flyball"


@pytest.mark.parametrize("content", ["a: [", "- a", "users: 1", "\x00"])
def test_what_is_none_is_not_touched(tmp_path: Path, access: Access, content: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(ConfigError, match=str(path)):
        merge_kubeconfig(path, access)
    assert path.read_text() == content


def test_keys_are_the_same_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    first, second = Keys.kept(path), Keys.kept(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert first.authority.certificate == second.authority.certificate
    assert first.authority.key == second.authority.key
    assert first.accounts.private_numbers() == second.accounts.private_numbers()
    path.write_text("nonsense")
    with pytest.raises(ConfigError, match="these are no keys"):
        Keys.kept(path)
