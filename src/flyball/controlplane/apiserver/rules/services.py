"""The rules of Services."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any, Final

from flyball.api.fielderrors import FieldError
from flyball.controlplane.apiserver.metadata import validate_labels
from flyball.controlplane.apiserver.rules.common import (
    Errors,
    Object,
    immutable,
    items,
    label_name,
    one_of,
    port_number,
    port_or_name,
    subdomain_name,
)

__all__ = ["service", "service_update"]

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_ADDRESS_WORDS: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def service(obj: Object) -> Errors:
    """Judge a Service."""
    spec: Mapping[str, Any] = obj["spec"]
    ports, kind = items(spec, "ports"), spec.get("type")
    headless = spec.get("clusterIP") == "None"
    if not ports and not headless and kind != "ExternalName":
        yield FieldError.required("spec.ports")
    if kind == "LoadBalancer" and headless:
        told = "may not be set to 'None' for LoadBalancer services"
        yield FieldError.invalid("spec.clusterIPs[0]", "None", told)
    elif kind == "NodePort" and headless:
        yield FieldError.invalid("spec.clusterIPs[0]", "None", "may not be set to 'None' for NodePort services")
    elif kind == "ExternalName":
        name = spec.get("externalName") or ""
        if name:
            yield from subdomain_name(name.removesuffix("."), "spec.externalName")
        else:
            yield FieldError.required("spec.externalName")
    yield from _ports(ports)
    yield from validate_labels(spec.get("selector"), "spec.selector")
    yield from one_of(spec.get("sessionAffinity"), "spec.sessionAffinity", ("ClientIP", "None"))
    yield from _affinity(spec)
    yield from _addresses(spec)
    yield from one_of(kind, "spec.type", _TYPES)
    if spec.get("externalTrafficPolicy") is not None:
        yield from one_of(spec["externalTrafficPolicy"], "spec.externalTrafficPolicy", ("Cluster", "Local"))
    if spec.get("internalTrafficPolicy") is not None:
        yield from one_of(spec["internalTrafficPolicy"], "spec.internalTrafficPolicy", ("Cluster", "Local"))
    if kind == "ClusterIP":
        for place, port in enumerate(ports):
            if port.get("nodePort"):
                told = "may not be used when `type` is 'ClusterIP'"
                yield FieldError.forbidden(f"spec.ports[{place}].nodePort", told)


def _ports(ports: list[Object]) -> Errors:
    names: set[str] = set()
    taken: set[tuple[Any, Any]] = set()
    for place, port in enumerate(ports):
        path, name = f"spec.ports[{place}]", port.get("name") or ""
        if len(ports) > 1 and not name:
            yield FieldError.required(f"{path}.name")
        elif name:
            yield from label_name(name, f"{path}.name")
            if name in names:
                yield FieldError.duplicate(f"{path}.name", name)
            names.add(name)
        yield from port_number(port.get("port", 0), f"{path}.port")
        yield from one_of(port.get("protocol"), f"{path}.protocol", _PROTOCOLS)
        yield from port_or_name(port.get("targetPort"), f"{path}.targetPort")
        key = (port.get("protocol"), port.get("port"))
        if key in taken:
            shown = {"protocol": port.get("protocol"), "port": port.get("port")}
            yield FieldError.duplicate(path, shown)
        taken.add(key)


def _affinity(spec: Mapping[str, Any]) -> Errors:
    if spec.get("sessionAffinity") != "ClientIP":
        return
    seconds = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds")
    if seconds is not None and not 0 < seconds <= 86400:
        path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
        yield FieldError.invalid(path, seconds, "must be greater than 0 and less than 86400")


def _addresses(spec: Mapping[str, Any]) -> Errors:
    given = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    for place, address in enumerate(given):
        if address not in ("", "None") and not _is_address(address):
            yield FieldError.invalid(f"spec.clusterIPs[{place}]", address, _ADDRESS_WORDS)
    for place, address in enumerate(spec.get("externalIPs") or ()):
        if not _is_address(address):
            yield FieldError.invalid(f"spec.externalIPs[{place}]", address, _ADDRESS_WORDS)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def service_update(obj: Object, old: Object) -> Errors:
    """Judge a change of a Service: its address stays while it has one."""
    after, before = obj["spec"], old["spec"]
    if "ExternalName" not in (after.get("type"), before.get("type")) and before.get("clusterIP"):
        first = (after.get("clusterIPs") or [after.get("clusterIP")])[0]
        if first != before["clusterIP"]:
            told = "may not change once set"
            yield FieldError.invalid("spec.clusterIPs[0]", after.get("clusterIPs"), told)
    yield from service(obj)
    if before.get("type") == after.get("type") == "LoadBalancer":
        yield from immutable(after.get("loadBalancerClass"), before.get("loadBalancerClass"), "spec.loadBalancerClass")
