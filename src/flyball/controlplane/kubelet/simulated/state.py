"""A Pod as a stage sees and changes it: what its containers do, and what follows from that."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from ipaddress import IPv4Address
from typing import Any, Literal, NamedTuple

from flyball.controlplane.kubelet.simulated.verdict import conclude

__all__ = ["Container", "Said", "SimulatedPod"]

Object = dict[str, Any]


class Said(NamedTuple):
    """An Event that is to be told."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class Container(NamedTuple):
    """One of a Pod's containers, as its spec has it."""

    name: str
    image: str
    init: bool = False
    sidecar: bool = False
    """An init container that stays."""


class SimulatedPod:
    """One Pod in one moment.

    Stages change what its containers do (`start`, `end`, `wait`, `set_ready`), leave lines in their logs (`write`), say
    something (`say`), or set parts of the status as they like (`status`). Phase and conditions follow from the
    containers, as with a kubelet; what is set in `overrides` comes on top of that.
    """

    def __init__(self, pod: Object, now: datetime) -> None:
        """Take a Pod as plain values, which are not changed."""
        self.pod = pod
        self.now = now
        self.moment = time_text(now)
        self.before: Mapping[str, Any] = pod.get("status") or {}
        self.status: Object = dict(self.before)
        self.overrides: Object = {}
        """What a stage puts into the status whatever follows from the containers; merged like a merge patch."""
        self.annotations: dict[str, str] = {}
        """Annotations that are to be set on the Pod."""
        self.said: list[Said] = []
        self.lines: list[tuple[str, str]] = []
        """Lines for the logs: container and text."""
        self.deleted = False
        """Whether the Pod shall be let go."""
        spec: Object = pod["spec"]
        self.containers = [Container(one["name"], one.get("image") or "") for one in spec["containers"]]
        self.init_containers = [
            Container(one["name"], one.get("image") or "", True, one.get("restartPolicy") == "Always")
            for one in spec.get("initContainers") or ()
        ]
        self._entries: dict[str, Object] = {}
        for part in ("initContainerStatuses", "containerStatuses"):
            for entry in self.before.get(part) or ():
                self._entries[entry["name"]] = dict(entry)

    # -- what it is ----------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.pod["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return str(self.pod["metadata"].get("namespace") or "")

    @property
    def uid(self) -> str:
        """Its uid."""
        return str(self.pod["metadata"].get("uid") or "")

    @property
    def words(self) -> str:
        """How a kubelet names it."""
        return f"{self.name}_{self.namespace}({self.uid})"

    @property
    def restart_policy(self) -> str:
        """What happens when a container has ended."""
        return str(self.pod["spec"].get("restartPolicy") or "Always")

    @property
    def phase(self) -> str:
        """The phase that it has had."""
        return str(self.before.get("phase") or "Pending")

    @property
    def started(self) -> bool:
        """Whether its node has taken it in."""
        return bool(self.before.get("startTime"))

    @property
    def deleting(self) -> bool:
        """Whether it is being deleted."""
        return bool(self.pod["metadata"].get("deletionTimestamp"))

    def container(self, name: str) -> Container:
        """One of its containers; KeyError when there is none of that name."""
        for one in (*self.containers, *self.init_containers):
            if one.name == name:
                return one
        raise KeyError(f"Pod {self.namespace}/{self.name} has no container {name!r}")

    # -- what containers do --------------------------------------------------------------------------------------------

    def entry(self, name: str) -> Object:
        """The status of a container, empty while nothing was said."""
        return self._entries.get(name, {})

    def running(self, name: str) -> Object | None:
        """Since when it runs."""
        return (self.entry(name).get("state") or {}).get("running")

    def waiting(self, name: str) -> Object | None:
        """Why it waits."""
        return (self.entry(name).get("state") or {}).get("waiting")

    def terminated(self, name: str) -> Object | None:
        """How it ended, and was not started again."""
        return (self.entry(name).get("state") or {}).get("terminated")

    def last(self, name: str) -> Object | None:
        """How it ended the last time."""
        return self.terminated(name) or (self.entry(name).get("lastState") or {}).get("terminated")

    def restarts(self, name: str) -> int:
        """How often it was started again."""
        return int(self.entry(name).get("restartCount") or 0)

    def accept(self) -> None:
        """Take the Pod in: from now on it has an address, and its containers wait for their turn."""
        if not self.status.get("startTime"):
            address = self._address()
            self.status |= {
                "startTime": self.moment,
                "hostIP": "127.0.0.1",
                "hostIPs": [{"ip": "127.0.0.1"}],
                "podIP": address,
                "podIPs": [{"ip": address}],
            }
        first = "PodInitializing" if self.init_containers else "ContainerCreating"
        for one in (*self.init_containers, *self.containers):
            if one.name not in self._entries:
                self.wait(one.name, first)

    def start(self, name: str, *, ready: bool = False) -> None:
        """Let a container run; one that has run before is restarted."""
        last = self.last(name)
        restarts = self.restarts(name) + (1 if last is not None else 0)
        self._put(
            name, {"running": {"startedAt": self.moment}}, ready=ready, started=True, restarts=restarts, last=last
        )

    def end(self, name: str, exit_code: int = 0, *, reason: str = "", message: str = "", at: str = "") -> None:
        """Let a container end."""
        since = self.running(name) or {}
        ended: Object = {
            "exitCode": exit_code,
            "reason": reason or ("Completed" if exit_code == 0 else "Error"),
            "startedAt": since.get("startedAt") or self.moment,
            "finishedAt": at or self.moment,
            "containerID": self.entry(name).get("containerID") or "",
        }
        if message:
            ended["message"] = message
        last = (self.entry(name).get("lastState") or {}).get("terminated")
        done = self.container(name).init and exit_code == 0
        self._put(name, {"terminated": ended}, ready=done, started=False, restarts=self.restarts(name), last=last)

    def wait(self, name: str, reason: str, message: str = "") -> None:
        """Let a container wait, and say why."""
        waiting = {"reason": reason, **({"message": message} if message else {})}
        self._put(
            name,
            {"waiting": waiting},
            ready=False,
            started=False,
            restarts=self.restarts(name),
            last=self.last(name),
        )

    def set_ready(self, name: str, ready: bool = True) -> None:
        """Let a container be ready, or not."""
        self._entries[name] = {**self.entry(name), "ready": ready}

    def _put(self, name: str, state: Object, *, ready: bool, started: bool, restarts: int, last: Object | None) -> None:
        image = self.container(name).image
        entry: Object = {
            "name": name,
            "image": image,
            "imageID": "",
            "ready": ready,
            "restartCount": restarts,
            "started": started,
            "state": state,
            "lastState": {"terminated": last} if last is not None else {},
        }
        if "running" in state:
            entry["imageID"] = f"simulated://{image}"
            entry["containerID"] = f"simulated://{self.uid}/{name}/{restarts}"
        elif "terminated" in state or last is not None:
            for part in ("imageID", "containerID"):
                if self.entry(name).get(part):
                    entry[part] = self.entry(name)[part]
        self._entries[name] = entry

    # -- what else -----------------------------------------------------------------------------------------------------

    def write(self, name: str, text: str) -> None:
        """Leave lines in the log of a container."""
        self.lines += [(name, line) for line in text.splitlines()]

    def say(self, type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """Tell people by an Event."""
        self.said.append(Said(type, reason, message))

    def let_go(self) -> None:
        """End what runs, and let the Pod go."""
        self.deleted = True

    def conclusion(self) -> Object:
        """The status that follows: phase and conditions from the containers, and what was set on top."""
        status = self.status
        if self._entries:
            status = {**status, "containerStatuses": self._listed(self.containers)}
            if self.init_containers:
                status["initContainerStatuses"] = self._listed(self.init_containers)
        return _merged(conclude(self.pod, status, self.moment), self.overrides)

    def _listed(self, containers: list[Container]) -> list[Object]:
        return [self._entries[one.name] for one in containers if one.name in self._entries]

    def _address(self) -> str:
        """An address of the Pod's own, from its uid."""
        number = int(self.uid.replace("-", "")[:4] or "1", 16)
        return str(IPv4Address("10.244.0.1") + number)


def time_text(moment: datetime) -> str:
    """A time as the API writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _merged(base: Object, patch: Mapping[str, Any]) -> Object:
    """The base with a merge patch on it; the base is not changed."""
    merged = dict(base)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping):
            below = merged.get(name)
            merged[name] = _merged(below if isinstance(below, dict) else {}, value)
        else:
            merged[name] = value
    return merged
