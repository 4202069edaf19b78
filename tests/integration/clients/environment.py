"""The environment in which the clients of other people run: made on first use, shared by everything that wants it.

It lies in `.cache/clients-venv/`, one folder per Python and list of requirements: a changed requirement is a new
environment. Several test processes may ask at once: one makes it, the others wait.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

__all__ = ["CACHE", "clients_python"]

HERE = Path(__file__).parent
CACHE = HERE.parents[2] / ".cache"
_REQUIREMENTS = HERE / "requirements.txt"
_MINUTES = 5
_UNREACHABLE = ("failed to fetch", "error sending request", "dns error", "timed out", "connect", "network")


def clients_python() -> Path:
    """The Python that has all clients; skips the test in one line where they cannot be had."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    wanted = hashlib.sha256(_REQUIREMENTS.read_bytes()).hexdigest()[:12]
    folder = CACHE / "clients-venv" / f"py{version}-{wanted}"
    python = folder / "bin" / "python"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".ready").exists():
            _make(folder, python)
    return python


def _make(folder: Path, python: Path) -> None:
    failed = folder.parent / f"{folder.name}.failed"
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    if failed.exists() and failed.read_text() == run:  # one attempt per run of the tests
        pytest.skip("the clients of other people could not be installed; see the first skipped test")
    shutil.rmtree(folder, ignore_errors=True)
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        pytest.skip("there is no uv that could install the clients of other people")
    made = _run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)])
    said = made or _run([uv, "pip", "install", "--quiet", "--python", str(python), "-r", str(_REQUIREMENTS)])
    if said:
        if not any(sign in said.lower() for sign in _UNREACHABLE):
            pytest.fail(f"the clients of requirements.txt cannot be installed: {said}")
        failed.write_text(run)
        pytest.skip(f"the registry does not answer: {said.splitlines()[-1].strip()}")
    (folder / ".ready").touch()


def _run(command: list[str]) -> str:
    """What a failed command says; empty if it succeeded."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_MINUTES * 60, check=False)
    except subprocess.TimeoutExpired:
        return f"timed out after {_MINUTES} minutes"
    if done.returncode == 0:
        return ""
    return done.stderr.strip() or f"exit code {done.returncode}"
