"""The program of design 1.1, as it stands, on the embedded cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml
from tests.support.shell import SHELL, shell_follows_its_size

from flyball.client import Client
from flyball.testing import Cluster


async def test_shell_follows_its_size_in_process(cluster: Cluster) -> None:
    await shell_follows_its_size(cluster.client)


async def test_shell_follows_its_size_over_tls(cluster_server: Cluster) -> None:
    async with Client(cluster_server.config) as client:
        await shell_follows_its_size(client)


def test_it_prints_its_definition(tmp_path: Path) -> None:
    code = "from flyball.cli import main; main()"
    command = [sys.executable, "-c", code, "crd", str(SHELL)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    definition = yaml.safe_load(printed)
    assert definition["metadata"]["name"] == "myownshells.my-first-operator.jgato.io"
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    size = schema["properties"]["spec"]["properties"]["size"]
    assert (size["default"], size["minimum"], size["maximum"]) == (1, 0, 100)
