"""`flyball clock` as a person runs it, beside `flyball up`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.test_up import up

from flyball import sync
from flyball.client.config import load_config
from flyball.k8s.batch.v1 import Job, JobSpec
from flyball.k8s.core.v1 import Container, PodSpec, PodTemplateSpec
from flyball.k8s.meta.v1 import ObjectMeta
from flyball.testing import eventually

pytestmark = pytest.mark.skipif(os.name != "posix", reason="socket files need POSIX")


def clock(*arguments: str | Path, code: int = 0) -> str:
    command = [sys.executable, "-c", "from flyball.cli import main; main()", "clock", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


async def test_a_clock_that_is_turned_takes_the_cluster_along(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    with up("--port", "0", "--kubeconfig", path, home=tmp_path), sync.Client(load_config(path)) as client:
        assert clock("--kubeconfig", path, "now").endswith("Z (not turned)\n")
        marks = ObjectMeta(annotations={"simulate.flyball.dev/run-for": "7200"})
        pod = PodSpec(containers=[Container(name="c", image="i")], restart_policy="Never")
        client.create(Job.new("work", spec=JobSpec(template=PodTemplateSpec(metadata=marks, spec=pod))))
        await eventually(lambda: client.get(Job, "work"), lambda job: job.status.ready == 1, timeout=60)
        assert clock("--kubeconfig", path, "advance", "1d2h30m").endswith("Z (turned forward by 1d2h30m0s)\n")
        done = await eventually(lambda: client.get(Job, "work"), lambda job: job.status.completion_time, timeout=60)
        assert done.status.start_time is not None
        assert done.status.completion_time is not None
        assert (done.status.completion_time - done.status.start_time).total_seconds() >= 7200


def test_what_is_no_length_of_time_is_refused() -> None:
    assert "'soon' is no length of time" in clock("advance", "soon", code=2)
    assert "it goes forward only" in clock("advance", "--", "-5m", code=2)


def test_a_cluster_that_does_not_answer_is_named(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    with up("--port", "0", "--kubeconfig", path, home=tmp_path):
        pass
    assert "no cluster of yours answers at" in clock("--kubeconfig", path, "now", code=1)
