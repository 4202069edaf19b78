"""The columns of the remaining kinds: configuration, namespaces, nodes, events, leases, classes, devices."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from flyball.controlplane.apiserver.printing.cells import (
    AGE,
    NAME,
    NONE,
    Column,
    age,
    at,
    column,
    count,
    from_field,
    number,
    of_object,
)

__all__ = ["COLUMNS"]

Object = dict[str, Any]

_ROLE: Final = "node-role.kubernetes.io/"
_OLD_ROLE: Final = "kubernetes.io/role"
_UNKNOWN: Final = "<unknown>"


# Nodes


def _node_status(node: Object) -> str:
    ready = next((one for one in at(node, "status.conditions", ()) if one.get("type") == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if at(node, "spec.unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(node: Object) -> str:
    labels = node["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)} | {labels.get(_OLD_ROLE) or ""}
    return ",".join(sorted(roles - {""})) or NONE


def _address(type_: str) -> Any:
    def told(node: Object, now: datetime) -> str:
        found = (one.get("address", "") for one in at(node, "status.addresses", ()) if one.get("type") == type_)
        return next(found, NONE)

    return told


def _kernel(node: Object, now: datetime) -> str:
    architecture = at(node, "status.nodeInfo.architecture", "")
    kernel = at(node, "status.nodeInfo.kernelVersion") or _UNKNOWN
    return f"{kernel} ({architecture})" if architecture else kernel


def _info(name: str) -> Any:
    return lambda node, now: at(node, f"status.nodeInfo.{name}") or _UNKNOWN


# Events


def _first_seen(event: Object, now: datetime) -> str:
    return age(event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime"), now)


def _last_seen(event: Object, now: datetime) -> str:
    if event.get("series") is not None:
        return age(at(event, "series.lastObservedTime"), now)
    last = event.get("lastTimestamp") or event.get("deprecatedLastTimestamp")
    return age(last, now) if last else _first_seen(event, now)


def _event_count(event: Object) -> int:
    if event.get("series") is not None:
        return int(at(event, "series.count", 0))
    return int(event.get("count") or event.get("deprecatedCount") or 1)


def _about(event: Object) -> Object:
    found: Object = event.get("involvedObject") or event.get("regarding") or {}
    return found


def _event_object(event: Object) -> str:
    about = _about(event)
    kind = (about.get("kind") or "").lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


def _event_source(event: Object) -> str:
    source: Object = event.get("source") or event.get("deprecatedSource") or {}
    component = source.get("component") or event.get("reportingComponent") or event.get("reportingController") or ""
    instance = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component


def _message(event: Object) -> str:
    return str(event.get("message") or event.get("note") or "").strip()


_EVENTS: Final = (
    column("Last Seen", _last_seen),
    column("Type", from_field("type")),
    column("Reason", from_field("reason")),
    column("Object", of_object(_event_object)),
    column("Subobject", lambda event, now: _about(event).get("fieldPath") or "", wide=True),
    column("Source", of_object(_event_source), wide=True),
    column("Message", of_object(_message)),
    column("First Seen", _first_seen, wide=True),
    column("Count", of_object(_event_count), wide=True),
    column("Name", from_field("metadata.name"), wide=True, format_="name"),
)


# Devices


def _claim_state(claim: Object) -> str:
    deleted = claim["metadata"].get("deletionTimestamp") is not None
    words = ["deleted"] if deleted else []
    if at(claim, "status.allocation") is None:
        words += [] if deleted else ["pending"]
    else:
        words += ["allocated", *(["reserved"] if at(claim, "status.reservedFor") else [])]
    return ",".join(words)


def _component_status(obj: Object) -> Object:
    found: Object = next((one for one in at(obj, "conditions", ()) if one.get("type") == "Healthy"), {})
    return found


def _health(obj: Object) -> str:
    return {"": "Unknown", "True": "Healthy"}.get(_component_status(obj).get("status", ""), "Unhealthy")


COLUMNS: Final[dict[str, tuple[Column, ...]]] = {
    "configmaps": (
        NAME,
        column("Data", lambda obj, now: len(at(obj, "data", ())) + len(at(obj, "binaryData", ()))),
        AGE,
    ),
    "secrets": (NAME, column("Type", from_field("type")), column("Data", count("data")), AGE),
    "serviceaccounts": (NAME, AGE),
    "namespaces": (NAME, column("Status", from_field("status.phase")), AGE),
    "nodes": (
        NAME,
        column("Status", of_object(_node_status)),
        column("Roles", of_object(_node_roles)),
        AGE,
        column("Version", from_field("status.nodeInfo.kubeletVersion")),
        column("Internal-IP", _address("InternalIP"), wide=True),
        column("External-IP", _address("ExternalIP"), wide=True),
        column("OS-Image", _info("osImage"), wide=True),
        column("Kernel-Version", _kernel, wide=True),
        column("Container-Runtime", _info("containerRuntimeVersion"), wide=True),
    ),
    "events": _EVENTS,
    "events.events.k8s.io": _EVENTS,
    "componentstatuses": (
        NAME,
        column("Status", of_object(_health)),
        column("Message", lambda obj, now: _component_status(obj).get("message", "")),
        column("Error", lambda obj, now: _component_status(obj).get("error", "")),
    ),
    "leases.coordination.k8s.io": (NAME, column("Holder", from_field("spec.holderIdentity")), AGE),
    "leasecandidates.coordination.k8s.io": (
        NAME,
        column("LeaseName", from_field("spec.leaseName")),
        column("BinaryVersion", from_field("spec.binaryVersion")),
        column("EmulationVersion", from_field("spec.emulationVersion")),
        AGE,
    ),
    "priorityclasses.scheduling.k8s.io": (
        NAME,
        number("Value", from_field("value", 0)),
        column("Global-Default", from_field("globalDefault", False), "boolean"),
        AGE,
        column("PreemptionPolicy", from_field("preemptionPolicy")),
    ),
    "runtimeclasses.node.k8s.io": (NAME, column("Handler", from_field("handler")), AGE),
    "deviceclasses.resource.k8s.io": (NAME, AGE),
    "resourceclaims.resource.k8s.io": (NAME, column("State", of_object(_claim_state)), AGE),
    "resourceclaimtemplates.resource.k8s.io": (NAME, AGE),
    "resourceslices.resource.k8s.io": (
        NAME,
        column("Node", from_field("spec.nodeName")),
        column("Driver", from_field("spec.driver")),
        column("Pool", from_field("spec.pool.name")),
        AGE,
    ),
}
