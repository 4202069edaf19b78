"""What follows from the states of a Pod's containers: its phase and its conditions, as a kubelet works them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["conclude", "phase_of"]

Object = dict[str, Any]


def conclude(pod: Mapping[str, Any], status: Object, moment: str) -> Object:
    """Return the status with phase, conditions and generation; a condition that stays keeps its time."""
    if not status.get("startTime"):
        return status
    phase = phase_of(pod["spec"], status)
    generation = pod["metadata"].get("generation")
    known: dict[str, Object] = {one["type"]: one for one in status.get("conditions") or ()}
    ours = [_stated(known.get(one["type"]), one, moment, generation) for one in _conditions(pod, status, phase)]
    types = {one["type"] for one in ours}
    scheduled = known.get("PodScheduled") or {"status": "True", "lastTransitionTime": status["startTime"]}
    others = [one for type_, one in known.items() if type_ not in types and type_ != "PodScheduled"]
    stated = {"type": "PodScheduled", "lastProbeTime": None, **scheduled}
    found = {**status, "phase": phase, "conditions": [*ours, stated, *others]}
    if generation is not None:
        found["observedGeneration"] = generation
    return found


def _stated(known: Object | None, now: Object, moment: str, generation: int | None) -> Object:
    since = moment
    if known is not None and known.get("status") == now["status"]:
        since = known.get("lastTransitionTime") or moment
    stated: Object = {"lastProbeTime": None, "lastTransitionTime": since, **now}
    if generation is not None:
        stated["observedGeneration"] = generation
    return stated


def phase_of(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    """Return the phase."""
    if status.get("phase") in ("Succeeded", "Failed"):
        return str(status["phase"])
    policy = spec.get("restartPolicy") or "Always"
    pending, failed = _initialization(spec, status)
    if failed and policy == "Never":
        return "Failed"
    if pending or failed:
        return "Pending"
    entries = _by_name(status.get("containerStatuses"))
    waiting = running = stopped = succeeded = 0
    for one in spec["containers"]:
        state: Mapping[str, Any] = entries.get(one["name"], {}).get("state") or {}
        last = (entries.get(one["name"], {}).get("lastState") or {}).get("terminated")
        if "running" in state:
            running += 1
        elif (ended := state.get("terminated")) is not None:
            stopped += 1
            succeeded += ended.get("exitCode") == 0
        elif last is not None:
            stopped += 1
        else:
            waiting += 1
    if waiting:
        return "Pending"
    if running or policy == "Always":
        return "Running"
    if stopped == succeeded:
        return "Succeeded"
    return "Failed" if policy == "Never" else "Running"


def _initialization(spec: Mapping[str, Any], status: Mapping[str, Any]) -> tuple[list[str], bool]:
    """The init containers that are not done, and whether one has failed."""
    entries = _by_name(status.get("initContainerStatuses"))
    pending: list[str] = []
    failed = False
    for one in spec.get("initContainers") or ():
        entry = entries.get(one["name"], {})
        state: Mapping[str, Any] = entry.get("state") or {}
        if one.get("restartPolicy") == "Always":
            if not entry.get("started") and "terminated" not in state:
                pending.append(one["name"])
            continue
        ended = state.get("terminated") or (entry.get("lastState") or {}).get("terminated")
        if "running" in state or ended is None:
            pending.append(one["name"])
        elif ended.get("exitCode") != 0:
            pending.append(one["name"])
            failed = True
    return pending, failed


def _conditions(pod: Mapping[str, Any], status: Mapping[str, Any], phase: str) -> list[Object]:
    spec: Mapping[str, Any] = pod["spec"]
    over = phase in ("Succeeded", "Failed")
    pending, _ = _initialization(spec, status)
    initialized: Object = {"type": "Initialized", "status": "True"}
    if phase == "Succeeded":
        initialized["reason"] = "PodCompleted"
    elif pending:
        told = f"containers with incomplete status: [{' '.join(pending)}]"
        initialized |= {"status": "False", "reason": "ContainersNotInitialized", "message": told}
    containers = _containers_ready(spec, status, phase)
    return [
        {"type": "PodReadyToStartContainers", "status": "False" if over else "True"},
        initialized,
        _ready(spec, status, containers),
        containers,
    ]


def _containers_ready(spec: Mapping[str, Any], status: Mapping[str, Any], phase: str) -> Object:
    if phase in ("Succeeded", "Failed"):
        reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
        return {"type": "ContainersReady", "status": "False", "reason": reason}
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    entries = _by_name(status.get("containerStatuses")) | _by_name(status.get("initContainerStatuses"))
    unready = [one["name"] for one in (*sidecars, *spec["containers"]) if not entries.get(one["name"], {}).get("ready")]
    if not unready:
        return {"type": "ContainersReady", "status": "True"}
    told = f"containers with unready status: [{' '.join(unready)}]"
    return {"type": "ContainersReady", "status": "False", "reason": "ContainersNotReady", "message": told}


def _ready(spec: Mapping[str, Any], status: Mapping[str, Any], containers: Object) -> Object:
    if containers["status"] != "True":
        return {**containers, "type": "Ready"}
    known = {one["type"]: one.get("status") for one in status.get("conditions") or ()}
    missing: list[str] = []
    for gate in spec.get("readinessGates") or ():
        type_ = gate.get("conditionType")
        if type_ not in known:
            missing.append(f'corresponding condition of pod readiness gate "{type_}" does not exist.')
        elif known[type_] != "True":
            missing.append(f'the status of pod readiness gate "{type_}" is not "True", but {known[type_]}')
    if missing:
        told = ", ".join(missing)
        return {"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady", "message": told}
    return {"type": "Ready", "status": "True"}


def _by_name(entries: Sequence[Object] | None) -> dict[str, Object]:
    return {one["name"]: one for one in entries or ()}
