"""One container of a Pod: its runs, their output, and how they are begun and ended."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

from flyball.controlplane.kubelet.process.guarding import Exit, GuardLost, NotStarted, Process
from flyball.controlplane.kubelet.process.isolating import message_file
from flyball.controlplane.kubelet.process.launching import Launch
from flyball.controlplane.kubelet.process.logs import Log
from flyball.controlplane.kubelet.process.node import Node
from flyball.controlplane.kubelet.process.output import Feed, Pump, nothing
from flyball.controlplane.kubelet.process.status import Ending, Known
from flyball.controlplane.kubelet.process.waiting import within

__all__ = ["Running"]

_MESSAGE_SIZE: Final = 4096
_FALLBACK_SIZE: Final = 2048
_FALLBACK_LINES: Final = 80
_DRAIN: Final = 2.0
"""Seconds of real time to wait for output that somebody still holds open."""


class Running:
    """The runs of a container; the current one, and the logs of it and of the one before."""

    def __init__(self, node: Node, known: Known, folder: Path) -> None:
        """Nothing runs yet."""
        self._node = node
        self.known = known
        self.folder = folder
        self.process: Process | None = None
        self.launch: Launch | None = None
        self.log: Log | None = None
        self.previous: Log | None = None
        self.stdin: Feed | None = None
        self.terminal: int | None = None
        self._pumps: list[Pump] = []
        self.stopping = False
        """It is being ended: what happens to it is no failure."""

    @property
    def runs(self) -> bool:
        """Whether its process is there."""
        return self.process is not None and not self.process.ended.done()

    @property
    def pausing(self) -> bool:
        """Whether the last run was the previous one: another one is to come."""
        return not self.runs and self.log is not None and self.known.ending is None

    async def begin(self, launch: Launch) -> None:
        """Start a run. Raises NotStarted, GuardLost."""
        self._next_log()
        self.launch = launch
        self.stopping = False
        assert self.log is not None
        message = message_file(self.folder)
        message.write_bytes(b"")
        message.chmod(0o666)
        ends = self._ends(self.log)
        process = self._node.guard.start(launch, *ends)
        self.process = process
        self.known.container_id = f"flyball://{process.name}"
        try:
            await process.started()
        except (NotStarted, GuardLost):
            self._close()
            raise

    def _next_log(self) -> None:
        if self.previous is not None:
            self.previous.remove()
        self.previous = self.log
        path = self.folder / f"{self.known.restarts}.log"
        self.log = Log(path, self._node.clock, self._node.limits.logs)

    def _ends(self, log: Log) -> tuple[int, int, int]:
        """Make the ends that the process gets, and take care of ours."""
        spec = self.known.spec
        if spec.tty:
            ours, theirs = os.openpty()
            self.terminal = ours
            self._pumps = [Pump(os.dup(ours), lambda data: log.write("stdout", data))]
            if spec.stdin:
                self.stdin = Feed(ours, owned=False)
            return theirs, os.dup(theirs), os.dup(theirs)
        out, out_end = os.pipe()
        error, error_end = os.pipe()
        self._pumps = [
            Pump(out, lambda data: log.write("stdout", data)),
            Pump(error, lambda data: log.write("stderr", data)),
        ]
        if not spec.stdin:
            return nothing(), out_end, error_end
        stdin, feed = os.pipe()
        self.stdin = Feed(feed)
        return stdin, out_end, error_end

    async def end(self) -> Ending:
        """Wait for the end of the run; all of its output is in the log then."""
        process = self.process
        assert process is not None
        exit_ = await process.exit()
        pumps = [pump.ended for pump in self._pumps]
        if pumps:
            await asyncio.wait(pumps, timeout=_DRAIN)
        self._close()
        return self._ending(exit_)

    def _close(self) -> None:
        for pump in self._pumps:
            pump.close()
        self._pumps = []
        if self.stdin is not None:
            self.stdin.close()
            self.stdin = None
        if self.terminal is not None:
            os.close(self.terminal)
            self.terminal = None
        if self.log is not None:
            self.log.close()

    def _ending(self, exit_: Exit) -> Ending:
        reason = "OOMKilled" if exit_.oom and exit_.code != 0 else "Completed" if exit_.code == 0 else "Error"
        return Ending(
            code=exit_.code,
            reason=reason,
            started=self.known.running_since,
            finished=self._node.clock.now(),
            message=self._message(failed=exit_.code != 0),
            container_id=self.known.container_id,
        )

    def _message(self, *, failed: bool) -> str:
        with suppress(OSError), message_file(self.folder).open("rb") as file:
            text = file.read(_MESSAGE_SIZE).decode(errors="replace")
            if text:
                return text
        if failed and self.known.spec.termination_message_policy == "FallbackToLogsOnError" and self.log is not None:
            return self.log.tail(_FALLBACK_LINES, _FALLBACK_SIZE)
        return ""

    async def stop(self, grace: float) -> None:
        """Ask the process to end, and end everything in it when it has not done so after `grace` seconds."""
        process = self.process
        if process is None:
            return
        self.stopping = True
        with suppress(NotStarted, GuardLost):
            await process.started()
        if grace > 0 and not process.ended.done():
            process.signal(self._stop_signal())
            await within(self._node.clock, grace, process.ended)
        process.kill()
        await asyncio.wait({process.ended})

    def _stop_signal(self) -> int:
        lifecycle = self.known.spec.lifecycle
        name = (lifecycle.stop_signal if lifecycle is not None else None) or "SIGTERM"
        return int(getattr(signal, name, signal.SIGTERM))

    def abandon(self) -> None:
        """End everything at once, and wait for nothing."""
        self.stopping = True
        if self.process is not None:
            self.process.kill()
        self._close()
