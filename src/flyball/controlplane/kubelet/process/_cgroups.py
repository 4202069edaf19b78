"""Limits on processes and memory by control groups, where somebody lets us make some. Part of the guard."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

Spec = dict[str, Any]

_FOLDER = "flyball-"
_TRIES = 50


class Group:
    """The control group of one container."""

    def __init__(self, folders: dict[str, Path]) -> None:
        self._folders = folders

    def enter(self) -> None:
        """Put this process, and with it all that it starts, into the group."""
        for folder in set(self._folders.values()):
            (folder / "cgroup.procs").write_text(str(os.getpid()))

    def close(self) -> bool:
        """Remove the group; return whether the kernel ended something in it for its memory."""
        oom = self._oom()
        for folder in set(self._folders.values()):
            for _ in range(_TRIES):
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    _end(folder)
        return oom

    def _oom(self) -> bool:
        folder = self._folders.get("memory")
        if folder is None:
            return False
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError):
                words = (folder / name).read_text().split()
                return int(dict(zip(words[::2], words[1::2], strict=False)).get("oom_kill", "0")) > 0
        return False


def _end(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for pid in (folder / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
    time.sleep(0.01)


class Groups:
    """The folder of the guard's groups, in one hierarchy or in several."""

    def __init__(self, roots: dict[str, Path], unified: bool) -> None:
        self._roots = roots
        self._unified = unified
        self.controllers = sorted(roots)

    @classmethod
    def find(cls) -> Groups | None:
        """Make a folder in each hierarchy that lets us; None when there is none."""
        roots: dict[str, Path] = {}
        unified = False
        for mount, kind, options in _mounts():
            wanted: list[str] = [one for one in ("pids", "memory") if kind == "cgroup" and one in options]
            if kind == "cgroup2" and not roots:
                wanted = _delegated(mount)
                unified = bool(wanted)
            for one in wanted:
                _remove_stale(mount)
                with contextlib.suppress(OSError):
                    folder = mount / f"{_FOLDER}{os.getpid()}"
                    folder.mkdir(exist_ok=True)
                    if kind == "cgroup2":
                        (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in wanted))
                    roots[one] = folder
        return cls(roots, unified) if roots else None

    def new(self, name: str, spec: Spec) -> Group | None:
        """Make the group of a container with its limits."""
        folders: dict[str, Path] = {}
        try:
            for controller, root in self._roots.items():
                folder = root / name
                folder.mkdir(exist_ok=True)
                folders[controller] = folder
                if controller == "pids" and spec.get("pids"):
                    (folder / "pids.max").write_text(str(spec["pids"]))
                if controller == "memory" and spec.get("memory"):
                    limit = "memory.max" if self._unified else "memory.limit_in_bytes"
                    (folder / limit).write_text(str(spec["memory"]))
                    with contextlib.suppress(OSError):
                        swap = "memory.swap.max" if self._unified else "memory.memsw.limit_in_bytes"
                        (folder / swap).write_text("0" if self._unified else str(spec["memory"]))
        except OSError:
            Group(folders).close()
            return None
        return Group(folders)

    def close(self) -> None:
        """Remove the folders."""
        for root in set(self._roots.values()):
            with contextlib.suppress(OSError):
                root.rmdir()


def _mounts() -> list[tuple[Path, str, set[str]]]:
    found: list[tuple[Path, str, set[str]]] = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, place, kind, options, *_ = line.split()
            if kind in ("cgroup", "cgroup2"):
                found.append((Path(place), kind, set(options.split(","))))
    return found


def _delegated(mount: Path) -> list[str]:
    with contextlib.suppress(OSError):
        given = (mount / "cgroup.subtree_control").read_text().split()
        return [one for one in ("pids", "memory") if one in given]
    return []


def _remove_stale(mount: Path) -> None:
    """Remove what a guard left that was killed; its processes have ended with it."""
    with contextlib.suppress(OSError):
        for old in mount.glob(f"{_FOLDER}*"):
            owner = old.name.removeprefix(_FOLDER)
            if owner.isdecimal() and not Path(f"/proc/{owner}").exists():
                for folder in (*old.iterdir(), old):
                    with contextlib.suppress(OSError):
                        folder.rmdir()
