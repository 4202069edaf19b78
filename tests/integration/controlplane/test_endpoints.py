"""Endpoints and EndpointSlices on the cluster in the box."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from flyball.client import Client, MergePatch, ref
from flyball.clock import ManualClock
from flyball.k8s.core.v1 import (
    Container,
    ContainerPort,
    Endpoints,
    Event,
    Node,
    Pod,
    PodSpec,
    Service,
    ServicePort,
    ServiceSpec,
)
from flyball.k8s.discovery.v1 import Endpoint, EndpointSlice
from flyball.k8s.meta.v1 import ObjectMeta
from flyball.testing import Cluster

T = TypeVar("T")

SIMULATE = "simulate.flyball.dev/"
_LOOKS = 1000


class Box:
    """A cluster with a Service, `web`."""

    def __init__(self, client: Client, clock: ManualClock) -> None:
        self.client, self.clock = client, clock

    async def pod(self, name: str, *, labels: dict[str, str] | None = None, **spec: Any) -> Pod:
        annotations = spec.pop("annotations", {})
        port = ContainerPort(name="http", container_port=spec.pop("port", 8080))
        return await self.client.create(
            Pod(
                metadata=ObjectMeta(
                    name=name, namespace="default", labels=labels or {"app": "web"}, annotations=annotations
                ),
                spec=PodSpec(containers=[Container(name="c", image="i:1", ports=[port])], **spec),
            )
        )

    async def service(self, **spec: Any) -> Service:
        ports = spec.pop("ports", [ServicePort(name="http", port=80, target_port="http")])
        labels = spec.pop("labels", {})
        selector = spec.pop("selector", {"app": "web"})
        return await self.client.create(
            Service(
                metadata=ObjectMeta(name="web", namespace="default", labels=labels),
                spec=ServiceSpec(selector=selector, ports=ports, **spec),
            )
        )

    async def change(self, **spec: Any) -> None:
        await self.client.patch(ref(Service, "web", namespace="default"), MergePatch({"spec": spec}))

    async def slices(self) -> list[EndpointSlice]:
        found = await self.client.list(EndpointSlice, namespace="default", labels="kubernetes.io/service-name=web")
        return sorted(found, key=lambda one: one.metadata.name)

    async def told(self) -> dict[str, Endpoint]:
        """The endpoints of all slices, by the names of their Pods."""
        return {
            str(endpoint.target_ref.name): endpoint
            for one in await self.slices()
            for endpoint in one.endpoints or ()
            if endpoint.target_ref is not None
        }

    async def old(self) -> Endpoints | None:
        found = await self.client.list(Endpoints, namespace="default", fields="metadata.name=web")
        return found[0] if found else None

    async def until(self, probe: Callable[[], Awaitable[T]], right: Callable[[T], object], *, step: float = 0.02) -> T:
        """Turn the clock in small steps until the answer is right."""
        answer = await probe()
        for _ in range(_LOOKS):
            if right(answer):
                return answer
            await self.clock.advance(step)
            answer = await probe()
        raise AssertionError(f"not so after {_LOOKS} steps of {step} s; last seen: {answer}")


@asynccontextmanager
async def box() -> AsyncGenerator[Box]:
    clock = ManualClock()
    async with Cluster(clock=clock, workloads=True) as cluster:
        yield Box(cluster.client, clock)


def conditions(told: dict[str, Endpoint], name: str = "a") -> tuple[bool | None, bool | None, bool | None]:
    """Ready, serving, terminating; nothing while the Pod is not told of."""
    found = told[name].conditions if name in told else None
    return (found.ready, found.serving, found.terminating) if found is not None else (None, None, None)


def ips(found: Endpoints | None, part: str = "addresses") -> list[str]:
    if found is None:
        return []
    return [one.ip for subset in found.subsets or () for one in getattr(subset, part) or ()]


async def test_pods_that_are_ready_are_told_with_their_ports_and_whose_they_are() -> None:
    async with box() as one:
        await one.service(labels={"team": "a"})
        await one.pod("a")
        told = await one.until(one.told, lambda told: conditions(told)[0])
        pod = await one.client.get(Pod, "a", namespace="default")
        endpoint = told["a"]
        assert endpoint.addresses == [pod.status.pod_ip]
        assert conditions(told) == (True, True, False)
        assert endpoint.node_name == pod.spec.node_name
        assert endpoint.target_ref is not None
        assert (endpoint.target_ref.kind, endpoint.target_ref.uid) == ("Pod", pod.metadata.uid)
        (found,) = await one.slices()
        assert found.metadata.labels == {
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            "kubernetes.io/service-name": "web",
            "team": "a",
        }
        assert found.metadata.name.startswith("web-")
        assert [owner.kind for owner in found.metadata.owner_references] == ["Service"]
        assert [(port.name, port.port, port.protocol) for port in found.ports or ()] == [("http", 8080, "TCP")]
        old = await one.until(one.old, lambda old: ips(old))
        assert old is not None
        assert ips(old) == [pod.status.pod_ip]
        assert old.metadata.labels == {"endpoints.kubernetes.io/managed-by": "endpoint-controller", "team": "a"}
        assert "endpoints.kubernetes.io/last-change-trigger-time" in old.metadata.annotations


async def test_a_pod_that_is_not_ready_is_told_but_gets_no_traffic() -> None:
    async with box() as one:
        await one.service()
        await one.pod("a", annotations={SIMULATE + "ready-after": "60"})
        told = await one.until(one.told, lambda told: "a" in told)
        assert conditions(told) == (False, False, False)
        old = await one.until(one.old, lambda old: ips(old, "not_ready_addresses"))
        assert ips(old) == []
        await one.until(one.told, lambda told: conditions(told)[0], step=1)
        await one.until(one.old, lambda old: ips(old) and not ips(old, "not_ready_addresses"))


async def test_a_service_may_publish_pods_before_they_are_ready() -> None:
    async with box() as one:
        await one.service(publish_not_ready_addresses=True)
        await one.pod("a", annotations={SIMULATE + "ready-after": "never"})
        told = await one.until(one.told, lambda told: "a" in told)
        assert conditions(told) == (True, False, False)
        await one.until(one.old, lambda old: ips(old))


async def test_a_pod_that_is_going_serves_still_and_is_not_ready() -> None:
    async with box() as one:
        await one.service()
        pod = await one.pod("a")
        await one.until(one.told, lambda told: "a" in told)
        pod = await one.client.get(Pod, "a", namespace="default")
        pod.metadata.finalizers.append("example.org/wait")
        pod = await one.client.patch(pod)
        await one.client.delete(pod, grace_period=0)
        told = await one.until(one.told, lambda told: "a" not in told or conditions(told)[2])
        assert not conditions(told)[0], "or the kubelet has ended it already"
        await one.until(one.old, lambda old: not ips(old))
        pod = await one.client.get(Pod, "a", namespace="default")
        pod.metadata.finalizers = []
        await one.client.patch(pod)
        (left,) = await one.until(one.slices, lambda found: not any(one.endpoints for one in found))
        assert left.ports is None


async def test_members_of_a_headless_service_have_names() -> None:
    async with box() as one:
        await one.service(cluster_ip="None")
        await one.pod("a", hostname="first", subdomain="web")
        await one.pod("b", hostname="second", subdomain="elsewhere")
        told = await one.until(one.told, lambda told: len(told) == 2)
        assert (told["a"].hostname, told["b"].hostname) == ("first", None)
        (found,) = await one.slices()
        assert "service.kubernetes.io/headless" in found.metadata.labels
        old = await one.until(one.old, lambda old: len(ips(old)) == 2)
        assert old is not None
        assert "service.kubernetes.io/headless" in old.metadata.labels


async def test_a_headless_service_needs_no_ports() -> None:
    async with box() as one:
        await one.service(cluster_ip="None", ports=None)
        await one.pod("a")
        await one.until(one.told, lambda told: "a" in told)
        old = await one.until(one.old, lambda old: ips(old))
        assert old is not None
        assert [subset.ports for subset in old.subsets or ()] == [None]


async def test_ports_by_name_may_differ_from_pod_to_pod() -> None:
    async with box() as one:
        await one.service(ports=[ServicePort(name="http", port=80, target_port="http"), ServicePort(name="m", port=90)])
        await one.pod("a", port=8080)
        await one.pod("b", port=9090)

        def by_port(slices: list[EndpointSlice]) -> list[list[int]]:
            return sorted(sorted(port.port or 0 for port in one.ports or ()) for one in slices if one.endpoints)

        await one.until(one.slices, lambda found: by_port(found) == [[90, 8080], [90, 9090]])
        old = await one.until(one.old, lambda old: len(ips(old)) >= 4)
        assert old is not None
        ports = {tuple(port.port for port in one.ports or ()): len(one.addresses or ()) for one in old.subsets or ()}
        assert ports == {(8080,): 1, (9090,): 1, (90,): 2}


async def test_a_changed_selector_or_label_moves_pods() -> None:
    async with box() as one:
        await one.service()
        await one.pod("a")
        await one.pod("b", labels={"app": "other"})
        await one.until(one.told, lambda told: list(told) == ["a"])
        await one.change(selector={"app": "other"})
        await one.until(one.told, lambda told: list(told) == ["b"])
        place = ref(Pod, "a", namespace="default")
        await one.client.patch(place, MergePatch({"metadata": {"labels": {"app": "other"}}}))
        await one.until(one.told, lambda told: sorted(told) == ["a", "b"])
        await one.client.patch(place, MergePatch({"metadata": {"labels": {"app": "web"}}}))
        await one.until(one.told, lambda told: list(told) == ["b"])


async def test_everything_goes_with_the_service() -> None:
    async with box() as one:
        await one.service()
        await one.until(one.old, lambda old: old is not None)
        await one.until(one.slices, len)
        await one.client.delete(Service, "web", namespace="default")
        await one.until(one.old, lambda old: old is None)
        await one.until(one.slices, lambda slices: not slices)


async def test_a_service_that_selects_nothing_is_left_alone() -> None:
    async with box() as one:
        await one.service(selector=None)
        mine = Endpoints(metadata=ObjectMeta(name="web", namespace="default"))
        made = await one.client.create(mine)
        other = await one.client.create(
            Service(
                metadata=ObjectMeta(name="other", namespace="default"),
                spec=ServiceSpec(selector={"app": "web"}, ports=[ServicePort(port=80)]),
            )
        )
        await one.until(lambda: one.client.list(Endpoints, namespace="default"), lambda all_: len(all_) >= 2)
        assert await one.slices() == []
        old = await one.old()
        assert old is not None
        assert old.metadata.resource_version == made.metadata.resource_version
        assert other.spec.cluster_ip


async def test_what_somebody_else_changed_is_put_right() -> None:
    async with box() as one:
        await one.service()
        await one.pod("a")
        await one.until(one.told, lambda told: "a" in told)
        (found,) = await one.slices()
        await one.client.delete(found)
        await one.until(one.told, lambda told: "a" in told)
        old = await one.until(one.old, lambda old: ips(old))
        assert old is not None
        await one.client.delete(old)
        await one.until(one.old, lambda old: ips(old))


async def test_a_slice_holds_a_hundred_and_what_is_freed_is_filled() -> None:
    async with box() as one:
        await one.client.patch(
            ref(Node, "node-1"),
            MergePatch({"status": {"allocatable": {"pods": "500"}, "capacity": {"pods": "500"}}}),
            subresource="status",
        )
        for number in range(230):
            await one.pod(f"p-{number:03}")
        await one.until(
            lambda: one.client.list(Pod, namespace="default"),
            lambda pods: all(pod.status.pod_ip for pod in pods),
        )
        await one.service()
        await one.until(one.told, lambda told: len(told) == 230)
        assert sorted(len(found.endpoints or ()) for found in await one.slices()) == [30, 100, 100]
        await one.client.delete(Pod, "p-000", namespace="default")
        await one.until(one.told, lambda told: len(told) == 229)
        await one.pod("q")
        await one.until(one.told, lambda told: "q" in told)
        assert sorted(len(found.endpoints or ()) for found in await one.slices()) in ([30, 100, 100], [31, 99, 100])
        await one.until(one.old, lambda old: len(ips(old)) == 230)


async def test_pods_on_a_node_that_is_not_there_are_left_out_and_an_event_says_so() -> None:
    async with box() as one:
        await one.service()
        await one.pod("lost", node_name="nowhere")
        status = {"phase": "Running", "podIP": "10.9.9.9", "podIPs": [{"ip": "10.9.9.9"}]}
        await one.client.patch(
            ref(Pod, "lost", namespace="default"), MergePatch({"status": status}), subresource="status"
        )

        async def events() -> list[str]:
            found = await one.client.list(Event, namespace="default")
            return [event.message or "" for event in found if event.reason == "FailedToUpdateEndpointSlices"]

        (message,) = await one.until(events, len)
        assert message == (
            "Error updating Endpoint Slices for Service default/web: "
            "skipping Pod lost for Service default/web: Node nowhere Not Found"
        )
        assert await one.told() == {}


async def test_traffic_that_shall_stay_near_is_hinted_at() -> None:
    async with box() as one:
        zone = MergePatch({"metadata": {"labels": {"topology.kubernetes.io/zone": "z1"}}})
        await one.client.patch(ref(Node, "node-1"), zone)
        await one.service(traffic_distribution="PreferSameNode")
        await one.pod("a")
        told = await one.until(one.told, lambda told: "a" in told and told["a"].hints is not None)
        assert told["a"].zone == "z1"
        hints = told["a"].hints
        assert hints is not None
        assert [one.name for one in hints.for_zones or ()] == ["z1"]
        assert [one.name for one in hints.for_nodes or ()] == ["node-1"]
