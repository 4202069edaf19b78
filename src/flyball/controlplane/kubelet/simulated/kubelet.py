"""The kubelet of all simulated nodes: it looks at a Pod when it has changed or its time has come, and moves it on."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from flyball.api import DynamicObject
from flyball.cache import CachedObject, CacheEvent, Key, Registration
from flyball.cache.objects import is_newer
from flyball.client import MergePatch, Ref, dynamic
from flyball.client.kinds import kind_from
from flyball.controller.queue import Queue, QueueClosed
from flyball.controlplane.kubelet.fleet import Setting
from flyball.controlplane.kubelet.simulated.diary import Diary
from flyball.controlplane.kubelet.simulated.life import Moments, Step, next_step
from flyball.controlplane.kubelet.simulated.stages import Stage, chosen_stage
from flyball.controlplane.kubelet.simulated.state import SimulatedPod
from flyball.controlplane.kubelet.simulated.wishes import Wishes
from flyball.controlplane.rush import Rush
from flyball.errors import Conflict, FlyballError, NotFound
from flyball.k8s.core.v1 import Pod

__all__ = ["SimulatedKubelet"]

log = logging.getLogger("flyball.kubelet")

_WORKERS: Final = 16
_TURN: Final = 0.005
"""Seconds of work after which others get their turn."""
_BREATH: Final = 1.0
"""Seconds before the same stage happens to the same Pod again, when it does not wait by itself."""
_AT_ONCE: Final = timedelta(milliseconds=1)
_REPORTER: Final = "kubelet"
_POD: Final = kind_from(dynamic("v1", "Pod"))


class _Spec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""


class _Seen(msgspec.Struct, gc=False):
    spec: _Spec


_node_of: Callable[[bytes], _Seen] = msgspec.json.Decoder(_Seen).decode


class _Played:
    """What is remembered of a Pod between two looks at it."""

    __slots__ = ("acted", "due", "moments", "overtaken", "passes", "stage", "uid", "written")

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.written = ""
        """The version that we wrote last,"""
        self.overtaken = False
        """and whether somebody looked before it had come back."""
        self.stage = ""
        """The stage that it waits in,"""
        self.due: datetime | None = None
        """and when that is over."""
        self.acted: tuple[str, datetime] = ("", datetime.min)
        """The stage that happened last, and when."""
        self.passes = 0
        self.moments: Moments = {}


class SimulatedKubelet:
    """Plays the Pods of these nodes, `speed` times as fast as they would live."""

    def __init__(
        self,
        setting: Setting,
        nodes: Collection[str],
        diary: Diary,
        *,
        speed: float,
        stages: Sequence[Stage],
        seed: int,
    ) -> None:
        """Nothing runs yet."""
        self._client = setting.client
        self._clock = setting.clock
        self._rush = Rush(setting.recorder, setting.clock, _REPORTER)
        self._nodes = frozenset(nodes)
        self._diary = diary
        self._speed = speed
        self._stages = stages
        self._seed = seed
        self._pods = setting.cache.informer(Pod)
        self._queue: Queue[Key] = Queue(clock=setting.clock)
        self._played: dict[Key, _Played] = {}
        self._registration: Registration | None = None
        self._workers: list[asyncio.Task[None]] = []

    # -- life ----------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Hear of Pods, and move them on."""
        self._registration = self._pods.add_handler(self._seen, name="simulated kubelet")
        self._workers = [
            asyncio.create_task(self._work(), name=f"simulated kubelet {number}") for number in range(_WORKERS)
        ]

    async def stop(self) -> None:
        """Leave every Pod as it is."""
        self._queue.shut_down()
        if self._registration is not None:
            self._registration.remove()
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    def _seen(self, event: CacheEvent) -> None:
        if event.new is None:
            played = self._played.pop(event.key, None)
            self._queue.cancel_delay(event.key)
            if played is not None:
                self._diary.forget(played.uid)
            return
        played = self._played.get(event.key)
        if played is None:
            if _node_of(event.new.raw).spec.node_name not in self._nodes:
                return
        elif played.uid == event.new.uid and played.written == event.new.resource_version and not played.overtaken:
            return  # our own word
        self._queue.add(event.key)

    async def _work(self) -> None:
        turn_ends = time.perf_counter() + _TURN
        while True:
            try:
                key = (await self._queue.get()).key
            except QueueClosed:
                return
            try:
                await self._play(key)
            except FlyballError as error:
                log.warning("Pod %s/%s: %s", *key, error)
                self._queue.fail(key, limit=10.0)
            except Exception:
                log.exception("Pod %s/%s", *key)
                self._queue.fail(key, limit=10.0)
            else:
                self._queue.forget(key)
            finally:
                self._queue.done(key)
            if time.perf_counter() > turn_ends:
                await asyncio.sleep(0)
                turn_ends = time.perf_counter() + _TURN

    # -- one look ------------------------------------------------------------------------------------------------------

    async def _play(self, key: Key) -> None:
        """Bring one Pod into the state that is due now."""
        view = self._pods.peek(key[1], key[0])
        if view is None:
            return
        played = self._played.get(key)
        if played is None or played.uid != view.uid:
            played = self._played[key] = _Played(view.uid)
        if played.written and is_newer(played.written, view.resource_version):
            played.overtaken = True  # what we wrote has not come back yet, and wakes us when it does
            return
        played.overtaken = False
        pod = SimulatedPod(_plain(view), self._clock.now())
        step = self._next(pod, played)
        if step is None:
            await self._settle(pod, played)
        elif step.due > pod.now + _AT_ONCE:
            self._queue.cancel_delay(key)
            self._queue.add_after(key, (step.due - pod.now).total_seconds())
            await self._settle(pod, played)
        else:
            if played.due is not None:
                played.acted, played.stage, played.due = (played.stage, pod.now), "", None
            step.act(pod)
            played.passes += 1
            try:
                await self._write(key, pod, played)
            except (NotFound, Conflict):
                return  # it has changed or gone meanwhile: that wakes us again

    def _next(self, pod: SimulatedPod, played: _Played) -> Step | None:
        if self._stages:
            chance = random.Random(f"{self._seed}/{pod.namespace}/{pod.name}/{played.passes}")  # noqa: S311 - a game
            found = chosen_stage(self._stages, pod, chance)
            if found is not None:
                return Step(self._due(found, pod, played, chance), found.act)
            played.stage, played.due = "", None
        return next_step(pod, Wishes(pod.pod, self._speed), played.moments, self._speed)

    def _due(self, found: Stage, pod: SimulatedPod, played: _Played, chance: random.Random) -> datetime:
        if played.stage != found.name or played.due is None:
            due = pod.now + timedelta(seconds=found.wait(chance) / self._speed)
            last, when = played.acted
            if last == found.name:
                due = max(due, when + timedelta(seconds=_BREATH / self._speed))
            played.stage, played.due = found.name, due
        return played.due

    async def _settle(self, pod: SimulatedPod, played: _Played) -> None:
        """Nothing happens now; but conditions may follow from what others have written, such as readiness gates."""
        self._diary.seen(pod.pod)
        if pod.started and not pod.deleting and pod.phase not in ("Succeeded", "Failed"):
            status = pod.conclusion()
            if status.get("conditions") != pod.before.get("conditions"):
                await self._patch(pod, played, {"status": {"conditions": status["conditions"]}})

    async def _write(self, key: Key, pod: SimulatedPod, played: _Played) -> None:
        status = pod.conclusion()
        changed = {name: value for name, value in status.items() if pod.before.get(name) != value}
        changed |= dict.fromkeys(pod.before.keys() - status.keys())
        if pod.annotations:
            body = MergePatch({"metadata": {"annotations": pod.annotations}})
            answer = await self._client.patch(_ref(pod), body)
            pod.pod["metadata"]["resourceVersion"] = answer.metadata.resource_version
            played.written = answer.metadata.resource_version or ""
        if changed:
            await self._patch(pod, played, {"status": changed})
        self._remember(pod, played)
        if pod.lines:
            self._diary.note(pod, pod.lines)
        self._tell(pod)
        if pod.deleted:
            await self._client.delete(_ref(pod), grace_period=0)
            return
        pod.pod["status"] = status
        self._diary.seen(pod.pod)
        if changed or pod.annotations:
            self._look_again(key, pod, played)

    def _look_again(self, key: Key, pod: SimulatedPod, played: _Played) -> None:
        """Set the alarm for what comes after what was just done."""
        after = SimulatedPod(pod.pod, self._clock.now())
        step = self._next(after, played)
        if step is not None:
            self._queue.cancel_delay(key)
            self._queue.add_after(key, (step.due - after.now).total_seconds())

    async def _patch(self, pod: SimulatedPod, played: _Played, body: dict[str, Any]) -> None:
        answer = await self._client.patch(_ref(pod), MergePatch(body), subresource="status", guard=True)
        played.written = answer.metadata.resource_version or ""

    def _remember(self, pod: SimulatedPod, played: _Played) -> None:
        """Note when containers were started: a status tells it to the second only."""
        for one in (*pod.init_containers, *pod.containers):
            running = pod.running(one.name)
            if running is not None and running.get("startedAt") == pod.moment:
                place = f"{one.name}/{pod.restarts(one.name)}"
                if place not in played.moments:
                    played.moments.pop(f"{one.name}/{pod.restarts(one.name) - 1}", None)
                    played.moments[place] = pod.now

    def _tell(self, pod: SimulatedPod) -> None:
        """Say what there is to say: in a rush, warnings only."""
        normal = sum(1 for one in pod.said if one.type == "Normal")
        told = (
            pod.said if not normal or self._rush.allows(normal) else [one for one in pod.said if one.type != "Normal"]
        )
        if not told:
            return
        metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
        about = DynamicObject({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
        for said in told:
            self._rush.say(about, said.type, said.reason, said.message)


def _plain(view: CachedObject) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(view.raw)
    return found


def _ref(pod: SimulatedPod) -> Ref[Any]:
    metadata = pod.pod["metadata"]
    return Ref(_POD, pod.name, pod.namespace, pod.uid, metadata.get("resourceVersion"))
