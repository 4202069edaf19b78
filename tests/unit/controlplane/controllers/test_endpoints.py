"""What is told of a Service: which addresses together, in which slices, in which order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from flyball.api import OwnerReference
from flyball.controlplane.controllers.backends import addresses_of, hash_order, port_of
from flyball.controlplane.controllers.endpoints import MOST_ADDRESSES, repacked, truncated
from flyball.controlplane.controllers.endpointslices import FULL, Slices
from flyball.k8s.core.v1 import (
    Container,
    ContainerPort,
    EndpointAddress,
    EndpointPort,
    EndpointSubset,
    ObjectReference,
    Pod,
    PodIP,
    PodSpec,
    PodStatus,
    Service,
    ServicePort,
    ServiceSpec,
)
from flyball.k8s.discovery.v1 import Endpoint, EndpointConditions, EndpointSlice
from flyball.k8s.discovery.v1 import EndpointPort as SlicePort
from flyball.k8s.meta.v1 import ObjectMeta


def address(number: int) -> EndpointAddress:
    return EndpointAddress(ip=f"10.1.{number // 250}.{number % 250}")


def subset(numbers: list[int], *ports: int, ready: bool = True) -> EndpointSubset:
    addresses = [address(number) for number in numbers]
    told = [EndpointPort(name=f"p{port}", port=port, protocol="TCP") for port in ports] or None
    if ready:
        return EndpointSubset(addresses=addresses, ports=told)
    return EndpointSubset(not_ready_addresses=addresses, ports=told)


def numbers_of(found: EndpointSubset) -> tuple[list[str], list[str], list[int]]:
    return (
        [one.ip for one in found.addresses or ()],
        [one.ip for one in found.not_ready_addresses or ()],
        sorted(port.port for port in found.ports or ()),
    )


class TestEndpoints:
    def test_ports_of_the_same_addresses_come_together(self) -> None:
        found = repacked([subset([1], 80), subset([1], 90), subset([2], 80), subset([2], 90)])
        assert [numbers_of(one) for one in found] == [(["10.1.0.1", "10.1.0.2"], [], [80, 90])]

    def test_ports_of_different_addresses_stay_apart(self) -> None:
        found = repacked([subset([1, 2], 80), subset([1], 90)])
        assert [numbers_of(one) for one in found] == [(["10.1.0.1", "10.1.0.2"], [], [80]), (["10.1.0.1"], [], [90])]

    def test_an_address_that_is_not_ready_once_is_not_ready_at_all(self) -> None:
        found = repacked([subset([1], 80), subset([1], 80, ready=False)])
        assert [numbers_of(one) for one in found] == [([], ["10.1.0.1"], [80])]

    def test_addresses_without_ports_are_kept(self) -> None:
        assert [numbers_of(one) for one in repacked([subset([2]), subset([1])])] == [(["10.1.0.1", "10.1.0.2"], [], [])]

    def test_so_many_are_told_and_not_more(self) -> None:
        subsets = [subset(list(range(MOST_ADDRESSES)), 80)]
        assert not truncated(subsets)
        assert len(subsets[0].addresses or ()) == MOST_ADDRESSES

    def test_of_too_many_those_are_left_out_first_that_are_not_ready(self) -> None:
        ready, waiting = list(range(900)), list(range(900, 1200))
        subsets = [subset(ready, 80), subset(waiting, 80, ready=False)]
        assert truncated(subsets)
        assert len(subsets[0].addresses or ()) == 900
        assert len(subsets[1].not_ready_addresses or ()) == 100

    def test_of_too_many_ready_ones_each_subset_keeps_its_share(self) -> None:
        subsets = [subset(list(range(1500)), 80), subset(list(range(500)), 90), subset([1], 99, ready=False)]
        assert truncated(subsets)
        assert [len(one.addresses or ()) for one in subsets] == [750, 250, 0]
        assert subsets[2].not_ready_addresses is None


def service(**labels: str) -> Service:
    return Service(metadata=ObjectMeta(name="web", namespace="n", uid="u", labels=labels), spec=ServiceSpec())


def endpoint(number: int, *, ready: bool = True) -> Endpoint:
    return Endpoint(
        addresses=[str(address(number).ip)],
        conditions=EndpointConditions(ready=ready, serving=ready, terminating=False),
        target_ref=ObjectReference(kind="Pod", name=f"p-{number}", namespace="n"),
    )


def settled(wanted: dict[int, bool], present: list[EndpointSlice], **labels: str) -> Slices:
    plan, ports = Slices(service(**labels), "IPv4", present), [SlicePort(name="", port=80, protocol="TCP")]
    for number, ready in wanted.items():
        plan.expect(ports)
        plan.add(ports, endpoint(number, ready=ready))
    plan.settle()
    return plan


def carried_out(plan: Slices, present: list[EndpointSlice]) -> list[EndpointSlice]:
    """The slices that there are after a plan, as a server would give them."""
    for number, one in enumerate(plan.create):
        one.metadata.name = f"new-{len(present)}-{number}"
        owner = OwnerReference(api_version="v1", kind="Service", name="web", uid="u", controller=True)
        one.metadata.owner_references = [owner]
    gone = {one.metadata.name for one in plan.stale}
    changed = {one.metadata.name: one for one in plan.update}
    kept = [changed.get(one.metadata.name, one) for one in present if one.metadata.name not in gone]
    return [*kept, *plan.create]


def told(slices: list[EndpointSlice]) -> dict[int, bool]:
    found: dict[int, bool] = {}
    for one in slices:
        for each in one.endpoints or ():
            assert each.target_ref is not None
            assert each.conditions is not None
            number = int((each.target_ref.name or "").removeprefix("p-"))
            assert number not in found, "told twice"
            found[number] = bool(each.conditions.ready)
    return found


class TestSlices:
    def test_without_endpoints_there_is_an_empty_one_which_is_filled_later(self) -> None:
        empty = carried_out(settled({}, []), [])
        assert [(one.endpoints, one.ports) for one in empty] == [([], [])]
        again = settled({}, empty)
        assert (again.create, again.update, again.stale) == ([], [], [])
        filled = settled({1: True}, empty)
        assert (filled.create, [one.metadata.name for one in filled.update]) == ([], [empty[0].metadata.name])

    def test_what_is_new_goes_where_there_is_room_for_all_of_it(self) -> None:
        first = carried_out(settled(dict.fromkeys(range(150), True), []), [])
        assert sorted(len(one.endpoints or ()) for one in first) == [50, 100]
        plan = settled(dict.fromkeys(range(160), True), first)
        assert (plan.create, plan.stale) == ([], [])
        assert [len(one.endpoints or ()) for one in plan.update] == [60], "the full one is not touched"

    def test_a_changed_endpoint_changes_its_slice_alone(self) -> None:
        first = carried_out(settled(dict.fromkeys(range(150), True), []), [])
        plan = settled({**dict.fromkeys(range(150), True), 3: False}, first)
        assert (plan.create, plan.stale, len(plan.update)) == ([], [], 1)

    def test_labels_of_the_service_go_into_all_slices(self) -> None:
        first = carried_out(settled(dict.fromkeys(range(150), True), []), [])
        plan = settled(dict.fromkeys(range(150), True), first, team="a")
        assert [one.metadata.labels["team"] for one in plan.update] == ["a", "a"]

    def test_nothing_is_written_when_nothing_has_changed(self) -> None:
        first = carried_out(settled(dict.fromkeys(range(250), True), []), [])
        plan = settled(dict.fromkeys(range(250), True), first)
        assert (plan.create, plan.update, plan.stale) == ([], [], [])

    @given(some.lists(some.dictionaries(some.integers(0, 350), some.booleans(), max_size=330), max_size=5))
    def test_every_endpoint_is_told_once_whatever_was_before(self, states: list[dict[int, bool]]) -> None:
        slices: list[EndpointSlice] = []
        for wanted in states:
            slices = carried_out(settled(wanted, slices), slices)
            assert told(slices) == wanted
            assert slices, "one at least"
            assert all(len(one.endpoints or ()) <= FULL for one in slices)


class TestPods:
    POD = Pod(
        spec=PodSpec(
            containers=[
                Container(name="a", ports=[ContainerPort(name="web", container_port=1, protocol="UDP")]),
                Container(name="b", ports=[ContainerPort(name="web", container_port=2, protocol="TCP")]),
            ],
            init_containers=[
                Container(name="c", ports=[ContainerPort(name="once", container_port=3)]),
                Container(name="d", restart_policy="Always", ports=[ContainerPort(name="side", container_port=4)]),
            ],
        ),
        status=PodStatus(pod_ips=[PodIP(ip="10.1.0.1"), PodIP(ip="fd00:0:0:0::1")]),
    )

    @pytest.mark.parametrize(
        ("target", "protocol", "expected"),
        [(8080, "TCP", 8080), ("web", "TCP", 2), ("web", "UDP", 1), ("side", "TCP", 4), ("once", "TCP", None)],
    )
    def test_ports_are_found_by_number_or_name(self, target: int | str, protocol: str, expected: int | None) -> None:
        assert port_of(self.POD, ServicePort(port=80, target_port=target, protocol=protocol)) == expected

    def test_addresses_are_told_by_family_in_their_short_form(self) -> None:
        assert addresses_of(self.POD, "IPv4") == ["10.1.0.1"]
        assert addresses_of(self.POD, "IPv6") == ["fd00::1"]


def test_ports_stand_in_the_order_of_upstreams_hashes() -> None:
    """Recorded from Go: the sums are ff3fb7... for http and 3b28a0... for the nameless port."""
    fields = {
        "http": "Name:(*string)http Protocol:(*v1.Protocol)TCP Port:(*int32)8080 AppProtocol:(*string)h2c",
        "": "Name:(*string) Protocol:(*v1.Protocol)TCP Port:(*int32)8080 AppProtocol:(*string)<nil>",
    }
    assert hash_order(["http", ""], fields.__getitem__) == ["", "http"]
