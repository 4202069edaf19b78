"""Nodes, Pods that want something of them, and what kube-scheduler 1.36.4 says of each."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["CASES", "CLAIMS", "CLASS", "GATED", "NODES", "NO_NODES", "PLACED", "Case", "pod"]

Json = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"
EVERYTHING: Json = {"tolerations": [{"operator": "Exists"}]}
NO_NODES = "no nodes available to schedule pods"
GATED = "Scheduling is blocked due to non-empty scheduling gates"


def node(name: str, cpu: str = "2", memory: str = "4Gi", pods: str = "110", **more: Any) -> Json:
    labels, spec = more.pop("labels", {}), more.pop("spec", {})
    room = {"cpu": cpu, "memory": memory, "pods": pods, **more}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": spec,
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{**ready, "lastHeartbeatTime": NOW, "lastTransitionTime": NOW}],
        },
    }


NODES = [
    node("a", labels={"disk": "ssd", "size": "10"}, pods="3"),
    node(
        "b",
        labels={"disk": "hdd", "size": "20"},
        spec={"taints": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]},
    ),
    node("c", spec={"unschedulable": True}),
    node(
        "d",
        cpu="1",
        memory="1Gi",
        labels={"disk": "ssd"},
        spec={"taints": [{"key": "slow", "effect": "PreferNoSchedule"}]},
        **{"example.com/gpu": "1"},
    ),
]
CLASS: Json = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "lazy"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}
CLAIMS: list[Json] = [
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    for name, class_ in (("unbound", ""), ("waiting", "lazy"))
]


def pod(name: str, requests: dict[str, str] | None = None, ports: list[Json] | None = None, **spec: Any) -> Json:
    container: Json = {"name": "c", "image": "i"}
    if requests:
        container["resources"] = {"requests": requests, "limits": {k: v for k, v in requests.items() if "/" in k}}
    if ports:
        container["ports"] = ports
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }


def wants(key: str, operator: str, *values: str, field: bool = False) -> Json:
    selector = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    term = {"matchFields" if field else "matchExpressions": [selector]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


def claims(name: str) -> Json:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}


def four(reasons: str, help_: str = "4 Preemption is not helpful for scheduling") -> str:
    first = f"0/4 nodes are available: {reasons}."
    return f"{first} no new claims to deallocate, preemption: 0/4 nodes are available: {help_}."


_BC = "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable"
_AFFINITY = "node(s) didn't match Pod's node affinity/selector"
_VICTIMS = "1 No preemption victims found for incoming pod, 3 Preemption is not helpful for scheduling"


class Case(NamedTuple):
    """A Pod, and what is said of it; None: it gets a node."""

    pod: Json
    message: str | None


PLACED = {"hostport-1": "b", "field-a": "a", "not-ssd": "b", "smallest": "a", "third": "a"}
"""The Pods that get a node, and which."""

_ON_B = {**wants("size", "Gt", "15"), **EVERYTHING}
_ON_A = wants("size", "Lt", "15")
_PORT = [{"containerPort": 80, "hostPort": 80}]

CASES = [
    Case(pod("selector", nodeSelector={"disk": "tape"}), four(f"{_BC}, 2 {_AFFINITY}")),
    Case(pod("cpu", {"cpu": "5"}), four(f"{_BC}, 2 Insufficient cpu")),
    Case(pod("cpu-memory", {"cpu": "5", "memory": "10Gi"}), four(f"{_BC}, 2 Insufficient cpu, 2 Insufficient memory")),
    Case(pod("cpu-tolerant", {"cpu": "5"}, **EVERYTHING), four("4 Insufficient cpu")),
    Case(pod("gpu", {"example.com/gpu": "2"}), four(f"{_BC}, 2 Insufficient example.com/gpu")),
    Case(pod("tpu", {"example.com/tpu": "1"}), four(f"{_BC}, 2 Insufficient example.com/tpu")),
    Case(pod("in", **wants("disk", "In", "tape")), four(f"{_BC}, 2 {_AFFINITY}")),
    Case(pod("on-b", **wants("disk", "In", "hdd")), four(f"{_BC}, 2 {_AFFINITY}")),
    Case(
        pod("named-z", **wants("metadata.name", "In", "z", field=True)),
        four("4 node(s) didn't satisfy plugin(s) [NodeAffinity]"),
    ),
    Case(
        pod(
            "init",
            initContainers=[{"name": "i", "image": "i", "resources": {"requests": {"cpu": "7"}}}],
        ),
        four(f"{_BC}, 2 Insufficient cpu"),
    ),
    Case(pod("gated", schedulingGates=[{"name": "example.com/wait"}]), GATED),
    Case(
        pod("claim-missing", **claims("nope")),
        '0/4 nodes are available: persistentvolumeclaim "nope" not found. not found',
    ),
    Case(
        pod("claim-unbound", **claims("unbound")),
        "0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
    ),
    Case(
        pod("claim-waiting", **claims("waiting")),
        four(f"{_BC}, 2 node(s) didn't find available persistent volumes to bind"),
    ),
    Case(pod("hostport-1", ports=_PORT, **_ON_B), None),
    Case(
        pod("hostport-2", ports=_PORT, **_ON_B),
        four(f"1 node(s) didn't have free ports for the requested pod ports, 3 {_AFFINITY}", _VICTIMS),
    ),
    Case(
        pod(
            "not-ssd",
            **wants("disk", "NotIn", "ssd", "none"),
            tolerations=[{"key": "dedicated", "operator": "Equal", "value": "db"}],
        ),
        None,
    ),
    Case(pod("field-a", **wants("metadata.name", "In", "a", field=True)), None),
    Case(pod("smallest", {"cpu": "100m"}, **_ON_A), None),
    Case(pod("third", **wants("size", "Exists")), None),
    Case(
        pod("fourth", **_ON_A),
        four(f"1 Too many pods, 1 {_AFFINITY}, {_BC}", _VICTIMS),
    ),
    Case(
        pod("never", priorityClassName="calm", nodeSelector={"disk": "tape"}),
        f"0/4 nodes are available: {_BC}, 2 {_AFFINITY}. "
        "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never.",
    ),
]
"""In the order in which they are made."""
