"""The real control plane itself: ready, restartable, and gone with its owner."""

from __future__ import annotations

import os
import select
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from flyball.testing.processes import ProcessError
from flyball.testing.realcluster import RealCluster

pytestmark = pytest.mark.real


def test_ready_with_controllers_and_a_private_kubeconfig(real_cluster: RealCluster) -> None:
    status, _ = real_cluster.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")
    assert status == 200
    assert stat.S_IMODE(real_cluster.kubeconfig.stat().st_mode) == 0o600
    assert b"v1.36.4" in real_cluster.request("GET", "/version")[1]


def test_the_client_can_use_its_configuration(real_cluster: RealCluster) -> None:
    assert real_cluster.config.server == real_cluster.server


def test_kubectl_works_with_it(real_cluster: RealCluster) -> None:
    kubectl = real_cluster.binaries.path("kubectl")
    command = [str(kubectl), f"--kubeconfig={real_cluster.kubeconfig}", "get", "namespaces", "-o", "name"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "namespace/kube-system" in done.stdout


def test_another_user_is_another_user(real_cluster: RealCluster) -> None:
    kubeconfig = real_cluster.kubeconfig_for("jane@example.com", ["dev"])
    kubectl = real_cluster.binaries.path("kubectl")
    command = [str(kubectl), f"--kubeconfig={kubeconfig}", "get", "pods"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert 'User "jane@example.com" cannot list resource "pods"' in done.stderr


def test_state_survives_a_crash_of_the_api_server_and_a_compaction(real_cluster: RealCluster) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    assert real_cluster.request("POST", path, b'{"metadata":{"name":"kept"},"data":{"a":"b"}}')[0] == 201
    real_cluster.supervisor.kill("kube-apiserver")
    assert real_cluster.request("GET", "/readyz")[0] == 0
    real_cluster.start_apiserver()
    revision = real_cluster.compact()
    status, body = real_cluster.request("GET", f"{path}?resourceVersion={revision - 1}&resourceVersionMatch=Exact")
    assert status == 410, body
    assert real_cluster.request("DELETE", f"{path}/kept")[0] == 200


async def test_an_asynchronous_test_can_own_one() -> None:
    async with RealCluster(controllers=False) as cluster:
        folder = cluster.folder
        assert cluster.request("GET", "/readyz")[0] == 200
    assert not folder.exists()
    with pytest.raises(ProcessError, match="not running"):
        _ = cluster.kubeconfig


def test_a_flag_that_the_server_refuses_is_shown_with_its_words() -> None:
    cluster = RealCluster(controllers=False, apiserver_flags=["--no-such-flag"])
    with pytest.raises(ProcessError, match=r"(?s)kube-apiserver ended with exit code 1.*unknown flag: --no-such-flag"):
        cluster.start()


PYTEST_WITH_A_CLUSTER = """
import pathlib, time
def test_it(real_cluster):
    place = pathlib.Path({place!r})
    pids = [str(real_cluster.supervisor.pid), *real_cluster.supervisor.pids.values()]
    place.with_suffix(".new").write_text(" ".join(map(str, [*pids, real_cluster.folder])))
    place.with_suffix(".new").rename(place)
    time.sleep(1000)
"""


def test_nothing_is_left_after_a_kill_of_pytest(tmp_path: Path) -> None:
    place, test_file = tmp_path / "pids", tmp_path / "test_it.py"
    test_file.write_text(PYTEST_WITH_A_CLUSTER.format(place=str(place)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(test_file)]
    pytest_run = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    while not place.exists():
        assert pytest_run.poll() is None, "the inner pytest ended too early"
        select.select([], [], [], 0.05)
    *pids, folder = place.read_text().split()
    assert len(pids) == 4
    os.kill(pytest_run.pid, signal.SIGKILL)
    pytest_run.wait()
    assert all(_ends(int(pid)) for pid in reversed(pids))
    assert not Path(folder).exists()


def test_the_module_prints_a_kubeconfig_and_ends_on_a_signal() -> None:
    command = [sys.executable, "-m", "flyball.testing.realcluster"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    kubeconfig = Path(process.stdout.readline().strip().removeprefix("export KUBECONFIG="))
    assert kubeconfig.read_text().startswith("apiVersion: v1")
    process.send_signal(signal.SIGTERM)
    process.stdout.read()
    assert process.wait(30) == 0
    process.stdout.close()
    assert not kubeconfig.parent.exists()


def _ends(pid: int, seconds: float = 20) -> bool:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)
