"""The simulated kubelet: Pods become ready, end and go, by the cluster's clock, and nothing is run.

A Pod on a node of the simulation runs and is ready as soon as it is there. One that is to end (whose restart policy is
not `Always`) ends after a second. Annotations make it live otherwise:

| annotation | meaning |
|---|---|
| `simulate.flyball.dev/run-for` | seconds after which its containers end; also of a Pod that would run for ever |
| `simulate.flyball.dev/exit-code` | what they end with (0) |
| `simulate.flyball.dev/ready-after` | seconds until it is ready (0); `never` |
| `simulate.flyball.dev/waiting` | a reason for which it never starts, such as `ImagePullBackOff` |
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from flyball.client import Client, MergePatch, ref
from flyball.controller import Context, Controller, Request, controller
from flyball.controller.predicates import everything
from flyball.errors import Conflict, NotFound
from flyball.k8s.core.v1 import Container, Pod

__all__ = ["simulated_kubelet"]

_PREFIX: Final = "simulate.flyball.dev/"
_RUN_TIME: Final = 1.0
_NEVER: Final = float("inf")
_TERMINATED: Final = 143
"""What a process ends with when it is told to end."""


@dataclass(frozen=True, slots=True)
class _Life:
    """How a Pod lives, by its annotations."""

    run_for: float
    exit_code: int
    ready_after: float
    waiting: str

    @classmethod
    def of(cls, pod: Pod, speed: float) -> _Life:
        given = {
            name.removeprefix(_PREFIX): value
            for name, value in pod.metadata.annotations.items()
            if name.startswith(_PREFIX)
        }
        ends = pod.spec.restart_policy in ("Never", "OnFailure")
        return cls(
            run_for=_seconds(given.get("run-for", ""), _RUN_TIME if ends else _NEVER) / speed,
            exit_code=int(given["exit-code"]) if given.get("exit-code", "").isdecimal() else 0,
            ready_after=(
                _NEVER if given.get("ready-after") == "never" else _seconds(given.get("ready-after", ""), 0.0) / speed
            ),
            waiting=given.get("waiting", ""),
        )


def _seconds(text: str, otherwise: float) -> float:
    try:
        return max(float(text), 0.0) if text else otherwise
    except ValueError:
        return otherwise


def simulated_kubelet(client: Client, nodes: Collection[str], *, speed: float = 1.0) -> Controller[Pod]:
    """Make a kubelet that plays the Pods of these nodes, `speed` times as fast."""
    known = frozenset(nodes)

    @controller(Pod, name="kubelet", raw=True, predicates=[everything], error_condition=None, max_concurrent=20)
    async def play(request: Request, ctx: Context) -> None:
        """Bring one Pod into the state that is due now, also one that is being deleted."""
        pod = await ctx.get(Pod, request.name)
        if pod is None or not pod.spec.node_name or pod.spec.node_name not in known:
            return
        try:
            if pod.metadata.deletion_timestamp is not None:
                await _end(client, pod, ctx)
                return
            await _advance(client, pod, ctx, speed)
        except (NotFound, Conflict):
            return  # it changed or went meanwhile: that wakes us again

    return play


async def _end(client: Client, pod: Pod, ctx: Context) -> None:
    """End what runs, say so, and let the Pod go: who counts Pods sees how it ended."""
    if pod.status.phase not in ("Succeeded", "Failed"):
        now = ctx.now().replace(microsecond=0)
        life = _Life(run_for=0.0, exit_code=_TERMINATED, ready_after=_NEVER, waiting="")
        await _write(client, pod, _status(pod, life, pod.status.start_time or now, now))
        for container in pod.spec.containers:
            ctx.record("Normal", "Killing", f"Stopping container {container.name}", about=pod)
    await client.delete(ref(Pod, pod.metadata.name, namespace=pod.metadata.namespace), grace_period=0)


async def _advance(client: Client, pod: Pod, ctx: Context, speed: float) -> None:
    if pod.status.phase in ("Succeeded", "Failed"):
        return
    life, now = _Life.of(pod, speed), ctx.now().replace(microsecond=0)
    started = pod.status.start_time
    if started is None:
        await _write(client, pod, _status(pod, life, now, now))
        _announce(pod, life, ctx)
        started = now
    elif _due(pod, life, started, now):
        await _write(client, pod, _status(pod, life, started, now))
    waits = [started + timedelta(seconds=wait) - now for wait in (life.ready_after, life.run_for) if wait < _NEVER]
    later = [wait for wait in waits if wait > timedelta(0)]
    if later and not life.waiting:
        ctx.requeue(after=min(later))


def _due(pod: Pod, life: _Life, started: datetime, now: datetime) -> bool:
    """Tell whether something has changed since the status was written."""
    age = (now - started).total_seconds()
    if life.waiting:
        return False
    ready = any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions or ())
    return age >= life.run_for or (not ready and age >= life.ready_after)


def _announce(pod: Pod, life: _Life, ctx: Context) -> None:
    for container in pod.spec.containers:
        if life.waiting:
            ctx.record("Warning", "Failed", f'Error: {life.waiting}: image "{container.image}"', about=pod)
            continue
        pulled = f'Container image "{container.image}" already present on machine'
        ctx.record("Normal", "Pulled", pulled, about=pod)
        ctx.record("Normal", "Created", f"Container created: {container.name}", about=pod)
        ctx.record("Normal", "Started", f"Container started: {container.name}", about=pod)


async def _write(client: Client, pod: Pod, status: dict[str, Any]) -> None:
    await client.patch(pod, MergePatch({"status": status}), subresource="status")


def _status(pod: Pod, life: _Life, started: datetime, now: datetime) -> dict[str, Any]:
    age = (now - started).total_seconds()
    ended = age >= life.run_for and not life.waiting
    ready = age >= life.ready_after and not life.waiting and not ended
    phase = "Pending" if life.waiting else "Running"
    if ended:
        phase = "Succeeded" if life.exit_code == 0 else "Failed"
    moment = _time(now)
    reason = "PodCompleted" if phase == "Succeeded" else "PodFailed" if phase == "Failed" else "ContainersNotReady"
    whole = [
        _condition("PodReadyToStartContainers", True, "", moment),
        _condition("Initialized", True, "", moment),
        _condition("Ready", ready, "" if ready else reason, moment),
        _condition("ContainersReady", ready, "" if ready else reason, moment),
        _condition("PodScheduled", True, "", _time(started)),
    ]
    address = _address(pod)
    return {
        "phase": phase,
        "conditions": whole,
        "startTime": _time(started),
        "hostIP": "127.0.0.1",
        "hostIPs": [{"ip": "127.0.0.1"}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "containerStatuses": [
            _container(one, life, started, now, ready=ready, ended=ended) for one in pod.spec.containers
        ],
    }


def _condition(type_: str, holds: bool, reason: str, moment: str) -> dict[str, Any]:
    stated = {"type": type_, "status": "True" if holds else "False", "lastTransitionTime": moment}
    return {**stated, "reason": reason} if reason else stated


def _container(
    container: Container, life: _Life, started: datetime, now: datetime, *, ready: bool, ended: bool
) -> dict[str, Any]:
    state: dict[str, Any] = {"running": {"startedAt": _time(started)}}
    if life.waiting:
        state = {"waiting": {"reason": life.waiting, "message": f'Back-off pulling image "{container.image}"'}}
    elif ended:
        state = {
            "terminated": {
                "exitCode": life.exit_code,
                "reason": "Completed" if life.exit_code == 0 else "Error",
                "startedAt": _time(started),
                "finishedAt": _time(now),
            }
        }
    return {
        "name": container.name,
        "image": container.image or "",
        "imageID": "",
        "ready": ready,
        "restartCount": 0,
        "started": not life.waiting and not ended,
        "state": state,
        "lastState": {},
    }


def _address(pod: Pod) -> str:
    """Return an address of the Pod's own, from its uid."""
    number = int(pod.metadata.uid.replace("-", "")[:4] or "1", 16)
    return str(ipaddress.IPv4Address("10.244.0.1") + number)


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
