"""EndpointSlices: the Pods of a Service, at most a hundred in a slice, each with what it is fit for.

A slice tells of endpoints with the same ports and family. What changes is changed where it stands; what is new fills
up slices that are changed anyway, then one that has room for all of it, then new ones: so that as few slices as
possible are written. A Service without endpoints has one empty slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from flyball.controller import Context, Controller, Owns, Watches, controller
from flyball.controller.predicates import resource_version_changed
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
from flyball.errors import RetryAfter
from flyball.k8s.core.v1 import Node, Pod, Service
from flyball.k8s.discovery.v1 import (
    Endpoint,
    EndpointConditions,
    EndpointHints,
    EndpointPort,
    EndpointSlice,
    ForNode,
    ForZone,
)
from flyball.k8s.meta.v1 import ObjectMeta

__all__ = ["FULL", "MANAGED_BY", "SERVICE", "Slices", "endpointslices", "in_order"]

FULL: Final = 100
"""So many endpoints are in one slice."""

SERVICE: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
"""The labels that say of which Service a slice tells, and who writes it."""

_NAME: Final = "endpointslice-controller.k8s.io"
_RESERVED: Final = (SERVICE, MANAGED_BY, HEADLESS)
_ZONE: Final = "topology.kubernetes.io/zone"
_CLOSE: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_AGAIN: Final = 5.0

_Ports = tuple[tuple[str, int, str, str | None], ...]
_Place = tuple[tuple[str, ...], str, str]


def _nobody(node: Node) -> None:
    """A node that changes wakes nobody: its zone is looked up when a Pod on it changes."""
    del node


def endpointslices() -> Controller[Service]:
    """Make the controller of one cluster."""
    times = TriggerTimes()

    @controller(
        Service,
        owns=[Owns(EndpointSlice)],
        watches=[Watches(Pod, services_of, predicates=[matters]), Watches(Node, _nobody)],
        predicates=[resource_version_changed],
        name="endpoint-slice-controller",
        error_condition=None,
        max_concurrent=5,
    )
    async def follow(service: Service, ctx: Context) -> None:
        """Let the slices of a Service be as its Pods are."""
        if not has_backends(service):
            return
        pods = await pods_of(service, ctx)
        moment = times.note(ctx.request, service, pods)
        wanted = {SERVICE: service.metadata.name, MANAGED_BY: _NAME}
        present = [
            one for one in await ctx.list(EndpointSlice, labels=wanted) if one.metadata.deletion_timestamp is None
        ]
        families = service.spec.ip_families or ["IPv4"]
        missing: list[str] = []
        for family in families:
            mine = [one for one in present if one.address_type == family]
            plan = Slices(service, family, [one for one in mine if _is_of(one, service)])
            plan.stale = [one for one in mine if not _is_of(one, service)]
            missing = await _collect(plan, pods, ctx)
            plan.settle()
            await _carry_out(plan, moment, ctx)
        for one in present:
            if one.address_type not in families:
                await ctx.delete(one)
        if missing:
            _complain(service, missing, ctx)

    return follow


def _is_of(one: EndpointSlice, service: Service) -> bool:
    return any(owner.uid == service.metadata.uid for owner in one.metadata.owner_references)


async def _collect(plan: Slices, pods: Iterable[Pod], ctx: Context) -> list[str]:
    """Put the endpoints of all Pods into a plan; return what is to be said of Pods on nodes that are not there."""
    service, missing = plan.service, []
    for pod in pods:
        if not is_backend(pod, terminating=True):
            continue
        ports = _ports(service, pod)
        plan.expect(ports)
        node = await ctx.get(Node, pod.spec.node_name) if pod.spec.node_name else None
        if node is None and not service.spec.publish_not_ready_addresses:
            where = f"{service.metadata.namespace}/{service.metadata.name}"
            missing.append(
                f"skipping Pod {pod.metadata.name} for Service {where}: Node {pod.spec.node_name or ''} Not Found"
            )
            continue
        zone = node.metadata.labels.get(_ZONE) if node is not None else None
        endpoint = _endpoint(pod, service, plan.family, zone)
        if endpoint.addresses:
            plan.add(ports, endpoint)
    return missing


def _complain(service: Service, missing: list[str], ctx: Context) -> None:
    told = missing[0] if len(missing) == 1 else f"[{', '.join(missing)}]"
    where = f"{service.metadata.namespace}/{service.metadata.name}"
    ctx.record("Warning", "FailedToUpdateEndpointSlices", f"Error updating Endpoint Slices for Service {where}: {told}")
    raise RetryAfter(_AGAIN, told)


def _ports(service: Service, pod: Pod) -> list[EndpointPort]:
    """Return the ports at which a Pod serves, in upstream's order."""
    found = [
        EndpointPort(name=port.name or "", port=number, protocol=port.protocol, app_protocol=port.app_protocol)
        for port in service.spec.ports or ()
        if (number := port_of(pod, port)) is not None
    ]
    return in_order(found)


def in_order(ports: Sequence[EndpointPort]) -> list[EndpointPort]:
    """Return ports in upstream's order."""
    return hash_order(ports, _printed)


def _printed(port: EndpointPort) -> str:
    protocol = f"(*string){port.app_protocol}" if port.app_protocol is not None else "(*string)<nil>"
    return (
        f"Name:(*string){port.name or ''} Protocol:(*v1.Protocol){port.protocol or ''} Port:(*int32){port.port} "
        f"AppProtocol:{protocol}"
    )


def _endpoint(pod: Pod, service: Service, family: str, zone: str | None) -> Endpoint:
    serving, terminating = is_ready(pod), pod.metadata.deletion_timestamp is not None
    ready = bool(service.spec.publish_not_ready_addresses) or (serving and not terminating)
    endpoint = Endpoint(
        addresses=sorted(addresses_of(pod, family)),
        conditions=EndpointConditions(ready=ready, serving=serving, terminating=terminating),
        hostname=hostname_of(pod, service),
        target_ref=reference_to(pod),
        node_name=pod.spec.node_name or None,
        zone=zone or None,
    )
    if ready:
        endpoint.hints = _hints(service.spec.traffic_distribution, endpoint)
    return endpoint


def _hints(wish: str | None, endpoint: Endpoint) -> EndpointHints | None:
    """Return for whom an endpoint is, when traffic is to stay near."""
    if wish not in _CLOSE:
        return None
    zones = [ForZone(name=endpoint.zone)] if endpoint.zone is not None else None
    nodes = [ForNode(name=endpoint.node_name)] if wish == "PreferSameNode" and endpoint.node_name is not None else None
    return EndpointHints(for_zones=zones, for_nodes=nodes) if zones or nodes else None


@dataclass
class _Group:
    """Endpoints with the same ports that have no place yet, and the slices that there are for them."""

    ports: list[EndpointPort]
    waiting: dict[_Place, Endpoint] = field(default_factory=dict)
    present: list[EndpointSlice] = field(default_factory=list)


class Slices:
    """What has to be done to the slices of one Service and family: `create`, `update`, and `stale` ones to delete."""

    def __init__(self, service: Service, family: str, present: Iterable[EndpointSlice]) -> None:
        """Take the slices that are there, which are those of this very Service."""
        self.service = service
        self.family = family
        self.create: list[EndpointSlice] = []
        self.update: list[EndpointSlice] = []
        self.stale: list[EndpointSlice] = []
        self._groups: dict[_Ports, _Group] = {}
        self._present: dict[_Ports, list[EndpointSlice]] = {}
        self._number = 0
        for one in present:
            self._number += 1
            self._present.setdefault(_key(one.ports or ()), []).append(one)

    def expect(self, ports: list[EndpointPort]) -> None:
        """Some Pod has these ports."""
        self._groups.setdefault(_key(ports), _Group(ports))

    def add(self, ports: list[EndpointPort], endpoint: Endpoint) -> None:
        """This endpoint is to be told."""
        self._groups[_key(ports)].waiting[_place(endpoint)] = endpoint

    def settle(self) -> None:
        """Decide."""
        before = self._number + len(self.stale)
        for key, group in self._groups.items():
            group.present = self._present.pop(key, [])
            self._settle_group(group)
        for left in self._present.values():
            self.stale += left
        if before == len(self.stale) and not self.create:
            self._keep_one()
        self._reuse()

    def _settle_group(self, group: _Group) -> None:
        changed: list[EndpointSlice] = []
        same: list[EndpointSlice] = []
        for one in group.present:
            kept, differs = self._kept(one, group.waiting)
            if not kept and one.endpoints:
                self.stale.append(one)
            elif differs or self._labels_differ(one):
                one.endpoints = kept
                changed.append(one)
            else:
                same.append(one)
        for one in sorted(changed, key=lambda one: -len(one.endpoints or ())):
            _fill(one, group.waiting)
        while group.waiting:
            room = self._with_room(same, len(group.waiting))
            if room is None:
                room = self._new(group.ports)
                self.create.append(room)
            else:
                same.remove(room)
                changed.append(room)
            _fill(room, group.waiting)
        for one in changed:
            one.metadata.labels = self._labels()
        self.update += changed

    def _kept(self, one: EndpointSlice, waiting: dict[_Place, Endpoint]) -> tuple[list[Endpoint], bool]:
        """Take the endpoints that a slice has out of those that wait; tell which, and whether the slice differs."""
        kept: list[Endpoint] = []
        differs = False
        for endpoint in one.endpoints or ():
            wanted = waiting.pop(_place(endpoint), None)
            if wanted is None:
                differs = True
                continue
            kept.append(wanted)
            differs = differs or wanted != endpoint
        return kept, differs

    def _with_room(self, slices: list[EndpointSlice], number: int) -> EndpointSlice | None:
        """Return the slice that is fullest when all of these are in it."""
        if number >= FULL:
            return None
        fitting = [one for one in slices if number + len(one.endpoints or ()) <= FULL]
        return max(fitting, key=lambda one: len(one.endpoints or ()), default=None)

    def _keep_one(self) -> None:
        """Tell by an empty slice that there are no endpoints."""
        empty = self._new([])
        if len(self.stale) == 1 and _is_same(self.stale[0], empty):
            self.stale = []
        else:
            self.create.append(empty)

    def _reuse(self) -> None:
        """Change slices that would be deleted into those that would be made."""
        for one in list(self.stale):
            if not self.create:
                return
            if not _is_of(one, self.service):
                continue
            wanted = self.create.pop()
            self.stale.remove(one)
            one.metadata.labels, one.ports, one.endpoints = wanted.metadata.labels, wanted.ports, wanted.endpoints
            one.metadata.annotations = {}
            self.update.append(one)

    def _new(self, ports: list[EndpointPort]) -> EndpointSlice:
        metadata = self.service.metadata
        return EndpointSlice(
            metadata=ObjectMeta(generate_name=f"{metadata.name}-", namespace=metadata.namespace, labels=self._labels()),
            address_type=self.family,
            endpoints=[],
            ports=ports,
        )

    def _labels(self) -> dict[str, str]:
        own = {name: text for name, text in self.service.metadata.labels.items() if name not in _RESERVED}
        own |= {HEADLESS: ""} if is_headless(self.service) else {}
        return {**own, SERVICE: self.service.metadata.name, MANAGED_BY: _NAME}

    def _labels_differ(self, one: EndpointSlice) -> bool:
        theirs = {name: text for name, text in one.metadata.labels.items() if name not in _RESERVED}
        return theirs != {name: text for name, text in self.service.metadata.labels.items() if name not in _RESERVED}


def _fill(one: EndpointSlice, waiting: dict[_Place, Endpoint]) -> None:
    endpoints = list(one.endpoints or ())
    while waiting and len(endpoints) < FULL:
        endpoints.append(waiting.pop(next(iter(waiting))))
    one.endpoints = endpoints


def _key(ports: Iterable[EndpointPort]) -> _Ports:
    return tuple(sorted((one.name or "", one.port or 0, one.protocol or "", one.app_protocol) for one in ports))


def _place(endpoint: Endpoint) -> _Place:
    """Return by what an endpoint is the same one although other things about it have changed."""
    owner = endpoint.target_ref
    return tuple(sorted(endpoint.addresses)), endpoint.hostname or "", (owner.name or "") if owner is not None else ""


def _is_same(one: EndpointSlice, other: EndpointSlice) -> bool:
    """Tell whether a slice says nothing already, in the right words."""
    return not one.endpoints and not one.ports and one.metadata.labels == other.metadata.labels


async def _carry_out(plan: Slices, moment: datetime | None, ctx: Context) -> None:
    for one in plan.create:
        _stamp(one, moment)
        await ctx.create(one, owner=True)
    for one in plan.update:
        _stamp(one, moment)
        await ctx.patch(one)
    for one in plan.stale:
        await ctx.delete(one)


def _stamp(one: EndpointSlice, moment: datetime | None) -> None:
    one.metadata.annotations.pop(TRIGGER_TIME, None)
    if moment is not None:
        one.metadata.annotations[TRIGGER_TIME] = written(moment)
