"""The rules of Pods and of templates of Pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from flyball.api.fielderrors import FieldError
from flyball.api.structural import same
from flyball.controlplane.apiserver.metadata import validate_labels
from flyball.controlplane.apiserver.rules.common import (
    Errors,
    Object,
    config_key,
    items,
    label_name,
    label_selector,
    one_of,
    subdomain_name,
)
from flyball.controlplane.apiserver.rules.containers import containers

__all__ = ["pod", "pod_spec", "pod_update", "pod_warnings", "template", "template_warnings"]

_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_RESTART: Final = ("Always", "OnFailure", "Never")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "hostPath": ("path",),
    "nfs": ("server", "path"),
    "iscsi": ("targetPortal", "iqn"),
    "csi": ("driver",),
    "persistentVolumeClaim": ("claimName",),
    "secret": ("secretName",),
    "configMap": ("name",),
    "rbd": ("monitors", "image"),
    "cephfs": ("monitors",),
    "glusterfs": ("endpoints", "path"),
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
}
_MAY_CHANGE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod(obj: Object) -> Errors:
    """Judge a Pod."""
    yield from pod_spec(obj.get("spec") or {}, "spec")


def template(spec: Mapping[str, Any], path: str) -> Errors:
    """Judge the template that a spec holds."""
    held: Mapping[str, Any] = spec.get("template") or {}
    metadata: Mapping[str, Any] = held.get("metadata") or {}
    yield from validate_labels(metadata.get("labels"), f"{path}.template.labels")
    inner = held.get("spec") or {}
    yield from pod_spec(inner, f"{path}.template.spec")
    if items(inner, "ephemeralContainers"):
        told = "ephemeral containers not allowed in pod template"
        yield FieldError.forbidden(f"{path}.template.spec.ephemeralContainers", told)


def pod_spec(spec: Mapping[str, Any], path: str) -> Errors:
    """Judge what a Pod shall be, in the order in which upstream does."""
    volumes = items(spec, "volumes")
    yield from _volumes(volumes, f"{path}.volumes")
    known = frozenset(str(volume.get("name")) for volume in volumes)
    yield from containers(spec, path, known)
    yield from one_of(spec.get("restartPolicy"), f"{path}.restartPolicy", _RESTART)
    yield from one_of(spec.get("dnsPolicy"), f"{path}.dnsPolicy", _DNS)
    yield from validate_labels(spec.get("nodeSelector"), f"{path}.nodeSelector")
    yield from subdomain_name(spec.get("serviceAccountName"), f"{path}.serviceAccountName")
    yield from subdomain_name(spec.get("nodeName"), f"{path}.nodeName")
    for place, secret in enumerate(items(spec, "imagePullSecrets")):
        if not secret.get("name"):
            yield FieldError.required(f"{path}.imagePullSecrets[{place}].name")
    yield from _affinity(spec.get("affinity") or {}, f"{path}.affinity")
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            yield from label_name(spec[field], f"{path}.{field}")
    yield from _tolerations(items(spec, "tolerations"), f"{path}.tolerations")
    yield from _spread(items(spec, "topologySpreadConstraints"), f"{path}.topologySpreadConstraints")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2147483647:
        told = "must be between 1 and 2147483647, inclusive"
        yield FieldError.invalid(f"{path}.activeDeadlineSeconds", deadline, told)
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        yield FieldError.invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0")
    yield from subdomain_name(spec.get("priorityClassName"), f"{path}.priorityClassName")
    yield from subdomain_name(spec.get("runtimeClassName"), f"{path}.runtimeClassName")


def _volumes(volumes: list[Object], path: str) -> Errors:
    names: set[str] = set()
    for place, volume in enumerate(volumes):
        where, name = f"{path}[{place}]", volume.get("name") or ""
        sources = [source for source, value in volume.items() if source != "name" and value is not None]
        sources.sort(key=lambda source: source != "emptyDir")
        refused = list(_source_rules(sources, volume, where))
        yield from refused
        misnamed = list(label_name(name, f"{where}.name"))
        yield from misnamed
        if not misnamed and name in names:
            yield FieldError.duplicate(f"{where}.name", name)
        if not refused and not misnamed:
            names.add(name)


def _source_rules(sources: list[str], volume: Object, path: str) -> Errors:
    for extra in sources[1:]:
        yield FieldError.forbidden(f"{path}.{extra}", "may not specify more than 1 volume type")
    if not sources:
        yield FieldError.required(path, "must specify a volume type")
    for source in sources[:1]:
        yield from _source(source, volume[source], f"{path}.{source}")


def _source(source: str, value: Object, path: str) -> Errors:
    for field in _NEEDED.get(source, ()):
        if not value.get(field):
            yield FieldError.required(f"{path}.{field}")
    if source in ("secret", "configMap"):
        mode = value.get("defaultMode")
        if mode is not None and not 0 <= mode <= 0o777:
            told = "must be a number between 0 and 0777 (octal), both inclusive"
            yield FieldError.invalid(f"{path}.defaultMode", mode, told)
        for place, item in enumerate(items(value, "items")):
            where = f"{path}.items[{place}]"
            if not item.get("key"):
                yield FieldError.required(f"{where}.key")
            else:
                yield from config_key(item["key"], f"{where}.key")
            yield from _relative(item.get("path") or "", f"{where}.path")


def _relative(value: str, path: str) -> Errors:
    if not value:
        yield FieldError.required(path)
    elif value.startswith("/"):
        yield FieldError.invalid(path, value, "must be a relative path")
    elif ".." in value.split("/"):
        yield FieldError.invalid(path, value, "must not contain '..'")


def _affinity(affinity: Mapping[str, Any], path: str) -> Errors:
    for kind in ("podAffinity", "podAntiAffinity"):
        held = affinity.get(kind) or {}
        required = items(held, "requiredDuringSchedulingIgnoredDuringExecution")
        for place, term in enumerate(required):
            where = f"{path}.{kind}.requiredDuringSchedulingIgnoredDuringExecution[{place}]"
            yield from _term(term, where)
        for place, weighted in enumerate(items(held, "preferredDuringSchedulingIgnoredDuringExecution")):
            where = f"{path}.{kind}.preferredDuringSchedulingIgnoredDuringExecution[{place}]"
            if not 1 <= weighted.get("weight", 0) <= 100:
                yield FieldError.invalid(f"{where}.weight", weighted.get("weight", 0), "must be in the range 1-100")
            yield from _term(weighted.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm")


def _term(term: Mapping[str, Any], path: str) -> Errors:
    yield from label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    if not term.get("topologyKey"):
        yield FieldError.required(f"{path}.topologyKey", "can not be empty")


def _tolerations(tolerations: list[Object], path: str) -> Errors:
    for place, one in enumerate(tolerations):
        where, operator = f"{path}[{place}]", one.get("operator")
        if not one.get("key") and operator != "Exists":
            told = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield FieldError.invalid(f"{where}.operator", operator or "", told)
        if one.get("tolerationSeconds") is not None and one.get("effect") != "NoExecute":
            told = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield FieldError.invalid(f"{where}.effect", one.get("effect", ""), told)
        if operator == "Exists" and one.get("value"):
            told = "value must be empty when `operator` is 'Exists'"
            yield FieldError.invalid(f"{where}.operator", dict(one), told)
        elif operator not in (None, "", "Equal", "Exists"):
            yield FieldError.not_supported(f"{where}.operator", operator, ["Equal", "Exists"])
        yield from one_of(one.get("effect"), f"{where}.effect", _EFFECTS, required=False)


def _spread(constraints: list[Object], path: str) -> Errors:
    for place, one in enumerate(constraints):
        where = f"{path}[{place}]"
        if one.get("maxSkew", 0) <= 0:
            yield FieldError.invalid(f"{where}.maxSkew", one.get("maxSkew", 0), "must be greater than zero")
        if not one.get("topologyKey"):
            yield FieldError.required(f"{where}.topologyKey", "can not be empty")
        yield from one_of(
            one.get("whenUnsatisfiable"), f"{where}.whenUnsatisfiable", ("DoNotSchedule", "ScheduleAnyway")
        )
        yield from label_selector(one.get("labelSelector"), f"{where}.labelSelector")


def pod_update(obj: Object, old: Object) -> Errors:
    """Judge a change of a Pod: only little of it may change."""
    before, after = old["spec"], obj["spec"]
    for field in ("containers", "initContainers"):
        if len(items(after, field)) != len(items(before, field)):
            yield FieldError.forbidden(f"spec.{field}", "pod updates may not add or remove containers")
            return
        for place, container in enumerate(items(after, field)):
            if not container.get("image"):
                yield FieldError.required(f"spec.{field}[{place}].image")
    yield from _deadline(after.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))
    old_tolerations = items(before, "tolerations")
    if any(one not in items(after, "tolerations") for one in old_tolerations):
        told = "existing toleration can not be modified except its tolerationSeconds"
        yield FieldError.forbidden("spec.tolerations", told)
    if not same(after, before) and not same(_fixed(after, before), before):
        yield FieldError.forbidden("spec", _MAY_CHANGE)


def _deadline(new: Any, old: Any) -> Errors:
    path = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            yield FieldError.invalid(path, None, "must not update from a positive integer to nil value")
    elif old is not None and new > old:
        told = f"must be less than or equal to previous value, {old}"
        yield FieldError.invalid(path, new, told)


def _fixed(after: Mapping[str, Any], before: Mapping[str, Any]) -> Object:
    """Return the new spec as it would be without what may change."""
    spec: Object = dict(after)
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [
                {**mine, "image": old.get("image"), "resources": old.get("resources")}
                for mine, old in zip(items(after, field), items(before, field), strict=False)
            ]
    for field in ("activeDeadlineSeconds", "tolerations", "schedulingGates", "ephemeralContainers", "nodeName"):
        spec.pop(field, None)
        if before.get(field) is not None:
            spec[field] = before[field]
    if before.get("terminationGracePeriodSeconds", 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        spec["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    return spec


# Warnings

_OLD_VOLUMES: Final[Mapping[str, str]] = {
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
}
_NULL_SELECTOR: Final = "a null labelSelector results in matching no pod"


def pod_warnings(obj: Object) -> list[str]:
    """Return what the writer of a new Pod is told."""
    return _spec_warnings(obj.get("spec") or {}, "spec")


def template_warnings(obj: Object) -> list[str]:
    """Return what the writer of a new template is told."""
    return _spec_warnings(((obj.get("spec") or {}).get("template") or {}).get("spec") or {}, "spec.template.spec")


def _spec_warnings(spec: Mapping[str, Any], path: str) -> list[str]:
    told: list[str] = []
    for place, one in enumerate(items(spec, "topologySpreadConstraints")):
        if one.get("labelSelector") is None:
            told.append(f"{path}.topologySpreadConstraints[{place}].labelSelector: {_NULL_SELECTOR}")
    for place, volume in enumerate(items(spec, "volumes")):
        for source, words in _OLD_VOLUMES.items():
            if volume.get(source) is not None:
                told.append(f"{path}.volumes[{place}].{source}: {words}")
    for kind in ("podAffinity", "podAntiAffinity"):
        held = (spec.get("affinity") or {}).get(kind) or {}
        for place, term in enumerate(items(held, "requiredDuringSchedulingIgnoredDuringExecution")):
            if term.get("labelSelector") is None:
                where = f"{path}.affinity.{kind}.requiredDuringSchedulingIgnoredDuringExecution[{place}]"
                told.append(f"{where}.labelSelector: {_NULL_SELECTOR}")
        for place, weighted in enumerate(items(held, "preferredDuringSchedulingIgnoredDuringExecution")):
            if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
                where = f"{path}.affinity.{kind}.preferredDuringSchedulingIgnoredDuringExecution[{place}]"
                told.append(f"{where}.podAffinityTerm.labelSelector: {_NULL_SELECTOR}")
    return told
