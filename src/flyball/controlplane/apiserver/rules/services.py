"""The rules of Services."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any, Final

from flyball.api.fielderrors import FieldError, Shown
from flyball.controlplane.apiserver.metadata import validate_labels
from flyball.controlplane.apiserver.names import is_qualified_name
from flyball.controlplane.apiserver.rules.common import (
    Errors,
    Object,
    items,
    label_name,
    one_of,
    port_number,
    port_or_name,
    subdomain_name,
)

__all__ = ["cluster_addresses", "service", "service_update", "service_warnings"]

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_EXTERNAL: Final = ("LoadBalancer", "NodePort")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_FAMILIES: Final = ("IPv4", "IPv6")
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_ADDRESS_WORDS: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NETWORK_WORDS: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_FOR_BALANCERS: Final = "may only be used when `type` is 'LoadBalancer'"


def service(obj: Object) -> Errors:
    """Judge a Service."""
    spec: Mapping[str, Any] = obj["spec"]
    ports, kind = items(spec, "ports"), spec.get("type")
    headless = spec.get("clusterIPs") == ["None"]
    if not ports and not headless and kind != "ExternalName":
        yield FieldError.required("spec.ports")
    if headless and kind in _EXTERNAL:
        told = f"may not be set to 'None' for {kind} services"
        yield FieldError.invalid("spec.clusterIPs[0]", "None", told)
    elif kind == "ExternalName":
        yield from _external_name(spec)
    yield from _ports(ports)
    yield from validate_labels(spec.get("selector"), "spec.selector")
    yield from one_of(spec.get("sessionAffinity"), "spec.sessionAffinity", ("ClientIP", "None"))
    yield from _affinity(spec)
    if kind != "ExternalName":
        yield from cluster_addresses(spec)
    for place, address in enumerate(spec.get("externalIPs") or ()):
        yield from _external_address(address, f"spec.externalIPs[{place}]")
    yield from one_of(kind, "spec.type", _TYPES)
    if kind == "ClusterIP":
        for place, port in enumerate(ports):
            if port.get("nodePort"):
                told = "may not be used when `type` is 'ClusterIP'"
                yield FieldError.forbidden(f"spec.ports[{place}].nodePort", told)
    yield from _twice(ports)
    yield from _balancer(spec)
    yield from _traffic(spec)


def _external_name(spec: Mapping[str, Any]) -> Errors:
    for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(field):
            yield FieldError.forbidden(f"spec.{field}", "may not be set for ExternalName services")
    name = (spec.get("externalName") or "").removesuffix(".")
    if name:
        yield from subdomain_name(name, "spec.externalName")
    else:
        yield FieldError.required("spec.externalName")


def _ports(ports: list[Object]) -> Errors:
    names: set[str] = set()
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
        if port.get("appProtocol") is not None:
            yield from _qualified(port["appProtocol"], f"{path}.appProtocol")


def _qualified(value: Any, path: str) -> Errors:
    yield from (FieldError.invalid(path, value, word) for word in is_qualified_name(value))


def _twice(ports: list[Object]) -> Errors:
    """Refuse a number that two ports of the same protocol have."""
    seen: set[tuple[Any, Any]] = set()
    for place, port in enumerate(ports):
        key = (port.get("protocol"), port.get("nodePort"))
        if port.get("nodePort") and key in seen:
            yield FieldError.duplicate(f"spec.ports[{place}].nodePort", port["nodePort"])
        seen.add(key)
    seen.clear()
    for place, port in enumerate(ports):
        key = (port.get("protocol"), port.get("port"))
        if key in seen:
            bare = f'"Name":"","Protocol":"{key[0]}","AppProtocol":null,"Port":{key[1]},"TargetPort":0,"NodePort":0'
            yield FieldError.duplicate(f"spec.ports[{place}]", Shown(f"{{{bare}}}"))
        seen.add(key)


def _affinity(spec: Mapping[str, Any]) -> Errors:
    if spec.get("sessionAffinity") != "ClientIP":
        return
    seconds = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds")
    if seconds is not None and not 0 < seconds <= 86400:
        path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
        yield FieldError.invalid(path, seconds, "must be greater than 0 and less than 86400")


def cluster_addresses(spec: Mapping[str, Any]) -> Errors:
    """Judge the addresses that a Service asks for or has, and their families."""
    own, path = spec.get("clusterIP") or "", "spec.clusterIPs"
    given: list[str] = [*(spec.get("clusterIPs") or ())]
    if own and not given:
        yield FieldError.required(path)
    elif own and given[0] != own:
        yield FieldError.invalid(path, given, "first value must match `clusterIP`")
    elif given and not own:
        yield FieldError.invalid(path, given, "must be empty when `clusterIP` is not specified")
    families = spec.get("ipFamilies") or []
    for place, family in enumerate(families):
        yield from one_of(family, f"spec.ipFamilies[{place}]", _FAMILIES)
        if family in families[:place]:
            yield FieldError.duplicate(f"spec.ipFamilies[{place}]", family)
    if spec.get("ipFamilyPolicy") is not None:
        yield from one_of(spec["ipFamilyPolicy"], "spec.ipFamilyPolicy", _POLICIES)
    wrong = list(_addresses(given))
    yield from wrong
    if len(given) > 2:
        yield FieldError.invalid(path, given, "may only hold up to 2 values")
    if wrong:
        return
    versions = ["IPv6" if ":" in address else "IPv4" for address in given if address != "None"]
    if len(versions) > 1 and len(set(versions)) != len(versions):
        yield FieldError.invalid(path, given, "may specify no more than one IP for each IP family")
    for place, (version, family) in enumerate(zip(versions, families, strict=False)):
        if version != family and family in _FAMILIES:
            told = f"expected an {family} value as indicated by `ipFamilies[{place}]`"
            yield FieldError.invalid(f"{path}[{place}]", given[place], told)


def _addresses(given: list[str]) -> Errors:
    for place, address in enumerate(given):
        if place == 0 and address == "None":
            if len(given) > 1:
                yield FieldError.invalid("spec.clusterIPs", given, "'None' must be the first and only value")
        elif _address(address) is None:
            yield FieldError.invalid(f"spec.clusterIPs[{place}]", address, _ADDRESS_WORDS)


def _external_address(text: str, path: str) -> Errors:
    """Refuse what no Pod and no machine can be reached at."""
    address = _address(text)
    if address is None:
        yield FieldError.invalid(path, text, _ADDRESS_WORDS)
    elif address.is_unspecified:
        yield FieldError.invalid(path, text, f"may not be unspecified ({text})")
    elif address.is_loopback:
        yield FieldError.invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    elif address.is_link_local:
        yield FieldError.invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    elif address.is_multicast and int(address.packed[0]) in (224, 255) and address.packed[1:3] == b"\0\0":
        yield FieldError.invalid(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _balancer(spec: Mapping[str, Any]) -> Errors:
    balancer, ranges = spec.get("type") == "LoadBalancer", spec.get("loadBalancerSourceRanges") or []
    path = "spec.LoadBalancerSourceRanges"
    if ranges and not balancer:
        yield FieldError.forbidden(path, _FOR_BALANCERS)
    for place, text in enumerate(ranges):
        if not _is_network(text.strip()):
            yield FieldError.invalid(f"{path}[{place}]", text.strip(), _NETWORK_WORDS)
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balancer:
        yield FieldError.forbidden("spec.allocateLoadBalancerNodePorts", _FOR_BALANCERS)
    if spec.get("loadBalancerClass") is not None:
        if balancer:
            yield from _qualified(spec["loadBalancerClass"], "spec.loadBalancerClass")
        else:
            yield FieldError.forbidden("spec.loadBalancerClass", _FOR_BALANCERS)


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def _is_outside(spec: Mapping[str, Any]) -> bool:
    return spec.get("type") in _EXTERNAL or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def _traffic(spec: Mapping[str, Any]) -> Errors:
    policy, path = spec.get("externalTrafficPolicy"), "spec.externalTrafficPolicy"
    if not _is_outside(spec):
        if policy:
            yield FieldError.invalid(path, policy, "may only be set for externally-accessible services")
    else:
        yield from one_of(policy, path, ("Cluster", "Local"))
    number, path = spec.get("healthCheckNodePort"), "spec.healthCheckNodePort"
    if spec.get("type") == "LoadBalancer" and policy == "Local":
        if number:
            yield from port_number(number, path)
        else:
            yield FieldError.required(path)
    elif number:
        told = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield FieldError.invalid(path, number, told)
    if spec.get("internalTrafficPolicy") is not None:
        yield from one_of(spec["internalTrafficPolicy"], "spec.internalTrafficPolicy", ("Cluster", "Local"))
    if spec.get("trafficDistribution") is not None:
        yield from one_of(spec["trafficDistribution"], "spec.trafficDistribution", _DISTRIBUTIONS)


def service_update(obj: Object, old: Object) -> Errors:
    """Judge a change of a Service: its address stays while it has one."""
    after, before = obj["spec"], old["spec"]
    if "ExternalName" not in (after.get("type"), before.get("type")) and before.get("clusterIP"):
        first = (after.get("clusterIPs") or [after.get("clusterIP")])[0]
        if first != before["clusterIP"]:
            yield FieldError.invalid("spec.clusterIPs[0]", after.get("clusterIPs"), "may not change once set")
    if before.get("type") == after.get("type") == "LoadBalancer":
        path, wanted = "spec.loadBalancerClass", after.get("loadBalancerClass")
        if wanted != before.get("loadBalancerClass"):
            yield FieldError.invalid(path, wanted, "may not change once set")
        local = after.get("externalTrafficPolicy") == before.get("externalTrafficPolicy") == "Local"
        if local and after.get("healthCheckNodePort") != before.get("healthCheckNodePort"):
            yield FieldError.forbidden("spec.healthCheckNodePort", "field is immutable")
    yield from service(obj)
    if obj.get("status") != old.get("status"):
        yield from _status(obj)


def _status(obj: Object) -> Errors:
    path, entries = "status.loadBalancer.ingress", items((obj.get("status") or {}).get("loadBalancer"), "ingress")
    if entries and obj["spec"].get("type") != "LoadBalancer":
        yield FieldError.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    for place, entry in enumerate(entries):
        where = f"{path}[{place}]"
        address, mode, host = entry.get("ip"), entry.get("ipMode"), entry.get("hostname")
        if address and _address(address) is None:
            yield FieldError.invalid(f"{where}.ip", address, _ADDRESS_WORDS)
        if mode is None and address:
            yield FieldError.required(f"{where}.ipMode", "must be specified when `ip` is set")
        elif mode is not None and not address:
            yield FieldError.forbidden(f"{where}.ipMode", "may not be specified when `ip` is not set")
        elif mode is not None:
            yield from one_of(mode, f"{where}.ipMode", ("Proxy", "VIP"))
        if host:
            yield from subdomain_name(host, f"{where}.hostname")
            if _address(host) is not None:
                yield FieldError.invalid(f"{where}.hostname", host, "must be a DNS name, not an IP address")


def service_warnings(obj: Object) -> list[str]:
    """Return what the author of a Service is told beside the answer."""
    spec, told = obj["spec"], list[str]()
    headless = spec.get("type") == "ClusterIP" and spec.get("clusterIP") == "None"
    external, name = bool(spec.get("externalIPs")), spec.get("type") == "ExternalName"
    if headless:
        if spec.get("loadBalancerIP"):
            told.append("spec.loadBalancerIP is ignored for headless services")
        if external:
            told.append("spec.externalIPs is ignored for headless services")
        if spec.get("sessionAffinity") != "None":
            told.append("spec.SessionAffinity is ignored for headless services")
    if external and not headless and not name:
        told.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if name and external:
        told.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if spec.get("externalName") and not name:
        told.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        told.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return told
