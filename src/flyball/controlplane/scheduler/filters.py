"""Whether a node takes a Pod; if not, why, in kube-scheduler's words and in its order of asking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from flyball.controlplane.scheduler.affinity import wants_node
from flyball.controlplane.scheduler.ledger import NodeState, Wish
from flyball.controlplane.scheduler.seen import Taint
from flyball.controlplane.scheduler.tolerance import tolerates

__all__ = ["Refusal", "refusal"]

_UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


class Refusal(NamedTuple):
    """Why a node does not take a Pod."""

    reasons: tuple[str, ...]
    lasting: bool = True
    """Whether it would not help if other Pods were gone from the node."""


_NOT_NOW = Refusal(("node(s) were unschedulable",))
_TAINTED = Refusal(("node(s) had untolerated taint(s)",))
_NOT_WANTED = Refusal(("node(s) didn't match Pod's node affinity/selector",))
_PORTS = Refusal(("node(s) didn't have free ports for the requested pod ports",), lasting=False)


def refusal(wish: Wish, node: NodeState) -> Refusal | None:
    """Return why a node does not take a Pod; None when it does."""
    spec = wish.pod.spec
    if node.unschedulable and not tolerates(spec.tolerations, _UNSCHEDULABLE):
        return _NOT_NOW
    if node.repels and not all(tolerates(spec.tolerations, one) for one in node.repels):
        return _TAINTED
    if (spec.node_selector or spec.affinity is not None) and not wants_node(wish.pod, node.name, node.labels):
        return _NOT_WANTED
    if wish.ports and _taken(wish.ports, node):
        return _PORTS
    return _too_little(wish, node)


def _taken(ports: Sequence[tuple[str, str, int]], node: NodeState) -> bool:
    everywhere = "0.0.0.0"  # noqa: S104 - as the API says: all addresses
    for protocol, address, number in ports:
        for known_protocol, known_address, known_number in node.ports:
            same = protocol == known_protocol and number == known_number
            if same and (address == known_address or everywhere in (address, known_address)):
                return True
    return False


def _too_little(wish: Wish, node: NodeState) -> Refusal | None:
    room, used = node.room, node.used
    reasons: list[str] = []
    lasting = False
    if len(node.pods) + 1 > room.get("pods", 0):
        reasons.append("Too many pods")
    for name, amount in wish.requests.items():
        if amount and amount > (has := room.get(name, 0)) - used.get(name, 0):
            reasons.append(f"Insufficient {name}")
            lasting = lasting or amount > has
    return Refusal(tuple(reasons), lasting) if reasons else None
