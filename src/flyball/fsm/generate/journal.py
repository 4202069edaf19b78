"""Writes several files as one: all of them change, or none does.

The journal is a folder that holds the new contents and a list of what is to be replaced. It is prepared under a
temporary name and comes into force by one rename; from then on the change *will* happen: if the process dies, the
next `recover` finishes it. Dead before that rename means that nothing has changed, and `recover` throws the
preparation away.

Promises:

- at every moment each file has its old or its new contents, never a part (it is replaced by a rename within its
  folder);
- a file that somebody else has changed since it was read is not overwritten: before the journal is in force that is
  an error, after it the file is left alone and named;
- permissions stay, symbolic links stay links, a file whose contents do not change is not touched.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flyball.errors import FlyballError

__all__ = ["Change", "Journal", "JournalError", "Recovery"]

Step = Callable[[str], None]
"""Told before each step that changes the disk; tests stop the process there."""


class JournalError(FlyballError):
    """Files could not be written; the message says which, and whether anything has changed."""


@dataclass(frozen=True, slots=True)
class Change:
    """One file to write. `before` is what was read, None for a file that must not exist yet."""

    path: Path
    before: bytes | None
    after: bytes


@dataclass(slots=True)
class Recovery:
    """What an earlier run left behind, and what was done about it."""

    finished: list[Path] = field(default_factory=list)
    """Files that now have the contents that run meant to write."""
    skipped: list[Path] = field(default_factory=list)
    """Files that were changed by somebody since; they keep what they have."""
    undone: bool = False
    """Whether a preparation that never came into force was thrown away."""


def _nothing(step: str) -> None:
    """Nobody wants to know."""


class Journal:
    """The journal of one folder; at most one change is under way in it."""

    def __init__(self, folder: Path, name: str, step: Step = _nothing) -> None:
        """`folder` exists or can be made; `name` keeps journals of several packages apart."""
        self.folder = folder
        self.active = folder / f".{name}.fsm-journal"
        self.name = name
        self.step = step

    def write(self, changes: Sequence[Change]) -> None:
        """Make all changes, or raise `JournalError` with none of them made."""
        changes = [one for one in changes if one.before != one.after]
        if not changes:
            return
        prepared = self._prepare(changes)
        self.step("commit")
        try:
            prepared.rename(self.active)
        except OSError as problem:
            shutil.rmtree(prepared, ignore_errors=True)
            raise JournalError(
                f"cannot start writing in {self.folder}: {problem.strerror or problem}; "
                "another run may be at work there; nothing has changed"
            ) from problem
        _sync(self.folder)
        skipped = self._carry_out(Recovery()).skipped
        if skipped:
            raise JournalError(
                f"{skipped[0]} changed while it was being updated; it was left alone, run again to merge it"
            )

    def recover(self) -> Recovery:
        """Finish or undo what a killed run left behind; call this before reading any file."""
        found = Recovery()
        for left in sorted(self.folder.glob(f".{self.name}.fsm-prepare-*")):
            if not _is_alive(left.name.rpartition("-")[2]):
                self.step("undo")
                shutil.rmtree(left, ignore_errors=True)
                found.undone = True
        if self.active.is_dir():
            self._carry_out(found)
        return found

    def pending(self) -> bool:
        """Whether a killed run left something to finish."""
        return self.active.is_dir()

    def _prepare(self, changes: Sequence[Change]) -> Path:
        prepared = self.folder / f".{self.name}.fsm-prepare-{os.getpid()}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(prepared, ignore_errors=True)
            prepared.mkdir()
            entries: list[dict[str, Any]] = []
            for number, change in enumerate(changes):
                _refuse_changed(change)
                self.step(f"stage {change.path.name}")
                _write(prepared / str(number), change.after)
                entries.append(_entry(change, str(number)))
            self.step("list")
            _write(prepared / "list.json", json.dumps(entries).encode())
        except OSError as problem:
            shutil.rmtree(prepared, ignore_errors=True)
            raise JournalError(
                f"cannot write in {self.folder}: {problem.strerror or problem}; nothing has changed"
            ) from problem
        except JournalError:
            shutil.rmtree(prepared, ignore_errors=True)
            raise
        return prepared

    def _carry_out(self, found: Recovery) -> Recovery:
        for entry in json.loads((self.active / "list.json").read_bytes()):
            path = Path(entry["path"])
            present = _digest(_read(path))
            if present == entry["after"]:
                continue
            if present != entry["before"]:
                found.skipped.append(path)
                _temporary(path).unlink(missing_ok=True)
                continue
            self._replace(path, (self.active / entry["staged"]).read_bytes())
            found.finished.append(path)
        self.step("close")
        done = self.active.with_name(f".{self.name}.fsm-prepare-{os.getpid()}")
        self.active.rename(done)
        self.step("clean")
        shutil.rmtree(done, ignore_errors=True)
        return found

    def _replace(self, path: Path, contents: bytes) -> None:
        target = path.resolve() if path.is_symlink() else path
        temporary = _temporary(target)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            self.step(f"write {target.name}")
            _write(temporary, contents)
            if target.exists():
                shutil.copymode(target, temporary)
            self.step(f"replace {target.name}")
            temporary.replace(target)
        except OSError as problem:
            raise JournalError(
                f"cannot write {path}: {problem.strerror or problem}; "
                "the change is half done, remove the cause and run again to finish it"
            ) from problem


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.fsm-new")


def _entry(change: Change, staged: str) -> dict[str, Any]:
    return {
        "path": str(change.path.absolute()),
        "before": _digest(change.before),
        "after": _digest(change.after),
        "staged": staged,
    }


def _refuse_changed(change: Change) -> None:
    if _read(change.path) != change.before:
        raise JournalError(f"{change.path} changed while its update was being prepared; nothing has changed, run again")
    if change.before is not None and not os.access(change.path, os.W_OK):
        raise JournalError(f"{change.path} is read-only; nothing has changed")


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise JournalError(f"cannot read {path}: {problem.strerror or problem}") from problem


def _write(path: Path, contents: bytes) -> None:
    with path.open("wb") as file:
        file.write(contents)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _digest(contents: bytes | None) -> str | None:
    return None if contents is None else hashlib.sha256(contents).hexdigest()


def _is_alive(number: str) -> bool:
    """Whether the process that prepares something is still there (and is not this one)."""
    if not number.isdigit() or int(number) == os.getpid():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
