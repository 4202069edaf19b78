"""How important a Pod is, and for how long it stays on a node that is lost."""

from __future__ import annotations

from typing import Any, Final

from flyball.controlplane.apiserver.core import Admission, Core
from flyball.controlplane.apiserver.render import parse
from flyball.controlplane.apiserver.status import forbidden
from flyball.controlplane.apiserver.store import Key

__all__ = ["default_tolerations", "priority"]

Object = dict[str, Any]

_CLASSES: Final = "priorityclasses.scheduling.k8s.io"
_LOST: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_STAY_SECONDS: Final = 300


async def priority(core: Core, admission: Admission) -> None:
    """Give a new Pod the number of its priority class, or of the default one."""
    pod = admission.obj
    if admission.kind.storage != "pods" or admission.subresource or pod is None:
        return
    spec: Object = pod["spec"]
    if admission.verb == "UPDATE":
        _keep(spec, (admission.old or {}).get("spec") or {})
        return
    if admission.verb != "CREATE":
        return
    name = spec.get("priorityClassName")
    chosen = _named(core, admission, name) if name else _default(core)
    if chosen is not None:
        spec["priorityClassName"] = chosen["metadata"]["name"]
    value = 0 if chosen is None else chosen.get("value", 0)
    if spec.get("priority") not in (None, value):
        told = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
        raise forbidden("pods", "", admission.name, told)
    policy = (chosen or {}).get("preemptionPolicy") or "PreemptLowerPriority"
    if spec.get("preemptionPolicy") not in (None, policy):
        told = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise forbidden("pods", "", admission.name, told)
    spec["priority"], spec["preemptionPolicy"] = value, policy


def _keep(spec: Object, old: Object) -> None:
    for field in ("priority", "preemptionPolicy"):
        if spec.get(field) is None and old.get(field) is not None:
            spec[field] = old[field]


def _named(core: Core, admission: Admission, name: str) -> Object:
    entry = core.store.get(Key(_CLASSES, "", name))
    if entry is None:
        raise forbidden("pods", "", admission.name, f"no PriorityClass with name {name} was found")
    return parse(core.kinds.find("scheduling.k8s.io", "v1", "priorityclasses"), entry)


def _default(core: Core) -> Object | None:
    kind = core.kinds.find("scheduling.k8s.io", "v1", "priorityclasses")
    classes = [parse(kind, entry) for entry in core.store.listing(_CLASSES).entries]
    defaults = [one for one in classes if one.get("globalDefault")]
    return min(defaults, key=lambda one: int(one.get("value", 0)), default=None)


async def default_tolerations(core: Core, admission: Admission) -> None:
    """Let a Pod stay for some minutes on a node that does not report."""
    pod = admission.obj
    if admission.kind.storage != "pods" or admission.subresource or pod is None or admission.verb == "DELETE":
        return
    tolerations: list[Object] = pod["spec"].get("tolerations") or []
    missing = [key for key in _LOST if not any(_tolerates(one, key) for one in tolerations)]
    if missing:
        added = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _STAY_SECONDS}
            for key in missing
        ]
        pod["spec"]["tolerations"] = [*tolerations, *added]


def _tolerates(toleration: Object, key: str) -> bool:
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in ("NoExecute", None, "")
