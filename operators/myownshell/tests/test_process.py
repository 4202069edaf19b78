"""The operator as a process, with its own flags."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from flyball.k8s.apps.v1 import Deployment
from flyball.testing import Cluster, eventually, install

from myownshell.api import MyOwnShell, MyOwnShellSpec

SRC = Path(__file__).parents[1] / "src"
QUIET = ("--health-port", "-1", "--metrics-port", "-1")


def started(*words: str, **variables: str) -> subprocess.Popen[str]:
    search = os.pathsep.join([str(SRC), *sys.path])
    return subprocess.Popen(
        [sys.executable, "-m", "myownshell", *words],
        env={**os.environ, "PYTHONPATH": search, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_its_flags_are_told() -> None:
    text, _ = started("--help").communicate(timeout=60)
    assert "--restricted-pods" in text
    assert "--no-finalizer" in text
    process = started("--nonsense")
    text, _ = process.communicate(timeout=60)
    assert (process.returncode, "--nonsense" in text, "Traceback" in text) == (2, True, False)


@pytest.mark.parametrize(
    ("flags", "variables"),
    [
        (["--restricted-pods", "--no-finalizer"], {}),
        ([], {"MYOWNSHELL_RESTRICTED_PODS": "1", "MYOWNSHELL_NO_FINALIZER": "true"}),
    ],
    ids=["flags", "variables"],
)
def test_flags_and_variables(cluster_server: Cluster, flags: list[str], variables: dict[str, str]) -> None:
    cluster, client = cluster_server, cluster_server.client

    async def made() -> tuple[MyOwnShell, Deployment]:
        await install(client, MyOwnShell)
        await client.create(MyOwnShell.new("demo", namespace="default", spec=MyOwnShellSpec(size=1)))
        deployment = await eventually(lambda: client.get(Deployment, "demo", namespace="default"), timeout=60)
        return await client.get(MyOwnShell, "demo", namespace="default"), deployment

    process = started(*flags, *QUIET, **variables, KUBECONFIG=str(cluster.kubeconfig))
    try:
        shell, deployment = cluster.run(made())
    finally:
        process.send_signal(signal.SIGTERM)
        text, _ = process.communicate(timeout=60)
    pod = deployment.spec.template.spec
    assert pod is not None
    context = pod.containers[0].security_context
    assert context is not None
    assert context.run_as_non_root
    assert shell.metadata.finalizers == []
    assert process.returncode == 0, text
