"""Several files are written as one, whatever happens in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flyball.fsm.generate.journal import Change, Journal, JournalError

KILLED = """
import os, signal, sys
from pathlib import Path
from flyball.fsm.generate.journal import Change, Journal

folder, last = Path(sys.argv[1]), int(sys.argv[2])
steps = 0

def step(name):
    global steps
    if steps == last:
        os.kill(os.getpid(), signal.SIGKILL)
    steps += 1

files = [(folder / "sub" / name, b"new " + name.encode()) for name in "abc"]
changes = [Change(file, file.read_bytes(), after) for file, after in files]
changes.append(Change(folder / "made" / "d", None, b"new d"))
Journal(folder, "machine", step).write(changes)
"""

OLD = {"sub/a": b"old a", "sub/b": b"old b", "sub/c": b"old c"}
NEW = {"sub/a": b"new a", "sub/b": b"new b", "sub/c": b"new c", "made/d": b"new d"}


def fill(folder: Path) -> None:
    (folder / "sub").mkdir()
    for name, contents in OLD.items():
        (folder / name).write_bytes(contents)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def changes(folder: Path) -> list[Change]:
    return [Change(folder / name, OLD.get(name), after) for name, after in NEW.items()]


def test_all_changes_are_made_and_nothing_is_left_behind(tmp_path: Path) -> None:
    fill(tmp_path)
    Journal(tmp_path, "machine").write(changes(tmp_path))
    assert contents(tmp_path) == NEW


@pytest.mark.parametrize("step", range(15))
def test_killed_at_any_write_each_file_is_old_or_new_and_the_next_run_settles_it(tmp_path: Path, step: int) -> None:
    fill(tmp_path)
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(step)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL

    for name, old in OLD.items():
        assert (tmp_path / name).read_bytes() in (old, NEW[name])
    Journal(tmp_path, "machine").recover()

    assert contents(tmp_path) in (OLD, NEW)
    committed = 6
    assert contents(tmp_path) == (OLD if step < committed else NEW)


def test_there_are_no_more_steps_than_the_test_kills_at(tmp_path: Path) -> None:
    fill(tmp_path)
    steps: list[str] = []
    Journal(tmp_path, "machine", steps.append).write(changes(tmp_path))
    assert len(steps) == 16
    assert steps.index("commit") == 5


def test_a_killed_recovery_is_recovered(tmp_path: Path) -> None:
    fill(tmp_path)
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), "9"], check=False, timeout=60)

    class Stopped(Exception):
        pass

    def stop(step: str) -> None:
        if step.startswith("replace"):
            raise Stopped

    with pytest.raises(Stopped):
        Journal(tmp_path, "machine", stop).recover()
    found = Journal(tmp_path, "machine").recover()

    assert contents(tmp_path) == NEW
    assert found.finished
    assert not found.skipped


def test_a_file_changed_after_the_kill_keeps_what_its_owner_wrote(tmp_path: Path) -> None:
    fill(tmp_path)
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), "7"], check=False, timeout=60)
    (tmp_path / "sub" / "c").write_bytes(b"mine")

    found = Journal(tmp_path, "machine").recover()

    assert contents(tmp_path) == {**NEW, "sub/c": b"mine"}
    assert found.skipped == [tmp_path / "sub" / "c"]


def test_a_file_changed_since_it_was_read_stops_everything(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "sub" / "c").write_bytes(b"mine")
    with pytest.raises(JournalError, match="changed while its update was being prepared; nothing has changed"):
        Journal(tmp_path, "machine").write(changes(tmp_path))
    assert contents(tmp_path) == {**OLD, "sub/c": b"mine"}


def test_a_new_file_that_somebody_else_made_stops_everything(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "d").write_bytes(b"mine")
    with pytest.raises(JournalError):
        Journal(tmp_path, "machine").write(changes(tmp_path))
    assert contents(tmp_path) == {**OLD, "made/d": b"mine"}


def test_another_run_at_work_is_not_disturbed(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / ".machine.fsm-journal").mkdir()
    (tmp_path / ".machine.fsm-journal" / "list.json").write_text("[]")
    with pytest.raises(JournalError, match="another run may be at work"):
        Journal(tmp_path, "machine").write(changes(tmp_path))
    assert {name: (tmp_path / name).read_bytes() for name in OLD} == OLD


def test_mode_and_links_stay(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "sub" / "a").chmod(0o755)
    (tmp_path / "link").symlink_to(tmp_path / "sub" / "b")
    Journal(tmp_path, "machine").write(
        [Change(tmp_path / "sub" / "a", b"old a", b"new a"), Change(tmp_path / "link", b"old b", b"new b")]
    )
    assert (tmp_path / "sub" / "a").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "sub" / "b").read_bytes() == b"new b"


def test_a_file_that_does_not_change_is_not_touched(tmp_path: Path) -> None:
    fill(tmp_path)
    os.utime(tmp_path / "sub" / "a", ns=(1, 1))
    Journal(tmp_path, "machine").write([Change(tmp_path / "sub" / "a", b"old a", b"old a")])
    assert (tmp_path / "sub" / "a").stat().st_mtime_ns == 1
