"""EndpointSlices for Endpoints that somebody writes himself, because his Service selects no Pods.

Each part of the Endpoints with ports of its own has one slice, for each family. Who reads slices sees them as well.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from flyball.controller import Context, Owns, Watches, controller
from flyball.controller.predicates import resource_version_changed
from flyball.controlplane.controllers.backends import TRIGGER_TIME
from flyball.controlplane.controllers.endpoints import LEADER, repacked
from flyball.controlplane.controllers.endpointslices import MANAGED_BY, SERVICE, in_order
from flyball.k8s.core.v1 import EndpointAddress, Endpoints, EndpointSubset, Service
from flyball.k8s.discovery.v1 import Endpoint, EndpointConditions, EndpointPort, EndpointSlice
from flyball.k8s.meta.v1 import ObjectMeta

__all__ = ["MOST_ADDRESSES", "mirrored"]

MOST_ADDRESSES: Final = 1000
"""So many addresses of one part of Endpoints are told."""

_NAME: Final = "endpointslicemirroring-controller.k8s.io"
_SKIP: Final = "endpointslice.kubernetes.io/skip-mirror"
_NOT_COPIED: Final = (TRIGGER_TIME, "kubectl.kubernetes.io/last-applied-configuration")


def _same_name(service: Service) -> list[str]:
    return [service.metadata.name]


@controller(
    Endpoints,
    owns=[Owns(EndpointSlice)],
    watches=[Watches(Service, _same_name)],
    predicates=[resource_version_changed],
    name="endpointslice-mirroring-controller",
    error_condition=None,
    max_concurrent=5,
)
async def mirrored(endpoints: Endpoints, ctx: Context) -> None:
    """Let the slices of Endpoints be as these are; those of Endpoints that are gone go with them."""
    name = endpoints.metadata.name
    present = await ctx.list(EndpointSlice, labels={SERVICE: name, MANAGED_BY: _NAME})
    service = await ctx.get(Service, name)
    told = endpoints.metadata.labels.get(_SKIP) != "true" and LEADER not in endpoints.metadata.annotations
    plan = _Plan(endpoints, present)
    if told and service is not None and not service.spec.selector:
        plan.mirror(_parts(endpoints, ctx))
    else:
        plan.stale = list(present)
    for one in plan.create:
        await ctx.create(one, owner=True)
    for one in plan.update:
        await ctx.patch(one)
    for one in plan.stale:
        await ctx.delete(one)


_Part = tuple[str, list[EndpointPort], list[Endpoint]]
"""Family, ports and endpoints of what has a slice of its own."""


def _parts(endpoints: Endpoints, ctx: Context) -> Iterator[_Part]:
    """Tell what is to be mirrored, and by Events what is not."""
    wrong = skipped = 0
    for subset in repacked(endpoints.subsets or ()):
        ports = in_order(
            [
                EndpointPort(name=one.name or "", port=one.port, protocol=one.protocol, app_protocol=one.app_protocol)
                for one in subset.ports or ()
            ]
        )
        by_family: dict[str, list[Endpoint]] = {}
        taken = 0
        for address, ready in _addresses(subset):
            family = _family(address.ip)
            if family is None:
                wrong += 1
            elif taken == MOST_ADDRESSES:
                skipped += 1
            else:
                taken += 1
                by_family.setdefault(family, []).append(_endpoint(address, ready=ready))
        yield from ((family, ports, found) for family, found in by_family.items())
    if wrong:
        told = f"Skipped {wrong} invalid IP addresses when mirroring to EndpointSlices"
        ctx.record("Warning", "InvalidIPAddress", told)
    if skipped:
        told = (
            f"A max of {MOST_ADDRESSES} addresses can be mirrored to EndpointSlices per Endpoints subset. "
            f"{wrong + skipped} addresses were skipped"
        )
        ctx.record("Warning", "TooManyAddressesToMirror", told)


def _addresses(subset: EndpointSubset) -> Iterator[tuple[EndpointAddress, bool]]:
    yield from ((one, True) for one in subset.addresses or ())
    yield from ((one, False) for one in subset.not_ready_addresses or ())


def _family(text: str) -> str | None:
    try:
        return f"IPv{ipaddress.ip_address(text).version}"
    except ValueError:
        return None


def _endpoint(address: EndpointAddress, *, ready: bool) -> Endpoint:
    return Endpoint(
        addresses=[str(ipaddress.ip_address(address.ip))],
        conditions=EndpointConditions(ready=ready),
        target_ref=address.target_ref,
        node_name=address.node_name,
        hostname=address.hostname or None,
    )


@dataclass
class _Plan:
    """What has to be done to the slices of some Endpoints."""

    endpoints: Endpoints
    present: list[EndpointSlice]
    create: list[EndpointSlice] = field(default_factory=list)
    update: list[EndpointSlice] = field(default_factory=list)
    stale: list[EndpointSlice] = field(default_factory=list)

    def mirror(self, parts: Iterable[_Part]) -> None:
        """Decide."""
        left = list(self.present)
        for family, ports, endpoints in parts:
            fitting = [one for one in left if one.address_type == family and (one.ports or []) == ports]
            left = [one for one in left if one not in fitting]
            self.stale += fitting[1:]
            wanted = self._slice(family, ports, endpoints)
            if not fitting:
                self.create.append(wanted)
            elif not _is_same(fitting[0], wanted):
                self.update.append(_changed(fitting[0], wanted))
        self.stale += left
        self._reuse()

    def _reuse(self) -> None:
        """Change slices that would be deleted into those that would be made."""
        for wanted in list(self.create):
            free = next((one for one in self.stale if one.address_type == wanted.address_type), None)
            if free is not None:
                self.stale.remove(free)
                self.create.remove(wanted)
                self.update.append(_changed(free, wanted))

    def _slice(self, family: str, ports: list[EndpointPort], endpoints: list[Endpoint]) -> EndpointSlice:
        metadata = self.endpoints.metadata
        return EndpointSlice(
            metadata=ObjectMeta(
                generate_name=f"{metadata.name}-",
                namespace=metadata.namespace,
                labels={**metadata.labels, SERVICE: metadata.name, MANAGED_BY: _NAME},
                annotations={name: text for name, text in metadata.annotations.items() if name not in _NOT_COPIED},
            ),
            address_type=family,
            endpoints=endpoints,
            ports=ports,
        )


def _is_same(one: EndpointSlice, wanted: EndpointSlice) -> bool:
    same = one.metadata.labels == wanted.metadata.labels and one.metadata.annotations == wanted.metadata.annotations
    return same and _sorted(one) == _sorted(wanted)


def _sorted(one: EndpointSlice) -> list[Endpoint]:
    return sorted(one.endpoints or (), key=lambda endpoint: (endpoint.addresses, endpoint.hostname or ""))


def _changed(one: EndpointSlice, wanted: EndpointSlice) -> EndpointSlice:
    one.metadata.labels, one.metadata.annotations = wanted.metadata.labels, wanted.metadata.annotations
    one.ports, one.endpoints = wanted.ports, wanted.endpoints
    return one
