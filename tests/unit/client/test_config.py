"""Where the cluster is: the order of the places, and the pod."""

from __future__ import annotations

from pathlib import Path

import pytest

from flyball.client.config import in_cluster_config, load_config
from flyball.errors import ConfigError

KUBECONFIG = """
current-context: {name}
clusters: [{{name: c, cluster: {{server: "https://{name}"}}}}]
contexts: [{{name: {name}, context: {{cluster: c}}}}]
"""
POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    (path / ".kube").mkdir(parents=True)
    return path


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "serviceaccount"
    path.mkdir()
    (path / "token").write_text("t\n")
    (path / "ca.crt").write_text("pem")
    (path / "namespace").write_text("mine\n")
    monkeypatch.setattr("flyball.client.config.SERVICE_ACCOUNT", path)
    return path


def kubeconfig(path: Path, name: str) -> Path:
    path.write_text(KUBECONFIG.format(name=name))
    return path


def test_a_path_goes_before_everything(home: Path, tmp_path: Path) -> None:
    kubeconfig(home / ".kube/config", "at-home")
    environ = {"HOME": str(home), "KUBECONFIG": str(kubeconfig(tmp_path / "env", "from-env")), **POD}

    assert load_config(kubeconfig(tmp_path / "given", "given"), environ=environ).server == "https://given"
    assert load_config(environ=environ).server == "https://from-env"
    del environ["KUBECONFIG"]
    assert load_config(environ=environ).server == "https://at-home"


def test_a_listed_file_that_is_not_there_is_passed_over(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "b", "b")

    assert load_config(environ={"KUBECONFIG": f"{tmp_path / 'a'}:{file}"}).server == "https://b"


def test_context_and_namespace_can_be_chosen(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "a", "a")

    assert load_config(file, "a", namespace="other").namespace == "other"
    with pytest.raises(ConfigError, match='context "x", which does not exist'):
        load_config(file, "x")


def test_in_a_pod_its_files_are_taken(home: Path, account: Path) -> None:
    config = load_config(environ={"HOME": str(home), **POD})

    assert config.server == "https://10.0.0.1:443"
    assert (config.token_file, config.ca_file) == (account / "token", account / "ca.crt")
    assert config.namespace == "mine"
    assert load_config(environ={"HOME": str(home), **POD}, namespace="other").namespace == "other"
    assert load_config(environ={"HOME": str(home), "POD_NAMESPACE": "told", **POD}).namespace == "told"


def test_a_pod_on_ipv6(account: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}

    assert in_cluster_config(environ=environ).server == "https://[fd00::1]:6443"
    (account / "namespace").unlink()
    assert in_cluster_config(environ=environ).namespace == "default"


def test_a_pod_without_service_account(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="token does not exist; give the pod a service account"):
        in_cluster_config(environ=POD, directory=tmp_path)


def test_not_a_pod() -> None:
    with pytest.raises(ConfigError, match="so this is not a pod; use a kubeconfig"):
        in_cluster_config(environ={})


def test_nothing_anywhere(home: Path) -> None:
    with pytest.raises(ConfigError, match=r"no cluster is configured: KUBECONFIG is not set, .* and this is not a pod"):
        load_config(environ={"HOME": str(home)})


@pytest.mark.usefixtures("account")
def test_a_context_needs_a_kubeconfig(home: Path) -> None:
    with pytest.raises(ConfigError, match='context "dev": KUBECONFIG is not set'):
        load_config(context="dev", environ={"HOME": str(home), **POD})


@pytest.mark.usefixtures("account")
def test_a_kubeconfig_that_was_named_is_never_passed_over_for_the_pod(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"KUBECONFIG names .*typo: no such file"):
        load_config(environ={"KUBECONFIG": str(tmp_path / "typo"), **POD})


def test_a_folder_that_may_not_be_entered_is_not_passed_over(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_: Path) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", denied)
    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(ConfigError, match="config: not readable by this user; change its owner or mode"):
        load_config(environ={"HOME": str(home), **POD})
