"""The life of a Pod that no stage has a word on: what happens to it next, and when.

It is taken in; its init containers run one after the other; its containers run, get ready, and end when they are to
end; what has ended is started again as the restart policy says, after the pauses of a kubelet; it fails when its time
is up; and it goes when it is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple

from flyball.api import Duration
from flyball.controlplane.kubelet.simulated.state import Container, SimulatedPod, time_text
from flyball.controlplane.kubelet.simulated.wishes import NEVER, Wishes

__all__ = ["Moments", "Step", "back_off", "next_step"]

_FIRST: Final = 10.0
_LONGEST: Final = 300.0
_STEADY: Final = 600.0
"""A container that has run for so long starts again without a pause."""
_TERMINATED: Final = 143
_KILLED: Final = 137
_PULLING: Final = ("ErrImagePull", "ImagePullBackOff")

Act = Callable[[SimulatedPod], None]
Moments = dict[str, datetime]
"""When containers were started, more exactly than their status tells: by name and number of the run."""


class Step(NamedTuple):
    """What happens next to a Pod, and when."""

    due: datetime
    act: Act


def back_off(restarts: int, ran: float) -> float:
    """Return the pause of a kubelet before it starts a container once more that was restarted so often already."""
    if restarts == 0 or ran >= _STEADY:
        return 0.0
    return min(_FIRST * 2.0 ** min(restarts - 1, 30), _LONGEST)


def next_step(pod: SimulatedPod, wishes: Wishes, moments: Moments, speed: float) -> Step | None:
    """Return what is due next; None when nothing will happen by itself."""
    if pod.deleting:
        return _going(pod, wishes)
    if pod.phase in ("Succeeded", "Failed"):
        return None
    if not pod.started:
        return Step(pod.now, lambda it: _begin(it, wishes))
    return min(_candidates(pod, wishes, moments, speed), key=lambda step: step.due, default=None)


# -- the beginning -----------------------------------------------------------------------------------------------------


def _begin(pod: SimulatedPod, wishes: Wishes) -> None:
    pod.accept()
    _go_on(pod, wishes)


def _go_on(pod: SimulatedPod, wishes: Wishes) -> None:
    """Start what can start: the next init container, or the containers."""
    for one in pod.init_containers:
        if _is_done(pod, one):
            continue
        if pod.running(one.name) is not None or pod.last(one.name) is not None:
            return
        _start(pod, one, wishes)
        if one.sidecar:
            continue
        if pod.running(one.name) is None or wishes.run_for(one.name, init=True) > 0:
            return
        _end(pod, one, wishes)
        if not _is_done(pod, one):
            return
    for one in pod.containers:
        if pod.running(one.name) is None and pod.last(one.name) is None:
            _start(pod, one, wishes)


def _is_done(pod: SimulatedPod, one: Container) -> bool:
    if one.sidecar:
        return pod.running(one.name) is not None
    ended = pod.terminated(one.name)
    return ended is not None and ended.get("exitCode") == 0


def _start(pod: SimulatedPod, one: Container, wishes: Wishes, *, patient: bool = True) -> None:
    reason = wishes.waiting(one.name) if patient else ""
    if reason:
        if (pod.waiting(one.name) or {}).get("reason") != reason:
            pulling = reason in _PULLING
            pod.wait(one.name, reason, f'Back-off pulling image "{one.image}"' if pulling else "")
            _tell_waiting(pod, one, reason)
        return
    pod.start(one.name, ready=one.sidecar or (not one.init and wishes.ready_after(one.name) <= 0))
    pod.say("Normal", "Pulled", f'Container image "{one.image}" already present on machine')
    pod.say("Normal", "Created", "Container created")
    pod.say("Normal", "Started", "Container started")


def _tell_waiting(pod: SimulatedPod, one: Container, reason: str) -> None:
    if reason in _PULLING:
        pod.say("Normal", "Pulling", f'Pulling image "{one.image}"')
        pod.say("Warning", "Failed", f'Failed to pull image "{one.image}": simulated')
        pod.say("Warning", "Failed", "Error: ErrImagePull")
        pod.say("Normal", "BackOff", f'Back-off pulling image "{one.image}"')
    pod.say("Warning", "Failed", f"Error: {reason}")


# -- the middle --------------------------------------------------------------------------------------------------------


def _candidates(pod: SimulatedPod, wishes: Wishes, moments: Moments, speed: float) -> Iterator[Step]:
    limit = pod.pod["spec"].get("activeDeadlineSeconds")
    if limit is not None and (since := _read(pod.before.get("startTime"))) is not None:
        yield Step(since + timedelta(seconds=limit / speed), _expire)
    if not all(_is_done(pod, one) for one in pod.init_containers):
        for one in pod.init_containers:
            yield from _of_container(pod, one, wishes, moments, speed)
        return
    if any(pod.running(one.name) is None and pod.last(one.name) is None for one in pod.containers):
        yield from _unstarted(pod, wishes)
    for one in (*pod.init_containers, *pod.containers):
        if not one.init or one.sidecar:
            yield from _of_container(pod, one, wishes, moments, speed)


def _unstarted(pod: SimulatedPod, wishes: Wishes) -> Iterator[Step]:
    since = _read(pod.before.get("startTime")) or pod.now
    for one in pod.containers:
        if pod.running(one.name) is not None or pod.last(one.name) is not None:
            continue
        wanted = wishes.waiting(one.name)
        if not wanted or (pod.waiting(one.name) or {}).get("reason") != wanted:
            yield Step(pod.now, partial(_go_on, wishes=wishes))
        elif (wait := wishes.waiting_for(one.name)) < NEVER:
            due = since + timedelta(seconds=wait)
            yield Step(due, partial(_start, one=one, wishes=wishes, patient=False))


def _of_container(pod: SimulatedPod, one: Container, wishes: Wishes, moments: Moments, speed: float) -> Iterator[Step]:
    running, ended = pod.running(one.name), pod.last(one.name)
    if running is not None:
        since = moments.get(f"{one.name}/{pod.restarts(one.name)}") or _read(running.get("startedAt")) or pod.now
        wait = wishes.run_for(one.name, init=one.init, sidecar=one.sidecar)
        if wait < NEVER:
            due = since + timedelta(seconds=wait)
            yield Step(due, partial(_end_and_go_on, one=one, wishes=wishes, at=due))
        ready = wishes.ready_after(one.name)
        if not one.init and ready < NEVER and not pod.entry(one.name).get("ready"):
            yield Step(since + timedelta(seconds=ready), lambda it: it.set_ready(one.name))
    elif ended is not None and _starts_again(pod, one, int(ended.get("exitCode") or 0)):
        yield from _again(pod, one, wishes, speed)


def _starts_again(pod: SimulatedPod, one: Container, exit_code: int) -> bool:
    if one.sidecar:
        return True
    if one.init and exit_code == 0:
        return False
    return pod.restart_policy == "Always" or (pod.restart_policy == "OnFailure" and exit_code != 0)


def _again(pod: SimulatedPod, one: Container, wishes: Wishes, speed: float) -> Iterator[Step]:
    ended = pod.last(one.name) or {}
    since = _read(ended.get("finishedAt")) or pod.now
    ran = (since - (_read(ended.get("startedAt")) or since)).total_seconds() * speed
    pause = back_off(pod.restarts(one.name), ran)
    if pause and pod.terminated(one.name) is not None:
        yield Step(pod.now, partial(_wait_to_restart, one=one, pause=pause))
    else:
        due = since + timedelta(seconds=pause / speed)
        yield Step(due, partial(_start, one=one, wishes=wishes, patient=False))


def _wait_to_restart(pod: SimulatedPod, *, one: Container, pause: float) -> None:
    length = Duration(pause).canonical()
    told = f"back-off {length} restarting failed container={one.name} pod={pod.words}"
    pod.wait(one.name, "CrashLoopBackOff", told)
    pod.say("Warning", "BackOff", f"Back-off restarting failed container {one.name} in pod {pod.words}")


# -- the end -----------------------------------------------------------------------------------------------------------


def _end(pod: SimulatedPod, one: Container, wishes: Wishes, at: datetime | None = None) -> None:
    code = wishes.exit_code(one.name, pod.restarts(one.name), init=one.init)
    finished = time_text(at if at is not None and at < pod.now else pod.now)
    pod.end(one.name, code, message=wishes.termination_message(one.name), at=finished)


def _end_and_go_on(pod: SimulatedPod, *, one: Container, wishes: Wishes, at: datetime) -> None:
    _end(pod, one, wishes, at)
    if one.init:
        _go_on(pod, wishes)
        return
    policy = pod.restart_policy
    over = all(
        (ended := pod.terminated(each.name)) is not None
        and not (policy == "Always" or (policy == "OnFailure" and ended.get("exitCode") != 0))
        for each in pod.containers
    )
    if over:
        for each in pod.init_containers:
            if each.sidecar and pod.running(each.name) is not None:
                pod.end(each.name, 0)


def _expire(pod: SimulatedPod) -> None:
    for one in (*pod.init_containers, *pod.containers):
        if pod.running(one.name) is not None:
            pod.end(one.name, _KILLED)
    told = "Pod was active on the node longer than the specified deadline"
    pod.status |= {"phase": "Failed", "reason": "DeadlineExceeded", "message": told}
    pod.say("Normal", "DeadlineExceeded", told)


def _going(pod: SimulatedPod, wishes: Wishes) -> Step:
    """End what runs when its time has come, and let the Pod go: who counts Pods sees how it ended."""
    metadata = pod.pod["metadata"]
    grace = float(metadata.get("deletionGracePeriodSeconds") or 0)
    end = _read(metadata.get("deletionTimestamp")) or pod.now
    running = [one for one in (*pod.init_containers, *pod.containers) if pod.running(one.name) is not None]
    wait = max((wishes.terminate_after(one.name) for one in running), default=0.0)
    if wait <= 0:
        return Step(pod.now, partial(_go, code=_TERMINATED))
    due = end - timedelta(seconds=grace) + timedelta(seconds=min(wait, grace))
    return Step(due, partial(_go, code=_TERMINATED if wait < grace else _KILLED))


def _go(pod: SimulatedPod, *, code: int) -> None:
    for one in (*pod.init_containers, *pod.containers):
        if pod.running(one.name) is not None:
            pod.say("Normal", "Killing", f"Stopping container {one.name}")
            pod.end(one.name, code)
    if pod.started and pod.phase not in ("Succeeded", "Failed"):
        ended = [pod.last(one.name) or {} for one in pod.containers]
        well = all(one.get("exitCode") == 0 for one in ended)
        pod.status["phase"] = "Succeeded" if well else "Failed"
    pod.let_go()


def _read(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) and text else None
