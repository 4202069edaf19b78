"""What `make demo` shows is what happens; it runs as `make` runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEMO = [sys.executable, str(ROOT / "examples" / "demo.py")]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "operators/simplejob/src"), "KEEP": "", **more}


def test_the_demo_ends_by_itself_and_shows_two_operators_at_work(tmp_path: Path) -> None:
    done = subprocess.run(
        DEMO, env=environment(TMPDIR=str(tmp_path)), capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown = [line.strip() for line in done.stdout.splitlines()]
    assert "demo   3/3     3            3           0s" in [line.replace("1s", "0s") for line in shown]
    assert any(line.endswith("ms later it says 3 again.") for line in shown)
    assert any(line.startswith("Retrying   attempt 1 of 4 failed: exit code 7") for line in shown)
    assert "Completed  attempt 2 of 4 succeeded" in shown
    assert any(line.endswith("-1-" + line.rpartition("-1-")[2]) and "not heated up" in line for line in shown)
    assert any("coffee for" in line for line in shown)
    assert any("went with them" in line for line in shown)
    assert list(tmp_path.iterdir()) == []


def test_the_demo_stays_for_kubectl_when_it_is_asked_to() -> None:
    with subprocess.Popen(DEMO, env=environment(KEEP="1"), stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        told = ""
        for line in running.stdout:
            told += line
            if "Ctrl-C ends it." in line:
                break
        kubeconfig = Path(told.partition("export KUBECONFIG=")[2].split()[0])
        assert kubeconfig.is_file()
        running.send_signal(signal.SIGINT)
        assert "make demo KEEP=1" in running.stdout.read()
        assert running.wait(60) == 0
    assert not kubeconfig.exists()
