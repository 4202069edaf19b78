"""What the embedded cluster does not do, and says so. `docs/compatibility.md` has these lines.

`REFUSED` cannot be created: to accept it and do nothing would be a lie that matters. `STORED` is kept and answered as a
real API server does, but nobody acts on it. `HEADERS` and `OTHERS` are refused wherever they come.
"""

from __future__ import annotations

from typing import Final

__all__ = ["HEADERS", "OTHERS", "REFUSED", "STORED"]

_ADMISSION: Final = (
    "admission is a later part of it, and objects would be written unseen; write without it, or use a real cluster"
)
_ACCESS: Final = "every authenticated user may do everything, so there is nothing to ask; access rules come later"

REFUSED: Final = {
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _ADMISSION,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _ADMISSION,
    "mutatingadmissionpolicies.admissionregistration.k8s.io": _ADMISSION,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _ADMISSION,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _ADMISSION,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _ADMISSION,
    "localsubjectaccessreviews.authorization.k8s.io": _ACCESS,
    "selfsubjectaccessreviews.authorization.k8s.io": _ACCESS,
    "selfsubjectrulesreviews.authorization.k8s.io": _ACCESS,
    "subjectaccessreviews.authorization.k8s.io": _ACCESS,
}
"""By resource: why it cannot be created."""

STORED: Final = {
    "certificatesigningrequests.certificates.k8s.io": "nobody approves or signs",
    "clusterrolebindings.rbac.authorization.k8s.io": "access is not restricted",
    "clusterroles.rbac.authorization.k8s.io": "access is not restricted",
    "daemonsets.apps": "no Pods are made",
    "flowschemas.flowcontrol.apiserver.k8s.io": "requests are not queued",
    "horizontalpodautoscalers.autoscaling": "nothing is scaled",
    "ingresses.networking.k8s.io": "there is no network",
    "limitranges": "no limits are set",
    "networkpolicies.networking.k8s.io": "there is no network",
    "persistentvolumeclaims": "nobody binds them to volumes, so Pods that use one stay Pending",
    "persistentvolumes": "nobody binds them to claims",
    "poddisruptionbudgets.policy": "evictions are not held back",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": "requests are not queued",
    "resourcequotas": "nothing is counted",
    "rolebindings.rbac.authorization.k8s.io": "access is not restricted",
    "roles.rbac.authorization.k8s.io": "access is not restricted",
    "storageclasses.storage.k8s.io": "nothing is provisioned",
}
"""By resource: what does not happen although the objects are there."""

HEADERS: Final = {
    "Impersonate-User, -Group, -Uid, -Extra-*": "impersonation: 400, never ignored",
}

OTHERS: Final = {
    "protobuf and CBOR answers": "JSON or YAML is sent instead where the client accepts it, else 406",
    "pods/proxy, services/proxy, nodes/proxy": "501",
    "pods/log?stream": "422, as a real server without its feature PodLogsQuerySplitStreams",
    "required affinity between Pods, topology spread that must hold": "such a Pod gets no node, and an Event says so",
    "preemption": "a more important Pod waits until there is room, and an Event says so",
    "spec.conversion.strategy Webhook": "several versions are served with the strategy None only",
}
