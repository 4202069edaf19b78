"""Kubeconfig files: merged as kubectl merges them, refused with the place and the remedy."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from flyball.client.cluster_config import ExecConfig, Impersonation
from flyball.client.kubeconfig import default_paths, read_kubeconfig
from flyball.errors import ConfigError

DEV: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "dev",
    "clusters": [{"name": "c", "cluster": {"server": "https://dev:6443"}}],
    "users": [{"name": "u", "user": {"token": "dev-token"}}],
    "contexts": [{"name": "dev", "context": {"cluster": "c", "user": "u", "namespace": "ns"}}],
}


def write(path: Path, content: dict[str, Any] | str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def with_user(**user: Any) -> dict[str, Any]:
    return {**DEV, "users": [{"name": "u", "user": user}]}


def with_cluster(**cluster: Any) -> dict[str, Any]:
    return {**DEV, "clusters": [{"name": "c", "cluster": cluster}]}


def refusal(path: Path, content: dict[str, Any] | str | bytes, context: str | None = None) -> str:
    write(path, content)
    with pytest.raises(ConfigError) as caught:
        read_kubeconfig([path]).select(context)
    line = str(caught.value)
    assert "\n" not in line
    assert str(path) in line
    return line


def test_the_current_context_says_where_and_as_whom(tmp_path: Path) -> None:
    file = write(tmp_path / "config", DEV)

    config = read_kubeconfig([file]).select()

    assert (config.server, config.token, config.namespace) == ("https://dev:6443", "dev-token", "ns")
    assert config.context == "dev"
    assert config.source == f"kubeconfig {file}, context dev"


def test_another_context_can_be_chosen_and_another_namespace(tmp_path: Path) -> None:
    both = {**DEV, "contexts": [*DEV["contexts"], {"name": "bare", "context": {"cluster": "c"}}]}
    merged = read_kubeconfig([write(tmp_path / "config", both)])

    assert merged.select("bare").token is None
    assert merged.select("bare").namespace == "default"
    assert merged.select("dev", "other").namespace == "other"


@pytest.mark.capability("S6")
def test_of_several_files_the_first_wins_entry_by_entry(tmp_path: Path) -> None:
    first = {
        "clusters": [{"name": "c", "cluster": {"server": "https://first"}}],
        "users": [{"name": "u", "user": {"username": "me", "password": "x"}}],
    }
    files = [write(tmp_path / "a" / "config", first), write(tmp_path / "b" / "config", DEV)]

    config = read_kubeconfig(files).select()

    assert config.server == "https://first"
    assert (config.username, config.token) == ("me", None), "entries are taken whole"
    assert config.context == "dev", "the first file that has a current-context gives it"


def test_paths_are_relative_to_their_own_file(tmp_path: Path) -> None:
    cluster = {"server": "https://h", "certificate-authority": "pki/ca.crt"}
    user = {"client-certificate": "me.crt", "client-key": "/abs/me.key", "tokenFile": "../token"}
    first = {"clusters": [{"name": "c", "cluster": cluster}]}
    second = {**DEV, "users": [{"name": "u", "user": user}]}
    files = [write(tmp_path / "a" / "config", first), write(tmp_path / "b" / "config", second)]

    config = read_kubeconfig(files).select()

    assert config.ca_file == tmp_path / "a" / "pki/ca.crt"
    assert config.client_cert_file == tmp_path / "b" / "me.crt"
    assert config.client_key_file == Path("/abs/me.key")
    assert config.token_file == tmp_path / "b" / "../token"


def test_data_goes_before_files(tmp_path: Path) -> None:
    data = base64.b64encode(b"pem").decode()
    content = {
        **with_cluster(**{"server": "https://h", "certificate-authority": "x", "certificate-authority-data": data}),
        "users": [
            {
                "name": "u",
                "user": {
                    "client-certificate-data": data[:2] + "\n" + data[2:],
                    "client-certificate": "x",
                    "client-key-data": data,
                },
            }
        ],
    }

    config = read_kubeconfig([write(tmp_path / "config", content)]).select()

    assert (config.ca_data, config.ca_file) == (b"pem", None)
    assert (config.client_cert_data, config.client_cert_file) == (b"pem", None)
    assert config.client_key_data == b"pem"


def test_everything_about_the_connection_is_read(tmp_path: Path) -> None:
    cluster = {
        "server": "https://h:1/k8s/clusters/c-1",
        "tls-server-name": "kubernetes",
        "proxy-url": "http://proxy:3128",
        "insecure-skip-tls-verify": True,
        "disable-compression": True,
    }
    config = read_kubeconfig([write(tmp_path / "config", with_cluster(**cluster))]).select()

    assert config.tls_server_name == "kubernetes"
    assert config.proxy_url == "http://proxy:3128"
    assert config.insecure_skip_tls_verify
    assert config.disable_compression


def test_impersonation_is_read(tmp_path: Path) -> None:
    user = {"as": "jane", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"scopes": ["x"]}}

    config = read_kubeconfig([write(tmp_path / "config", with_user(**user))]).select()

    assert config.impersonate == Impersonation("jane", "7", ("a", "b"), {"scopes": ("x",)})


def test_an_exec_plugin_is_read(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./bin/login",
        "args": ["--x"],
        "env": [{"name": "A", "value": "1"}],
        "installHint": "get it",
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
    cluster = {
        "server": "https://h",
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}],
    }
    content = {**with_cluster(**cluster), "users": [{"name": "u", "user": {"exec": plugin}}]}

    config = read_kubeconfig([write(tmp_path / "config", content)]).select()

    assert config.exec_plugin == ExecConfig(
        command=str(tmp_path / "bin/login"),
        args=("--x",),
        env=(("A", "1"),),
        interactive_mode="Never",
        provide_cluster_info=True,
        cluster_extension={"audience": "x"},
        install_hint="get it",
    )


def test_a_plugin_without_path_is_looked_for_in_path(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "login"}

    config = read_kubeconfig([write(tmp_path / "config", with_user(exec=plugin))]).select()

    assert config.exec_plugin is not None
    assert config.exec_plugin.command == "login"
    assert config.exec_plugin.interactive_mode == "IfAvailable", "v1beta1 has a default, v1 has none"


@pytest.mark.parametrize(
    ("server", "more", "url"),
    [
        ("h:8080", {}, "http://h:8080"),
        ("h:6443", {"insecure-skip-tls-verify": True}, "https://h:6443"),
        ("h:6443", {"certificate-authority": "ca"}, "https://h:6443"),
    ],
)
def test_a_server_without_scheme_gets_one(tmp_path: Path, server: str, more: dict[str, Any], url: str) -> None:
    content = with_cluster(server=server, **more)

    assert read_kubeconfig([write(tmp_path / "config", content)]).select().server == url


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    key = base64.b64encode(b"very-secret-key").decode()
    user = {
        "token": "very-secret-token",
        "client-certificate-data": key,
        "client-key-data": key,
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "command": "x",
            "args": ["very-secret-arg"],
            "env": [{"name": "A", "value": "very-secret-value"}],
        },
    }
    file = write(
        tmp_path / "config",
        {
            **with_cluster(**{"server": "https://h", "proxy-url": "http://u:very-secret@p:1"}),
            "users": with_user(**user)["users"],
        },
    )
    merged = read_kubeconfig([file])

    assert "very-secret" not in repr(merged)
    assert "very-secret" not in repr(merged.select())


def test_one_empty_file_among_several_adds_nothing(tmp_path: Path) -> None:
    files = [write(tmp_path / "empty", ""), write(tmp_path / "config", DEV)]

    assert read_kubeconfig(files).select().server == "https://dev:6443"


def test_a_broken_entry_of_another_cluster_harms_nobody(tmp_path: Path) -> None:
    content = {**DEV, "clusters": [*DEV["clusters"], {"name": "bad", "cluster": {"server": 7}}]}

    assert read_kubeconfig([write(tmp_path / "config", content)]).select().server == "https://dev:6443"


def test_the_usual_places(tmp_path: Path) -> None:
    assert default_paths({"HOME": str(tmp_path)}) == ((tmp_path / ".kube" / "config",), False)
    listed = os.pathsep.join(["/a", "", "/b", "/a"])
    assert default_paths({"KUBECONFIG": listed}) == ((Path("/a"), Path("/b")), True)


class TestRefusals:
    """Each is one line with the file, the cause and the remedy."""

    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="no such file; create it, or point KUBECONFIG at another file"):
            read_kubeconfig([tmp_path / "nowhere"])

    def test_a_directory(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="it is a directory; name the file in it"):
            read_kubeconfig([tmp_path])

    def test_unreadable(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = write(tmp_path / "config", DEV)

        def denied(_: Path) -> bytes:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "read_bytes", denied)
        with pytest.raises(ConfigError, match="config: not readable by this user; change its owner or mode"):
            read_kubeconfig([file])

    @pytest.mark.parametrize("content", ["", "   \n", "# only a remark\n", "---\n", "null\n"])
    def test_empty(self, tmp_path: Path, content: str) -> None:
        assert "the file is empty; write one" in refusal(tmp_path / "config", content)

    def test_broken_yaml_names_the_line(self, tmp_path: Path) -> None:
        line = refusal(tmp_path / "config", "apiVersion: v1\nclusters:\n- name: [a\nusers: {}\n")

        assert "line 4, column 6: not valid YAML" in line
        assert line.endswith("; correct the file")

    @pytest.mark.parametrize("content", ["a: \x07", "a: 2026-99-99", "[" * 3000, "a: !!python/object:os.system {}"])
    def test_broken_yaml_of_other_kinds(self, tmp_path: Path, content: str) -> None:
        assert "not valid YAML" in refusal(tmp_path / "config", content)

    def test_not_text(self, tmp_path: Path) -> None:
        assert "not UTF-8 text (byte 0)" in refusal(tmp_path / "config", b"\xff\xfe\x00\x01")

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("just words", "it holds text, not a kubeconfig"),
            ("- a\n", "it holds a list, not a kubeconfig"),
            ("kind: Deployment\n", "it holds a Deployment, not a kubeconfig"),
            ("a: b\n", "it holds neither clusters nor contexts; is it a kubeconfig?"),
            ("clusters: 3\n", "clusters must be a list, not a number"),
            ("clusters: [3]\n", "clusters[0] must be a mapping, not a number"),
            ("clusters: [{name: 1}]\n", "clusters[0].name must be text, not a number; put it in quotes"),
            ("contexts: [{name: a, context: b}]\n", "contexts[0].context must be a mapping, not text"),
        ],
    )
    def test_something_else(self, tmp_path: Path, content: str, said: str) -> None:
        assert said in refusal(tmp_path / "config", content)

    def test_wrong_context(self, tmp_path: Path) -> None:
        line = refusal(tmp_path / "config", DEV, "prod")

        assert line.endswith('context "prod", which does not exist; there are the contexts dev')

    def test_no_current_context(self, tmp_path: Path) -> None:
        line = refusal(tmp_path / "config", {**DEV, "current-context": ""})

        assert "no current-context is set; choose a context of dev" in line

    def test_unknown_cluster(self, tmp_path: Path) -> None:
        line = refusal(tmp_path / "config", {**DEV, "clusters": []})

        assert line.endswith('context "dev" names cluster "c", which does not exist; there are no clusters')

    def test_unknown_user(self, tmp_path: Path) -> None:
        line = refusal(tmp_path / "config", {**DEV, "users": [{"name": "x", "user": {}}]})

        assert line.endswith('context "dev" names user "u", which does not exist; there are the users x')

    def test_the_same_name_twice(self, tmp_path: Path) -> None:
        line = refusal(tmp_path / "config", {**DEV, "users": DEV["users"] * 2})

        assert 'users has "u" twice; rename or remove one' in line

    @pytest.mark.parametrize(
        ("cluster", "said"),
        [
            ({}, 'cluster "c": server is missing; write it as https://host:port'),
            ({"server": "https://"}, "server 'https://' is not a URL"),
            ({"server": "ftp://h"}, "is not a URL; write it as https://host:port"),
            ({"server": "https://h:99999"}, "is not a URL"),
            ({"server": "https://u:hidden@h"}, "server carries a user name or password"),
            ({"server": "https://h?x=1"}, "has a query or fragment"),
            ({"server": "https://h", "certificate-authority-data": "%%%"}, "certificate-authority-data is not base64"),
            ({"server": "https://h", "insecure-skip-tls-verify": "yes"}, "must be true or false, not text"),
            (
                {"server": "https://h", "insecure-skip-tls-verify": True, "certificate-authority": "ca"},
                "exclude each other; remove one",
            ),
        ],
    )
    def test_clusters(self, tmp_path: Path, cluster: dict[str, Any], said: str) -> None:
        line = refusal(tmp_path / "config", with_cluster(**cluster))

        assert said in line
        assert "hidden" not in line

    @pytest.mark.parametrize(
        ("user", "said"),
        [
            ({"token": 12345}, 'user "u": token must be text, not a number; put it in quotes'),
            ({"client-key-data": "a"}, "client-key-data is not base64"),
            ({"client-certificate": "a"}, "client-certificate is given without client-key; give both or none"),
            ({"client-key": "a"}, "client-key is given without client-certificate"),
            ({"token": "a", "username": "b", "password": "c"}, "both a token and a user name with password are given"),
            ({"password": "c"}, "a password is given without username"),
            ({"as-groups": ["x"]}, "without `as`; name the user to impersonate"),
            ({"as": "a", "as-groups": "x"}, "as-groups must be a list of texts"),
            ({"auth-provider": {"name": "gcp"}}, "use the exec plugin gke-gcloud-auth-plugin instead"),
            ({"auth-provider": {"name": "own"}}, "(own) is no longer part of Kubernetes clients; use an exec plugin"),
            ({"exec": {"command": "x"}}, "exec.apiVersion is None; update the plugin and write"),
            (
                {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}},
                "exec.apiVersion is 'client.authentication.k8s.io/v1alpha1'; update the plugin",
            ),
            ({"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}, "exec.command is missing"),
            (
                {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}},
                "exec.interactiveMode is missing; write Never, IfAvailable or Always",
            ),
            (
                {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x", "interactiveMode": "Maybe"}},
                "exec.interactiveMode is 'Maybe'",
            ),
        ],
    )
    def test_users(self, tmp_path: Path, user: dict[str, Any], said: str) -> None:
        line = refusal(tmp_path / "config", with_user(**user))

        assert said in line
        assert "12345" not in line
