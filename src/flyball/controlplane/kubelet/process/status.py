"""The status of a Pod, from what is known of its containers. Rules and words are the kubelet's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from flyball.api import Quantity, to_dict
from flyball.k8s.core.v1 import Container, Pod

__all__ = [
    "CONDITIONS",
    "Ending",
    "Known",
    "Place",
    "Role",
    "Waiting",
    "phase_of",
    "restarts",
    "roles_of",
    "status_of",
    "time_of",
]

Role = Literal["init", "sidecar", "app"]

CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
"""The conditions that a kubelet keeps."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a container does not run."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run of a container ended."""

    code: int
    reason: str
    started: datetime | None
    finished: datetime
    message: str = ""
    container_id: str = ""


@dataclass(slots=True)
class Known:
    """What is known of a container."""

    spec: Container
    role: Role
    waiting: Waiting | None
    ending: Ending | None = None
    last: Ending | None = None
    running_since: datetime | None = None
    container_id: str = ""
    image_id: str = ""
    restarts: int = 0
    started: bool = False
    """Its startup probe has succeeded, or it has none."""
    ready: bool = False

    @property
    def name(self) -> str:
        """The container's name."""
        return self.spec.name

    @property
    def initialized(self) -> bool:
        """Whether those behind it in the order of initialization may start."""
        if self.role == "sidecar":
            return self.started
        return self.ending is not None and self.ending.code == 0


def time_of(moment: datetime) -> str:
    """Return a time as the API has it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def roles_of(pod: Pod) -> list[tuple[Container, Role]]:
    """Return the containers in the order of their start."""
    inits: list[tuple[Container, Role]] = [
        (one, "sidecar" if one.restart_policy == "Always" else "init") for one in pod.spec.init_containers or ()
    ]
    return [*inits, *((one, "app") for one in pod.spec.containers)]


def restarts(container: Container, pod: Pod, code: int) -> bool:
    """Tell whether a container that ended so is started again."""
    for rule in container.restart_policy_rules or ():
        codes = rule.exit_codes
        if codes is not None and ((code in (codes.values or ())) == (codes.operator == "In")):
            return rule.action == "Restart"
    policy = container.restart_policy or pod.spec.restart_policy or "Always"
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def phase_of(containers: Sequence[Known], *, ended: bool) -> str:
    """Return the phase; `ended`: nothing runs any more, and nothing will. Only then a Pod has succeeded or failed."""
    apps = [one for one in containers if one.role == "app"]
    if ended:
        return "Succeeded" if all(_code(one) == 0 for one in containers if one.role != "sidecar") else "Failed"
    begun = [_began(one) for one in apps]
    initialized = any(begun) or all(one.initialized for one in containers if one.role != "app")
    return "Running" if all(begun) and initialized else "Pending"


def _began(one: Known) -> bool:
    return bool(one.running_since or one.ending or one.last)


def _code(one: Known) -> int | None:
    ending = one.ending or (one.last if one.running_since is None else None)
    return None if ending is None else ending.code


@dataclass(frozen=True, slots=True)
class Place:
    """Where a Pod is."""

    node_ip: str
    pod_ip: str
    """Empty until its containers may start."""
    since: datetime


def status_of(
    pod: Pod,
    containers: Sequence[Known],
    place: Place,
    now: datetime,
    *,
    ended: bool,
    verdict: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """Return the whole status; `verdict` is the reason and message of a Pod that was ended for one."""
    phase = "Failed" if verdict is not None else phase_of(containers, ended=ended)
    status: dict[str, Any] = {
        "phase": phase,
        "conditions": _conditions(pod, containers, phase, place, now, ended=ended),
        "startTime": time_of(place.since),
        "hostIP": place.node_ip,
        "hostIPs": [{"ip": place.node_ip}],
        "qosClass": pod.status.qos_class or _quality(pod),
    }
    if pod.metadata.generation:
        status["observedGeneration"] = pod.metadata.generation
    if verdict is not None:
        status["reason"], status["message"] = verdict
    if place.pod_ip:
        status["podIP"] = place.pod_ip
        status["podIPs"] = [{"ip": place.pod_ip}]
    inits = [one for one in containers if one.role != "app"]
    if inits:
        status["initContainerStatuses"] = [_container(one) for one in inits]
    status["containerStatuses"] = [_container(one) for one in containers if one.role == "app"]
    return status


def _conditions(
    pod: Pod, containers: Sequence[Known], phase: str, place: Place, now: datetime, *, ended: bool
) -> list[dict[str, Any]]:
    inits = [one for one in containers if one.role != "app"]
    began = any(_began(one) for one in containers if one.role == "app")
    late = [] if began else [one.name for one in inits if not one.initialized]
    unready = [one.name for one in containers if one.role != "init" and not one.ready]
    reason, message = "", ""
    if phase in ("Succeeded", "Failed"):
        reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
    elif unready:
        reason, message = "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
    initialized: tuple[str, str] = ("PodCompleted", "") if phase == "Succeeded" else ("", "")
    if late and phase != "Succeeded":
        initialized = ("ContainersNotInitialized", f"containers with incomplete status: [{' '.join(late)}]")
    gates = "" if reason else _gates(pod)
    ready: tuple[str, str] = (reason, message)
    if not reason and gates:
        ready = ("ReadinessGatesNotReady", gates)
    wanted: dict[str, tuple[bool, str, str]] = {
        "PodReadyToStartContainers": (bool(place.pod_ip) and not ended, "", ""),
        "Initialized": (not late or phase == "Succeeded", initialized[0], initialized[1]),
        "Ready": (not ready[0], ready[0], ready[1]),
        "ContainersReady": (not reason, reason, message),
        "PodScheduled": (True, "", ""),
    }
    return [_condition(pod, type_, *what, now) for type_, what in wanted.items()]


def _gates(pod: Pod) -> str:
    told: list[str] = []
    for gate in pod.spec.readiness_gates or ():
        found = next((one for one in pod.status.conditions or () if one.type == gate.condition_type), None)
        if found is None:
            told.append(f'corresponding condition of pod readiness gate "{gate.condition_type}" does not exist.')
        elif found.status != "True":
            told.append(f'the status of pod readiness gate "{gate.condition_type}" is not "True", but {found.status}')
    return ", ".join(told)


def _condition(pod: Pod, type_: str, holds: bool, reason: str, message: str, now: datetime) -> dict[str, Any]:
    status = "True" if holds else "False"
    before = next((one for one in pod.status.conditions or () if one.type == type_), None)
    since = now
    if before is not None and before.status == status and before.last_transition_time is not None:
        since = before.last_transition_time
    stated: dict[str, Any] = {"type": type_, "status": status, "lastTransitionTime": time_of(since)}
    stated["reason"] = reason or None
    stated["message"] = message or None
    if pod.metadata.generation:
        stated["observedGeneration"] = pod.metadata.generation
    return stated


def _container(one: Known) -> dict[str, Any]:
    running = one.running_since is not None
    state: dict[str, Any]
    if one.running_since is not None:
        state = {"running": {"startedAt": time_of(one.running_since)}}
    elif one.waiting is not None:
        waiting = {"reason": one.waiting.reason, "message": one.waiting.message}
        state = {"waiting": {name: value for name, value in waiting.items() if value}}
    elif one.ending is not None:
        state = {"terminated": _ending(one.ending)}
    else:
        state = {"waiting": {"reason": "PodInitializing"}}
    status: dict[str, Any] = {
        "name": one.name,
        "image": one.spec.image or "",
        "imageID": one.image_id,
        "ready": one.ready,
        "restartCount": one.restarts,
        "started": running and one.started,
        "state": state,
        "lastState": {"terminated": _ending(one.last)} if one.last is not None else {},
    }
    if one.container_id:
        status["containerID"] = one.container_id
    resources = one.spec.resources
    if resources is not None and one.container_id:
        given: Mapping[str, Any] = to_dict(resources)
        status["resources"] = given
        if given.get("requests"):
            status["allocatedResources"] = given["requests"]
    return status


def _ending(ending: Ending) -> dict[str, Any]:
    stated: dict[str, Any] = {
        "exitCode": ending.code,
        "reason": ending.reason,
        "startedAt": time_of(ending.started) if ending.started is not None else "1970-01-01T00:00:00Z",
        "finishedAt": time_of(ending.finished),
    }
    if ending.message:
        stated["message"] = ending.message
    if ending.container_id:
        stated["containerID"] = ending.container_id
    return stated


def _quality(pod: Pod) -> str:
    """Return the quality of service class, as the API server would have written it."""
    containers = [*(pod.spec.init_containers or ()), *pod.spec.containers]
    amounts = [one.resources for one in containers]
    if all(one is None or not (one.limits or one.requests) for one in amounts):
        return "BestEffort"
    for one in amounts:
        limits = (one.limits if one is not None else None) or {}
        requests = (one.requests if one is not None else None) or limits
        for kind in ("cpu", "memory"):
            if kind not in limits or Quantity(str(requests.get(kind, limits[kind]))) != Quantity(str(limits[kind])):
                return "Burstable"
    return "Guaranteed"
