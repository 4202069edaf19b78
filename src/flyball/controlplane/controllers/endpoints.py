"""Endpoints: one object for each Service, with the addresses of its Pods.

Nothing owns Endpoints: they have the name of their Service and go when it goes. More than 1000 addresses are not told,
and an annotation says so. EndpointSlices are the better way; this is what older clients read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from flyball.cache.events import CacheEvent
from flyball.controller import Context, Controller, Request, Watches, controller
from flyball.controller.predicates import Predicate, resource_version_changed
from flyball.controlplane.controllers.backends import (
    HEADLESS,
    TRIGGER_TIME,
    TriggerTimes,
    addresses_of,
    has_backends,
    hash_order,
    hostname_of,
    is_backend,
    is_headless,
    matters,
    pods_of,
    port_of,
    reference_to,
    services_of,
    written,
)
from flyball.controlplane.controllers.pods import is_ready
from flyball.errors import Forbidden
from flyball.k8s.core.v1 import EndpointAddress, EndpointPort, Endpoints, EndpointSubset, Pod, Service
from flyball.k8s.meta.v1 import ObjectMeta

__all__ = ["LEADER", "MOST_ADDRESSES", "endpoints", "repacked", "truncated"]

MOST_ADDRESSES: Final = 1000
"""So many addresses are told of one Service."""

_MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
_NAME: Final = "endpoint-controller"
_OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
"""Marks Endpoints that tell who leads, and of no Service."""


_Key = tuple[str, int, str, str | None]
"""Name, number, protocol and application protocol of a port."""


def _gone_or_left(event: CacheEvent) -> bool:
    return event.type == "deleted" or event.initial


def _same_name(endpoints: Endpoints) -> list[str]:
    """Endpoints that were deleted are made again; those that were there before may have lost their Service."""
    return [] if LEADER in endpoints.metadata.annotations else [endpoints.metadata.name]


def endpoints() -> Controller[Service]:
    """Make the controller of one cluster."""
    times = TriggerTimes()

    @controller(
        Service,
        watches=[
            Watches(Pod, services_of, predicates=[matters]),
            Watches(Endpoints, _same_name, predicates=[Predicate(_gone_or_left, "gone or left over")]),
        ],
        predicates=[resource_version_changed],
        name="endpoint-controller",
        raw=True,
        error_condition=None,
        max_concurrent=5,
    )
    async def follow(request: Request, ctx: Context) -> None:
        """Let the Endpoints of a Service be as its Pods are."""
        service, present = await ctx.get(Service, request.name), await ctx.get(Endpoints, request.name)
        if service is None:
            times.forget(request)
            if present is not None:
                await ctx.delete(present)
            return
        if not has_backends(service):
            return
        pods = await pods_of(service, ctx)
        moment = times.note(request, service, pods)
        subsets = repacked(_subsets(service, pods))
        if present is not None and _is_told(present, service, subsets):
            return
        annotations = dict(present.metadata.annotations) if present is not None else {}
        annotations.pop(TRIGGER_TIME, None)
        if moment is not None:
            annotations[TRIGGER_TIME] = written(moment)
        annotations.pop(_OVER_CAPACITY, None)
        if truncated(subsets):
            annotations[_OVER_CAPACITY] = "truncated"
        labels = {name: text for name, text in service.metadata.labels.items() if name != HEADLESS}
        labels |= {HEADLESS: ""} if is_headless(service) else {}
        labels[_MANAGED_BY] = _NAME
        if present is None:
            await _create(request, labels, annotations, subsets, ctx)
            return
        present.metadata.labels, present.metadata.annotations = labels, annotations
        present.subsets = subsets or None
        await ctx.patch(present)

    return follow


async def _create(
    request: Request, labels: dict[str, str], annotations: dict[str, str], subsets: list[EndpointSubset], ctx: Context
) -> None:
    metadata = ObjectMeta(name=request.name, namespace=request.namespace, labels=labels, annotations=annotations)
    try:
        await ctx.create(Endpoints(metadata=metadata, subsets=subsets or None))
    except Forbidden as error:
        if any(cause.get("reason") == "NamespaceTerminating" for cause in error.causes):
            return
        raise


def _subsets(service: Service, pods: Iterable[Pod]) -> Iterable[EndpointSubset]:
    """Tell of each Pod and port for itself."""
    for pod in pods:
        if not is_backend(pod, terminating=bool(service.spec.publish_not_ready_addresses)):
            continue
        addresses = addresses_of(pod, (service.spec.ip_families or ["IPv4"])[0])
        if not addresses:
            continue
        address = EndpointAddress(
            ip=addresses[0],
            node_name=pod.spec.node_name or "",
            hostname=hostname_of(pod, service),
            target_ref=reference_to(pod),
        )
        ready = service.spec.publish_not_ready_addresses or is_ready(pod)
        if not service.spec.ports and service.spec.cluster_ip == "None":
            yield _subset(address, None, ready=bool(ready))
        for port in service.spec.ports or ():
            number = port_of(pod, port)
            if number is not None:
                told = EndpointPort(
                    name=port.name or None, port=number, protocol=port.protocol, app_protocol=port.app_protocol
                )
                yield _subset(address, told, ready=bool(ready))


def _subset(address: EndpointAddress, port: EndpointPort | None, *, ready: bool) -> EndpointSubset:
    ports = [port] if port is not None else None
    if ready:
        return EndpointSubset(addresses=[address], ports=ports)
    return EndpointSubset(not_ready_addresses=[address], ports=ports)


def repacked(subsets: Iterable[EndpointSubset]) -> list[EndpointSubset]:
    """Put together the ports that the same addresses have; an address that is not ready for one is not ready at all."""
    by_port: dict[_Key | None, dict[tuple[str, str], bool]] = {}
    known: dict[tuple[str, str], EndpointAddress] = {}
    ports: dict[_Key, EndpointPort] = {}
    for subset in subsets:
        keys: list[_Key | None] = []
        for port in subset.ports or ():
            key = (port.name or "", port.port, port.protocol or "", port.app_protocol)
            ports.setdefault(key, port)
            keys.append(key)
        for ready, addresses in ((True, subset.addresses), (False, subset.not_ready_addresses)):
            for address in addresses or ():
                place = (address.ip, (address.target_ref.uid or "") if address.target_ref is not None else "")
                known.setdefault(place, address)
                for one in keys or [None]:
                    found = by_port.setdefault(one, {})
                    found[place] = ready and found.get(place, True)
    together: dict[tuple[tuple[tuple[str, str], bool], ...], list[EndpointPort]] = {}
    for key_, places in by_port.items():
        with_this = together.setdefault(tuple(sorted(places.items())), [])
        if key_ is not None:
            with_this.append(ports[key_])
    packed = [
        EndpointSubset(
            addresses=[known[place] for place, ready in places if ready] or None,
            not_ready_addresses=[known[place] for place, ready in places if not ready] or None,
            ports=hash_order(found, _printed) or None,
        )
        for places, found in together.items()
    ]
    return sorted(packed, key=_by_ports)


def _by_ports(subset: EndpointSubset) -> list[tuple[str, int, str]]:
    return [(port.name or "", port.port, port.protocol or "") for port in subset.ports or ()]


def _printed(port: EndpointPort) -> str:
    protocol = f"(*string){port.app_protocol}" if port.app_protocol is not None else "(*string)<nil>"
    return (
        f"Name:(string){port.name or ''} Port:(int32){port.port} Protocol:(v1.Protocol){port.protocol or ''} "
        f"AppProtocol:{protocol}"
    )


def truncated(subsets: list[EndpointSubset]) -> bool:
    """Leave out addresses that are too many, those that are not ready first; tell whether any were."""
    ready = sum(len(one.addresses or ()) for one in subsets)
    waiting = sum(len(one.not_ready_addresses or ()) for one in subsets)
    if ready + waiting <= MOST_ADDRESSES:
        return False
    room = left = MOST_ADDRESSES if ready > MOST_ADDRESSES else MOST_ADDRESSES - ready
    for one in subsets:
        among, total = (one.addresses, ready) if ready > MOST_ADDRESSES else (one.not_ready_addresses, waiting)
        share = min(math.ceil(len(among or ()) / total * room), left)
        kept = (among or [])[:share]
        left -= len(kept)
        if ready > MOST_ADDRESSES:
            one.addresses, one.not_ready_addresses = kept or None, None
        else:
            one.not_ready_addresses = kept or None
    return True


def _is_told(present: Endpoints, service: Service, subsets: list[EndpointSubset]) -> bool:
    """Tell whether Endpoints say all this already. Truncated ones are written again, as upstream does."""
    own = {name: text for name, text in present.metadata.labels.items() if name not in (HEADLESS, _MANAGED_BY)}
    number = sum(len(one.addresses or ()) + len(one.not_ready_addresses or ()) for one in present.subsets or ())
    return (
        repacked(present.subsets or ()) == subsets
        and present.metadata.labels.get(_MANAGED_BY) == _NAME
        and own == service.metadata.labels
        and number <= MOST_ADDRESSES
        and _OVER_CAPACITY not in present.metadata.annotations
    )
