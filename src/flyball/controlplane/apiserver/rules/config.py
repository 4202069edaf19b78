"""The rules of ConfigMaps, Secrets, claims, leases, events, and of roles and their bindings."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from flyball.api.fielderrors import FieldError
from flyball.api.quantity import Quantity
from flyball.api.structural import same
from flyball.controlplane.apiserver.rules.common import (
    Errors,
    Object,
    config_key,
    immutable,
    items,
    label_selector,
    one_of,
    subdomain_name,
)

__all__ = [
    "budget",
    "claim",
    "claim_update",
    "config_map",
    "config_map_update",
    "event",
    "lease",
    "role",
    "role_binding",
    "role_binding_update",
    "secret",
    "secret_update",
]

_MAX_BYTES: Final = 1024 * 1024
_FROZEN: Final = "field is immutable when `immutable` is set"
_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_RBAC: Final = "rbac.authorization.k8s.io"


def config_map(obj: Object) -> Errors:
    """Judge a ConfigMap."""
    data: Mapping[str, str] = obj.get("data") or {}
    binary: Mapping[str, str] = obj.get("binaryData") or {}
    size = 0
    for key, value in sorted(data.items()):
        yield from config_key(key, f"data[{key}]")
        if key in binary:
            yield FieldError.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        size += len(value.encode())
    for key, value in sorted(binary.items()):
        yield from config_key(key, f"binaryData[{key}]")
        size += _decoded_size(value)
    if size > _MAX_BYTES:
        yield FieldError.too_long("", _MAX_BYTES)


def _decoded_size(text: str) -> int:
    return len(base64.b64decode(text)) if text else 0


def config_map_update(obj: Object, old: Object) -> Errors:
    """Judge a change of a ConfigMap."""
    if old.get("immutable"):
        if not obj.get("immutable"):
            yield FieldError.forbidden("immutable", _FROZEN)
        for field in ("data", "binaryData"):
            if not same(obj.get(field) or {}, old.get(field) or {}):
                yield FieldError.forbidden(field, _FROZEN)
    yield from config_map(obj)


def secret(obj: Object) -> Errors:
    """Judge a Secret."""
    data: Mapping[str, str] = obj.get("data") or {}
    for key in sorted(data):
        yield from config_key(key, f"data[{key}]")
    if sum(map(_decoded_size, data.values())) > _MAX_BYTES:
        yield FieldError.too_long("data", _MAX_BYTES)
    kind = str(obj.get("type") or "")
    for key in _NEEDED.get(kind, ()):
        if key not in data:
            yield FieldError.required(f"data[{key}]")
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
        yield FieldError.required("data[username]")
        yield FieldError.required("data[password]")
    if kind == "kubernetes.io/service-account-token":
        annotation = "kubernetes.io/service-account.name"
        if not (obj["metadata"].get("annotations") or {}).get(annotation):
            yield FieldError.required(f"metadata.annotations[{annotation}]")


def secret_update(obj: Object, old: Object) -> Errors:
    """Judge a change of a Secret."""
    yield from immutable(obj.get("type"), old.get("type"), "type")
    if old.get("immutable"):
        if not obj.get("immutable"):
            yield FieldError.forbidden("immutable", _FROZEN)
        if not same(obj.get("data") or {}, old.get("data") or {}):
            yield FieldError.forbidden("data", _FROZEN)
    yield from secret(obj)


def claim(obj: Object) -> Errors:
    """Judge a PersistentVolumeClaim."""
    spec: Mapping[str, Any] = obj.get("spec") or {}
    modes = spec.get("accessModes") or []
    if not modes:
        yield FieldError.required("spec.accessModes", "at least 1 access mode is required")
    yield from label_selector(spec.get("selector"), "spec.selector")
    for mode in modes:
        if mode not in _MODES:
            yield FieldError.not_supported("spec.accessModes", mode, list(_MODES))
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        told = "may not use ReadWriteOncePod with other access modes"
        yield FieldError.forbidden("spec.accessModes", told)
    amount = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if amount is None:
        yield FieldError.required("spec.resources[storage]")
    elif Quantity(str(amount)).value <= 0:
        yield FieldError.invalid("spec.resources[storage]", str(amount), "must be greater than zero")
    yield from subdomain_name(spec.get("storageClassName"), "spec.storageClassName")
    if spec.get("volumeMode") not in (None, "Block", "Filesystem"):
        yield FieldError.not_supported("spec.volumeMode", spec["volumeMode"], ["Block", "Filesystem"])


def claim_update(obj: Object, old: Object) -> Errors:
    """Judge a change of a claim: once made it may only grow, and be bound."""
    yield from claim(obj)
    after, before = dict(obj["spec"]), dict(old["spec"])
    wanted = ((after.get("resources") or {}).get("requests") or {}).get("storage")
    had = ((before.get("resources") or {}).get("requests") or {}).get("storage")
    bound = (old.get("status") or {}).get("phase") == "Bound"
    if not before.get("volumeName"):
        before["volumeName"] = after.get("volumeName")
    for spec in (after, before):
        spec.pop("volumeAttributesClassName", None)
        if bound:
            spec.pop("resources", None)
    if not same({k: v for k, v in after.items() if v is not None}, {k: v for k, v in before.items() if v is not None}):
        told = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        yield FieldError.forbidden("spec", told)
    if bound and wanted and had and Quantity(str(wanted)).value < Quantity(str(had)).value:
        told = "field can not be less than status.capacity"
        yield FieldError.forbidden("spec.resources.requests.storage", told)


def lease(obj: Object) -> Errors:
    """Judge a Lease."""
    spec: Mapping[str, Any] = obj.get("spec") or {}
    seconds, changes = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        yield FieldError.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    if changes is not None and changes < 0:
        yield FieldError.invalid("spec.leaseTransitions", changes, "must be greater than or equal to 0")


def event(obj: Object) -> Errors:
    """Judge an Event, in either shape."""
    field = "regarding" if "regarding" in obj else "involvedObject"
    about: Mapping[str, Any] = obj.get(field) or {}
    namespace, own = about.get("namespace") or "", obj["metadata"].get("namespace") or ""
    if namespace != own and (namespace or own not in ("", "default")):
        yield FieldError.invalid("involvedObject.namespace", namespace, "does not match event.namespace")
    if field == "regarding":
        yield from _new_event(obj)


def _new_event(obj: Object) -> Errors:
    if not obj.get("eventTime"):
        yield FieldError.required("eventTime")
    for name in ("reportingController", "reportingInstance", "action", "reason"):
        if not obj.get(name):
            yield FieldError.required(name)
    if obj.get("type") not in ("Normal", "Warning"):
        yield FieldError.invalid("type", obj.get("type") or "", "has invalid value: " + str(obj.get("type") or ""))


def role(obj: Object) -> Errors:
    """Judge a Role or ClusterRole."""
    cluster = obj["kind"] == "ClusterRole"
    for place, rule in enumerate(items(obj, "rules")):
        path = f"rules[{place}]"
        if not rule.get("verbs"):
            yield FieldError.required(f"{path}.verbs", "verbs must contain at least one value")
        if rule.get("nonResourceURLs"):
            if not cluster:
                told = "namespaced rules cannot apply to non-resource URLs"
                yield FieldError.invalid(f"{path}.nonResourceURLs", rule["nonResourceURLs"], told)
            if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
                told = "rules cannot apply to both regular resources and non-resource URLs"
                yield FieldError.invalid(f"{path}.nonResourceURLs", rule["nonResourceURLs"], told)
            continue
        if not rule.get("apiGroups"):
            yield FieldError.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield FieldError.required(f"{path}.resources", "resource rules must supply at least one resource")


def role_binding(obj: Object) -> Errors:
    """Judge a RoleBinding or ClusterRoleBinding."""
    reference: Mapping[str, Any] = obj.get("roleRef") or {}
    kinds = ["ClusterRole"] if obj["kind"] == "ClusterRoleBinding" else ["Role", "ClusterRole"]
    if reference.get("apiGroup") != _RBAC:
        yield FieldError.not_supported("roleRef.apiGroup", reference.get("apiGroup", ""), [_RBAC])
    if reference.get("kind") not in kinds:
        yield FieldError.not_supported("roleRef.kind", reference.get("kind", ""), kinds)
    if not reference.get("name"):
        yield FieldError.required("roleRef.name")
    for place, subject in enumerate(items(obj, "subjects")):
        path, kind = f"subjects[{place}]", subject.get("kind")
        if not subject.get("name"):
            yield FieldError.required(f"{path}.name")
        if kind == "ServiceAccount":
            if subject.get("apiGroup"):
                yield FieldError.not_supported(f"{path}.apiGroup", subject["apiGroup"], [""])
            if not subject.get("namespace"):
                yield FieldError.required(f"{path}.namespace")
        elif kind not in ("User", "Group"):
            yield FieldError.not_supported(f"{path}.kind", kind, ["ServiceAccount", "User", "Group"])
        elif subject.get("apiGroup") != _RBAC:
            yield FieldError.not_supported(f"{path}.apiGroup", subject.get("apiGroup", ""), [_RBAC])


def role_binding_update(obj: Object, old: Object) -> Errors:
    """Judge a change of a binding: the role stays."""
    yield from role_binding(obj)
    if not same(obj.get("roleRef"), old.get("roleRef")):
        yield FieldError.invalid("roleRef", obj.get("roleRef"), "cannot change roleRef")


def budget(obj: Object) -> Errors:
    """Judge a PodDisruptionBudget."""
    spec: Mapping[str, Any] = obj.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        shown = {name: value for name, value in spec.items() if value is not None}
        yield FieldError.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    yield from label_selector(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    yield from one_of(policy, "spec.unhealthyPodEvictionPolicy", ("AlwaysAllow", "IfHealthyBudget"), required=False)
