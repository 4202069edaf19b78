"""The program that owns the processes of Pods, so that they end with the kubelet, however it ends.

It is started as a file, needs only the standard library, has one thread, and obeys the kubelet over a socket: each
order is four bytes of length and a JSON object, with the descriptors that it needs.

    {"do": "start", "id": ID, "spec": PATH} + stdin, stdout, stderr               a container
    {"do": "exec", "id": ID, "in": ID, "spec": PATH} + stdin, stdout, stderr      a command beside it
    {"do": "signal", "id": ID, "number": N}                                       to its first process
    {"do": "kill", "id": ID}                                                      everything in it, at once

It answers with lines of JSON: {"hello": WHAT ISOLATION WORKS} once, then {"id": ID, "is": "started"}, {"id": ID, "is":
"refused", "step": WHERE, "message": WHY} and {"id": ID, "is": "ended", "code": N, "oom": BOOL}. A `spec` is a file that
is removed once it was read; `launching` says what is in it.

The folder that it works in goes with it: there are Secrets of Pods in it.

Who watches whom. This program ends everything when its socket is closed, which the kernel does for a kubelet that is
killed. Each container has an init process, which ends everything in it when its control pipe is closed, which the
kernel does when this program is killed. With namespaces the init is the first process of a PID namespace, so nothing in
it can outlive it; without them it is a subreaper that looks for what is left.
"""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import gc
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import termios
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from flyball.controlplane.kubelet.process import _cgroups as cgroups
    from flyball.controlplane.kubelet.process import _namespaces as namespaces
else:  # it is run as a file, apart from any package
    sys.path.insert(0, str(Path(__file__).parent))

    import _cgroups as cgroups
    import _namespaces as namespaces

Spec = dict[str, Any]

_SIGNALS_TO_IGNORE = ("SIGINT", "SIGHUP", "SIGPIPE", "SIGTERM")
_LENGTH = struct.Struct("!I")
_MANY_DESCRIPTORS = 1 << 16


class Held:
    """Something that runs: the process that waits for it, and the way to its init."""

    def __init__(self, waiter: int, control: int, status: int, group: cgroups.Group | None) -> None:
        self.waiter = waiter
        self.control = control
        self.status = status
        self.group = group
        self.init = waiter
        self.told = b""
        self.code: int | None = None
        self.isolated = False


class Guard:
    """Obeys until the kubelet is gone."""

    def __init__(self, kubelet: socket.socket, folder: str) -> None:
        self._kubelet = kubelet
        self._folder = folder
        self._held: dict[str, Held] = {}
        self._inbox = b""
        self._descriptors: list[int] = []
        self._wake, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._groups = cgroups.Groups.find()
        self._isolation = namespaces.probe(folder)

    def run(self) -> None:
        limits = self._groups.controllers if self._groups is not None else []
        self._tell({"hello": {**self._isolation, "cgroups": limits}})
        poller = select.poll()
        poller.register(self._kubelet, select.POLLIN)
        poller.register(self._wake, select.POLLIN)
        try:
            while True:
                statuses = {one.status: name for name, one in self._held.items() if one.status >= 0}
                for status in statuses:
                    poller.register(status, select.POLLIN)
                ready = [number for number, _ in poller.poll()]
                for status in statuses:
                    poller.unregister(status)
                if self._wake in ready:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake, 4096)
                for status in statuses.keys() & set(ready):
                    self._read_status(statuses[status])
                self._reap()
                if self._kubelet.fileno() in ready and not self._obey():
                    return
        finally:
            self._end_all()

    # Orders

    def _obey(self) -> bool:
        """Read what came; False when the kubelet is gone."""
        room = socket.CMSG_SPACE(16 * array.array("i").itemsize)
        try:
            data, ancillary, _, _ = self._kubelet.recvmsg(65536, room)
        except OSError:
            return False
        for level, kind, raw in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers = array.array("i")
                numbers.frombytes(raw[: len(raw) - len(raw) % numbers.itemsize])
                self._descriptors += numbers
        if not data:
            return False
        self._inbox += data
        while len(self._inbox) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._inbox)
            if len(self._inbox) < _LENGTH.size + length:
                break
            order = json.loads(self._inbox[_LENGTH.size : _LENGTH.size + length])
            self._inbox = self._inbox[_LENGTH.size + length :]
            self._do(order)
        return True

    def _do(self, order: dict[str, Any]) -> None:
        if order["do"] in ("start", "exec"):
            ends, self._descriptors = self._descriptors[:3], self._descriptors[3:]
            try:
                spec: Spec = json.loads(Path(order["spec"]).read_bytes())
                Path(order["spec"]).unlink()
                self._start(order, spec, ends)
            except OSError as error:
                self._refuse(order["id"], "start", str(error))
            finally:
                for end in ends:
                    os.close(end)
        elif order["id"] in self._held:
            held = self._held[order["id"]]
            with contextlib.suppress(OSError):
                os.write(held.control, bytes([order["number"] if order["do"] == "signal" else signal.SIGKILL]))

    def _start(self, order: dict[str, Any], spec: Spec, ends: list[int]) -> None:
        beside = self._held.get(order["in"]) if order["do"] == "exec" else None
        if order["do"] == "exec" and (beside is None or beside.code is not None):
            self._refuse(order["id"], "gone", "the container does not run")
            return
        group = None if beside is not None or self._groups is None else self._groups.new(order["id"], spec)
        control, to_init = os.pipe()
        told, status = os.pipe()
        waiter = os.fork()
        if waiter == 0:
            joined = beside.group if beside is not None else group
            _in_child(
                lambda: _waiter(spec, beside, joined, control, status, ends, self._isolation, self._folder), status
            )
        os.close(control)
        os.close(status)
        held = Held(waiter, to_init, told, group)
        held.isolated = bool(self._isolation["namespaces"]) and spec["isolate"]
        self._held[order["id"]] = held

    def _read_status(self, name: str) -> None:
        held = self._held[name]
        chunk = os.read(held.status, 65536)
        if chunk:
            held.told += chunk
            return
        os.close(held.status)
        held.status = -1
        refused: dict[str, Any] | None = None
        for line in held.told.splitlines():
            word = json.loads(line)
            held.init = word.get("init", held.init)
            refused = word if "step" in word else refused
        if refused is None:
            self._tell({"id": name, "is": "started"})
        else:
            self._refuse(name, refused["step"], refused["message"])
        self._finish(name)

    def _reap(self) -> None:
        while True:
            try:
                pid, state = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for name, held in list(self._held.items()):
                if held.waiter == pid:
                    held.code = os.waitstatus_to_exitcode(state)
                    if held.status >= 0:
                        os.set_blocking(held.status, True)
                        while held.status >= 0:
                            self._read_status(name)
                    else:
                        self._finish(name)

    def _finish(self, name: str) -> None:
        """Report the end of what was started and has ended."""
        held = self._held.get(name)
        if held is None or held.code is None:
            return
        del self._held[name]
        os.close(held.control)
        code = held.code if held.code >= 0 else 128 - held.code
        oom = held.group.close() if held.group is not None else False
        if not any("step" in json.loads(line) for line in held.told.splitlines()):
            self._tell({"id": name, "is": "ended", "code": code, "oom": oom})

    def _refuse(self, name: str, step: str, message: str) -> None:
        self._tell({"id": name, "is": "refused", "step": step, "message": message})

    def _tell(self, word: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            self._kubelet.sendall(json.dumps(word).encode() + b"\n")

    def _end_all(self) -> None:
        """End everything, and wait for it: nothing is left when this program has ended."""
        for held in self._held.values():
            os.close(held.control)
        for held in self._held.values():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(held.waiter, 0)
            if held.group is not None:
                held.group.close()
        if self._groups is not None:
            self._groups.close()


# In the children


def _in_child(work: Any, status: int) -> NoReturn:
    """Run the rest of a child's life; whatever happens, it never comes back into the guard's code."""
    code = 255
    try:
        signal.set_wakeup_fd(-1)
        code = work()
    except BaseException as error:
        _report(status, {"step": "start", "message": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(code)


def _report(status: int, word: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        os.write(status, json.dumps(word).encode() + b"\n")


def _waiter(
    spec: Spec,
    beside: Held | None,
    group: cgroups.Group | None,
    control: int,
    status: int,
    ends: list[int],
    isolation: dict[str, Any],
    folder: str,
) -> int:
    """Go into new namespaces, or those of a container; become the init, or wait for it."""
    namespaces.die_with_parent()
    ends = _only({control, status, *ends}, ends)
    if group is not None:
        group.enter()
    within = bool(isolation["namespaces"]) and spec["isolate"]
    if not within:
        return _init(spec, control, status, ends, alone=False)
    if beside is not None:
        try:
            namespaces.join(beside.init)
        except OSError:
            _report(status, {"step": "gone", "message": "the container does not run"})
            return 255
    else:
        namespaces.leave(spec, user=bool(isolation["user"]))
    init = os.fork()
    if init == 0:
        namespaces.die_with_parent()
        if beside is None:
            _in_child(lambda: _first(spec, control, status, ends, folder), status)
        _in_child(lambda: _init(spec, control, status, ends, alone=False, sweep=False), status)
    _report(status, {"init": init})
    _only(set(), [])
    _, state = os.waitpid(init, 0)
    code = os.waitstatus_to_exitcode(state)
    return code if code >= 0 else 128 - code


def _only(kept: set[int], ends: list[int]) -> list[int]:
    """Close every descriptor but these."""
    lowest = 0
    for number in sorted(kept):
        os.closerange(lowest, number)
        lowest = number + 1
    highest, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.closerange(lowest, highest if highest != resource.RLIM_INFINITY else _MANY_DESCRIPTORS)
    return ends


def _first(spec: Spec, control: int, status: int, ends: list[int], folder: str) -> int:
    """Be the first process of a container's PID namespace."""
    namespaces.build(spec, folder)
    return _init(spec, control, status, ends, alone=True)


def _init(spec: Spec, control: int, status: int, ends: list[int], *, alone: bool, sweep: bool = True) -> int:
    """Start the main process, obey the control pipe, collect orphans; return the main process's code."""
    for name in _SIGNALS_TO_IGNORE:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    if sweep and not alone:
        namespaces.adopt_orphans()
    wake, woken = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    main = os.fork()
    if main == 0:
        _in_child(lambda: _become(spec, status, ends), status)
    for number in (status, *set(ends)):
        os.close(number)
    watched = [control, wake]
    code: int | None = None
    while code is None:
        ready, _, _ = select.select(watched, [], [])
        if control in ready:
            orders = os.read(control, 256)
            for number in orders or bytes([signal.SIGKILL]):
                _send(main, number, everything=sweep)
            if not orders:
                watched = [wake]
        if wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 4096)
        code = _collect(main)
    if sweep and not alone:
        _sweep()
    return code


def _send(main: int, number: int, *, everything: bool) -> None:
    with contextlib.suppress(OSError):
        if number == signal.SIGKILL:
            os.killpg(main, number)  # it leads a group of its own
        os.kill(main, number)
    if number == signal.SIGKILL and everything and os.getpid() == 1:
        with contextlib.suppress(OSError):
            os.kill(-1, number)


def _collect(main: int) -> int | None:
    """Collect who has ended; return the code of the main process if it is among them."""
    code: int | None = None
    while True:
        try:
            pid, state = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == main:
            code = os.waitstatus_to_exitcode(state)
            code = code if code >= 0 else 128 - code


def _sweep() -> None:
    """End what the main process left: every one of it is, or becomes, a child of ours."""
    while True:
        children = namespaces.children()
        if not children:
            return
        for child in children:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


def _become(spec: Spec, status: int, ends: list[int]) -> int:
    """Become the command."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
    os.setsid()
    if spec["tty"]:
        fcntl.ioctl(ends[0], termios.TIOCSCTTY, 0)
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    status = fcntl.fcntl(status, fcntl.F_DUPFD_CLOEXEC, 10)
    for wanted, end in enumerate(moved):
        os.dup2(end, wanted)
    for name, limit in spec["rlimits"].items():
        kind = getattr(resource, name)
        _, most = resource.getrlimit(kind)
        limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(kind, (limit, limit))
    os.umask(0o022)
    try:
        namespaces.lower(spec)
        os.chdir(spec["cwd"])
    except OSError as error:
        _report(status, {"step": "cwd", "message": f"{error.strerror}: {error.filename or ''}", "errno": error.errno})
        return 128
    _execute(spec, status)
    return 128


def _execute(spec: Spec, status: int) -> None:
    argv, environment = spec["argv"], spec["env"]
    name = argv[0]
    tried = [name] if "/" in name else [f"{part}/{name}" for part in environment.get("PATH", "").split(":") if part]
    worst = errno.ENOENT
    for path in tried:
        try:
            os.execve(path, argv, environment)  # noqa: S606 - no shell is wanted
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                worst = error.errno or errno.EACCES
                if error.errno != errno.EACCES:
                    break
    if worst == errno.ENOENT and "/" not in name:
        why = "executable file not found in $PATH"
    else:
        why = os.strerror(worst).lower()
    quoted = json.dumps(name)
    message = f"exec: {quoted}: {why}" if "/" not in name else f"exec: {quoted}: stat {name}: {why}"
    _report(status, {"step": "exec", "message": message, "errno": worst})


def main() -> None:
    """Obey the socket whose number is the first argument; the second names a folder for what is needed meanwhile."""
    for name in _SIGNALS_TO_IGNORE:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    os.setsid()
    gc.disable()  # children share the memory of what nobody touches
    with socket.socket(fileno=int(sys.argv[1])) as kubelet:
        os.set_inheritable(kubelet.fileno(), False)
        Guard(kubelet, sys.argv[2]).run()
    import shutil  # not needed before

    shutil.rmtree(sys.argv[2], ignore_errors=True)


if __name__ == "__main__":
    main()
