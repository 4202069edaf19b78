"""client-go and controller-runtime: typed clients that speak protobuf, informers, leaders, an operator.

The program of `go/` is built once per state of its sources, into `.cache/clients-go`. Building takes a minute and may
fetch half a gigabyte of modules, so that `make test` only runs what is built already; with FLYBALL_GO_CLIENTS=1 it is
built first.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.integration.clients.environment import CACHE
from tests.integration.clients.playing import look_around, play_program

from flyball.sync import Client
from flyball.testing import Cluster, RealCluster

SOURCES = Path(__file__).parent / "go"
FOLDER = CACHE / "clients-go"
SWITCH = "FLYBALL_GO_CLIENTS"
MINUTES = 10
UNREACHABLE = ("dial tcp", "no such host", "i/o timeout", "connection refused", "proxyconnect", "GOPROXY=off")


@pytest.fixture(scope="module")
def program() -> str:
    digest = hashlib.sha256()
    for source in sorted(SOURCES.iterdir()):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    path = FOLDER / f"clients-{digest.hexdigest()[:12]}"
    if not path.exists():
        if not os.environ.get(SWITCH):
            pytest.skip(f"the Go clients are not built; {SWITCH}=1 builds them")
        _build(path)
    return str(path)


def _build(path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no Go that could build the Go clients")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return
        command = [go, "build", "-mod=readonly", "-ldflags=-s -w", "-o", str(path), "."]
        done = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True, timeout=MINUTES * 60, check=False)
        for other in FOLDER.glob("clients-*"):
            if other != path:
                other.unlink()
    if done.returncode != 0:
        if any(sign in done.stderr for sign in UNREACHABLE):
            pytest.skip(f"the module proxy does not answer: {done.stderr.strip().splitlines()[-1]}")
        pytest.fail(f"the Go clients cannot be built:\n{done.stderr}")


def test_go_clients_work_with_the_embedded_server(cluster_server: Cluster, program: str) -> None:
    left = play_program([program], "go", cluster_server.kubeconfig)
    look_around(cluster_server.sync, left)
    requests = cluster_server.requests
    assert [request for request in requests if request.status >= 500] == []
    assert requests.of("watch", "jobs")
    assert requests.of("list", "jobs") == []  # the informer has its first list from the watch


@pytest.mark.real
def test_go_clients_work_with_a_real_server(real_cluster: RealCluster, program: str) -> None:
    left = play_program([program], "go", real_cluster.kubeconfig)
    with Client(real_cluster.config) as client:
        look_around(client, left)
