"""A cluster whose Pods are processes, and kubectl before it."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from flyball.api import DynamicObject
from flyball.k8s.core.v1 import Pod
from flyball.testing import Cluster, eventually
from flyball.testing.binaries import BinariesMissing, find_binaries


class Kubectl:
    """kubectl, as a person types it."""

    def __init__(self, program: Path, cluster: Cluster, cache: Path) -> None:
        self.cluster = cluster
        self.command = [str(program), f"--kubeconfig={cluster.kubeconfig}", f"--cache-dir={cache}"]

    def run(self, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *words], input=stdin, capture_output=True, timeout=60, check=False, text=True
        )

    def __call__(self, *words: str, stdin: str | None = None) -> str:
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen([*self.command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def pod(self, name: str, *command: str, phase: str = "Running", image: str = "busybox", **more: Any) -> None:
        """Create a Pod with one container, and wait until it is in a phase."""
        container = {"name": "main", "image": image, "command": list(command), **more.pop("container", {})}
        spec = {"containers": [container], **more}
        metadata = {"name": name, "namespace": "default"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

        async def create() -> None:
            client = self.cluster.client
            await client.create(DynamicObject(pod))
            await eventually(
                lambda: client.get(Pod, name, namespace="default"),
                lambda found: found.status.phase == phase,
                timeout=60,
            )

        self.cluster.run(create())


@pytest.fixture
def kubectl(tmp_path: Path) -> Generator[Kubectl]:
    try:
        program = find_binaries().path("kubectl")
    except BinariesMissing as missing:
        pytest.skip(str(missing))
    with Cluster(workloads=True, pods="process") as cluster:
        yield Kubectl(program, cluster, tmp_path)
