"""Play a script of a real client against a cluster, and look at the world that it leaves behind."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from flyball import errors
from flyball.client import dynamic
from flyball.k8s.apps.v1 import Deployment
from flyball.k8s.core.v1 import ConfigMap
from flyball.sync import Client

__all__ = ["SCRIPTS", "environment", "look_around", "play", "play_program"]

SCRIPTS = Path(__file__).parent / "scripts"
_SECONDS = 150


def environment(kubeconfig: Path) -> Mapping[str, str]:
    """What a client's process sees: the cluster, and nothing that belongs to the tests."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR")}
    return {**kept, "KUBECONFIG": str(kubeconfig), "HOME": str(kubeconfig.parent), "PYTHONUNBUFFERED": "1"}


def play(python: Path, script: str, kubeconfig: Path) -> dict[str, Any]:
    """Run a script to its end; return what it left behind. A case that failed fails the test with its traceback."""
    return play_program([str(python), str(SCRIPTS / f"{script}.py")], script, kubeconfig)


def play_program(command: Sequence[str], name: str, kubeconfig: Path) -> dict[str, Any]:
    """The same with a program that makes the same report."""
    done = subprocess.run(
        command,
        env=environment(kubeconfig),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    told = "\n".join(f"case {case} of {name}:\n{trace}" for case, trace in report["failures"].items())
    assert not told, told
    assert report["passed"]
    left: dict[str, Any] = report["left"]
    return left


def look_around(client: Client, left: dict[str, Any]) -> None:
    """What the script did is there, for another client too."""
    at = left["deployment"]
    deployment = client.get(Deployment, at["name"], namespace=at["namespace"])
    assert deployment.spec.replicas == at["replicas"]
    at = left["gadget"]
    gadget = client.get(dynamic(f"{at['group']}/v1", "Gadget"), at["name"], namespace=at["namespace"])
    assert gadget["spec"]["size"] == at["size"]
    if at := left.get("gone"):
        with pytest.raises(errors.NotFound):
            client.get(ConfigMap, at["name"], namespace=at["namespace"])
