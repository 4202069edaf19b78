"""Volumes and claims: what is in use is not deleted, and a claim without a class gets the default one."""

from __future__ import annotations

from typing import Any, Final

from flyball.controlplane.apiserver.core import Admission, Core
from flyball.controlplane.apiserver.render import parse

__all__ = ["default_class", "protect"]

_PROTECTED: Final = {
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "persistentvolumes": "kubernetes.io/pv-protection",
    "volumeattributesclasses.storage.k8s.io": "kubernetes.io/vac-protection",
}
_CLASSES: Final = "storageclasses.storage.k8s.io"
_IS_DEFAULT: Final = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


async def protect(core: Core, admission: Admission) -> None:
    """Put the finalizer on what must not go while it is in use."""
    finalizer = _PROTECTED.get(admission.kind.storage)
    if finalizer is None or admission.verb != "CREATE" or admission.subresource or admission.obj is None:
        return
    finalizers: list[str] = admission.obj["metadata"].setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)


async def default_class(core: Core, admission: Admission) -> None:
    """Give a claim that names no class the newest default one."""
    claim = admission.obj
    if admission.kind.storage != "persistentvolumeclaims" or admission.verb != "CREATE" or claim is None:
        return
    if claim["spec"].get("storageClassName") is not None or _OLD_CLASS in (claim["metadata"].get("annotations") or {}):
        return
    kind = core.kinds.find("storage.k8s.io", "v1", "storageclasses")
    classes = [parse(kind, entry) for entry in core.store.listing(_CLASSES).entries]
    defaults = [one for one in classes if _is_default(one)]
    if defaults:
        newest = max(one["metadata"]["creationTimestamp"] for one in defaults)
        names = [one["metadata"]["name"] for one in defaults if one["metadata"]["creationTimestamp"] == newest]
        claim["spec"]["storageClassName"] = min(names)


def _is_default(storage_class: dict[str, Any]) -> bool:
    annotations = storage_class["metadata"].get("annotations") or {}
    return any(annotations.get(name) == "true" for name in _IS_DEFAULT)
