"""The control loops of the embedded cluster: what happens around a write, seen through the API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from flyball.api import to_dict
from flyball.client.client import Client
from flyball.client.patches import MergePatch
from flyball.clock import ManualClock
from flyball.controlplane.cluster import EmbeddedCluster
from flyball.controlplane.controllers.events import TTL_SECONDS
from flyball.errors import NotFound
from flyball.k8s.core.v1 import ConfigMap, Event, Namespace, Node, ObjectReference, Secret, ServiceAccount
from flyball.k8s.meta.v1 import OwnerReference


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster() as cluster:
        yield cluster


@pytest.fixture
async def client(cluster: EmbeddedCluster) -> AsyncIterator[Client]:
    async with Client(transport=cluster.transport) as client:
        yield client


def reference(owner: Any, kind: str, *, block: bool | None = None) -> OwnerReference:
    return OwnerReference(
        api_version="v1", kind=kind, name=owner.metadata.name, uid=owner.metadata.uid, block_owner_deletion=block
    )


async def make(client: Client, name: str, *owners: OwnerReference, finalizers: list[str] | None = None) -> ConfigMap:
    obj = ConfigMap.new(name, namespace="default")
    obj.metadata.owner_references = list(owners)
    obj.metadata.finalizers = finalizers or []
    return await client.create(obj)


async def present(client: Client, name: str) -> bool:
    try:
        await client.get(ConfigMap, name, namespace="default")
    except NotFound:
        return False
    return True


# Owners and dependents


async def test_dependents_go_after_their_owner(cluster: EmbeddedCluster, client: Client) -> None:
    owner = await make(client, "owner")
    child = await make(client, "child", reference(owner, "ConfigMap"))
    await make(client, "grandchild", reference(child, "ConfigMap"))
    await client.delete(ConfigMap, "owner", namespace="default", propagation="Background")
    await cluster.controllers.settled()
    assert not await present(client, "child")
    assert not await present(client, "grandchild")


async def test_an_object_stays_while_one_owner_is_there(cluster: EmbeddedCluster, client: Client) -> None:
    one, two = await make(client, "one"), await make(client, "two")
    await make(client, "child", reference(one, "ConfigMap"), reference(two, "ConfigMap"))
    await client.delete(ConfigMap, "one", namespace="default", propagation="Background")
    await cluster.controllers.settled()
    child = await client.get(ConfigMap, "child", namespace="default")
    assert [owner.name for owner in child.metadata.owner_references] == ["two"]
    await client.delete(ConfigMap, "two", namespace="default", propagation="Background")
    await cluster.controllers.settled()
    assert not await present(client, "child")


async def test_an_object_whose_owner_never_was_goes(cluster: EmbeddedCluster, client: Client) -> None:
    await make(client, "child", OwnerReference(api_version="v1", kind="ConfigMap", name="none", uid="none"))
    await cluster.controllers.settled()
    assert not await present(client, "child")


async def test_another_object_of_the_owners_name_is_not_the_owner(cluster: EmbeddedCluster, client: Client) -> None:
    await make(client, "owner")
    await make(client, "child", OwnerReference(api_version="v1", kind="ConfigMap", name="owner", uid="another"))
    await cluster.controllers.settled()
    assert not await present(client, "child")


async def test_orphans_stay_and_name_no_owner(cluster: EmbeddedCluster, client: Client) -> None:
    owner = await make(client, "owner")
    await make(client, "child", reference(owner, "ConfigMap"))
    await client.delete(ConfigMap, "owner", namespace="default", propagation="Orphan")
    await cluster.controllers.settled()
    assert not await present(client, "owner")
    child = await client.get(ConfigMap, "child", namespace="default")
    assert not child.metadata.owner_references


async def test_a_foreground_owner_waits_for_those_that_block_it(cluster: EmbeddedCluster, client: Client) -> None:
    owner = await make(client, "owner")
    await make(client, "slow", reference(owner, "ConfigMap", block=True), finalizers=["example.com/busy"])
    await make(client, "quick", reference(owner, "ConfigMap"))
    await client.delete(ConfigMap, "owner", namespace="default", propagation="Foreground")
    await cluster.controllers.settled()
    waiting = await client.get(ConfigMap, "owner", namespace="default")
    assert waiting.metadata.finalizers == ["foregroundDeletion"]
    assert not await present(client, "quick")
    slow = await client.get(ConfigMap, "slow", namespace="default")
    assert slow.metadata.deletion_timestamp is not None
    await client.patch(slow, MergePatch({"metadata": {"finalizers": None}}))
    await cluster.controllers.settled()
    assert not await present(client, "slow")
    assert not await present(client, "owner")


async def test_a_foreground_owner_waits_for_nobody_else(cluster: EmbeddedCluster, client: Client) -> None:
    owner = await make(client, "owner")
    await make(client, "slow", reference(owner, "ConfigMap"), finalizers=["example.com/busy"])
    await client.delete(ConfigMap, "owner", namespace="default", propagation="Foreground")
    await cluster.controllers.settled()
    assert not await present(client, "owner")
    assert (await client.get(ConfigMap, "slow", namespace="default")).metadata.deletion_timestamp is not None


async def test_a_circle_of_owners_goes_in_the_foreground(cluster: EmbeddedCluster, client: Client) -> None:
    one = await make(client, "one")
    two = await make(client, "two", reference(one, "ConfigMap", block=True))
    metadata = {"ownerReferences": [to_dict(reference(two, "ConfigMap", block=True))]}
    await client.patch(one, MergePatch({"metadata": metadata}))
    await client.delete(ConfigMap, "one", namespace="default", propagation="Foreground")
    await cluster.controllers.settled()
    assert not await present(client, "one")
    assert not await present(client, "two")


async def test_an_owner_in_a_namespace_owns_nothing_of_the_cluster(cluster: EmbeddedCluster, client: Client) -> None:
    owner = await make(client, "owner")
    node = Node.new("n")
    node.metadata.owner_references = [reference(owner, "ConfigMap")]
    await client.create(node)
    await cluster.controllers.settled()
    with pytest.raises(NotFound):
        await client.get(Node, "n")
    reasons = [event.reason for event in await client.list(Event, namespace="default")]
    assert "OwnerRefInvalidNamespace" in reasons


async def test_a_loop_that_is_switched_off_does_nothing() -> None:
    off = EmbeddedCluster(controllers=["serviceaccount"])
    async with off as cluster, Client(transport=cluster.transport) as client:
        owner = await make(client, "owner")
        await make(client, "child", reference(owner, "ConfigMap"))
        await client.delete(ConfigMap, "owner", namespace="default", propagation="Background")
        await cluster.controllers.settled()
        assert await present(client, "child")
        assert not await present(client, "kube-root-ca.crt")
        assert (await client.get(ServiceAccount, "default", namespace="default")).metadata.uid


def test_a_loop_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match="there is no controller scheduler"):
        EmbeddedCluster(controllers=["scheduler"])


# Namespaces


async def test_a_namespace_goes_with_all_that_is_in_it(cluster: EmbeddedCluster, client: Client) -> None:
    await client.create(Namespace.new("n"))
    await client.create(Secret.new("s", namespace="n"))
    await client.delete(Namespace, "n")
    await cluster.controllers.settled()
    with pytest.raises(NotFound):
        await client.get(Namespace, "n")
    assert [secret.metadata.name for secret in await client.list(Secret)] == []


async def test_a_namespace_says_what_it_waits_for(cluster: EmbeddedCluster, client: Client) -> None:
    await client.create(Namespace.new("n"))
    held = Secret.new("s", namespace="n")
    held.metadata.finalizers = ["example.com/busy"]
    await client.create(held)
    await client.delete(Namespace, "n")
    await cluster.controllers.settled()
    namespace = await client.get(Namespace, "n")
    told = {one.type: (one.status, one.message) for one in namespace.status.conditions or []}
    assert told["NamespaceContentRemaining"] == (
        "True",
        "Some resources are remaining: secrets has 1 resource instances",
    )
    assert told["NamespaceFinalizersRemaining"] == (
        "True",
        "Some content in the namespace has finalizers remaining: example.com/busy in 1 resource instances",
    )
    assert told["NamespaceDeletionContentFailure"][0] == "False"
    await client.patch(await client.get(Secret, "s", namespace="n"), MergePatch({"metadata": {"finalizers": None}}))
    await cluster.controllers.settled()
    with pytest.raises(NotFound):
        await client.get(Namespace, "n")


async def test_the_loops_follow_a_state_that_was_brought_back(cluster: EmbeddedCluster, client: Client) -> None:
    await client.create(Namespace.new("n"))
    snapshot = cluster.snapshot()
    await client.delete(Namespace, "n")
    await cluster.controllers.settled()
    cluster.restore(snapshot)
    await cluster.controllers.settled()
    assert (await client.get(Namespace, "n")).status.phase == "Active"
    await client.create(Secret.new("s", namespace="n"))
    await client.delete(Namespace, "n")
    await cluster.controllers.settled()
    assert await client.list(Secret) == []


# What every namespace has


async def test_a_new_namespace_has_its_account_and_certificate_at_once(client: Client) -> None:
    await client.create(Namespace.new("n"))
    assert (await client.get(ServiceAccount, "default", namespace="n")).metadata.uid
    certificate = await client.get(ConfigMap, "kube-root-ca.crt", namespace="n")
    assert (certificate.data or {})["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")


async def test_what_is_deleted_or_changed_comes_back(cluster: EmbeddedCluster, client: Client) -> None:
    await client.delete(ServiceAccount, "default", namespace="default")
    certificate = await client.get(ConfigMap, "kube-root-ca.crt", namespace="default")
    await client.patch(certificate, MergePatch({"data": {"ca.crt": "nonsense"}}))
    await cluster.controllers.settled()
    assert (await client.get(ServiceAccount, "default", namespace="default")).metadata.uid
    again = await client.get(ConfigMap, "kube-root-ca.crt", namespace="default")
    assert again.data == certificate.data


# Events


async def test_events_are_forgotten_after_an_hour() -> None:
    clock = ManualClock(datetime(2030, 1, 1, tzinfo=UTC))
    async with EmbeddedCluster(clock=clock) as cluster, Client(transport=cluster.transport) as client:
        event = Event.new("e", namespace="default", involved_object=ObjectReference(namespace="default"))
        await client.create(event)
        await asyncio.sleep(0)
        await clock.advance(TTL_SECONDS - 1)
        assert [one.metadata.name for one in await client.list(Event, namespace="default")] == ["e"]
        await clock.advance(2)
        assert await client.list(Event, namespace="default") == []
