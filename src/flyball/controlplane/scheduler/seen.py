"""What the scheduler reads of Pods and nodes: the few fields that it needs, decoded from the cache's bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ["Container", "NodeSeen", "PodSeen", "Selector", "Taint", "Term", "Toleration", "read_node", "read_pod"]


class _Part(msgspec.Struct, frozen=True, rename="camel", gc=False):
    pass


class Toleration(_Part, frozen=True):
    """What a Pod puts up with."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class Taint(_Part, frozen=True):
    """What a node repels Pods with."""

    key: str
    value: str = ""
    effect: str = ""


class Selector(_Part, frozen=True):
    """One requirement on a label or field."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class Term(_Part, frozen=True):
    """Requirements that hold together."""

    match_expressions: tuple[Selector, ...] = ()
    match_fields: tuple[Selector, ...] = ()


class _Required(_Part, frozen=True):
    node_selector_terms: tuple[Term, ...] = ()


class _Preferred(_Part, frozen=True):
    weight: int
    preference: Term


class _NodeAffinity(_Part, frozen=True):
    required: _Required | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[_Preferred, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class _BesidePods(_Part, frozen=True):
    required: tuple[Any, ...] = msgspec.field(default=(), name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(_Part, frozen=True):
    """Which nodes a Pod wants, and beside which Pods."""

    node_affinity: _NodeAffinity | None = None
    pod_affinity: _BesidePods | None = None
    pod_anti_affinity: _BesidePods | None = None


class _Port(_Part, frozen=True):
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class Resources(_Part, frozen=True):
    """What is asked for."""

    requests: dict[str, str | int | float] | None = None


class Container(_Part, frozen=True):
    """A container as far as it takes room."""

    resources: Resources | None = None
    ports: tuple[_Port, ...] = ()
    restart_policy: str = ""


class _Claim(_Part, frozen=True):
    claim_name: str


class _Volume(_Part, frozen=True):
    name: str
    persistent_volume_claim: _Claim | None = None
    ephemeral: dict[str, Any] | None = None


class _Spread(_Part, frozen=True):
    when_unsatisfiable: str = ""


class _Named(_Part, frozen=True):
    name: str = ""


class _PodSpec(_Part, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: Resources | None = None
    overhead: dict[str, str | int | float] | None = None
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[_Spread, ...] = ()
    scheduling_gates: tuple[_Named, ...] = ()
    scheduler_name: str = "default-scheduler"
    priority: int | None = 0
    preemption_policy: str = ""
    volumes: tuple[_Volume, ...] = ()


class Condition(_Part, frozen=True):
    """A condition as it stands in a status."""

    type: str
    status: str = ""
    reason: str | None = None
    message: str | None = None


class _PodStatus(_Part, frozen=True):
    phase: str = "Pending"
    conditions: tuple[Condition, ...] | None = None


class _Metadata(_Part, frozen=True):
    name: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None


class PodSeen(_Part, frozen=True):
    """A Pod."""

    metadata: _Metadata
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()

    @property
    def takes_room(self) -> bool:
        """Whether it has not ended."""
        return self.status.phase not in ("Succeeded", "Failed")


class _NodeSpec(_Part, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class _NodeStatus(_Part, frozen=True):
    allocatable: dict[str, str | int | float] | None = None
    capacity: dict[str, str | int | float] | None = None


class NodeSeen(_Part, frozen=True):
    """A node."""

    metadata: _Metadata
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()


read_pod: Callable[[bytes], PodSeen] = msgspec.json.Decoder(PodSeen).decode
read_node: Callable[[bytes], NodeSeen] = msgspec.json.Decoder(NodeSeen).decode
