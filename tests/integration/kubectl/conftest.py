"""A kubectl for people's commands, on a cluster whose workloads progress."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from flyball.testing import Cluster
from flyball.testing.binaries import BinariesMissing, find_binaries


@pytest.fixture
def kubectl(tmp_path: Path) -> Generator[Callable[..., str]]:
    """Runs kubectl with these words and gives what it prints; with `stdin` it reads that. It must not fail."""
    try:
        program = find_binaries().path("kubectl")
    except BinariesMissing as missing:
        pytest.skip(str(missing))
    with Cluster(workloads=True, nodes=2) as cluster:
        start = [str(program), f"--kubeconfig={cluster.kubeconfig}", f"--cache-dir={tmp_path}"]

        def run(*words: str, stdin: str | None = None) -> str:
            done = subprocess.run([*start, *words], input=stdin, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
            return done.stdout.strip()

        yield run
