"""What a CustomResourceDefinition gets that its author did not write: defaults, and the status it begins with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = [
    "CLEANUP",
    "condition",
    "default_definition",
    "is_true",
    "mark_for_deletion",
    "prepare_new",
    "prepare_update",
    "set_condition",
    "storage_version",
    "versions",
]

Object = dict[str, Any]

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that keeps a definition until all its objects are gone."""

_HTTPS: Final = 443


def versions(definition: Mapping[str, Any]) -> Iterator[Object]:
    """Give the versions of a definition."""
    yield from (definition.get("spec") or {}).get("versions") or ()


def storage_version(definition: Mapping[str, Any]) -> str:
    """Name the version in which objects are stored; empty when there is none."""
    return next((str(version.get("name", "")) for version in versions(definition) if version.get("storage")), "")


def default_definition(obj: Object) -> None:
    """Fill in names and conversion."""
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    names = spec.get("names")
    if isinstance(names, dict) and isinstance(names.get("kind", ""), str):
        kind = names.get("kind", "")
        if not names.get("singular"):
            names["singular"] = kind.lower()
        if not names.get("listKind") and kind:
            names["listKind"] = f"{kind}List"
    conversion = spec.get("conversion")
    if not conversion:
        spec["conversion"] = {"strategy": "None"}
    elif isinstance(conversion, dict):
        service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
        if isinstance(service, dict) and service.get("port") is None:
            service["port"] = _HTTPS


def prepare_new(obj: Object) -> None:
    """Give a new definition the status that it begins with: nothing is accepted yet."""
    storage = storage_version(obj)
    obj["status"] = {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": [storage] if storage else [],
    }


def prepare_update(obj: Object, old: Object) -> None:
    """Remember every version that objects may be stored in."""
    status = obj.get("status")
    storage = storage_version(obj)
    if isinstance(status, dict) and storage and storage not in (status.get("storedVersions") or ()):
        status["storedVersions"] = [*(status.get("storedVersions") or ()), storage]


def mark_for_deletion(obj: Object, now: str) -> None:
    """Keep a definition that is deleted until its objects are gone."""
    metadata = obj["metadata"]
    if metadata.get("deletionTimestamp") is not None:
        return
    metadata["deletionTimestamp"] = now
    finalizers = metadata.get("finalizers") or []
    if CLEANUP not in finalizers:
        metadata["finalizers"] = [*finalizers, CLEANUP]
    told = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    set_condition(obj, condition("Terminating", "True", "InstanceDeletionPending", told), now)


# Conditions


def condition(type_: str, status: str, reason: str, message: str) -> Object:
    """Make a condition; its time is set when it is put into a status."""
    return {"type": type_, "status": status, "lastTransitionTime": None, "reason": reason, "message": message}


def find(obj: Mapping[str, Any], type_: str) -> Object | None:
    """Return a condition of a definition."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one.get("type") == type_), None)


def is_true(obj: Mapping[str, Any], type_: str) -> bool:
    """Tell whether a condition holds."""
    found = find(obj, type_)
    return found is not None and found.get("status") == "True"


def set_condition(obj: Object, new: Object, now: str) -> None:
    """Put a condition into the status; its time moves only when it changes."""
    status = obj.setdefault("status", {})
    conditions: list[Object] = status.get("conditions") or []
    present = next((one for one in conditions if one.get("type") == new["type"]), None)
    if present is None:
        status["conditions"] = [*conditions, {**new, "lastTransitionTime": now}]
        return
    if present.get("status") != new["status"]:
        present["lastTransitionTime"] = now
    present.update({name: new[name] for name in ("status", "reason", "message")})
    status["conditions"] = conditions
