"""`flyball up` as a person runs it: a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from flyball import sync
from flyball.client.config import load_config
from flyball.k8s.core.v1 import ConfigMap, Namespace, Node, ServiceAccount

READY = "Ctrl-C ends it."


def start(*arguments: str | Path, home: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "HOME": str(home), "PYTHONUNBUFFERED": "1"}
    environment.pop("KUBECONFIG", None)
    return subprocess.Popen(
        [sys.executable, "-c", "from flyball.cli import main; main()", "up", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def read_until_ready(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    seen: list[str] = []
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        while READY not in "".join(seen):
            line = process.stdout.readline()
            assert line, f"it ended: {seen} {process.stderr.read() if process.stderr else ''}"
            seen.append(line)
    finally:
        watchdog.cancel()
    return "".join(seen)


@contextmanager
def up(*arguments: str | Path, home: Path) -> Generator[tuple[subprocess.Popen[str], str]]:
    process = start(*arguments, home=home)
    try:
        yield process, read_until_ready(process)
    finally:
        process.kill()
        process.communicate()


def refused(*arguments: str | Path, home: Path) -> str:
    process = start(*arguments, home=home)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1, (out, err)
    assert out == ""
    assert err.count("\n") == 1, err
    return err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_stop(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "config"
    with up("--port", "0", "--kubeconfig", path, home=tmp_path) as (process, told):
        assert f"export KUBECONFIG={path}" in told
        assert "Every authenticated user may do everything. This is no production cluster." in told
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        config = yaml.safe_load(path.read_text())
        assert [len(config[part]) for part in ("clusters", "users", "contexts")] == [1, 1, 1]
        with sync.Client(load_config(path)) as client:
            client.create(ConfigMap.new("a"))
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, err) == (0, "")
        assert "stopped" in out
        assert not (tmp_path / ".kube").exists()


def test_an_open_watch_ends_cleanly(tmp_path: Path) -> None:
    path = tmp_path / "config"
    with (
        up("--port", "0", "--kubeconfig", path, home=tmp_path) as (process, _),
        sync.Client(load_config(path)) as client,
    ):
        events = iter(client.watch(ConfigMap, namespace="default"))
        client.create(ConfigMap.new("a"))
        assert next(events).object.metadata.name
        process.terminate()
        _, err = process.communicate(timeout=30)
        assert (process.returncode, err) == (0, "")


def test_manifests_are_there_when_it_is_ready(tmp_path: Path) -> None:
    folder = tmp_path / "load"
    folder.mkdir()
    (folder / "a.yaml").write_text(
        textwrap.dedent("""
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: a, namespace: shop}
            data: {x: "1"}
            ---
            apiVersion: v1
            kind: Namespace
            metadata: {name: shop}
        """)
    )
    path = tmp_path / "config"
    with (
        up("--port", "0", "--load", folder, "--kubeconfig", path, home=tmp_path),
        sync.Client(load_config(path)) as client,
    ):
        assert client.get(ConfigMap, "a", namespace="shop").data == {"x": "1"}


def test_controllers_are_chosen_as_kube_controller_manager_takes_them(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    wishes = ("--controllers", "*,-serviceaccount-controller,-root-ca-certificate-publisher", "--speed", "50")
    with (
        up("--port", "0", "--kubeconfig", path, *wishes, home=tmp_path),
        sync.Client(load_config(path)) as client,
    ):
        client.create(Namespace.new("bare"))
        assert list(client.list(ServiceAccount, namespace="bare")) == []
        assert list(client.list(ConfigMap, namespace="bare")) == []


@pytest.mark.parametrize(
    ("wishes", "told"),
    [
        (
            ("--controllers", "*,-jobs"),
            "there is no controller jobs; there are cronjob-controller, deployment-controller,",
        ),
        (("--pods", "docker"), "'docker' is not one of 'simulate', 'process', 'none'"),
        (("--speed", "0"), "'--speed'"),
        (("--nodes", "-1"), "'--nodes'"),
        (("--image", "web=true"), "are for Pods that are run: add --pods=process"),
        (("--pods=process", "--allow-remote"), "whoever reaches the cluster could run commands here as you"),
        (("--pods=process", "--image=web"), "give a name and a command: --image NAME=COMMAND"),
        (("--pods=process", "--images=/nowhere.yaml"), "name a YAML file"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path: Path, wishes: tuple[str, ...], told: str) -> None:
    process = start("--port", "0", *wishes, home=tmp_path)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (1, 2)
    assert out == ""
    assert told in err
    assert "Traceback" not in err


def test_there_are_as_many_nodes_as_wanted_and_those_that_were_there(tmp_path: Path) -> None:
    data, path = tmp_path / "data", tmp_path / "config"
    for wishes, expected in ((("--pods", "none"), 0), (("--nodes", "2"), 2), (("--nodes", "1"), 2)):
        with up("--port", "0", "--data", data, "--kubeconfig", path, *wishes, home=tmp_path) as (process, _):
            with sync.Client(load_config(path)) as client:
                names = [node.metadata.name for node in client.list(Node)]
            assert names == [f"node-{number}" for number in range(1, expected + 1)]
            process.terminate()
            assert process.wait(30) == 0


def test_data_stays_and_has_one_owner(tmp_path: Path) -> None:
    data, path = tmp_path / "data", tmp_path / "config"
    with up("--port", "0", "--data", data, "--kubeconfig", path, home=tmp_path) as (process, _):
        with sync.Client(load_config(path)) as client:
            client.create(ConfigMap.new("a"))
        told = refused("--port", "0", "--data", data, home=tmp_path)
        assert told == f"flyball: {data}: another cluster has this file open; stop it, or name another file\n"
        process.kill()
        process.communicate()
    with (
        up("--port", "0", "--data", data, "--kubeconfig", path, home=tmp_path),
        sync.Client(load_config(path)) as client,
    ):
        assert client.get(ConfigMap, "a").metadata.name == "a"


def test_merge_adds_to_a_kubeconfig_and_keeps_the_rest(tmp_path: Path) -> None:
    own = tmp_path / ".kube" / "config"
    own.parent.mkdir()
    before: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "users": [{"name": "me", "user": {"token": "t"}}],
        "x-mine": 1,
    }
    own.write_text(yaml.safe_dump(before))
    with up("--port", "0", "--merge", home=tmp_path), sync.Client(load_config(own)) as client:
        client.list(Namespace)
        merged = yaml.safe_load(own.read_text())
        assert merged["users"][0] == before["users"][0]
        assert merged["x-mine"] == 1
        assert merged["current-context"] == "flyball"


def test_without_tls_on_loopback_and_on_a_socket_file(tmp_path: Path) -> None:
    import http.client

    file = tmp_path / "api.sock"
    with up("--port", "0", "--http-port", "0", "--unix-socket", file, home=tmp_path) as (process, told):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        address = next(line.split()[-1] for line in told.splitlines() if "http://" in line)
        host = address.removeprefix("http://")
        answers: list[int] = []
        for headers in ({}, {"Origin": "https://example.com"}, {"Host": "example.com"}):
            connection = http.client.HTTPConnection(host)
            connection.request("GET", "/api/v1/namespaces", headers=headers)
            answers.append(connection.getresponse().status)
            connection.close()
        assert answers == [200, 403, 403]
        with socket.socket(socket.AF_UNIX) as plain:
            plain.connect(str(file))
            plain.sendall(b"GET /api/v1/namespaces/default HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert plain.recv(64).startswith(b"HTTP/1.1 200 OK")
        process.terminate()
        process.communicate(timeout=30)
        assert not file.exists()


def test_what_cannot_be_done_is_one_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("a: [")
    assert f"{bad}: error converting YAML to JSON" in refused("--port", "0", "--load", bad, home=tmp_path)
    bad.write_text("a: 1")
    assert "a document is no object of Kubernetes" in refused("--port", "0", "--load", bad, home=tmp_path)
    bad.write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: A_B}}")
    assert "is invalid: metadata.name" in refused("--port", "0", "--load", bad, home=tmp_path)
    nowhere = tmp_path / "no" / "where"
    assert f"{nowhere}: no such file" in refused("--port", "0", "--load", nowhere, home=tmp_path)
    assert f"write the kubeconfig {nowhere}" in refused("--port", "0", "--kubeconfig", nowhere, home=tmp_path)
    assert f"cannot open {nowhere}" in refused("--port", "0", "--data", nowhere, home=tmp_path)
    assert "--allow-remote" in refused("--port", "0", "--host", "0.0.0.0", home=tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"listen on 127.0.0.1:{port}: " in refused("--port", str(port), home=tmp_path)
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"this is no database" * 100)
    assert f"cannot open {garbage} as a cluster's data" in refused("--port", "0", "--data", garbage, home=tmp_path)
