"""The Pods behind a Service, as Endpoints and EndpointSlices both tell of them."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from flyball.api import find_condition
from flyball.cache.events import CacheEvent
from flyball.cache.objects import CachedObject
from flyball.controller import Context, Request
from flyball.controller.predicates import Predicate
from flyball.k8s.core.v1 import ObjectReference, Pod, Service, ServicePort

__all__ = [
    "HEADLESS",
    "TRIGGER_TIME",
    "TriggerTimes",
    "addresses_of",
    "has_backends",
    "hash_order",
    "hostname_of",
    "is_backend",
    "is_headless",
    "matters",
    "pods_of",
    "port_of",
    "reference_to",
    "services_of",
    "written",
]

HEADLESS: Final = "service.kubernetes.io/headless"
"""Marks what belongs to a Service without an address."""

TRIGGER_TIME: Final = "endpoints.kubernetes.io/last-change-trigger-time"
"""Says when that happened which was the reason for the last change."""

_FNV_START: Final = 0x6C62272E07BB014262B821756295C58D
_FNV_PRIME: Final = 0x0000000001000000000000000000013B
_FNV_SIZE: Final = (1 << 128) - 1


# Which Pods


def has_backends(service: Service) -> bool:
    """Tell whether somebody has to look for the Pods of a Service; who selects none names its endpoints himself."""
    return service.spec.type != "ExternalName" and bool(service.spec.selector)


async def pods_of(service: Service, ctx: Context) -> list[Pod]:
    """Return the Pods that a Service selects, by name."""
    found = await ctx.list(Pod, labels=service.spec.selector or {})
    return sorted(found, key=lambda pod: pod.metadata.name)


def services_of(pod: Pod, services: Any) -> list[Request]:
    """Say which Services a Pod concerns; `services` is the informer of those that are there."""
    labels, namespace = pod.metadata.labels, pod.metadata.namespace
    return [
        Request(namespace, one.metadata.name)
        for one in services.list(namespace)
        if has_backends(one) and (one.spec.selector or {}).items() <= labels.items()
    ]


def is_backend(pod: Pod, *, terminating: bool) -> bool:
    """Tell whether a Pod has an address at which it may be reached; `terminating` counts those that are going."""
    if pod.status.phase in ("Succeeded", "Failed") or not (pod.status.pod_ip or pod.status.pod_ips):
        return False
    return terminating or pod.metadata.deletion_timestamp is None


class _Names(msgspec.Struct, rename="camel"):
    node_name: str | None = None
    hostname: str | None = None
    subdomain: str | None = None


class _Seen(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, rename="camel"):
    phase: str | None = None
    pod_ip: str | None = msgspec.field(name="podIP", default=None)
    pod_ips: msgspec.Raw = msgspec.field(name="podIPs", default=msgspec.Raw())
    conditions: list[_Seen] | None = None


class _Look(msgspec.Struct):
    """As much of a Pod as is looked at for each of its changes."""

    spec: _Names = msgspec.field(default_factory=_Names)
    status: _Status = msgspec.field(default_factory=_Status)


_look = msgspec.json.Decoder(_Look).decode


def _matters(event: CacheEvent) -> bool:
    if event.old is None or event.new is None:
        return bool(_look(event.object.raw).status.pod_ip)
    return event.old is not event.new and _told_by(event.old) != _told_by(event.new)


def _told_by(view: CachedObject) -> tuple[Any, ...]:
    """Return everything of a Pod that endpoints depend on."""
    seen = _look(view.raw)
    ready = any(one.type == "Ready" and one.status == "True" for one in seen.status.conditions or ())
    record, names, status = view.record, seen.spec, seen.status
    return (
        (record.labels, record.deletion_timestamp, ready, status.phase in ("Succeeded", "Failed")),
        (status.pod_ip, bytes(status.pod_ips), names.node_name, names.hostname, names.subdomain),
    )


matters: Final = Predicate(_matters, "endpoints change")
"""What happened to a Pod may change endpoints. Nearly everything that happens to Pods does not."""


# What is told of a Pod


def addresses_of(pod: Pod, family: str) -> list[str]:
    """Return the addresses of a Pod in `IPv4` or `IPv6`."""
    wanted = 6 if family == "IPv6" else 4
    given = [one.ip for one in pod.status.pod_ips or () if one.ip]
    return [str(address) for address in map(ipaddress.ip_address, given) if address.version == wanted]


def port_of(pod: Pod, port: ServicePort) -> int | None:
    """Return the port of a Pod that a port of a Service means, by number or by name; None when it has none."""
    target = port.target_port
    if not isinstance(target, str):
        return int(target) if target is not None else port.port
    sidecars = [one for one in pod.spec.init_containers or () if one.restart_policy == "Always"]
    for container in (*pod.spec.containers, *sidecars):
        for one in container.ports or ():
            if one.name == target and (one.protocol or "TCP") == (port.protocol or "TCP"):
                return one.container_port
    return None


def hostname_of(pod: Pod, service: Service) -> str | None:
    """Return the name that a Pod has within a Service, if it is one of its named members."""
    return (pod.spec.hostname or None) if pod.spec.subdomain == service.metadata.name else None


def reference_to(pod: Pod) -> ObjectReference:
    """Return whom an address belongs to."""
    metadata = pod.metadata
    return ObjectReference(kind="Pod", namespace=metadata.namespace, name=metadata.name, uid=metadata.uid)


def is_headless(service: Service) -> bool:
    """Tell whether a Service has no address of its own."""
    return service.spec.cluster_ip in (None, "", "None")


class TriggerTimes:
    """Remembers when Services and their Pods last changed, so that one can see how long endpoints take to follow."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self._seen: dict[Request, tuple[datetime | None, dict[str, datetime]]] = {}

    def note(self, request: Request, service: Service, pods: Iterable[Pod]) -> datetime | None:
        """Take note of the present state; return the first of those moments that are new, if any is."""
        known = self._seen.get(request)
        created, ready = service.metadata.creation_timestamp, {}
        for pod in pods:
            found = find_condition(pod.status.conditions, "Ready")
            if found is not None and found.last_transition_time is not None:
                ready[pod.metadata.name] = found.last_transition_time
        self._seen[request] = created, ready
        if known is None:
            return created
        before = known[1]
        news = [moment for name, moment in ready.items() if name not in before or moment > before[name]]
        if created is not None and (known[0] is None or created > known[0]):
            news.append(created)
        return min(news, default=None)

    def forget(self, request: Request) -> None:
        """The Service is gone."""
        self._seen.pop(request, None)


def written(moment: datetime) -> str:
    """Write a moment as annotations have it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


# Order


def hash_order(ports: Sequence[Any], fields: Callable[[Any], str]) -> list[Any]:
    """Sort ports as kube-controller-manager does: by a hash of how Go would print them."""
    return sorted(ports, key=lambda one: _hash(f"(v1.EndpointPort){{{fields(one)}}}"))


def _hash(text: str) -> int:
    """Return FNV-1a in 128 bits."""
    number = _FNV_START
    for byte in text.encode():
        number = (number ^ byte) * _FNV_PRIME & _FNV_SIZE
    return number
