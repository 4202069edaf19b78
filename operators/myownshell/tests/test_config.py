"""The files of config/: what they install is what the API server takes."""

from __future__ import annotations

from flyball.api import crd_of
from flyball.client import Client
from flyball.k8s.apiextensions.v1 import CustomResourceDefinition
from flyball.k8s.rbac.v1 import ClusterRole
from flyball.testing import Cluster, eventually

from myownshell.api import MyOwnShell

from .world import documents


async def apply(client: Client, folder: str) -> None:
    for one in documents(folder):
        await client.apply(one, field_manager="test")


async def test_the_definition_serves_the_samples_and_fills_in_the_defaults(cluster: Cluster) -> None:
    client = cluster.client
    await apply(client, "crd")
    await eventually(
        lambda: client.get(CustomResourceDefinition, "myownshells.my-first-operator.jgato.io"),
        lambda one: any(each.type == "Established" and each.status == "True" for each in one.status.conditions or ()),
    )
    await apply(client, "samples")
    found = await client.get(MyOwnShell, "myownshell-sample", namespace="default")
    assert (found.spec.size, found.spec.image, found.spec.shell) == (3, "busybox:1.36", "/bin/sh")
    assert found.spec.resources.requests == {"cpu": "10m", "memory": "16Mi"}
    assert found.spec.lifetime_seconds is None
    other = await client.get(MyOwnShell, "myownshell-for-an-hour", namespace="default")
    assert (other.spec.size, other.spec.image, other.spec.lifetime_seconds) == (1, "alpine:3.20", 3600)


def test_the_definition_is_that_of_the_class() -> None:
    (found,) = documents("crd")
    assert found == crd_of(MyOwnShell)


async def test_the_roles_are_accepted(cluster: Cluster) -> None:
    await apply(cluster.client, "rbac")
    role = await cluster.client.get(ClusterRole, "myownshell")
    assert all("*" not in [*(rule.verbs or []), *(rule.resources or [])] for rule in role.rules or [])
