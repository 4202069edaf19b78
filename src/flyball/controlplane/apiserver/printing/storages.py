"""The columns of volumes and of what provides them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from flyball.controlplane.apiserver.printing.cells import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Column,
    at,
    column,
    count,
    from_field,
    number,
    of_object,
)

__all__ = ["COLUMNS"]

Object = dict[str, Any]

_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _modes(obj: Object, path: str) -> str:
    given = at(obj, path, ())
    return ",".join(short for mode, short in _MODES.items() if mode in given)


def _class(obj: Object, now: datetime) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    return str(annotations[_OLD_CLASS]) if _OLD_CLASS in annotations else str(at(obj, "spec.storageClassName", ""))


def _phase(obj: Object, now: datetime) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else str(at(obj, "status.phase", ""))


def _claim(obj: Object, now: datetime) -> str:
    claim = at(obj, "spec.claimRef")
    return "" if claim is None else f"{claim.get('namespace', '')}/{claim.get('name', '')}"


def _bound(path: str) -> Any:
    """Show something of a claim once it has a volume."""
    return lambda obj, now: at(obj, path, "0") if at(obj, "spec.volumeName") else ""


def _class_name(obj: Object) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    default = any(annotations.get(name) == "true" for name in _DEFAULT_CLASS)
    return f"{obj['metadata']['name']}{' (default)' if default else ''}"


def _audiences(obj: Object) -> str:
    requests = at(obj, "spec.tokenRequests")
    return UNSET if requests is None else ",".join(one.get("audience", "") for one in requests)


_AGE_AND_MODE: Final = (AGE, column("VolumeMode", from_field("spec.volumeMode", UNSET), wide=True))
_ATTRIBUTES: Final = column("VolumeAttributesClass", from_field("spec.volumeAttributesClassName", UNSET))

COLUMNS: Final[dict[str, tuple[Column, ...]]] = {
    "persistentvolumes": (
        NAME,
        column("Capacity", from_field("spec.capacity.storage", "0")),
        column("Access Modes", lambda obj, now: _modes(obj, "spec.accessModes")),
        column("Reclaim Policy", from_field("spec.persistentVolumeReclaimPolicy")),
        column("Status", _phase),
        column("Claim", _claim),
        column("StorageClass", _class),
        _ATTRIBUTES,
        column("Reason", from_field("status.reason")),
        *_AGE_AND_MODE,
    ),
    "persistentvolumeclaims": (
        NAME,
        column("Status", _phase),
        column("Volume", from_field("spec.volumeName")),
        column("Capacity", _bound("status.capacity.storage")),
        column(
            "Access Modes", lambda obj, now: _modes(obj, "status.accessModes") if at(obj, "spec.volumeName") else ""
        ),
        column("StorageClass", _class),
        _ATTRIBUTES,
        *_AGE_AND_MODE,
    ),
    "storageclasses.storage.k8s.io": (
        column("Name", of_object(_class_name), format_="name"),
        column("Provisioner", from_field("provisioner")),
        column("ReclaimPolicy", from_field("reclaimPolicy", "Delete")),
        column("VolumeBindingMode", from_field("volumeBindingMode", "Immediate")),
        column("AllowVolumeExpansion", from_field("allowVolumeExpansion", False)),
        AGE,
    ),
    "volumeattributesclasses.storage.k8s.io": (NAME, column("DriverName", from_field("driverName")), AGE),
    "volumeattachments.storage.k8s.io": (
        NAME,
        column("Attacher", from_field("spec.attacher"), format_="name"),
        column("PV", from_field("spec.source.persistentVolumeName")),
        column("Node", from_field("spec.nodeName")),
        column("Attached", from_field("status.attached", False), "boolean"),
        AGE,
    ),
    "csinodes.storage.k8s.io": (NAME, number("Drivers", count("spec.drivers")), AGE),
    "csidrivers.storage.k8s.io": (
        NAME,
        column("AttachRequired", from_field("spec.attachRequired", True), "boolean"),
        column("PodInfoOnMount", from_field("spec.podInfoOnMount", False), "boolean"),
        column("StorageCapacity", from_field("spec.storageCapacity", False), "boolean"),
        column("TokenRequests", of_object(_audiences)),
        column("RequiresRepublish", from_field("spec.requiresRepublish", False), "boolean"),
        column("Modes", lambda obj, now: ",".join(at(obj, "spec.volumeLifecycleModes", ())) or NONE),
        AGE,
    ),
    "csistoragecapacities.storage.k8s.io": (
        NAME,
        column("StorageClassName", from_field("storageClassName")),
        column("Capacity", from_field("capacity", UNSET)),
    ),
}
