"""The nodes of the simulation."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

__all__ = ["NODE_LABEL", "new_node", "node_conditions"]

NODE_LABEL: Final = "simulate.flyball.dev/node"
"""Marks the nodes of the simulation."""

_ROOM: Final = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
_CONDITIONS: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def node_conditions(now: datetime) -> list[dict[str, str]]:
    """Return what a node says of itself: all is well."""
    moment = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return [
        {
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": moment,
            "lastTransitionTime": moment,
        }
        for type_, status, reason, message in _CONDITIONS
    ]


def new_node(name: str, now: datetime) -> dict[str, Any]:
    """Make a node of the simulation, as plain values: ready, with room for many Pods."""
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        NODE_LABEL: "true",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": dict(_ROOM),
            "allocatable": dict(_ROOM),
            "conditions": node_conditions(now),
            "addresses": [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": "127.0.0.1"}],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "simulated://1",
                "kernelVersion": "",
                "kubeProxyVersion": "",
                "kubeletVersion": "v1.36.4+flyball",
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "simulated",
                "systemUUID": "",
            },
        },
    }
