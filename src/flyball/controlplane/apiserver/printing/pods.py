"""The columns of Pods, and how the state of one is put into a word."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple

from flyball.controlplane.apiserver.printing.cells import (
    AGE,
    NAME,
    NONE,
    Column,
    age,
    at,
    column,
    labels_text,
)

__all__ = ["COLUMNS", "completed"]

Object = dict[str, Any]

_COMPLETED: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def completed(obj: Object) -> list[Object]:
    """Give the conditions of the row: whether the pod has come to its end."""
    phase = at(obj, "status.phase", "")
    if phase not in _COMPLETED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _COMPLETED[phase]}]


class _Summary(NamedTuple):
    ready: int
    total: int
    reason: str
    restarts: int
    restarted: str
    """When a container last ended."""


def summary(pod: Object) -> _Summary:
    """Sum up the containers of a pod: the first thing that keeps it from running is its state."""
    init = {one["name"]: one for one in at(pod, "spec.initContainers", ())}
    total = len(at(pod, "spec.containers", ())) + sum(map(_restartable, init.values()))
    reason = at(pod, "status.reason") or at(pod, "status.phase", "")
    if any(_is(one, "PodScheduled") and one.get("reason") == "SchedulingGated" for one in _conditions(pod)):
        reason = "SchedulingGated"
    starting = _Starting(init)
    waits_for = starting.look(at(pod, "status.initContainerStatuses", []))
    found = _Summary(starting.ready, total, waits_for or reason, starting.restarts, starting.restarted)
    if not waits_for or any(_is(one, "Initialized") and _is_true(one) for one in _conditions(pod)):
        found = _running(pod, found, starting)
    return found._replace(reason=_deleted(pod, found.reason))


def _conditions(pod: Object) -> Iterator[Object]:
    yield from at(pod, "status.conditions", ())


def _is(condition: Object, type_: str) -> bool:
    return condition.get("type") == type_


def _is_true(condition: Object) -> bool:
    return condition.get("status") == "True"


def _restartable(container: Object | None) -> bool:
    return bool(container) and at(container, "restartPolicy") == "Always"


def _last_end(status: Object) -> str:
    return str(at(status, "lastState.terminated.finishedAt", ""))


class _Starting:
    """Goes through the init containers up to the first that has not done its part."""

    def __init__(self, containers: dict[str, Object]) -> None:
        self._containers = containers
        self.ready = self.restarts = self.restarts_of_sidecars = 0
        self.restarted = self.restarted_sidecar = ""

    def look(self, statuses: list[Object]) -> str:
        """Return what the pod waits for, in the form `Init:…`; empty when all init containers are done."""
        for place, status in enumerate(statuses):
            sidecar = _restartable(self._containers.get(status["name"]))
            self._count(status, sidecar)
            if at(status, "state.terminated") is not None and at(status, "state.terminated.exitCode", 0) == 0:
                continue
            if sidecar and status.get("started"):
                self.ready += bool(status.get("ready"))
                continue
            return self._why(status, place)
        return ""

    def _count(self, status: Object, sidecar: bool) -> None:
        restarts = status.get("restartCount") or 0
        self.restarts += restarts
        self.restarted = max(self.restarted, _last_end(status))
        if sidecar:
            self.restarts_of_sidecars += restarts
            self.restarted_sidecar = max(self.restarted_sidecar, _last_end(status))

    def _why(self, status: Object, place: int) -> str:
        if at(status, "state.terminated") is not None:
            return f"Init:{_ended(status)}"
        waiting = at(status, "state.waiting.reason", "")
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}"
        return f"Init:{place}/{len(self._containers)}"


def _ended(status: Object) -> str:
    terminated = at(status, "state.terminated", {})
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _running(pod: Object, before: _Summary, starting: _Starting) -> _Summary:
    ready, reason = before.ready, before.reason
    restarts, restarted = starting.restarts_of_sidecars, starting.restarted_sidecar
    runs, failure = False, ""
    for status in reversed(at(pod, "status.containerStatuses", [])):
        restarts += status.get("restartCount") or 0
        restarted = max(restarted, _last_end(status))
        if at(status, "state.waiting.reason"):
            reason = at(status, "state.waiting.reason")
        elif at(status, "state.terminated") is not None:
            reason = _ended(status)
            failure = reason if at(status, "state.terminated.exitCode", 0) else failure
        elif status.get("ready") and at(status, "state.running") is not None:
            runs = True
            ready += 1
    if reason == "Completed":
        is_ready = any(_is(one, "Ready") and _is_true(one) for one in _conditions(pod))
        reason = "Running" if runs and is_ready else failure or ("NotReady" if runs else reason)
    return _Summary(ready, before.total, reason, restarts, restarted)


def _deleted(pod: Object, reason: str) -> str:
    if pod["metadata"].get("deletionTimestamp") is None:
        return reason
    if at(pod, "status.reason") == "NodeLost":
        return "Unknown"
    return reason if at(pod, "status.phase") in _COMPLETED else "Terminating"


def _ready(pod: Object, now: datetime) -> str:
    found = summary(pod)
    return f"{found.ready}/{found.total}"


def _status(pod: Object, now: datetime) -> str:
    return summary(pod).reason


def _restarts(pod: Object, now: datetime) -> str:
    found = summary(pod)
    if found.restarts and found.restarted:
        return f"{found.restarts} ({age(found.restarted, now)} ago)"
    return str(found.restarts)


def _ip(pod: Object, now: datetime) -> str:
    addresses = at(pod, "status.podIPs", [])
    return (addresses[0].get("ip") if addresses else "") or NONE


def _gates(pod: Object, now: datetime) -> str:
    gates = at(pod, "spec.readinessGates", [])
    if not gates:
        return NONE
    known = {one.get("type"): _is_true(one) for one in reversed(list(_conditions(pod)))}
    return f"{sum(known.get(gate['conditionType'], False) for gate in gates)}/{len(gates)}"


def _template(what: str) -> Any:
    return lambda obj, now: ",".join(str(one.get(what) or "") for one in at(obj, "template.spec.containers", ()))


COLUMNS: Final[dict[str, tuple[Column, ...]]] = {
    "pods": (
        NAME,
        column("Ready", _ready),
        column("Status", _status),
        column("Restarts", _restarts),
        AGE,
        column("IP", _ip, wide=True),
        column("Node", lambda obj, now: at(obj, "spec.nodeName") or NONE, wide=True),
        column("Nominated Node", lambda obj, now: at(obj, "status.nominatedNodeName") or NONE, wide=True),
        column("Readiness Gates", _gates, wide=True),
    ),
    "podtemplates": (
        NAME,
        column("Containers", _template("name")),
        column("Images", _template("image")),
        column("Pod Labels", lambda obj, now: labels_text(at(obj, "template.metadata.labels"))),
    ),
}
