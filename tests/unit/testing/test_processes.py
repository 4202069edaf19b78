"""Programs end with their owner, however it ends."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from flyball.testing.processes import ProcessError, Supervisor, free_port

FOREVER = [sys.executable, "-S", "-c", "import time; print('here', flush=True); time.sleep(1000)"]
STUBBORN = [
    sys.executable,
    "-S",
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('here', flush=True); time.sleep(1000)",
]


def ends(pid: int, seconds: float = 10) -> bool:
    """Whether a process ends in time: its descriptor becomes readable."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        ready, _, _ = select.select([descriptor], [], [], seconds)
        return bool(ready)
    finally:
        os.close(descriptor)


def owner(folder: Path, how: str) -> tuple[subprocess.Popen[str], list[int]]:
    """A process that starts two programs, prints their ids, and then does what `how` says."""
    script = textwrap.dedent(f"""
        import signal, threading, time
        from pathlib import Path
        from flyball.testing.processes import Supervisor

        def begin():
            global supervisor
            supervisor = Supervisor(Path({str(folder)!r}))
            pids = [supervisor.start(n, {FOREVER!r}, log=Path({str(folder)!r}, n)) for n in ("one", "two")]
            print(supervisor.pid, *pids, flush=True)

        {how}
        time.sleep(1000)
    """)
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, [int(word) for word in process.stdout.readline().split()]


def finish(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def test_all_ends_and_the_folder_goes_when_the_owner_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    process, pids = owner(folder, "begin()")
    assert len(pids) == 3
    os.kill(process.pid, signal.SIGKILL)
    assert all(ends(pid) for pid in reversed(pids))
    assert not folder.exists()
    finish(process)


def test_the_thread_that_started_them_may_end(tmp_path: Path) -> None:
    process, pids = owner(tmp_path, "thread = threading.Thread(target=begin); thread.start(); thread.join()")
    assert not any(ends(pid, 0.3) for pid in pids)
    finish(process)
    assert all(ends(pid) for pid in pids)


def test_programs_end_when_the_supervisor_itself_is_killed(tmp_path: Path) -> None:
    process, (supervisor, *programs) = owner(tmp_path, "begin()")
    os.kill(supervisor, signal.SIGKILL)
    assert all(ends(pid) for pid in programs)
    finish(process)


def test_a_ctrl_c_in_the_terminal_does_not_reach_the_programs(tmp_path: Path) -> None:
    process, pids = owner(tmp_path, "signal.signal(signal.SIGINT, signal.SIG_IGN); begin()")
    os.killpg(os.getpgid(pids[0]), signal.SIGINT)
    assert not ends(pids[0], 0.3)
    finish(process)


def test_stop_asks_and_then_insists(tmp_path: Path) -> None:
    with Supervisor() as supervisor:
        supervisor.start("willing", FOREVER, log=tmp_path / "log")
        assert supervisor.stop("willing") == -signal.SIGTERM
        log = tmp_path / "stubborn"
        pid = supervisor.start("stubborn", STUBBORN, log=log)
        while not log.read_text():
            assert not ends(pid, 0.01)
        assert supervisor.stop("stubborn", 0.1) == -signal.SIGKILL
        assert supervisor.stop("stubborn") is None


def test_a_program_that_ended_shows_its_last_words(tmp_path: Path) -> None:
    with Supervisor() as supervisor:
        pid = supervisor.start("loser", [sys.executable, "-c", "raise SystemExit('no luck')"], log=tmp_path / "log")
        assert ends(pid)
        with pytest.raises(ProcessError, match=r"(?s)loser ended with exit code 1.*no luck"):
            supervisor.check("loser")


def test_a_program_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    with Supervisor() as supervisor, pytest.raises(ProcessError, match=r"ghost.*no/such/program"):
        supervisor.start("ghost", ["/no/such/program"], log=tmp_path / "log")


def test_a_closed_supervisor_says_so(tmp_path: Path) -> None:
    supervisor = Supervisor()
    supervisor.close()
    with pytest.raises(ProcessError, match="closed"):
        supervisor.start("late", FOREVER, log=tmp_path / "log")


def test_a_free_port_can_be_bound() -> None:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", free_port()))
