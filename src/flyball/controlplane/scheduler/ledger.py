"""What is used on each node: sums that are kept, so that nothing is counted twice.

The ledger knows a Pod from the moment in which it is given a node (`place`), before the server has heard of it, until
it has ended or is gone (`free`). What the watches tell later about the same Pod only corrects it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from flyball.cache import Key
from flyball.controlplane.scheduler.requests import Amounts, amounts, requests_of
from flyball.controlplane.scheduler.seen import NodeSeen, PodSeen, Taint

__all__ = ["Ledger", "NodeState", "Wish", "ports_of"]

Port = tuple[str, str, int]

_HARD = ("NoSchedule", "NoExecute")


@dataclass(slots=True)
class Wish:
    """A Pod, and what it needs."""

    key: Key
    pod: PodSeen
    requests: Amounts
    ports: tuple[Port, ...]

    @classmethod
    def of(cls, key: Key, pod: PodSeen) -> Wish:
        """Read it."""
        return cls(key, pod, requests_of(pod), ports_of(pod))

    @property
    def priority(self) -> int:
        """How important it is."""
        return self.pod.spec.priority or 0


def ports_of(pod: PodSeen) -> tuple[Port, ...]:
    """Return the ports of the node that a Pod takes."""
    return tuple(
        (port.protocol, port.host_ip or "0.0.0.0", port.host_port)  # noqa: S104 - as the API says: all addresses
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for port in container.ports
        if port.host_port
    )


@dataclass(slots=True)
class NodeState:
    """A node, and what is used of it."""

    name: str
    labels: dict[str, str] = field(default_factory=dict[str, str])
    repels: tuple[Taint, ...] = ()
    """The taints for which it takes no Pod."""
    discourages: tuple[Taint, ...] = ()
    """The taints for which it had rather take none."""
    unschedulable: bool = False
    room: Amounts = field(default_factory=dict[str, int])
    used: Amounts = field(default_factory=dict[str, int])
    ports: Counter[Port] = field(default_factory=Counter[Port])
    pods: dict[Key, Wish] = field(default_factory=dict[Key, Wish])
    present: bool = False
    """Whether the node is there; its Pods may be known earlier, and longer."""

    def update(self, node: NodeSeen) -> None:
        """Take over what the node says of itself."""
        self.labels = node.metadata.labels or {}
        self.repels = tuple(one for one in node.spec.taints if one.effect in _HARD)
        self.discourages = tuple(one for one in node.spec.taints if one.effect == "PreferNoSchedule")
        self.unschedulable = node.spec.unschedulable
        self.room = amounts(node.status.allocatable or node.status.capacity)
        self.present = True

    def add(self, wish: Wish) -> None:
        """Count a Pod."""
        self.pods[wish.key] = wish
        for name, amount in wish.requests.items():
            self.used[name] = self.used.get(name, 0) + amount
        for port in wish.ports:
            self.ports[port] += 1

    def take_off(self, key: Key) -> None:
        """Count a Pod no more."""
        wish = self.pods.pop(key)
        for name, amount in wish.requests.items():
            self.used[name] -= amount
        for port in wish.ports:
            self.ports[port] -= 1
            if not self.ports[port]:
                del self.ports[port]


class Ledger:
    """The nodes of a cluster, and who is on which."""

    def __init__(self) -> None:
        """Nothing is known."""
        self.nodes: dict[str, NodeState] = {}
        """The nodes that are there, in the order of their coming."""
        self.freed = 0
        """Grows whenever something changes that could let a Pod in that was refused."""
        self._absent: dict[str, NodeState] = {}
        self._where: dict[Key, NodeState] = {}

    def node_seen(self, name: str, node: NodeSeen | None) -> None:
        """A node came, changed, or (None) went."""
        if node is None:
            gone = self.nodes.pop(name, None)
            if gone is not None:
                gone.present = False
                if gone.pods:
                    self._absent[name] = gone
        else:
            state = self.nodes.get(name) or self._absent.pop(name, None) or NodeState(name)
            state.update(node)
            self.nodes[name] = state
        self.freed += 1

    def pod_seen(self, key: Key, pod: PodSeen | None) -> None:
        """A Pod came, changed, or (None) went."""
        if pod is None or not pod.takes_room:
            self.free(key)
            return
        name = pod.spec.node_name
        if not name:
            return  # it may have been placed, and the server has not heard of it yet
        wish, known = Wish.of(key, pod), self._where.get(key)
        if known is not None:
            counted = known.pods[key]
            if known.name == name and counted.requests == wish.requests and counted.ports == wish.ports:
                return
            self.free(key)
        self.place(wish, name)

    def __contains__(self, key: Key) -> bool:
        """Tell whether a Pod is counted on a node."""
        return key in self._where

    def place(self, wish: Wish, name: str) -> None:
        """Count a Pod on a node."""
        state = self.nodes.get(name)
        if state is None:
            state = self._absent.setdefault(name, NodeState(name))
        state.add(wish)
        self._where[wish.key] = state

    def free(self, key: Key) -> None:
        """Count a Pod no more."""
        state = self._where.pop(key, None)
        if state is None:
            return
        state.take_off(key)
        self.freed += 1
        if not state.present and not state.pods:
            self._absent.pop(state.name, None)
