"""The columns of what says who may do what, and what is let in: RBAC, admission, certificates, quotas, flow control."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from flyball.api.quantity import Quantity
from flyball.controlplane.apiserver.printing.cells import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Column,
    at,
    column,
    count,
    duration,
    from_field,
    number,
    of_object,
)

__all__ = ["COLUMNS"]

Object = dict[str, Any]


def _role(obj: Object) -> str:
    return f"{at(obj, 'roleRef.kind', '')}/{at(obj, 'roleRef.name', '')}"


def _subjects(kind: str) -> Any:
    def told(obj: Object, now: datetime) -> str:
        found = [one for one in at(obj, "subjects", ()) if one.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{one.get('namespace', '')}/{one.get('name', '')}" for one in found)
        return ", ".join(one.get("name", "") for one in found)

    return told


_BINDING: Final = (
    NAME,
    column("Role", of_object(_role)),
    AGE,
    column("Users", _subjects("User"), wide=True),
    column("Groups", _subjects("Group"), wide=True),
    column("ServiceAccounts", _subjects("ServiceAccount"), wide=True),
)


def _parameter_kind(obj: Object) -> str:
    kind = at(obj, "spec.paramKind")
    return UNSET if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"


def _parameter(obj: Object) -> str:
    reference = at(obj, "spec.paramRef")
    if reference is None or not reference.get("name"):
        return UNSET
    return f"{reference.get('namespace') or '*'}/{reference['name']}"


_POLICY_BINDING: Final = (
    NAME,
    column("PolicyName", from_field("spec.policyName")),
    column("ParamRef", of_object(_parameter)),
    AGE,
)
_WEBHOOKS: Final = (NAME, number("Webhooks", count("webhooks")), AGE)


def _request_state(obj: Object) -> str:
    types = {one.get("type") for one in at(obj, "status.conditions", ())}
    state = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    failed = ",Failed" if "Failed" in types else ""
    return f"{state}{failed}{',Issued' if at(obj, 'status.certificate') else ''}"


def _requested(obj: Object) -> str:
    seconds = at(obj, "spec.expirationSeconds")
    return NONE if seconds is None else duration(seconds)


def _quota(limits: bool) -> Any:
    def told(obj: Object, now: datetime) -> str:
        hard, used = at(obj, "status.hard", {}), at(obj, "status.used", {})
        shown = [
            f"{name}: {Quantity(str(used.get(name, '0')))}/{Quantity(str(hard[name]))}"
            for name in sorted(hard)
            if name.startswith("limits.") is limits
        ]
        return ", ".join(shown)

    return told


def _dangling(obj: Object) -> str:
    known = {one.get("type"): one.get("status") for one in at(obj, "status.conditions", ())}
    return str(known.get("Dangling", "?"))


_QUEUING: Final = "spec.limited.limitResponse.queuing"


def _service(obj: Object) -> str:
    service = at(obj, "spec.service")
    return "Local" if service is None else f"{service.get('namespace', '')}/{service.get('name', '')}"


def _available(obj: Object) -> str:
    for one in at(obj, "status.conditions", ()):
        if one.get("type") == "Available":
            status = one.get("status", "")
            return status if status == "True" else f"{status} ({one.get('reason', '')})"
    return "Unknown"


COLUMNS: Final[dict[str, tuple[Column, ...]]] = {
    "rolebindings.rbac.authorization.k8s.io": _BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDING,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingadmissionpolicies.admissionregistration.k8s.io": (
        NAME,
        number("Validations", count("spec.validations")),
        column("ParamKind", of_object(_parameter_kind)),
        AGE,
    ),
    "mutatingadmissionpolicies.admissionregistration.k8s.io": (
        NAME,
        number("Mutations", count("spec.mutations")),
        column("ParamKind", of_object(_parameter_kind)),
        AGE,
    ),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _POLICY_BINDING,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _POLICY_BINDING,
    "certificatesigningrequests.certificates.k8s.io": (
        NAME,
        AGE,
        column("SignerName", lambda obj, now: at(obj, "spec.signerName") or NONE),
        column("Requestor", from_field("spec.username")),
        column("RequestedDuration", of_object(_requested)),
        column("Condition", of_object(_request_state)),
    ),
    "resourcequotas": (NAME, column("Request", _quota(limits=False)), column("Limit", _quota(limits=True)), AGE),
    "flowschemas.flowcontrol.apiserver.k8s.io": (
        NAME,
        column("PriorityLevel", from_field("spec.priorityLevelConfiguration.name")),
        column("MatchingPrecedence", from_field("spec.matchingPrecedence", 0)),
        column("DistinguisherMethod", from_field("spec.distinguisherMethod.type", NONE)),
        AGE,
        column("MissingPL", of_object(_dangling)),
    ),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": (
        NAME,
        column("Type", from_field("spec.type")),
        column("NominalConcurrencyShares", from_field("spec.limited.nominalConcurrencyShares", NONE)),
        column("Queues", from_field(f"{_QUEUING}.queues", NONE)),
        column("HandSize", from_field(f"{_QUEUING}.handSize", NONE)),
        column("QueueLengthLimit", from_field(f"{_QUEUING}.queueLengthLimit", NONE)),
        AGE,
    ),
    "apiservices.apiregistration.k8s.io": (
        NAME,
        column("Service", of_object(_service)),
        column("Available", of_object(_available)),
        AGE,
    ),
}
