"""What may happen to Pods on their nodes, as a kubelet would write it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

__all__ = ["CONCERNED", "choose", "state_of", "status_of"]

Object = dict[str, Any]

PENDING, RUNNING, READY, SUCCEEDED, FAILED, DELETING = "pending", "running", "ready", "succeeded", "failed", "deleting"
ALIVE: Final = (PENDING, RUNNING, READY)
CONCERNED: Final[dict[str, tuple[str, ...]]] = {
    "bound": (PENDING,),
    "running": ALIVE,
    "ready": (PENDING, RUNNING),
    "succeeded": ALIVE,
    "failed": ALIVE,
    "deleted": (*ALIVE, SUCCEEDED, FAILED),
    "gone": (DELETING,),
    "status": (*ALIVE, SUCCEEDED, FAILED, DELETING),
}
"""In which states a Pod is, to which this may happen."""
MARK: Final = "mark"


def state_of(pod: Object) -> str:
    """Return in which state a Pod is."""
    phase = pod["status"].get("phase", "Pending")
    if "deletionTimestamp" in pod["metadata"]:
        return DELETING
    if phase in ("Succeeded", "Failed"):
        return str(phase).lower()
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))
    return READY if ready else RUNNING if phase == "Running" else PENDING


def choose(pods: Iterable[Object], what: str, options: dict[str, Any]) -> list[Object]:
    """Return those to whom it happens."""
    states = [options["are"]] if "are" in options else CONCERNED[what]
    found = [pod for pod in pods if state_of(pod) in states and _is_meant(pod, options)]
    found = [pod for pod in found if what != "bound" or "nodeName" not in pod["spec"]]
    return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))[: options.get("count")]


def _is_meant(pod: Object, options: dict[str, Any]) -> bool:
    metadata = pod["metadata"]
    labels, marks = metadata.get("labels") or {}, (metadata.get("annotations") or {}).get(MARK)
    image = pod["spec"]["containers"][0].get("image")
    return (
        options.get("where", {}).items() <= labels.items()
        and options.get("image", image) == image
        and options.get("marked", marks) == marks
    )


def status_of(pod: Object, what: str, now: datetime, number: int, code: int = 0) -> Object:
    """Return what a kubelet writes about a Pod to which this has happened."""
    moment = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    started = pod["status"].get("startTime", moment)
    ready, ended = what == READY, what in (SUCCEEDED, FAILED)
    reason = "" if ready else "PodCompleted" if what == SUCCEEDED else "PodFailed" if ended else "ContainersNotReady"
    before = {each["type"]: each for each in pod["status"].get("conditions", ())}
    conditions = [
        _condition("PodReadyToStartContainers", not ended, "", moment, before),
        _condition("Initialized", True, "", moment, before),
        _condition("Ready", ready, reason, moment, before),
        _condition("ContainersReady", ready, reason, moment, before),
        _condition("PodScheduled", True, "", moment, before),
    ]
    address = f"10.1.0.{number}"
    return {
        "phase": what.capitalize() if ended else "Running",
        "conditions": conditions,
        "startTime": started,
        "hostIP": "10.2.0.1",
        "hostIPs": [{"ip": "10.2.0.1"}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "containerStatuses": [_container(each, ready, ended, code, started, moment) for each in _containers(pod)],
    }


def _containers(pod: Object) -> list[Object]:
    return list(pod["spec"]["containers"])


def _condition(type_: str, holds: bool, reason: str, moment: str, before: dict[str, Object]) -> Object:
    status = "True" if holds else "False"
    old = before.get(type_, {})
    since = old["lastTransitionTime"] if old.get("status") == status else moment
    stated = {"type": type_, "status": status, "lastTransitionTime": since}
    return stated | ({"reason": reason} if reason else {})


def _container(container: Object, ready: bool, ended: bool, code: int, started: str, moment: str) -> Object:
    state: Object = {"running": {"startedAt": started}}
    if ended:
        word = "Completed" if code == 0 else "Error"
        state = {"terminated": {"exitCode": code, "reason": word, "startedAt": started, "finishedAt": moment}}
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "restartCount": 0,
        "started": not ended,
        "state": state,
        "lastState": {},
    }
