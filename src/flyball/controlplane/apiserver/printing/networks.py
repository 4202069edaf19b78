"""The columns of Services and of what belongs to the network."""

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
    from_field,
    labels_text,
    of_object,
    selector_text,
    some,
)

__all__ = ["COLUMNS"]

Object = dict[str, Any]

_SHOWN: Final = 3


def _addresses(obj: Object) -> str:
    """Join the addresses that a load balancer has given."""
    found = {one.get("ip") or one.get("hostname") or "" for one in at(obj, "status.loadBalancer.ingress", ())}
    return ",".join(sorted(found - {""}))


def _cluster_ip(service: Object, now: datetime) -> str:
    addresses = at(service, "spec.clusterIPs", [])
    return str(addresses[0]) if addresses else NONE


def _external_ip(service: Object, now: datetime) -> str:
    type_, own = at(service, "spec.type", ""), at(service, "spec.externalIPs", [])
    if type_ in ("ClusterIP", "NodePort"):
        return ",".join(own) or NONE
    if type_ == "LoadBalancer":
        return ",".join(filter(None, (_addresses(service), *own))) or "<pending>"
    if type_ == "ExternalName":
        return str(at(service, "spec.externalName", ""))
    return "<unknown>"


def _service_ports(service: Object, now: datetime) -> str:
    return ",".join(map(_service_port, at(service, "spec.ports", ()))) or NONE


def _service_port(port: Object) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{node}/{port.get('protocol', '')}"


def _endpoints(obj: Object) -> str:
    found: list[str] = []
    for subset in at(obj, "subsets", ()):
        addresses = [one["ip"] for one in subset.get("addresses") or ()]
        ports = [port.get("port", 0) for port in subset.get("ports") or ()]
        if not ports:
            found.extend(addresses)
        for port in ports:
            found.extend(f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}" for ip in addresses)
    if not at(obj, "subsets", ()):
        return NONE
    return some(found, _SHOWN, len(found), "")


def _slice_ports(obj: Object) -> str:
    ports = at(obj, "ports", [])
    told = [str(port["port"]) if port.get("port") is not None else port.get("name") or "*" for port in ports]
    return some(told, _SHOWN, len(told), UNSET)


def _slice_endpoints(obj: Object) -> str:
    told = [address for endpoint in at(obj, "endpoints", ()) for address in endpoint.get("addresses") or ()]
    return some(told, _SHOWN, len(told), UNSET)


def _hosts(ingress: Object) -> str:
    rules = at(ingress, "spec.rules", [])
    hosts: list[str] = []
    for place, rule in enumerate(rules):
        if len(hosts) == _SHOWN and place < len(rules):
            return f"{','.join(hosts)} + {len(rules) - _SHOWN} more..."
        if rule.get("host"):
            hosts.append(rule["host"])
    return ",".join(hosts) or "*"


def _parameters(obj: Object) -> str:
    found = at(obj, "spec.parameters")
    if found is None:
        return NONE
    group = f".{found['apiGroup']}" if found.get("apiGroup") is not None else ""
    return f"{found.get('kind', '')}{group}/{found.get('name', '')}"


def _class_name(obj: Object) -> str:
    default = at(obj, "metadata.annotations", {}).get("ingressclass.kubernetes.io/is-default-class") == "true"
    return f"{obj['metadata']['name']}{' (default)' if default else ''}"


def _parent(obj: Object) -> str:
    parent = at(obj, "spec.parentRef")
    if parent is None:
        return NONE
    resource = ".".join(filter(None, (parent.get("resource"), parent.get("group")))).lower()
    return "/".join(filter(None, (resource, parent.get("namespace"), parent.get("name"))))


COLUMNS: Final[dict[str, tuple[Column, ...]]] = {
    "services": (
        NAME,
        column("Type", from_field("spec.type")),
        column("Cluster-IP", _cluster_ip),
        column("External-IP", _external_ip),
        column("Port(s)", _service_ports),
        AGE,
        column("Selector", lambda obj, now: labels_text(at(obj, "spec.selector")), wide=True),
    ),
    "endpoints": (NAME, column("Endpoints", of_object(_endpoints)), AGE),
    "endpointslices.discovery.k8s.io": (
        NAME,
        column("AddressType", from_field("addressType")),
        column("Ports", of_object(_slice_ports)),
        column("Endpoints", of_object(_slice_endpoints)),
        AGE,
    ),
    "ingresses.networking.k8s.io": (
        NAME,
        column("Class", from_field("spec.ingressClassName", NONE)),
        column("Hosts", of_object(_hosts)),
        column("Address", of_object(_addresses)),
        column("Ports", lambda obj, now: "80, 443" if at(obj, "spec.tls") else "80"),
        AGE,
    ),
    "ingressclasses.networking.k8s.io": (
        column("Name", of_object(_class_name), format_="name"),
        column("Controller", from_field("spec.controller")),
        column("Parameters", of_object(_parameters)),
        AGE,
    ),
    "networkpolicies.networking.k8s.io": (
        NAME,
        column("Pod-Selector", lambda obj, now: selector_text(at(obj, "spec.podSelector")) or NONE),
        AGE,
    ),
    "servicecidrs.networking.k8s.io": (
        NAME,
        column("CIDRs", lambda obj, now: ",".join(at(obj, "spec.cidrs", ()))),
        AGE,
    ),
    "ipaddresses.networking.k8s.io": (NAME, column("ParentRef", of_object(_parent))),
}
