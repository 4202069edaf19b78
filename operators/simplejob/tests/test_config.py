"""The files of config/: what they install, and what the API server then takes and refuses."""

from __future__ import annotations

from typing import Any

import pytest
from flyball.api import DynamicObject
from flyball.client import Client
from flyball.errors import Invalid
from flyball.k8s.apiextensions.v1 import CustomResourceDefinition
from flyball.testing import Cluster, eventually

from simplejob.api import SimpleJob, SimpleJobSpec

from .conftest import documents


async def apply(client: Client, folder: str) -> None:
    for one in documents(folder):
        await client.apply(one, field_manager="test")


async def installed(client: Client) -> None:
    await apply(client, "crd")
    await eventually(
        lambda: client.get(CustomResourceDefinition, "simplejobs.jobs.example.com"),
        lambda one: any(each.type == "Established" and each.status == "True" for each in one.status.conditions or ()),
    )


async def test_the_definition_serves_the_sample_and_fills_in_the_defaults(cluster: Cluster) -> None:
    await installed(cluster.client)
    await apply(cluster.client, "samples")
    found = await cluster.client.get(SimpleJob, "simplejob-sample", namespace="default")
    assert found.spec.command == "echo Hello from SimpleJob && sleep 10"
    assert (found.spec.max_retries, found.spec.retry_backoff_seconds, found.spec.suspend) == (3, 5, False)


async def test_the_roles_are_accepted(cluster: Cluster) -> None:
    await apply(cluster.client, "rbac")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"image": ""}, "spec.image"),
    ({"image": "busy box"}, "spec.image"),
    ({"image": "busybox\n"}, "spec.image"),
    ({"command": ""}, "spec.command"),
    ({"command": "x" * 65537}, "spec.command"),
    ({"maxRetries": -1}, "spec.maxRetries"),
    ({"maxRetries": 101}, "spec.maxRetries"),
    ({"retryBackoffSeconds": 301}, "spec.retryBackoffSeconds"),
    ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds"),
    ({"ttlSecondsAfterFinished": -1}, "spec.ttlSecondsAfterFinished"),
    ({"imagePullPolicy": "Sometimes"}, "spec.imagePullPolicy"),
]


@pytest.mark.scenario("simplejob-18")
@pytest.mark.parametrize(("wrong", "path"), REFUSED, ids=[str(one)[:40] for one, _ in REFUSED])
async def test_18_a_bad_spec_is_refused_with_its_path(cluster: Cluster, wrong: dict[str, Any], path: str) -> None:
    await installed(cluster.client)
    await refused(cluster.client, {"command": "true", "image": "busybox", **wrong}, path)


@pytest.mark.scenario("simplejob-18")
@pytest.mark.parametrize("missing", ["command", "image"])
async def test_18_a_missing_field_is_refused_with_its_path(cluster: Cluster, missing: str) -> None:
    await installed(cluster.client)
    spec = {"command": "true", "image": "busybox"}
    del spec[missing]
    await refused(cluster.client, spec, f"spec.{missing}")


@pytest.mark.scenario("simplejob-18")
async def test_18_a_name_that_leaves_no_room_is_refused(cluster: Cluster) -> None:
    await installed(cluster.client)
    spec = SimpleJobSpec(command="true", image="busybox")
    await cluster.client.create(SimpleJob.new("x" * 52, namespace="default", spec=spec))
    with pytest.raises(Invalid, match=r"metadata\.name"):
        await cluster.client.create(SimpleJob.new("x" * 53, namespace="default", spec=spec))


async def refused(client: Client, spec: dict[str, Any], path: str) -> None:
    made = DynamicObject(
        apiVersion="jobs.example.com/v1alpha1",
        kind="SimpleJob",
        metadata={"name": "demo", "namespace": "default"},
        spec=spec,
    )
    with pytest.raises(Invalid) as caught:
        await client.create(made)
    assert path in str(caught.value)
