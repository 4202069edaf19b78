"""The logs of simulated containers, and what else a client asks the kubelet of a node.

A container has written what its annotation `simulate.flyball.dev/log` says, at the moment in which it was started, and
what stages have written since. Only the last thousand lines of a container are kept, those of its present run and of
the one before; a process that starts again knows only the annotation.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, NoReturn

from flyball.controlplane.apiserver.kubelets import Connection, KubeletRefusal, LogOptions, Run, Streams
from flyball.controlplane.kubelet.simulated.state import SimulatedPod
from flyball.controlplane.kubelet.simulated.wishes import Wishes

__all__ = ["Diary"]

_KEPT: Final = 1000


class Line(NamedTuple):
    """One line of a log."""

    when: datetime
    text: str


_Place = tuple[str, str, int]
"""Uid, container, number of the run."""


class Diary:
    """What containers have written; answers for all simulated nodes of a cluster."""

    def __init__(self, speed: float) -> None:
        """Nothing was written."""
        self._speed = speed
        self._lines: dict[_Place, deque[Line]] = {}
        self._known: dict[str, dict[str, Any]] = {}
        self._readers: dict[str, set[asyncio.Event]] = {}

    # -- for the kubelet -----------------------------------------------------------------------------------------------

    def note(self, pod: SimulatedPod, lines: list[tuple[str, str]]) -> None:
        """Stages have written."""
        for container, text in lines:
            run = pod.restarts(container)
            kept = self._lines.setdefault((pod.uid, container, run), deque(maxlen=_KEPT))
            kept.append(Line(pod.now, text))
            self._lines.pop((pod.uid, container, run - 2), None)

    def seen(self, pod: Mapping[str, Any]) -> None:
        """A Pod has changed: who reads its log looks again."""
        uid = pod["metadata"].get("uid") or ""
        if uid in self._readers:
            self._known[uid] = dict(pod)
            self._ring(uid)

    def forget(self, uid: str) -> None:
        """A Pod is gone."""
        if uid in self._readers:
            self._known[uid] = {}
            self._ring(uid)
        if self._lines:
            for place in [one for one in self._lines if one[0] == uid]:
                del self._lines[place]

    def _ring(self, uid: str) -> None:
        for bell in self._readers.get(uid, ()):
            bell.set()

    # -- for the API server --------------------------------------------------------------------------------------------

    async def logs(self, pod: Mapping[str, Any], options: LogOptions) -> AsyncIterator[bytes]:
        """Give the log of a container, as `Kubelet.logs` promises."""
        uid = pod["metadata"].get("uid") or ""
        run = _runs(pod, options.container) - (1 if options.previous else 0)
        left = options.limit_bytes
        given = 0
        bell = asyncio.Event()
        readers = self._readers.setdefault(uid, set())
        readers.add(bell)
        try:
            known: Mapping[str, Any] = pod
            first = True
            while True:
                bell.clear()
                lines = list(self._of(known, options.container, run)) if known else []
                fresh = lines[given:] if not first else list(_chosen(lines, options))
                given = max(given, len(lines))
                text = b"".join(_written(line, options) for line in fresh)
                if left is not None:
                    text = text[:left]
                    left -= len(text)
                if text or (first and options.follow):
                    yield text
                first = False
                if not options.follow or left == 0 or not known or _has_ended(known, options.container, run):
                    return
                await bell.wait()
                known = self._known.get(uid, known)
        finally:
            readers.discard(bell)
            if not readers:
                self._readers.pop(uid, None)
                self._known.pop(uid, None)

    def _of(self, pod: Mapping[str, Any], container: str, run: int) -> Iterator[Line]:
        started = _started_at(pod, container, run)
        if started is not None:
            for text in Wishes(pod, self._speed).log(container).splitlines():
                yield Line(started, text)
        yield from self._lines.get((pod["metadata"].get("uid") or "", container, run), ())

    async def exec(self, pod: Mapping[str, Any], run: Run, streams: Streams) -> int:
        """Refuse: there is no process."""
        _refuse(pod, f"container {run.container}", "no command can run in it")

    async def attach(self, pod: Mapping[str, Any], run: Run, streams: Streams) -> int:
        """Refuse: there is no process."""
        _refuse(pod, f"container {run.container}", "there is nothing to attach to")

    async def connect(self, pod: Mapping[str, Any], port: int) -> Connection:
        """Refuse: nobody listens."""
        _refuse(pod, f"port {port}", "nobody listens there")


def _refuse(pod: Mapping[str, Any], what: str, told: str) -> NoReturn:
    name = f"{pod['metadata'].get('namespace')}/{pod['metadata']['name']}"
    raise KubeletRefusal(f"{what} of Pod {name} is simulated, so {told}; start the cluster with --pods=process")


def _entry(pod: Mapping[str, Any], container: str) -> Mapping[str, Any]:
    status: Mapping[str, Any] = pod.get("status") or {}
    entries = (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
    return next((one for one in entries if one["name"] == container), {})


def _runs(pod: Mapping[str, Any], container: str) -> int:
    """The number of the latest run that has begun."""
    return int(_entry(pod, container).get("restartCount") or 0)


def _parts(pod: Mapping[str, Any], container: str, run: int) -> Mapping[str, Any] | None:
    """How a run stands: its `running` or `terminated`."""
    entry = _entry(pod, container)
    state, last = entry.get("state") or {}, (entry.get("lastState") or {}).get("terminated")
    if run == int(entry.get("restartCount") or 0):
        return state.get("running") or state.get("terminated") or last
    return last


def _started_at(pod: Mapping[str, Any], container: str, run: int) -> datetime | None:
    text = (_parts(pod, container, run) or {}).get("startedAt")
    return datetime.fromisoformat(text) if text else None


def _has_ended(pod: Mapping[str, Any], container: str, run: int) -> bool:
    return "finishedAt" in (_parts(pod, container, run) or {}) or _runs(pod, container) > run


def _chosen(lines: list[Line], options: LogOptions) -> list[Line]:
    if options.since is not None:
        lines = [one for one in lines if one.when >= options.since]
    if options.tail_lines is not None:
        lines = lines[-options.tail_lines :] if options.tail_lines else []
    return [] if options.stream == "Stderr" else lines


def _written(line: Line, options: LogOptions) -> bytes:
    if not options.timestamps:
        return f"{line.text}\n".encode()
    return f"{line.when.astimezone(UTC).strftime('%Y-%m-%dT%H:%M:%S.%f000Z')} {line.text}\n".encode()
