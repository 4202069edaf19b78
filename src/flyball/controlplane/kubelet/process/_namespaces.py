"""Namespaces, and the file system that a container sees. Part of the guard: standard library only, one thread.

A container sees the host's files read-only, except that /tmp, /var/tmp, /run and the top folder are its own and empty,
and its volumes lie where it wants them. A folder that the host does not have is made without touching the host: its
nearest parent is covered by a temporary one with the same things in it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import stat
import sys
from pathlib import Path
from typing import Any

Spec = dict[str, Any]

_LINUX = sys.platform == "linux"
_libc: Any = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG, _PR_SET_SUBREAPER, _PR_NO_NEW_PRIVS, _PR_CAPBSET_DROP = 1, 36, 38, 24
_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID = 0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 2, 4, 0x1000, 0x4000, 1 << 18
_MNT_DETACH = 2
_AT_RECURSIVE, _AT_FDCWD, _MOUNT_ATTR_RDONLY, _MOUNT_SETATTR = 0x8000, -100, 1, 442

_KEPT_CAPABILITIES = frozenset((0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31))
"""What container runtimes leave to root: files, owners, kill, setuid, low ports, chroot and the like."""
_OWN = ("tmp", "run", "dev", "proc")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


def _check(answer: int, what: str) -> None:
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)}: {what}")


def die_with_parent() -> None:
    """End when the process that forked this one ends; it has one thread, so the signal means what it says."""
    if _LINUX:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends."""
    if _LINUX:
        _libc.prctl(_PR_SET_SUBREAPER, 1, 0, 0, 0)


def children() -> list[int]:
    """Name the children of this process."""
    if not _LINUX:
        return []
    try:
        told = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
        return [int(word) for word in told.split()]
    except OSError:
        return [pid for pid in _processes() if _parent(pid) == os.getpid()]


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


# What works here


def probe(folder: str) -> dict[str, Any]:
    """Find out what isolation works, by trying it."""
    if not _LINUX:
        return {"namespaces": False, "user": False, "why": f"{sys.platform} has no namespaces"}
    why = ""
    for user in (False, True) if os.geteuid() == 0 else (True,):
        why = _try(folder, user=user)
        if not why:
            return {"namespaces": True, "user": user, "why": ""}
    return {"namespaces": False, "user": False, "why": why}


def _try(folder: str, *, user: bool) -> str:
    """Build a container's surroundings in a child; return what went wrong, if anything."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(told)
            spec: Spec = {"hostname": "probe", "mounts": [], "visible": [], "uid": None, "gid": None, "cwd": "/"}
            leave(spec, user=user)
            first = os.fork()
            if first == 0:
                try:
                    build(
                        spec | {"mounts": [{"source": folder, "target": "/flyball/probe", "read_only": True}]}, folder
                    )
                except BaseException as error:
                    os.write(tell, str(error).encode())
                os._exit(0)
            os.waitpid(first, 0)
        except BaseException as error:
            os.write(tell, str(error).encode())
        finally:
            os._exit(0)
    os.close(tell)
    words = b""
    while chunk := os.read(told, 4096):
        words += chunk
    os.close(told)
    os.waitpid(child, 0)
    return words.decode(errors="replace")


def leave(spec: Spec, *, user: bool) -> None:
    """Go into new namespaces; the next child is the first process of the new PID namespace."""
    uid, gid = os.geteuid(), os.getegid()
    flags = _NEWNS | _NEWUTS | _NEWIPC | _NEWPID
    _check(_libc.unshare(flags | (_NEWUSER if user else 0)), "unshare")
    if user:
        wanted_uid = uid if spec["uid"] is None else spec["uid"]
        wanted_gid = gid if spec["gid"] is None else spec["gid"]
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{wanted_uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{wanted_gid} {gid} 1")
    name = str(spec["hostname"]).encode()
    _check(_libc.sethostname(name, len(name)), "sethostname")


def join(init: int) -> None:
    """Go into the namespaces of a container; children are in its PID namespace."""
    flags = _NEWNS | _NEWUTS | _NEWIPC | _NEWPID
    ours, theirs = (os.readlink(f"/proc/{one}/ns/user") for one in ("self", init))
    process = os.pidfd_open(init)
    _check(_libc.setns(process, flags | (_NEWUSER if ours != theirs else 0)), "setns")
    os.close(process)


def lower(spec: Spec) -> None:
    """Give up what the command must not have."""
    if not _LINUX:
        return
    if os.geteuid() == 0:
        for number in range(64):
            if number not in _KEPT_CAPABILITIES:
                _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
        with contextlib.suppress(PermissionError):  # inside of a user namespace there is one group only
            os.setgroups(spec.get("groups") or [])
        if spec["gid"] not in (None, os.getegid()):
            os.setgid(spec["gid"])
        if spec["uid"] not in (None, 0):
            os.setuid(spec["uid"])
    _libc.prctl(_PR_NO_NEW_PRIVS, 1, 0, 0, 0)


# The file system


def _mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    words = [one.encode() if one is not None else None for one in (source, target, kind)]
    _check(_libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), data.encode()), f"mount {target}")


class _Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def _read_only(path: str, *, yes: bool = True, recursive: bool = False) -> None:
    change = _Attributes(set=_MOUNT_ATTR_RDONLY if yes else 0, clear=0 if yes else _MOUNT_ATTR_RDONLY)
    flags = _AT_RECURSIVE if recursive else 0
    answer = _libc.syscall(
        ctypes.c_long(_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        path.encode(),
        ctypes.c_uint(flags),
        ctypes.byref(change),
        ctypes.c_size_t(ctypes.sizeof(change)),
    )
    _check(answer, f"mount_setattr {path}")


def build(spec: Spec, folder: str) -> None:
    """Make the file system of a container and go into it. To be called as the first process of a PID namespace."""
    root = f"{folder}/root"
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    _cover("/", root, without=_OWN)
    _own_folder(root, "/tmp", 0o1777)
    _own_folder(root, "/run", 0o755)
    if os.path.isdir("/var/tmp"):
        _temporary(f"{root}/var/tmp", 0o1777)
    _devices(root)
    os.makedirs(f"{root}/proc", exist_ok=True)
    try:
        _mount("proc", f"{root}/proc", "proc", _MS_NOSUID | _MS_NODEV)
    except OSError:  # masked, as in a container: then the host's is shown, where the processes have other numbers
        _bind("/proc", f"{root}/proc")
    resolver = os.path.realpath("/etc/resolv.conf")
    for path in (*spec["visible"], *([resolver] if resolver.startswith("/run/") else [])):
        if os.path.exists(path):
            _place(root, path, path, read_only=True)
    for one in spec["mounts"]:
        if one.get("if_there") and not os.path.exists(one["target"]):
            continue
        _place(root, one["source"], one["target"], read_only=one["read_only"])
    _make(root, spec["cwd"], folder=True)
    if os.path.isdir(root + folder):  # what belongs to other containers is not to be seen
        _temporary(root + folder, 0o700)
    if spec.get("read_only_root"):
        _read_only(root)
    os.chdir(root)
    _check(_libc.pivot_root(b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", _MNT_DETACH), "umount the host's files")
    os.chdir("/")


def _temporary(path: str, mode: int, size: str = "256m") -> None:
    _mount("tmpfs", path, "tmpfs", _MS_NOSUID | _MS_NODEV, f"mode={mode:o},size={size}")


def _own_folder(root: str, name: str, mode: int) -> None:
    os.makedirs(root + name, exist_ok=True)
    _temporary(root + name, mode)


def _bind(source: str, target: str) -> None:
    _mount(source, target, None, _MS_BIND | _MS_REC)


def _cover(source: str, target: str, without: tuple[str, ...] = ()) -> None:
    """Put an empty folder over `target`, with the things of `source` in it, read-only."""
    _temporary(target, 0o755)
    for entry in os.scandir(source):
        if entry.name in without:
            continue
        place = f"{target}/{entry.name}"
        with contextlib.suppress(OSError):  # what we may not see, the container does not see
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), place)
            elif entry.is_dir():
                os.mkdir(place)
                _bind(entry.path, place)
            else:
                Path(place).touch()
                _bind(entry.path, place)
    _read_only(target, recursive=True)
    _read_only(target, yes=False)


def _devices(root: str) -> None:
    os.makedirs(f"{root}/dev", exist_ok=True)
    _temporary(f"{root}/dev", 0o755)
    for name in _DEVICES:
        Path(f"{root}/dev/{name}").touch()
        _bind(f"/dev/{name}", f"{root}/dev/{name}")
    os.mkdir(f"{root}/dev/pts")
    _bind("/dev/pts", f"{root}/dev/pts")
    os.symlink("pts/ptmx", f"{root}/dev/ptmx")
    os.mkdir(f"{root}/dev/shm")
    _temporary(f"{root}/dev/shm", 0o1777, "64m")
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink(f"/proc/self/fd{target}", f"{root}/dev/{name}")


def _place(root: str, source: str, target: str, *, read_only: bool) -> None:
    """Let the container see a file or folder of the host at a path of its own."""
    folder = stat.S_ISDIR(os.stat(source).st_mode)
    place = _make(root, target, folder=folder)
    _bind(source, place)
    if read_only:
        _read_only(place, recursive=True)


def _make(root: str, target: str, *, folder: bool) -> str:
    """Return the path of `target` below `root`; make what is missing, and never touch the host for it."""
    inside = "/"
    wanted = [part for part in target.split("/") if part not in ("", ".")]
    steps = 0
    while wanted:
        part = wanted.pop(0)
        steps += 1
        if steps > 255:
            raise OSError(40, f"too many symbolic links: {target}")
        if part == "..":
            inside = os.path.dirname(inside)
            continue
        nested = os.path.join(inside, part)
        place = root + nested
        if os.path.islink(place):
            pointed = os.readlink(place)
            if pointed.startswith("/"):
                inside = "/"
            wanted = [one for one in pointed.split("/") if one not in ("", ".")] + wanted
            continue
        if not os.path.lexists(place):
            _new(root, inside, place, folder=folder or bool(wanted))
        inside = nested
    return root + inside


def _new(root: str, parent: str, place: str, *, folder: bool) -> None:
    try:
        _touch(place, folder=folder)
    except OSError:
        _cover(parent, root + parent)  # the host's folder, which is read-only or not ours
        _touch(place, folder=folder)


def _touch(place: str, *, folder: bool) -> None:
    if folder:
        os.mkdir(place)
    else:
        Path(place).touch()
