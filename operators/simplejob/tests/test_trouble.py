"""Scenarios 18 to 20: specs that make no sense, an API server that refuses, and deletion."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from flyball.api import DynamicObject, crd_of
from flyball.client import MergePatch, ref
from flyball.k8s.batch.v1 import Job
from flyball.k8s.core.v1 import ResourceQuota, ResourceQuotaSpec
from flyball.testing import eventually

from simplejob.api import SimpleJob

from .playing import PATIENCE, World

pytestmark = pytest.mark.capability("S4")


async def loosen(world: World) -> None:
    """Serve the kind under a definition that lets everything pass."""
    definition = crd_of(SimpleJob)
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    await world.client.apply(DynamicObject(definition), field_manager="test", force=True)


def stored(name: str = "demo", **spec: Any) -> DynamicObject:
    return DynamicObject(
        apiVersion="jobs.example.com/v1alpha1",
        kind="SimpleJob",
        metadata={"name": name, "namespace": "default"},
        spec={"command": "true", "image": "busybox", **spec},
    )


BAD: list[tuple[dict[str, Any], str]] = [
    ({"image": ""}, "spec.image"),
    ({"image": None}, "spec.image"),
    ({"image": 5}, "spec.image"),
    ({"command": ""}, "spec.command"),
    ({"maxRetries": -1}, "spec.maxRetries"),
    ({"maxRetries": "three"}, "spec.maxRetries"),
    ({"name": "x" * 53}, "metadata.name"),
]


@pytest.mark.scenario("simplejob-18")
@pytest.mark.parametrize(("wrong", "path"), BAD, ids=[str(one)[:24] for one, _ in BAD])
async def test_18_a_bad_spec_under_a_looser_definition(
    box: World, wrong: dict[str, Any], path: str, caplog: pytest.LogCaptureFixture
) -> None:
    await loosen(box)
    made = stored(**wrong)
    if made["spec"]["image"] is None:
        del made["spec"]["image"]
    name = made["metadata"]["name"]
    await eventually(lambda: box.client.create(made))
    with caplog.at_level(logging.INFO):
        async with box.operator(definitions=False):
            status = await box.until(lambda status: status.is_false("Progressing"), name)
            condition = status.condition("Progressing")
            assert condition is not None
            assert condition.reason == "InvalidSpec"
            assert path.rpartition(".")[2] in condition.message
            await box.nothing_happens()
            assert await box.jobs() == []
            assert await box.warnings() == ["InvalidSpec"]
            if name == "demo":
                fixed = {"image": "busybox", "command": "true", "maxRetries": 3}
                place = ref(SimpleJob, "demo", namespace="default")
                await box.client.patch(place, MergePatch({"spec": fixed}))
                await box.job(1)
                await box.phase("Pending")
                assert await box.condition("Progressing") == ("True", "AttemptPending")
    assert "Traceback" not in caplog.text


@pytest.mark.scenario("simplejob-19")
async def test_19_a_conflict_on_the_status_is_silent(box: World, caplog: pytest.LogCaptureFixture) -> None:
    assert box.box is not None
    box.box.faults.status(409, verb="patch", resource="simplejobs", subresource="status", first=2)
    with caplog.at_level(logging.INFO):
        async with box.operator():
            await box.create()
            await box.job(1)
            await box.later(1)
            await box.phase("Pending", attempts=1)
            assert await box.warnings() == []
            assert await box.numbers() == [1]
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]


@pytest.mark.scenario("simplejob-19")
async def test_19_a_quota_that_is_exhausted_on_the_box(box: World) -> None:
    assert box.box is not None
    words = 'jobs.batch "x" is forbidden: exceeded quota: none, requested: count/jobs.batch=1, used: 0, limited: 0'
    refused = box.box.faults.status(403, message=words, verb="create", resource="jobs")
    async with box.operator():
        await box.create()
        await box.until(lambda status: status.is_false("Progressing"))
        assert await box.condition("Progressing") == ("False", "QuotaExceeded")
        condition = (await box.get()).status.condition("Progressing")
        assert condition is not None
        assert "exceeded quota: none" in condition.message
        assert await box.warnings() == ["QuotaExceeded"]
        refused.remove()
        await box.later(300)
        await box.job(1)
        status = await box.phase("Pending", attempts=1)
        assert status.is_true("Progressing")


@pytest.mark.scenario("simplejob-19")
@pytest.mark.parametrize("world", [pytest.param("real", marks=pytest.mark.real)], indirect=True)
async def test_19_a_quota_that_is_exhausted(world: World) -> None:
    quota = ResourceQuota.new("none", namespace=world.namespace, spec=ResourceQuotaSpec(hard={"count/jobs.batch": "0"}))
    await world.client.create(quota)
    await eventually(
        lambda: world.client.get(ResourceQuota, "none", namespace=world.namespace),
        lambda one: bool(one.status.hard),
        timeout=PATIENCE,
    )
    async with world.operator():
        await world.create()
        await world.until(lambda status: status.is_false("Progressing"))
        assert await world.condition("Progressing") == ("False", "QuotaExceeded")
        assert await world.warnings() == ["QuotaExceeded"]
        await world.client.delete(ResourceQuota, "none", namespace=world.namespace)
        await world.touch()
        await world.job(1)
        await world.phase("Pending", attempts=1)


@pytest.mark.scenario("simplejob-19")
@pytest.mark.parametrize(
    ("verb", "resource", "spec"),
    [("create", "jobs", {}), ("delete", "jobs", {}), ("delete", "simplejobs", {"ttl_seconds_after_finished": 0})],
)
async def test_19_what_is_forbidden_is_told_and_tried_again(
    box: World, verb: str, resource: str, spec: dict[str, Any]
) -> None:
    assert box.box is not None
    message = f'{resource} is forbidden: User "simplejob" cannot {verb} resource "{resource}"'
    refused = box.box.faults.status(403, message=message, verb=verb, resource=resource)
    async with box.operator():
        await box.create(**spec)
        if verb == "delete":
            job = await box.job(1)
            if resource == "jobs":
                await box.stick(job, "ImagePullBackOff")
                await box.until(lambda status: "ImagePullBackOff" in (status.message or ""))
                await box.edit(image="other")
            else:
                await box.succeed(job)
        await box.until(lambda status: status.is_false("Progressing") and _reason(status) == "Forbidden")
        assert "Forbidden" in await box.warnings()
        refused.remove()
        box.box.requests.clear()
        await box.later(1000)
        done = box.box.requests.of(verb, resource)
        assert [one.status for one in done][:1] == [201 if verb == "create" else 200]


def _reason(status: Any) -> str:
    found = status.condition("Progressing")
    return found.reason if found is not None else ""


@pytest.mark.scenario("simplejob-20")
async def test_20_nothing_is_written_to_what_is_being_deleted(world: World) -> None:
    async with world.operator():
        made = await world.create()
        job = await world.job(1)
        await world.begin(job)
        await world.phase("Running")
        place = ref(SimpleJob, "demo", namespace=world.namespace)
        await world.client.patch(place, MergePatch({"metadata": {"finalizers": ["example.com/held"]}}))
        await world.client.delete(made, propagation="Background")
        going = await world.get()
        assert going.metadata.deletion_timestamp is not None
        await world.fail(job)
        await world.quiet()
        await world.later(600)
        assert (await world.get()).metadata.resource_version == going.metadata.resource_version
        assert await world.numbers() == [1]
        await world.client.patch(place, MergePatch({"metadata": {"finalizers": None}}))
        await eventually(lambda: _no_jobs(world), timeout=PATIENCE * 3)


async def _no_jobs(world: World) -> bool:
    for job in await world.client.list(Job, namespace=world.namespace):
        if job.metadata.deletion_timestamp is not None and job.metadata.finalizers:
            await world.let_go(job)
    await world.pods_go()
    return await world.jobs() == []
