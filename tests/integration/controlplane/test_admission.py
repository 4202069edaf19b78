"""What the server adds to objects and what it refuses, knowing the others: beyond the recorded answers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from flyball.client.client import Client
from flyball.client.patches import MergePatch
from flyball.controlplane.cluster import EmbeddedCluster
from flyball.errors import Forbidden, InternalError, Invalid
from flyball.k8s.autoscaling.v1 import CrossVersionObjectReference, HorizontalPodAutoscalerSpec
from flyball.k8s.autoscaling.v1 import HorizontalPodAutoscaler as OldAutoscaler
from flyball.k8s.autoscaling.v2 import HorizontalPodAutoscaler
from flyball.k8s.core.v1 import (
    Container,
    Event,
    ObjectReference,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    Pod,
    PodSpec,
    Service,
    ServiceAccount,
    ServicePort,
    ServiceSpec,
    VolumeResourceRequirements,
)
from flyball.k8s.events.v1 import Event as NewEvent
from flyball.k8s.scheduling.v1 import PriorityClass
from flyball.k8s.storage.v1 import StorageClass


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with EmbeddedCluster() as cluster, Client(transport=cluster.transport, namespace="default") as client:
        yield client


def pod(name: str, **spec: str) -> Pod:
    return Pod.new(name, spec=PodSpec(containers=[Container(name="c", image="i")], **spec))  # type: ignore[arg-type]


def service(name: str, **spec: str) -> Service:
    return Service.new(name, spec=ServiceSpec(ports=[ServicePort(port=80)], **spec))  # type: ignore[arg-type]


async def test_services_have_addresses_of_their_own(client: Client) -> None:
    made = [await client.create(service(f"s{number}", type="NodePort")) for number in range(30)]
    addresses = {one.spec.cluster_ip for one in made}
    ports = {(one.spec.ports or [])[0].node_port for one in made}
    assert (len(addresses), len(ports)) == (30, 30)
    assert "10.0.0.1" not in addresses


async def test_addresses_end_and_are_given_out_again(client: Client) -> None:
    for number in range(253):
        await client.create(service(f"s{number}"))
    with pytest.raises(InternalError, match='failed to allocate a serviceIP for Service "more": range is full'):
        await client.create(service("more"))
    await client.create(service("headless", cluster_ip="None"))
    given_back = await client.get(Service, "s100")
    await client.delete(given_back)
    assert (await client.create(service("more"))).spec.cluster_ip == given_back.spec.cluster_ip


async def test_an_address_that_is_taken_is_refused_and_one_that_was_given_back_is_free(client: Client) -> None:
    await client.create(service("one", cluster_ip="10.0.0.99"))
    with pytest.raises(Invalid, match="provided IP is already allocated"):
        await client.create(service("two", cluster_ip="10.0.0.99"))
    with pytest.raises(Invalid, match="does not match the current range"):
        await client.create(service("two", cluster_ip="10.1.0.1"))
    await client.delete(Service, "one")
    assert (await client.create(service("two", cluster_ip="10.0.0.99"))).spec.cluster_ip == "10.0.0.99"


async def test_a_service_keeps_what_an_update_leaves_out(client: Client) -> None:
    made = await client.create(service("one", type="NodePort"))
    port = (made.spec.ports or [])[0].node_port
    changed = await client.patch(made, MergePatch({"spec": {"ports": [{"port": 80}], "clusterIP": None}}))
    assert (changed.spec.cluster_ip, (changed.spec.ports or [])[0].node_port) == (made.spec.cluster_ip, port)
    inside = await client.patch(changed, MergePatch({"spec": {"type": "ClusterIP"}}))
    assert not (inside.spec.ports or [])[0].node_port


async def test_the_account_of_a_pod_says_whether_it_has_a_token(client: Client) -> None:
    await client.create(ServiceAccount.new("quiet", automount_service_account_token=False))
    assert not (await client.create(pod("a", service_account_name="quiet"))).spec.volumes
    assert len((await client.create(pod("b"))).spec.volumes or []) == 1
    with pytest.raises(Forbidden, match='serviceaccount "none" not found'):
        await client.create(pod("c", service_account_name="none"))


async def test_the_default_priority_class_counts_for_new_pods(client: Client) -> None:
    await client.create(PriorityClass.new("usual", value=7, global_default=True))
    made = await client.create(pod("a"))
    assert (made.spec.priority_class_name, made.spec.priority) == ("usual", 7)


async def test_a_claim_gets_the_default_storage_class(client: Client) -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    await client.create(StorageClass.new("usual", provisioner="a.io/p", annotations=annotations))
    wanted = PersistentVolumeClaimSpec(
        access_modes=["ReadWriteOnce"], resources=VolumeResourceRequirements(requests={"storage": "1Gi"})
    )
    made = await client.create(PersistentVolumeClaim.new("c", spec=wanted))
    assert made.spec.storage_class_name == "usual"
    assert made.metadata.finalizers == ["kubernetes.io/pvc-protection"]


async def test_an_event_is_one_object_in_two_shapes(client: Client) -> None:
    about = ObjectReference(kind="Pod", namespace="default", name="p")
    made = await client.create(Event.new("e", involved_object=about, message="m", reason="r", type="Normal"))
    other = await client.get(NewEvent, "e")
    assert other.regarding is not None
    assert (other.note, other.regarding.name, other.metadata.uid) == ("m", "p", made.metadata.uid)
    found = await client.list(NewEvent, fields="regarding.name=p")
    assert [one.metadata.name for one in found] == ["e"]
    await client.delete(NewEvent, "e")
    assert await client.list(Event) == []


async def test_an_autoscaler_is_one_object_in_two_versions(client: Client) -> None:
    target = CrossVersionObjectReference(api_version="apps/v1", kind="Deployment", name="d")
    spec = HorizontalPodAutoscalerSpec(max_replicas=3, target_cpu_utilization_percentage=50, scale_target_ref=target)
    await client.create(OldAutoscaler.new("a", spec=spec))
    new = await client.get(HorizontalPodAutoscaler, "a")
    (metric,) = new.spec.metrics or []
    assert metric.resource is not None
    assert metric.resource.target.average_utilization == 50
