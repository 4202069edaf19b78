"""The nodes of a cluster whose Pods are processes of this machine."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from flyball.api import DynamicObject
from flyball.client import MergePatch, ref
from flyball.controller import Controller, EventRecorder
from flyball.controlplane.kubelet.fleet import Fleet, MakeFleet, Setting
from flyball.controlplane.kubelet.process.environment import Surroundings
from flyball.controlplane.kubelet.process.guarding import Guard
from flyball.controlplane.kubelet.process.images import Images
from flyball.controlplane.kubelet.process.kubelet import ProcessKubelet, following
from flyball.controlplane.kubelet.process.lookup import Address, Lookup
from flyball.controlplane.kubelet.process.node import Limits, Node
from flyball.errors import AlreadyExists, ConfigError
from flyball.k8s.core.v1 import Node as NodeObject

__all__ = ["ProcessFleet", "Processes", "processes"]

_IP: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Processes:
    """What a user chooses for Pods as processes."""

    images: Images = field(default_factory=Images)
    limits: Limits = field(default_factory=Limits)
    host_paths: Sequence[Path] = ()
    """Folders of this machine that Pods may use as hostPath volumes."""
    isolation: bool = True
    """False: no namespaces, also where they work."""
    server: Callable[[], Address | None] = lambda: None
    """Where the API server listens, for the variables KUBERNETES_SERVICE_HOST and _PORT."""


def processes(*, nodes: int = 1, options: Processes | None = None) -> MakeFleet:
    """Return what makes so many nodes whose Pods are processes of this machine. Raises ConfigError."""
    if nodes < 0:
        raise ConfigError(f"{nodes} nodes: a cluster has none or more")
    return lambda setting: ProcessFleet(setting, nodes, options or Processes())


class ProcessFleet:
    """Nodes of one machine, with one guard and a folder for all of them.

    The folder is made for this life of the cluster, only its owner may look into it, and it goes with it.
    """

    def __init__(self, setting: Setting, nodes: int, options: Processes) -> None:
        """Nothing is made yet."""
        self._setting = setting
        self._options = options
        self._host_paths = [Path(os.path.realpath(one)) for one in options.host_paths]
        self._names = [f"node-{number}" for number in range(1, nodes + 1)]
        self._kubelets: dict[str, ProcessKubelet] = {}
        self._folder: Path | None = None
        self._guard: Guard | None = None
        self._recorder: EventRecorder | None = None

    @property
    def controllers(self) -> Sequence[Controller[Any]]:
        """One for all kubelets."""
        return [following(self._kubelets.values())]

    async def start(self) -> None:
        """Make the nodes, and start the guard."""
        setting, options = self._setting, self._options
        self._folder = Path(tempfile.mkdtemp(prefix="flyball-pods-"))
        self._guard = Guard(self._folder)
        isolation = await self._guard.isolation()
        if not options.isolation:
            isolation = replace(isolation, namespaces=False, user=False, why="it was not wanted")
        self._recorder = EventRecorder(setting.client, reporter="kubelet", clock=setting.clock)
        around = Surroundings(Lookup(setting.client), _IP, _capacity(), options.server)
        for name in self._names:
            node = Node(
                name=name,
                client=setting.client,
                clock=setting.clock,
                recorder=self._recorder,
                guard=self._guard,
                isolation=isolation,
                images=options.images,
                around=around,
                folder=self._folder / name,
                limits=options.limits,
                host_paths=self._host_paths,
            )
            await self._make_node(name)
            kubelet = self._kubelets[name] = ProcessKubelet(node)
            setting.kubelets.register(name, kubelet)

    async def _make_node(self, name: str) -> None:
        """Make a node, take the taint off with which every new one begins, and let it be ready."""
        client, node = self._setting.client, _node(name, self._setting.clock.now())
        with suppress(AlreadyExists):  # it was there before a restart
            await client.create(DynamicObject(node))
        place = ref(NodeObject, name)
        await client.patch(place, MergePatch({"spec": {"taints": None}}))
        await client.patch(place, MergePatch({"status": node["status"]}), subresource="status")

    async def stop(self) -> None:
        """End everything that runs, and remove the folder. The nodes and Pods stay as they are stored."""
        for name, kubelet in self._kubelets.items():
            self._setting.kubelets.leave(name, kubelet)
            await kubelet.stop()
        self._kubelets.clear()
        if self._guard is not None:
            await self._guard.stop()
            self._guard = None
        if self._recorder is not None:
            await self._recorder.stop()
            self._recorder = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def _capacity() -> dict[str, str]:
    """Return what this machine has."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1024
    free = shutil.disk_usage(tempfile.gettempdir()).free // 1024
    return {
        "cpu": str(os.cpu_count() or 1),
        "memory": f"{memory}Ki",
        "ephemeral-storage": f"{free}Ki",
        "pods": "110",
    }


def _node(name: str, now: datetime) -> dict[str, Any]:
    moment = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ]
    system, machine = platform.system().lower(), _architecture()
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": system, "kubernetes.io/arch": machine}
    amounts = _capacity()
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [
                {
                    "type": type_,
                    "status": status,
                    "reason": reason,
                    "message": message,
                    "lastHeartbeatTime": moment,
                    "lastTransitionTime": moment,
                }
                for type_, status, reason, message in conditions
            ],
            "addresses": [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": _IP}],
            "nodeInfo": {
                "architecture": machine,
                "containerRuntimeVersion": "flyball://processes",
                "kernelVersion": platform.release(),
                "kubeletVersion": "v1.36.4+flyball",
                "operatingSystem": system,
                "osImage": platform.platform(terse=True),
            },
        },
    }


def _architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


_check: type[Fleet] = ProcessFleet
