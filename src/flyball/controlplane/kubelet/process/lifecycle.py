"""The life of one Pod: from its volumes to its last process.

A Pod's life is one task that does what comes next: make the volumes, run the init containers one after the other, start
the others and keep them going as their restart policies say. Whatever it learns it writes into `Known`; another task
writes the status whenever something has changed. A Pod that shall end has its life cut off where it stands, and is
ended in order: hooks, SIGTERM, patience, SIGKILL.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from flyball.client import StrategicPatch
from flyball.controlplane.kubelet.process.containers import Running
from flyball.controlplane.kubelet.process.environment import environment_of
from flyball.controlplane.kubelet.process.guarding import GuardLost, NotStarted
from flyball.controlplane.kubelet.process.images import Image
from flyball.controlplane.kubelet.process.isolating import launch_of
from flyball.controlplane.kubelet.process.launching import Launch
from flyball.controlplane.kubelet.process.lookup import ConfigError
from flyball.controlplane.kubelet.process.node import Node
from flyball.controlplane.kubelet.process.notices import without_effect
from flyball.controlplane.kubelet.process.probes import Answer, Asking, ask, probing, unsupported
from flyball.controlplane.kubelet.process.pulling import image_of
from flyball.controlplane.kubelet.process.status import (
    Ending,
    Known,
    Place,
    Role,
    Waiting,
    restarts,
    roles_of,
    status_of,
)
from flyball.controlplane.kubelet.process.volumes import Volumes, mounts_of, prepare
from flyball.controlplane.kubelet.process.waiting import Pauses, spoken, within
from flyball.errors import Conflict, FlyballError, NotFound
from flyball.k8s.core.v1 import Container, Pod, Probe

__all__ = ["Life"]

_log = logging.getLogger("flyball.kubelet")

_DEADLINE: Final = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
_CONFIG_PAUSE: Final = 10.0
_MOUNT_PAUSE: Final = 0.5
_LONGEST_MOUNT_PAUSE: Final = 122.0
_WRITE_PAUSE: Final = 1.0
_MINIMAL_GRACE: Final = 2.0
"""What is left for the process when a hook has used up the time."""


class Life:
    """The life of one Pod on this node."""

    def __init__(self, node: Node, pod: Pod, address: str) -> None:
        """Nothing is done yet. `address` is the Pod's own."""
        self._node = node
        self.pod = pod
        self.address = address
        self.folder = node.folder / "pods" / pod.metadata.uid
        self.since = pod.status.start_time or node.clock.now().replace(microsecond=0)
        self._ready_to_start = False
        self._verdict: tuple[str, str] | None = None
        self.finished = False
        """Nothing runs any more, and nothing will."""
        self.containers = [self._container(spec, role) for spec, role in roles_of(pod)]
        self._volumes: dict[str, Path] = {}
        self._written: dict[str, Any] | None = None
        self._bell = asyncio.Event()
        self._settled = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._keeping: dict[str, asyncio.Task[None]] = {}
        self._flush = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None
        self._released = False
        self._probes: dict[str, list[asyncio.Task[None]]] = {}
        self._living: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._deadline: asyncio.Task[None] | None = None
        self._deadline_seconds: int | None = None
        self._grace_left: asyncio.Future[None] | None = None
        self._grace = 0.0

    def _container(self, spec: Container, role: Role) -> Running:
        reason = "ContainerCreating" if not self.pod.spec.init_containers else "PodInitializing"
        return Running(self._node, Known(spec, role, Waiting(reason)), self.folder / spec.name)

    def running(self, name: str) -> Running | None:
        """Return a container by its name."""
        return next((one for one in self.containers if one.known.name == name), None)

    # What others tell it

    def begin(self) -> None:
        """Begin to live."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for one in self.containers:
            one.folder.mkdir(exist_ok=True)
        self._writer = self._task(self._write_status())
        self._changed()
        self._living = self._task(self._live())
        self.observe(self.pod)

    def observe(self, pod: Pod) -> None:
        """Take note of the Pod as it is on the server now."""
        if _version(pod) < _version(self.pod):
            return
        self.pod = pod
        if pod.metadata.deletion_timestamp is not None:
            self._delete()
            return
        wanted = pod.spec.active_deadline_seconds
        if wanted != self._deadline_seconds and not self.finished and self._ending is None:
            self._deadline_seconds = wanted
            if self._deadline is not None:
                self._deadline.cancel()
            if wanted is not None:
                self._deadline = self._task(self._meet_deadline(wanted))
        self._changed()

    def _delete(self) -> None:
        grace = self.pod.metadata.deletion_grace_period_seconds
        seconds = float(grace if grace is not None else 30)
        if self._released:
            return
        if self._ending is None or self._ending.done():
            self._ending = self._task(self._end(seconds))
        elif seconds < self._grace:
            self._grace = seconds
            if self._grace_left is not None and not self._grace_left.done():
                self._grace_left.set_result(None)

    async def abandon(self) -> None:
        """Stop at once: the Pod is not there any more, or the node goes. Returns when nothing of it runs."""
        for task in list(self._tasks):
            task.cancel()
        processes = [one.process for one in self.containers if one.process is not None]
        for one in self.containers:
            one.abandon()
        if processes:
            await asyncio.wait({process.ended for process in processes})
        for task in list(self._tasks):
            with suppress(asyncio.CancelledError):
                await task
        self.finished = True

    def remove_files(self) -> None:
        """Remove everything that was kept of it."""
        for one in self.containers:
            for log in (one.log, one.previous):
                if log is not None:
                    log.remove()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("pod %s: %s", self._words, task.exception(), exc_info=task.exception())

    @property
    def _words(self) -> str:
        metadata = self.pod.metadata
        return f"{metadata.name}_{metadata.namespace}({metadata.uid})"

    # Its life

    async def _live(self) -> None:
        """Live; what nobody has foreseen ends the Pod, and is told."""
        try:
            await self._live_on()
        except Exception as error:
            _log.exception("pod %s", self._words)
            cause = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
            self._verdict = ("KubeletError", f"{type(cause).__name__}: {cause}")
            self._ending = self._task(self._end(0.0))

    async def _live_on(self) -> None:
        idle = without_effect(self.pod)
        if idle:
            told = f"Pods as processes do not know of it, so it has no effect: {', '.join(idle)}"
            self._node.tell(self.pod, "Warning", "NotSupported", told)
        await self._make_volumes()
        self._ready_to_start = True
        self._changed()
        for one in self.containers:
            if one.known.role != "app" and not await self._initialize(one):
                break
        else:
            await self._keep_all([one for one in self.containers if one.known.role == "app"])
        await self._stop_sidecars(self._node_grace())
        self._finish()

    def _node_grace(self) -> float:
        grace = self.pod.spec.termination_grace_period_seconds
        return float(30 if grace is None else grace)

    async def _keep_all(self, apps: list[Running]) -> None:
        for one in apps:
            if one.known.waiting is not None and one.known.waiting.reason == "PodInitializing":
                one.known.waiting = Waiting("ContainerCreating")
        async with asyncio.TaskGroup() as group:
            for one in apps:
                group.create_task(self._keep(one))

    async def _make_volumes(self) -> None:
        pause = _MOUNT_PAUSE
        volumes = Volumes(self.pod, self.folder / "volumes", self._node.around, self.address, self._node.host_paths)
        for volume in self.pod.spec.volumes or ():
            while True:
                try:
                    self._volumes[volume.name] = await prepare(volumes, volume)
                    break
                except FlyballError as error:
                    self._node.tell(self.pod, "Warning", "FailedMount", str(error))
                await self._node.clock.sleep(pause)
                pause = min(pause * 2, _LONGEST_MOUNT_PAUSE)

    async def _initialize(self, one: Running) -> bool:
        """Run an init container to its success, or start a sidecar; tell whether the next one may start."""
        if one.known.role == "sidecar":
            keeping = self._keeping[one.known.name] = self._task(self._keep_sidecar(one))
            while not one.known.started and not keeping.done():
                self._settled.clear()
                await self._settled.wait()
            return True
        return await self._keep(one) == 0

    async def _keep_sidecar(self, one: Running) -> None:
        await self._keep(one)

    async def _keep(self, one: Running) -> int:
        """Run a container as often as it shall run; return its last code."""
        known, pauses = one.known, Pauses()
        while True:
            launch = await self._prepare(one)
            begun = self._node.clock.monotonic()
            ending, killed = await self._run(one, launch)
            known.running_since, known.ready, known.started = None, False, False
            known.ending, known.waiting = ending, None
            again = restarts(known.spec, self.pod, ending.code) or (killed and self.pod.spec.restart_policy != "Never")
            if known.role == "init" and ending.code == 0:
                known.ready = True
                again = False
            if not again or (one.stopping and not killed):
                if any(other.runs for other in self.containers):
                    self._changed()  # else something follows at once, which is told together with it
                return ending.code
            pause = pauses.after(self._node.clock.monotonic() - begun)
            if pause:
                self._back_off(one, ending, pause)
                await self._node.clock.sleep(pause)

    def _back_off(self, one: Running, ending: Ending, pause: float) -> None:
        known = one.known
        message = f"back-off {spoken(pause)} restarting failed container={known.name} pod={self._words}"
        known.last, known.ending = ending, None
        known.waiting = Waiting("CrashLoopBackOff", message)
        told = f"Back-off restarting failed container {known.name} in pod {self._words}"
        self._node.tell(self.pod, "Warning", "BackOff", told)
        self._changed()

    async def _prepare(self, one: Running) -> Launch:
        """Find out how a container is started; wait while it cannot be."""
        while True:
            image = await image_of(self._node, self.pod, one.known, self._changed)
            try:
                return await self._launch(one, image)
            except ConfigError as error:
                one.known.waiting = Waiting(error.reason, str(error))
                self._node.tell(self.pod, "Warning", "Failed", f"Error: {error}")
            except (FlyballError, OSError) as error:
                one.known.waiting = Waiting("CreateContainerError", str(error))
                self._node.tell(self.pod, "Warning", "Failed", f"Error: {error}")
            self._changed()
            await self._node.clock.sleep(_CONFIG_PAUSE)

    async def _launch(self, one: Running, image: Image) -> Launch:
        container = one.known.spec
        told = unsupported(container)
        if told:
            raise ConfigError(told)
        env = await environment_of(self.pod, container, self._node.around, self.address)
        mounts = mounts_of(container, self._volumes, env)
        launch = launch_of(self._node, self.pod, container, image, env, mounts, one.folder, self.address)
        if not launch.argv:
            raise ConfigError("no command specified", "CreateContainerError")
        return launch

    async def _run(self, one: Running, launch: Launch) -> tuple[Ending, bool]:
        """Run a container once; also tell whether a probe or hook had it ended."""
        known, tell = one.known, self._node.tell
        if one.process is not None:
            known.restarts += 1
        if known.ending is not None:
            known.last, known.ending = known.ending, None
        try:
            await one.begin(launch)
        except GuardLost as error:
            return Ending(137, "ContainerStatusUnknown", None, self._node.clock.now(), str(error)), False
        except (NotStarted, OSError) as error:
            message = f'failed to start container "{known.name}": {error}'
            tell(self.pod, "Warning", "Failed", f"Error: {message}")
            ending = Ending(128, "StartError", None, self._node.clock.now(), message, known.container_id)
            return ending, False
        tell(self.pod, "Normal", "Created", "Container created")
        tell(self.pod, "Normal", "Started", "Container started")
        known.running_since, known.waiting = self._node.clock.now(), None
        killed: list[str] = []
        hooks = self._task(self._attend(one, killed))
        self._changed()
        try:
            ending = await one.end()
        finally:
            hooks.cancel()
            for probe in self._probes.pop(known.name, []):
                probe.cancel()
        return ending, bool(killed)

    # Hooks and probes

    async def _attend(self, one: Running, killed: list[str]) -> None:
        """Run the postStart hook, then begin to probe."""
        known = one.known
        lifecycle = known.spec.lifecycle
        if lifecycle is not None and lifecycle.post_start is not None:
            answer = await ask(self._asking(one), lifecycle.post_start)
            if not answer.good:
                self._node.tell(self.pod, "Warning", "FailedPostStartHook", "PostStartHook failed")
                killed.append("hook")
                self._task(self._kill(one, "FailedPostStartHook", self._node_grace()))
                return
        startup = known.spec.startup_probe
        if startup is None:
            self._started(one, killed)
        else:
            self._probe(one, "Startup", startup, killed)

    def _asking(self, one: Running) -> Asking:
        return Asking(one, self._node.guard, self.address, self._node.clock)

    def _started(self, one: Running, killed: list[str]) -> None:
        known, spec = one.known, one.known.spec
        if known.started or known.running_since is None:
            return
        known.started = True
        if spec.liveness_probe is not None:
            self._probe(one, "Liveness", spec.liveness_probe, killed)
        if spec.readiness_probe is not None:
            self._probe(one, "Readiness", spec.readiness_probe, killed)
        else:
            known.ready = known.role != "init"
        self._changed()

    def _probe(self, one: Running, word: str, probe: Probe, killed: list[str]) -> None:
        def told(answer: Answer) -> None:
            if not answer.good and one.runs:
                self._node.tell(self.pod, "Warning", "Unhealthy", f"{word} probe failed: {answer.words}")

        def turned(good: bool) -> None:
            if word == "Readiness":
                if one.known.ready != good:
                    one.known.ready = good and one.known.running_since is not None
                    self._changed()
            elif good and word == "Startup":
                self._started(one, killed)
                task.cancel()
            elif not good and not killed and one.runs and self._ending is None:
                killed.append(word)
                grace = probe.termination_grace_period_seconds
                message = f"Container {one.known.name} failed {word.lower()} probe"
                if self.pod.spec.restart_policy != "Never":
                    message += ", will be restarted"
                self._task(self._kill(one, message, self._node_grace() if grace is None else float(grace)))

        task = self._task(probing(self._asking(one), probe, told, turned))
        self._probes.setdefault(one.known.name, []).append(task)

    async def _kill(self, one: Running, message: str, grace: float) -> None:
        """End one run: with its hook, patience, and then at once."""
        if not one.runs:
            return
        known, clock = one.known, self._node.clock
        self._node.tell(self.pod, "Normal", "Killing", message)
        lifecycle, begun = known.spec.lifecycle, clock.monotonic()
        if lifecycle is not None and lifecycle.pre_stop is not None and grace > 0:
            answer: list[Answer] = []
            assert one.process is not None
            await within(clock, grace, _first(self._hook(one, answer), one.process.ended))
            if answer and not answer[0].good:
                self._node.tell(self.pod, "Warning", "FailedPreStopHook", "PreStopHook failed")
            grace = max(grace - (clock.monotonic() - begun), _MINIMAL_GRACE)
        await one.stop(grace)

    async def _hook(self, one: Running, answer: list[Answer]) -> None:
        lifecycle = one.known.spec.lifecycle
        assert lifecycle is not None
        assert lifecycle.pre_stop is not None
        answer.append(await ask(self._asking(one), lifecycle.pre_stop))

    # Its end

    async def _meet_deadline(self, seconds: int) -> None:
        await self._node.clock.sleep((self.since - self._node.clock.now()).total_seconds() + seconds)
        if self.finished or self._ending is not None:
            return
        self._node.tell(self.pod, "Normal", *_DEADLINE)
        self._verdict = _DEADLINE
        self._ending = self._task(self._end(self._node_grace()))

    async def _stop_sidecars(self, grace: float) -> None:
        """End the sidecars, the last one first."""
        for one in reversed([one for one in self.containers if one.known.role == "sidecar"]):
            keeping = self._keeping.get(one.known.name)
            if keeping is None:
                continue
            one.stopping = True
            if one.runs:
                await self._kill(one, f"Stopping container {one.known.name}", grace)
            else:
                keeping.cancel()
            await asyncio.wait({keeping})

    async def _end(self, grace: float) -> None:
        """End what runs, in order and within the time, write how it ended, and let a deleted Pod go."""
        self._grace = grace
        if not self.finished:
            await self._cut_off()
            self._grace_left = asyncio.get_running_loop().create_future()
            ending = asyncio.ensure_future(self._end_all(grace))
            try:
                await asyncio.wait({ending, self._grace_left}, return_when=asyncio.FIRST_COMPLETED)
                if not ending.done():  # somebody wants it sooner
                    await within(self._node.clock, self._grace, ending)
                    for one in self.containers:
                        if one.process is not None:
                            one.process.kill()
                await ending
            finally:
                ending.cancel()
            self._finish()
        if self.pod.metadata.deletion_timestamp is not None:
            await self._let_go()

    async def _cut_off(self) -> None:
        """Let nothing be started any more; those that run go on."""
        for task in [*(one for many in self._probes.values() for one in many), self._living, self._deadline]:
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        others = [task for task in self._tasks if task not in (asyncio.current_task(), self._writer)]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for one in self.containers:
            one.stopping = True

    async def _end_all(self, grace: float) -> None:
        begun = self._node.clock.monotonic()
        mains = [one for one in self.containers if one.known.role != "sidecar"]
        await asyncio.gather(*(self._end_one(one, grace) for one in mains))
        for one in reversed([one for one in self.containers if one.known.role == "sidecar"]):
            await self._end_one(one, max(grace - (self._node.clock.monotonic() - begun), min(grace, _MINIMAL_GRACE)))

    async def _end_one(self, one: Running, grace: float) -> None:
        known = one.known
        if one.process is None or (known.running_since is None and not one.runs):
            return
        if known.running_since is None:
            known.running_since = self._node.clock.now()
        await self._kill(one, f"Stopping container {known.name}", grace)
        ending = await one.end()
        known.ending, known.waiting, known.running_since = ending, None, None
        known.ready = known.started = False
        self._changed()

    def _finish(self) -> None:
        """Nothing runs any more: say so, and give the room back."""
        self.finished = True
        if self._deadline is not None and self._deadline is not asyncio.current_task():
            self._deadline.cancel()
        for one in self.containers:
            if one.known.last is not None and one.known.ending is None and one.known.role != "init":
                one.known.ending, one.known.waiting = one.known.last, None
        shutil.rmtree(self.folder / "volumes", ignore_errors=True)
        self._changed()

    async def _let_go(self) -> None:
        """Tell the server that nothing of the Pod is left; what it has finalizers for stays until they are done."""
        self._released = True
        await self._flush.wait()
        while True:
            try:
                await self._node.client.delete(self.pod, grace_period=0, missing_ok=True)
                return
            except Conflict:
                return  # another Pod has the name now
            except FlyballError as error:
                _log.warning("pod %s: delete: %s", self._words, error)
            await self._node.clock.sleep(_WRITE_PAUSE)

    # The status

    def _changed(self) -> None:
        self._flush.clear()
        self._bell.set()
        self._settled.set()

    def status(self) -> dict[str, Any]:
        """The status as it is now."""
        place = Place(self._node.around.node_ip, self.address if self._ready_to_start else "", self.since)
        known = [one.known for one in self.containers]
        verdict = self._verdict if self.finished else None
        return status_of(self.pod, known, place, self._node.clock.now(), ended=self.finished, verdict=verdict)

    async def _write_status(self) -> None:
        while True:
            await self._bell.wait()
            self._bell.clear()
            status = self.status()
            if status == self._written:
                self._flush.set()
                continue
            body = {"metadata": {"uid": self.pod.metadata.uid}, "status": status}
            try:
                answer = await self._node.client.patch(self.pod, StrategicPatch(body), subresource="status")
            except (NotFound, Conflict):
                self._flush.set()
                continue  # it is gone: that is told in another way
            except FlyballError as error:
                _log.warning("pod %s: write its status: %s", self._words, error)
                self._bell.set()
                await self._node.clock.sleep(_WRITE_PAUSE)
                continue
            self._written = status
            if _version(answer) >= _version(self.pod):
                self.pod = answer
            if not self._bell.is_set():
                self._flush.set()


def _version(pod: Pod) -> int:
    text = pod.metadata.resource_version or ""
    return int(text) if text.isdecimal() else 0


async def _first(what: Coroutine[Any, Any, None], other: asyncio.Future[Any]) -> None:
    """Do something until it is done or something else has happened."""
    task = asyncio.ensure_future(what)
    try:
        await asyncio.wait({task, other}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
