"""What the server adds to objects of built-in kinds when they are written, and what it refuses, knowing all others.

    accounts        the ServiceAccount of a Pod and the volume with its token
    pods            priority, tolerations of nodes that are lost
    storage         finalizers that protect what is in use, the default storage class
    nodes           the taint of a node that has not reported yet, and the zone of a Pod's node
    services        addresses and node ports
    users           who asked for a certificate

`built_in` gives them in the order of upstream's plugins; `Core.admit` is asked before each write. Each changes the
object in place or raises a `StatusError`. Nobody manages what they add.
"""

from __future__ import annotations

from typing import Final

from flyball.controlplane.apiserver.admission.accounts import service_account
from flyball.controlplane.apiserver.admission.nodes import place_labels, taint_new_node
from flyball.controlplane.apiserver.admission.pods import default_tolerations, priority
from flyball.controlplane.apiserver.admission.services import Addresses
from flyball.controlplane.apiserver.admission.storage import default_class, protect
from flyball.controlplane.apiserver.admission.users import requesting_user
from flyball.controlplane.apiserver.core import Admit

__all__ = ["Addresses", "built_in"]

_BEFORE_ADDRESSES: Final[tuple[Admit, ...]] = (
    service_account,
    taint_new_node,
    priority,
    default_tolerations,
    default_class,
    protect,
    requesting_user,
    place_labels,
)


def built_in() -> list[Admit]:
    """Return everybody who has a say in one server; the allocator of addresses belongs to it alone."""
    return [*_BEFORE_ADDRESSES, Addresses().admit]
