"""The nodes of the simulation."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

__all__ = ["NODE_LABEL", "new_node"]

NODE_LABEL: Final = "simulate.flyball.dev/node"
"""Marks the nodes of the simulation."""


def new_node(name: str, now: datetime) -> dict[str, Any]:
    """Make a node of the simulation, as plain values: ready, with room for many Pods."""
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    moment = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ]
    stated = [
        {
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": moment,
            "lastTransitionTime": moment,
        }
        for type_, status, reason, message in conditions
    ]
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", NODE_LABEL: "true"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": stated,
            "addresses": [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": "127.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1.36.4+flyball", "operatingSystem": "linux", "osImage": "simulated"},
        },
    }
