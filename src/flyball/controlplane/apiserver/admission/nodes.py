"""A node is not used before it has said that it is ready."""

from __future__ import annotations

from typing import Final

from flyball.controlplane.apiserver.core import Admission, Core

__all__ = ["taint_new_node"]

_NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


async def taint_new_node(core: Core, admission: Admission) -> None:
    """Keep pods away from a new node until somebody takes the taint away."""
    if admission.kind.storage != "nodes" or admission.verb != "CREATE" or admission.obj is None:
        return
    spec = admission.obj.setdefault("spec", {})
    taints = spec.get("taints") or []
    if all((one.get("key"), one.get("effect")) != (_NOT_READY["key"], _NOT_READY["effect"]) for one in taints):
        spec["taints"] = [*taints, dict(_NOT_READY)]
