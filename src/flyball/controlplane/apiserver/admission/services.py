"""Addresses of Services: cluster IPs and node ports, given out so that no two have the same."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Any, Final

from flyball.api.fielderrors import FieldError
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
        errors = self._address(core, admission, spec, old) + self._ports(core, admission, spec, old)
        if errors:
            raise invalid("Service", "", admission.name, errors)

    # Cluster IPs

    def _address(self, core: Core, admission: Admission, spec: Object, old: Object) -> list[FieldError]:
        if spec.get("type") == "ExternalName":
            for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                spec.pop(field, None)
            return []
        wanted = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or ()), "")
        errors: list[FieldError] = []
        if wanted == _NONE:
            given = _NONE
        elif wanted and wanted == old.get("clusterIP"):
            given = wanted
        elif wanted:
            given, errors = wanted, self._claim(core, admission, wanted)
        else:
            given = self._free_address(core)
        if errors:
            return errors
        spec["clusterIP"], spec["clusterIPs"] = given, [given]
        spec.setdefault("ipFamilies", ["IPv6" if ":" in given else "IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        return []

    def _claim(self, core: Core, admission: Admission, wanted: str) -> list[FieldError]:
        try:
            address = ipaddress.ip_address(wanted)
        except ValueError:
            return []  # the rules of Services say so
        told = ""
        if address not in NETWORK or address in (NETWORK.network_address, NETWORK.broadcast_address):
            told = f"the provided IP ({wanted}) is not in the valid range. The range of valid IPs is {NETWORK}"
        elif wanted in self._taken_addresses(core, admission):
            told = "provided IP is already allocated"
        if told:
            prefix = "failed to allocate IP " + wanted + ": "
            return [FieldError.invalid("spec.clusterIPs", [wanted], prefix + told)]
        self._promise(core, wanted)
        return []

    def _free_address(self, core: Core) -> str:
        taken = self._taken_addresses(core, None)
        size = NETWORK.num_addresses - 2
        places = [*_around(_CHOSEN_BAND, size, self._last_address), *range(_CHOSEN_BAND)]
        for place in places:
            address = str(NETWORK[place + 1])
            if address not in taken:
                self._last_address = place
                self._promise(core, address)
                return address
        raise internal("failed to allocate a serviceIP: range is full")

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
        external = spec.get("type") in _WITH_PORTS
        if not external:
            if old.get("type") in _WITH_PORTS:
                for port, same_port in _with_old(ports, old):
                    if port.get("nodePort") == (same_port or {}).get("nodePort"):
                        port.pop("nodePort", None)
            return []
        if spec.get("allocateLoadBalancerNodePorts") is False and spec["type"] == "LoadBalancer":
            wanted = [port for port in ports if port.get("nodePort")]
        else:
            wanted = ports
        health = spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"
        if not wanted and not health:
            return []
        taken = self._taken_ports(core, admission)
        errors = list(self._choose(core, ports, wanted, old, taken))
        if health and not spec.get("healthCheckNodePort"):
            given = {port.get("nodePort", 0) for port in ports}
            spec["healthCheckNodePort"] = self._free_port(core, taken | given)
        return errors

    def _choose(
        self, core: Core, ports: list[Object], wanted: list[Object], old: Object, taken: set[int]
    ) -> Iterator[FieldError]:
        before = {port.get("nodePort") for port in old.get("ports") or ()}
        chosen: dict[int, set[str]] = {}
        for place, port in enumerate(ports):
            number = port.get("nodePort")
            if not number:
                continue
            path = f"spec.ports[{place}].nodePort"
            protocol = str(port.get("protocol", "TCP"))
            if number in before or (number in chosen and protocol not in chosen[number]):
                pass  # it has it already
            elif number not in NODE_PORTS:
                told = "provided port is not in the valid range. The range of valid ports is 30000-32767"
                yield FieldError.invalid(path, number, told)
            elif number in taken:
                yield FieldError.invalid(path, number, "provided port is already allocated")
            chosen.setdefault(number, set()).add(protocol)
        for port in wanted:
            if not port.get("nodePort"):
                shared = _shareable(port, ports)
                port["nodePort"] = shared or self._free_port(core, taken | set(chosen))
                chosen.setdefault(port["nodePort"], set())

    def _free_port(self, core: Core, taken: set[int]) -> int:
        places = [*_around(_CHOSEN_PORTS, len(NODE_PORTS), self._last_port), *range(_CHOSEN_PORTS)]
        for place in places:
            number: int = NODE_PORTS[place]
            if number not in taken:
                self._last_port = place
                self._promise(core, number)
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

    def _promise(self, core: Core, what: str | int) -> None:
        if core.store.durable:
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
    """Keep what an update left out although its type still needs it."""
    if spec.get("type") == "ExternalName" or old.get("type") == "ExternalName":
        return
    if not spec.get("clusterIP") and not spec.get("clusterIPs") and old.get("clusterIP"):
        spec["clusterIP"], spec["clusterIPs"] = old["clusterIP"], old.get("clusterIPs")
    if spec.get("type") in _WITH_PORTS and old.get("type") in _WITH_PORTS:
        for port, before in _with_old(spec.get("ports") or [], old):
            if before is not None and not port.get("nodePort") and before.get("nodePort"):
                port["nodePort"] = before["nodePort"]
        if not spec.get("healthCheckNodePort") and old.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = old["healthCheckNodePort"]


def _with_old(ports: list[Object], old: Object) -> Iterator[tuple[Object, Object | None]]:
    before = {(port.get("port"), port.get("protocol")): port for port in old.get("ports") or ()}
    for port in ports:
        yield port, before.get((port.get("port"), port.get("protocol")))


def _shareable(port: Object, ports: list[Object]) -> int:
    """Return the node port of the same port in another protocol."""
    for other in ports:
        same_number = other.get("nodePort") and other.get("port") == port.get("port")
        if same_number and other.get("protocol") != port.get("protocol"):
            return int(other["nodePort"])
    return 0
