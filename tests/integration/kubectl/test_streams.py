"""kubectl reads logs from Pods of a test kubelet: what a person types, end to end over TLS."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Coroutine, Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.testkubelet import Kubelet, Line, start_pod

from flyball.testing import Cluster, eventually
from flyball.testing.binaries import BinariesMissing, find_binaries

_NAMED = {"batch.kubernetes.io/job-name": "work"}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "work"},
    "spec": {
        "manualSelector": True,
        "selector": {"matchLabels": _NAMED},
        "template": {
            "metadata": {"labels": _NAMED},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]},
        },
    },
}


class Kubectl:
    """kubectl, and the cluster that it talks to."""

    def __init__(self, program: Path, cluster: Cluster, cache: Path) -> None:
        self.cluster = cluster
        self.kubelet = Kubelet()
        self._start = [str(program), f"--kubeconfig={cluster.kubeconfig}", f"--cache-dir={cache}"]

    def run(self, *words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([*self._start, *words], input=stdin, capture_output=True, timeout=60, check=False)

    def __call__(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout!r}{done.stderr!r}"
        return done.stdout.decode()

    def refused(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 1, f"{' '.join(words)}: {done.returncode} {done.stdout!r}{done.stderr!r}"
        return done.stderr.decode().strip()

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self._start, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def pod(self, name: str, *containers: str, **more: Any) -> None:
        cluster = self.cluster
        self.within(start_pod(cluster.embedded.server, cluster.client, self.kubelet, name, *containers, **more))

    def within(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something where the cluster runs."""
        self.cluster.run(work)

    def eventually(self, probe: Callable[[], bool]) -> None:
        async def wait() -> None:
            await eventually(probe)

        self.within(wait())

    def write(self, pod: str, *lines: Line | str, container: str = "main", previous: bool = False) -> None:
        async def write() -> None:
            self.kubelet.journal(pod, container, previous=previous).write(*lines)

        self.within(write())

    def end(self, pod: str, container: str = "main") -> None:
        async def end() -> None:
            self.kubelet.journal(pod, container).end()

        self.within(end())


@pytest.fixture
def kubectl(tmp_path: Path) -> Generator[Kubectl]:
    try:
        program = find_binaries().path("kubectl")
    except BinariesMissing as missing:
        pytest.skip(str(missing))
    with Cluster() as cluster:
        yield Kubectl(program, cluster, tmp_path)


# Logs


def test_logs(kubectl: Kubectl) -> None:
    kubectl.pod("web")
    now = datetime.now(UTC)
    kubectl.write("web", Line("yesterday", at=now - timedelta(days=1)), Line("now", at=now), "and after")
    assert kubectl("logs", "web") == "yesterday\nnow\nand after\n"
    assert kubectl("logs", "web", "--tail=1") == "and after\n"
    assert kubectl("logs", "web", "--since=1h") == "now\nand after\n"
    assert kubectl("logs", "web", f"--since-time={now - timedelta(seconds=1):%Y-%m-%dT%H:%M:%SZ}").startswith("now\n")
    assert kubectl("logs", "web", "--limit-bytes=3") == "yes"
    first = kubectl("logs", "web", "--timestamps").split(" ")[0]
    assert datetime.fromisoformat(first) == now - timedelta(days=1)


def test_followed_logs(kubectl: Kubectl) -> None:
    kubectl.pod("web")
    kubectl.write("web", "one")
    following = kubectl.start("logs", "-f", "web")
    assert following.stdout is not None
    assert following.stdout.readline() == b"one\n"
    kubectl.write("web", "two")
    assert following.stdout.readline() == b"two\n"
    kubectl.write("web", "three")
    kubectl.end("web")
    assert following.communicate(timeout=30) == (b"three\n", b"")
    assert following.returncode == 0


def test_kubectl_that_is_killed_lets_the_kubelet_go(kubectl: Kubectl) -> None:
    kubectl.pod("web")
    kubectl.write("web", "one")
    with kubectl.start("logs", "-f", "web") as following:
        assert following.stdout is not None
        assert following.stdout.readline() == b"one\n"
        assert kubectl.kubelet.readers == 1
        following.kill()
    kubectl.eventually(lambda: kubectl.kubelet.readers == 0)


def test_logs_of_the_run_before(kubectl: Kubectl) -> None:
    kubectl.pod("web", last={"terminated": {"exitCode": 1}})
    kubectl.pod("fresh")
    kubectl.write("web", "last words", previous=True)
    assert kubectl("logs", "-p", "web") == "last words\n"
    told = 'Error from server (BadRequest): previous terminated container "main" in pod "fresh" not found'
    assert kubectl.refused("logs", "-p", "fresh") == told


def test_logs_of_one_of_several_containers(kubectl: Kubectl) -> None:
    kubectl.pod("two", "a", "b")
    kubectl.write("two", "from a", container="a")
    kubectl.write("two", "from b", container="b")
    assert kubectl("logs", "two", "-c", "b") == "from b\n"
    assert kubectl("logs", "two", "--all-containers", "--prefix") == "[pod/two/a] from a\n[pod/two/b] from b\n"
    done = kubectl.run("logs", "two")
    assert (done.stdout, done.stderr) == (b"from a\n", b'Defaulted container "a" out of: a, b\n')
    told = "error: container z is not valid for pod two out of: a, b"
    assert kubectl.refused("logs", "two", "-c", "z") == told


def test_logs_of_a_selection_and_of_a_job(kubectl: Kubectl) -> None:
    kubectl.pod("one", labels={"app": "shop", **_NAMED})
    kubectl.pod("two", labels={"app": "shop"})
    kubectl.write("one", "first")
    kubectl.write("two", "second")
    assert sorted(kubectl("logs", "-l", "app=shop").splitlines()) == ["first", "second"]
    following = kubectl.start("logs", "-f", "-l", "app=shop", "--prefix")
    kubectl.end("one")
    kubectl.end("two")
    out, _ = following.communicate(timeout=30)
    assert sorted(out.decode().splitlines()) == ["[pod/one/main] first", "[pod/two/main] second"]
    done = kubectl.run("create", "-f", "-", stdin=json.dumps(JOB).encode())
    assert done.returncode == 0, done.stderr
    assert kubectl("logs", "job/work") == "first\n"


def test_logs_of_what_does_not_run(kubectl: Kubectl) -> None:
    kubectl.pod("pulling", state={"waiting": {"reason": "ImagePullBackOff"}})
    kubectl.pod("starting", state={"waiting": {"reason": "ContainerCreating"}})
    told = 'Error from server (BadRequest): container "main" in pod "%s" is waiting to start: %s'
    assert kubectl.refused("logs", "pulling") == told % ("pulling", "trying and failing to pull image")
    assert kubectl.refused("logs", "starting") == told % ("starting", "ContainerCreating")
    assert kubectl.refused("logs", "nobody").endswith('pods "nobody" not found in namespace "default"')
    kubectl("run", "unbound", "--image=busybox")
    assert kubectl("logs", "unbound") == ""
