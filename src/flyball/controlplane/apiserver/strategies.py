"""Where built-in kinds differ from a kind without peculiarities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from flyball.controlplane.apiserver import preparing
from flyball.controlplane.apiserver.defaults import DEFAULTS
from flyball.controlplane.apiserver.names import is_label, is_path_segment
from flyball.controlplane.apiserver.rules import RULES
from flyball.controlplane.apiserver.strategy import Strategy

__all__ = ["DEPRECATED", "strategy_of"]

Object = dict[str, Any]


def _text(obj: Object, *path: str) -> str:
    value: Any = obj
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _selecting(*fields: str) -> dict[str, Any]:
    """Describe fields that can be selected by, each by its path."""
    paths = {field: tuple(field.split(".")) for field in fields}
    return {
        "selectable": fields,
        "fields": lambda obj: {field: _text(obj, *path) for field, path in paths.items()},
    }


_COUNTED: Final = frozenset(
    {
        *("pods", "podtemplates", "replicationcontrollers"),
        *("daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps"),
        *("jobs.batch", "cronjobs.batch"),
        *("poddisruptionbudgets.policy", "ingresses.networking.k8s.io", "networkpolicies.networking.k8s.io"),
        *("ingressclasses.networking.k8s.io", "endpointslices.discovery.k8s.io", "priorityclasses.scheduling.k8s.io"),
        *("deviceclasses.resource.k8s.io", "resourceslices.resource.k8s.io"),
        *("flowschemas.flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"),
        "customresourcedefinitions.apiextensions.k8s.io",
        *(
            f"{plural}.admissionregistration.k8s.io"
            for plural in (
                *("validatingwebhookconfigurations", "mutatingwebhookconfigurations"),
                *("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
                *("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
            )
        ),
    }
)
"""The kinds whose objects count generations."""

_TELLS_DELETED: Final = frozenset(
    {
        *("namespaces", "persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates"),
        *("replicationcontrollers", "resourcequotas", "services", "serviceaccounts"),
        *(f"{plural}.storage.k8s.io" for plural in ("storageclasses", "volumeattachments", "csidrivers", "csinodes")),
        "volumeattributesclasses.storage.k8s.io",
        *(
            f"{plural}.resource.k8s.io"
            for plural in ("resourceclaims", "resourceclaimtemplates", "deviceclasses", "resourceslices")
        ),
    }
)
"""The kinds of which a delete shows the object that is gone."""

_ALL_METADATA: Final = ("labels", "annotations", "finalizers", "ownerReferences")
_STATUS_KEEPS: Final[Mapping[str, tuple[str, ...]]] = {
    "pods": ("ownerReferences",),
    "deployments.apps": ("labels",),
    "apiservices.apiregistration.k8s.io": _ALL_METADATA,
    "customresourcedefinitions.apiextensions.k8s.io": _ALL_METADATA,
    "flowschemas.flowcontrol.apiserver.k8s.io": _ALL_METADATA,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _ALL_METADATA,
    "resourceclaims.resource.k8s.io": _ALL_METADATA,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _ALL_METADATA,
    "volumeattachments.storage.k8s.io": _ALL_METADATA,
}
"""The metadata that the status endpoint of a kind does not write."""

_EVENT_FIELDS: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def _event_fields(obj: Object) -> dict[str, str]:
    """Name what an event is about as both of its shapes do."""
    about = {field: _text(obj, "involvedObject", field) for field in _EVENT_FIELDS}
    component = _text(obj, "reportingComponent")
    return {
        **{f"involvedObject.{field}": value for field, value in about.items()},
        **{f"regarding.{field}": value for field, value in about.items()},
        "reason": _text(obj, "reason"),
        "type": _text(obj, "type"),
        "source": _text(obj, "source", "component") or component,
        "reportingComponent": component,
        "reportingController": component,
    }


_EVENTS: Final[dict[str, Any]] = {
    "create_on_update": True,
    "fields": _event_fields,
    "selectable": (
        *(f"involvedObject.{field}" for field in _EVENT_FIELDS),
        *("reason", "type", "source", "reportingComponent"),
    ),
}

_RBAC: Final = ("roles", "clusterroles", "rolebindings", "clusterrolebindings")

_DIFFERENT: Final[Mapping[str, dict[str, Any]]] = {
    "namespaces": {
        "name": is_label,
        "prepare_create": preparing.prepare_namespace,
        "prepare_update": preparing.keep_namespace_finalizers,
        "status_on_create": True,
        **_selecting("status.phase"),
    },
    "services": {
        "name": is_label,
        "prepare_update": preparing.clear_balancer,
        **_selecting("spec.clusterIP", "spec.type"),
    },
    "pods": {
        "prepare_create": preparing.prepare_pod,
        "prepare_update": preparing.update_pod,
        **_selecting(
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ),
    },
    "events": _EVENTS,
    "events.events.k8s.io": {
        **_EVENTS,
        "selectable": (
            *(f"regarding.{field}" for field in _EVENT_FIELDS),
            *("reason", "type", "reportingController"),
        ),
    },
    "secrets": _selecting("type"),
    "nodes": {"status_on_create": True, **_selecting("spec.unschedulable")},
    "persistentvolumes": {"status_on_create": True, "prepare_create": preparing.prepare_volume},
    "persistentvolumeclaims": {"status_on_create": True, "prepare_create": preparing.keep_claim_status},
    "jobs.batch": {
        "orphans_by_default": True,
        "prepare_create": preparing.prepare_job,
        **_selecting("status.successful"),
    },
    "deployments.apps": {"wanted": lambda obj: (obj.get("spec"), obj["metadata"].get("annotations") or {})},
    "daemonsets.apps": {"prepare_update": preparing.count_templates},
    "statefulsets.apps": {
        "prepare_create": preparing.drop_unavailable,
        "prepare_update": preparing.drop_unavailable,
    },
    "replicasets.apps": _selecting("status.replicas"),
    "replicationcontrollers": {"orphans_by_default": True, **_selecting("status.replicas")},
    "certificatesigningrequests.certificates.k8s.io": {
        "unmanaged": ("spec",),
        "prepare_update": preparing.keep_spec,
        **_selecting("spec.signerName"),
    },
    "leases.coordination.k8s.io": {"create_on_update": True},
    "endpoints": {"create_on_update": True},
    **{f"{plural}.rbac.authorization.k8s.io": {"name": is_path_segment} for plural in _RBAC},
}


DEPRECATED: Final[Mapping[tuple[str, str, str], str]] = {
    ("", "v1", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ("", "v1", "componentstatuses"): "v1 ComponentStatus is deprecated in v1.19+",
}
"""What every request for a resource is warned of."""


def strategy_of(group: str, version: str, plural: str) -> Strategy:
    """Return how objects of a built-in resource are written."""
    resource = f"{plural}.{group}" if group else plural
    different = dict(_DIFFERENT.get(resource, {}))
    if resource in RULES:
        different |= RULES[resource].parts()
    default = DEFAULTS.get(f"{resource}/{version}") or DEFAULTS.get(resource)
    if default is not None:
        different["default"] = default
    return Strategy(
        has_generation=resource in _COUNTED,
        tells_deleted=resource in _TELLS_DELETED,
        status_keeps=_STATUS_KEEPS.get(resource, ()),
        by_schema=False,
        **different,
    )
