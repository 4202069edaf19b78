"""A node is not used before it has said that it is ready, and its Pods know where it stands."""

from __future__ import annotations

from typing import Final

from flyball.controlplane.apiserver.core import Admission, Core
from flyball.controlplane.apiserver.render import parse
from flyball.controlplane.apiserver.store import Key

__all__ = ["place_labels", "taint_new_node"]

_NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_PLACES: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


async def taint_new_node(core: Core, admission: Admission) -> None:
    """Keep pods away from a new node until somebody takes the taint away."""
    if admission.kind.storage != "nodes" or admission.verb != "CREATE" or admission.obj is None:
        return
    spec = admission.obj.setdefault("spec", {})
    taints = spec.get("taints") or []
    if all((one.get("key"), one.get("effect")) != (_NOT_READY["key"], _NOT_READY["effect"]) for one in taints):
        spec["taints"] = [*taints, dict(_NOT_READY)]


async def place_labels(core: Core, admission: Admission) -> None:
    """Give a Pod the zone and region of its node when it gets one."""
    pod = admission.obj
    if admission.kind.storage != "pods" or pod is None:
        return
    if admission.subresource != "binding" and (admission.subresource or admission.verb != "CREATE"):
        return
    name = (pod.get("spec") or {}).get("nodeName")
    entry = core.store.get(Key("nodes", "", name)) if name else None
    if entry is None:
        return
    labels = parse(core.kinds.find("", "v1", "nodes"), entry)["metadata"].get("labels") or {}
    places = {label: labels[label] for label in _PLACES if label in labels}
    if places:
        pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **places}
