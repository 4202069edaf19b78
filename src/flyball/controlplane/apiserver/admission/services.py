"""Addresses of Services: cluster IPs and node ports, given out so that no two have the same."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Any, Final

from flyball.api.fielderrors import FieldError
from flyball.controlplane.apiserver.admission.families import settle_families
from flyball.controlplane.apiserver.core import Admission, Core
from flyball.controlplane.apiserver.render import parse
from flyball.controlplane.apiserver.status import internal, invalid

__all__ = ["NETWORK", "NODE_PORTS", "Addresses"]

Object = dict[str, Any]

NETWORK: Final = ipaddress.IPv4Network("10.0.0.0/24")
NODE_PORTS: Final = range(30000, 32768)
_CHOSEN_BAND: Final = 16
"""So many addresses at the beginning are for those that ask for one; the others are given out first."""
_CHOSEN_PORTS: Final = 86
"""The same for ports."""
_NONE: Final = "None"
_PROMISE_SECONDS: Final = 30.0
_WITH_PORTS: Final = ("NodePort", "LoadBalancer")


class Addresses:
    """Gives addresses to the Services of one server.

    What is taken is what the stored Services have. An address that was given to a Service which is still on its way
    into a durable store is kept back for a while.
    """

    def __init__(self) -> None:
        """Nothing is promised yet."""
        self._promised: dict[str | int, float] = {}
        self._last_address = _CHOSEN_BAND
        self._last_port = _CHOSEN_PORTS

    async def admit(self, core: Core, admission: Admission) -> None:
        """Give a Service what its type needs, and take from it what its type does not have."""
        service = admission.obj
        if admission.kind.storage != "services" or admission.subresource not in ("", "scale") or service is None:
            return
        spec, old = service["spec"], ((admission.old or {}).get("spec") or {})
        if admission.verb == "UPDATE":
            _carry_over(spec, old)
        elif spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        for errors in (self._address(core, admission, spec, old), self._ports(core, admission, spec, old)):
            if errors:
                raise invalid("Service", "", admission.name, errors)
        if admission.verb == "UPDATE":
            _let_go(spec, old)

    # Cluster IPs

    def _address(self, core: Core, admission: Admission, spec: Object, old: Object) -> list[FieldError]:
        if spec.get("type") == "ExternalName":
            return []
        errors = settle_families(spec, old)
        has_one = admission.verb == "UPDATE" and old.get("type") != "ExternalName" and spec.get("clusterIP")
        wanted = next(iter(spec.get("clusterIPs") or ()), "")
        if errors or has_one or wanted == _NONE:
            return errors
        if wanted:
            return self._claim(core, admission, wanted)
        spec["clusterIP"] = self._free_address(core, admission)
        spec["clusterIPs"] = [spec["clusterIP"]]
        return []

    def _claim(self, core: Core, admission: Admission, wanted: str) -> list[FieldError]:
        address, told = ipaddress.ip_address(wanted), ""
        if address not in NETWORK or address in (NETWORK.network_address, NETWORK.broadcast_address):
            told = "the provided network does not match the current range"
        elif wanted in self._taken_addresses(core, admission):
            told = "provided IP is already allocated"
        if told:
            prefix = "failed to allocate IP " + wanted + ": "
            return [FieldError.invalid("spec.clusterIPs", [wanted], prefix + told)]
        self._promise(core, admission, wanted)
        return []

    def _free_address(self, core: Core, admission: Admission) -> str:
        taken = self._taken_addresses(core, None)
        size = NETWORK.num_addresses - 2
        places = [*_around(_CHOSEN_BAND, size, self._last_address), *range(_CHOSEN_BAND)]
        for place in places:
            address = str(NETWORK[place + 1])
            if address not in taken:
                self._last_address = place
                self._promise(core, admission, address)
                return address
        raise internal(f'failed to allocate a serviceIP for Service "{admission.name}": range is full')

    def _taken_addresses(self, core: Core, admission: Admission | None) -> set[str]:
        own = None if admission is None else (admission.namespace, admission.name)
        taken = {
            entry.fields.get("spec.clusterIP", "")
            for entry in core.store.listing("services").entries
            if (entry.key.namespace, entry.key.name) != own
        }
        return taken | {one for one in self._promises(core) if isinstance(one, str)}

    # Node ports

    def _ports(self, core: Core, admission: Admission, spec: Object, old: Object) -> list[FieldError]:
        ports: list[Object] = spec.get("ports") or []
        if spec.get("type") not in _WITH_PORTS:
            return []
        if spec.get("allocateLoadBalancerNodePorts") is False and spec["type"] == "LoadBalancer":
            wanted = [port for port in ports if port.get("nodePort")]
        else:
            wanted = ports
        health = _needs_health_port(spec)
        if not wanted and not health:
            return []
        taken = self._taken_ports(core, admission)
        errors = list(self._choose(core, admission, ports, wanted, old, taken))
        if health and not errors:
            self._choose_health(core, admission, spec, old, taken | {port.get("nodePort", 0) for port in ports})
        return errors

    def _choose_health(self, core: Core, admission: Admission, spec: Object, old: Object, taken: set[int]) -> None:
        number = spec.get("healthCheckNodePort") or 0
        if not number:
            spec["healthCheckNodePort"] = self._free_port(core, admission, taken)
        elif number != old.get("healthCheckNodePort") and not _needs_health_port(old):
            told = _refusal(number, taken)
            if told:
                raise internal(f"failed to allocate requested HealthCheck NodePort {number}: {told}")

    def _choose(
        self,
        core: Core,
        admission: Admission,
        ports: list[Object],
        wanted: list[Object],
        old: Object,
        taken: set[int],
    ) -> Iterator[FieldError]:
        before = {port.get("nodePort") for port in old.get("ports") or ()}
        chosen: dict[int, set[int]] = {}
        for place, port in enumerate(ports):
            number, own = port.get("nodePort"), int(port.get("port") or 0)
            if not number:
                continue
            again = number in chosen and (admission.verb == "UPDATE" or own in chosen[number])
            if number not in before and not again:
                told = _refusal(number, taken | set(chosen))
                if told:
                    yield FieldError.invalid(f"spec.ports[{place}].nodePort", number, told)
            chosen.setdefault(number, set()).add(own)
        for port in wanted:
            if not port.get("nodePort"):
                shared = _shareable(port, ports)
                port["nodePort"] = shared or self._free_port(core, admission, taken | set(chosen))
                chosen.setdefault(port["nodePort"], set())

    def _free_port(self, core: Core, admission: Admission, taken: set[int]) -> int:
        places = [*_around(_CHOSEN_PORTS, len(NODE_PORTS), self._last_port), *range(_CHOSEN_PORTS)]
        for place in places:
            number: int = NODE_PORTS[place]
            if number not in taken:
                self._last_port = place
                self._promise(core, admission, number)
                return number
        raise internal("failed to allocate a nodePort: range is full")

    def _taken_ports(self, core: Core, admission: Admission) -> set[int]:
        own = (admission.namespace, admission.name)
        taken = {one for one in self._promises(core) if isinstance(one, int)}
        for entry in core.store.listing("services").entries:
            if entry.fields.get("spec.type") in _WITH_PORTS and (entry.key.namespace, entry.key.name) != own:
                spec = parse(admission.kind, entry).get("spec") or {}
                taken.update(port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort"))
                taken.add(spec.get("healthCheckNodePort") or 0)
        return taken

    # What was given and is not stored yet

    def _promise(self, core: Core, admission: Admission, what: str | int) -> None:
        if core.store.durable and not admission.dry_run:
            self._promised[what] = core.clock.monotonic() + _PROMISE_SECONDS

    def _promises(self, core: Core) -> Iterable[str | int]:
        now = core.clock.monotonic()
        for what, until in list(self._promised.items()):
            if until < now:
                del self._promised[what]
        return self._promised


def _around(first: int, end: int, last: int) -> Iterator[int]:
    """Go once around from the place after the last one: what was given back is not given out again at once."""
    yield from range(last + 1, end)
    yield from range(first, last + 1)


def _carry_over(spec: Object, old: Object) -> None:
    """Keep what an update left out although its type still needs it, and let the two fields for addresses agree."""
    if "ExternalName" not in (spec.get("type"), old.get("type")):
        own, before = spec.get("clusterIP") or "", old.get("clusterIP") or ""
        if own != before and spec.get("clusterIPs") == old.get("clusterIPs"):
            spec["clusterIPs"] = [own] if own else None
        spec["clusterIP"] = own or before
        spec["clusterIPs"] = spec.get("clusterIPs") or old.get("clusterIPs")
    elif spec.get("type") != "ExternalName" and spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    if spec.get("type") in _WITH_PORTS and old.get("type") in _WITH_PORTS:
        _carry_ports(spec.get("ports") or [], old.get("ports") or [])
    if _needs_health_port(spec) and _needs_health_port(old) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = old.get("healthCheckNodePort")


def _carry_ports(ports: list[Object], before: list[Object]) -> None:
    """Give ports back their node ports, by their names, unless another port has taken them."""
    used = {port.get("nodePort") for port in ports}
    known = {port.get("name") or "": port.get("nodePort") for port in before}
    for port in ports:
        number = known.get(port.get("name") or "")
        if number and not port.get("nodePort") and number not in used:
            port["nodePort"] = number


def _let_go(spec: Object, old: Object) -> None:
    """Take away what the type had before and has not any more, unless somebody has just changed it."""
    kind, before = spec.get("type"), old.get("type")
    if kind == before and not (_needs_health_port(old) or _is_reached_from_outside(old)):
        return
    gone: list[str] = []
    if kind == "ExternalName" != before:
        gone += ["ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]
        if all(spec.get(name) == old.get(name) for name in ("clusterIP", "clusterIPs")):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
    ports: list[Object] = spec.get("ports") or []
    if before in _WITH_PORTS and kind not in _WITH_PORTS and _node_ports(spec) <= _node_ports(old):
        for port in ports:
            port.pop("nodePort", None)
    if _needs_health_port(old) and not _needs_health_port(spec):
        gone.append("healthCheckNodePort")
    if before == "LoadBalancer" != kind:
        gone += ["allocateLoadBalancerNodePorts", "loadBalancerClass"]
    if _is_reached_from_outside(old) and not _is_reached_from_outside(spec):
        gone.append("externalTrafficPolicy")
    for name in gone:
        if spec.get(name) == old.get(name):
            spec.pop(name, None)


def _node_ports(spec: Object) -> set[int]:
    return {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}


def _needs_health_port(spec: Object) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _is_reached_from_outside(spec: Object) -> bool:
    return spec.get("type") in _WITH_PORTS or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def _refusal(number: int, taken: set[int]) -> str:
    """Return why a port cannot be had, nothing when it can."""
    if number not in NODE_PORTS:
        return "provided port is not in the valid range. The range of valid ports is 30000-32767"
    return "provided port is already allocated" if number in taken else ""


def _shareable(port: Object, ports: list[Object]) -> int:
    """Return the node port of the same port in another protocol."""
    for other in ports:
        same_number = other.get("nodePort") and other.get("port") == port.get("port")
        if same_number and other.get("protocol") != port.get("protocol"):
            return int(other["nodePort"])
    return 0
