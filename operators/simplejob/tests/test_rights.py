"""The rights of config/rbac: enough for every scenario on a real API server, and nothing that no scenario uses."""

from __future__ import annotations

import pytest
from flyball.api import DynamicObject
from flyball.client import Client, MergePatch, ref
from flyball.errors import Forbidden
from flyball.k8s.batch.v1 import Job
from flyball.k8s.core.v1 import Pod, Secret
from flyball.testing import eventually, install

from simplejob.api import SimpleJob
from simplejob.controller.attempts import new_attempt

from .conftest import documents
from .playing import PATIENCE, World
from .test_ends import is_gone

pytestmark = [pytest.mark.capability("S4"), pytest.mark.scenario("simplejob-19")]

Right = tuple[str, str]

FOR_OTHERS: set[Right] = {
    ("simplejobs", "get"),
    ("simplejobs/status", "get"),
    ("simplejobs/status", "update"),
    ("simplejobs/finalizers", "update"),
}
"""In the role and never asked for by a request: the last one is asked for by admission, where
OwnerReferencesPermissionEnforcement is on (as on the real API server of these tests) and a Job blocks the deletion of
its owner; the others are what clients of other kinds use to the same ends."""


def granted() -> set[Right]:
    (role,) = [
        one for one in documents("rbac") if one["metadata"]["name"] == "simplejob" and one["kind"] == "ClusterRole"
    ]
    return {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}


def test_the_role_is_the_one_of_the_specification() -> None:
    wanted = {
        *(("simplejobs", verb) for verb in ("get", "list", "watch", "delete")),
        *(("simplejobs/status", verb) for verb in ("get", "patch", "update")),
        ("simplejobs/finalizers", "update"),
        *(("jobs", verb) for verb in ("get", "list", "watch", "create", "delete")),
        *(("pods", verb) for verb in ("list", "watch")),
    }
    assert granted() == wanted
    assert all("*" not in word for right in granted() for word in right)


async def test_every_right_is_used(box: World) -> None:
    assert box.box is not None
    mine = box.box.client_as("simplejob")
    await install(box.client, SimpleJob)
    async with box.operator(client=mine):
        await box.create(max_retries=1, ttl_seconds_after_finished=30)
        await box.stick(await box.job(1), "ImagePullBackOff")
        await box.until(lambda status: "ImagePullBackOff" in (status.message or ""))
        await box.edit(image="other")
        await eventually(lambda: box.box is not None and box.box.requests.of("delete", "jobs"))
        await box.later(1)
        await box.pods_go()
        await eventually(lambda: box.box is not None and len(box.box.requests.of("create", "jobs")) > 1)
        await box.succeed((await box.jobs())[-1])
        await box.phase("Completed")
        await box.later(30)
        await eventually(lambda: is_gone(box))
    made = await box.create(suspend=True)
    # Another process has made the Job, and the cache does not show it: who has the name is asked.
    box.box.faults.stall_watch(resource="jobs")
    async with box.operator(client=mine):
        await box.quiet()
        await box.client.create(new_attempt_of(made, box))
        await box.edit(suspend=False)
        await box.until(lambda status: (status.message or "").endswith("another name"))
    used = {
        (f"{one.resource}/{one.subresource}" if one.subresource else one.resource, one.verb)
        for one in box.box.requests
        if one.user == "simplejob" and one.resource not in ("", "events", "leases")
    }
    assert used == granted() - FOR_OTHERS


def new_attempt_of(made: SimpleJob, world: World) -> Job:
    """A stranger's Job of the name that is due next."""
    job = new_attempt(made, 1)
    job.metadata.namespace = world.namespace
    return job


@pytest.mark.parametrize("world", [pytest.param("real", marks=pytest.mark.real)], indirect=True)
async def test_what_is_not_granted_is_refused(world: World) -> None:
    """All scenarios on the real server are played with these rights; here is what they do not allow."""
    assert world.rights is not None
    mine: Client = world.rights
    async with world.operator():
        await world.create()
        job = await world.job(1)
        place = ref(SimpleJob, "demo", namespace=world.namespace)
        for refused in (
            mine.patch(place, MergePatch({"spec": {"suspend": True}})),
            mine.patch(ref(Job, job.metadata.name, namespace=world.namespace), MergePatch({"spec": {"suspend": True}})),
            mine.list(Secret, namespace=world.namespace),
            mine.get(Pod, "any", namespace=world.namespace),
            mine.delete_collection(Pod, namespace=world.namespace),
            mine.delete_collection(Job, namespace=world.namespace),
        ):
            with pytest.raises(Forbidden):
                await refused


@pytest.mark.parametrize("world", [pytest.param("real", marks=pytest.mark.real)], indirect=True)
async def test_without_the_finalizers_subresource_no_job_is_made(world: World) -> None:
    """The right that no request asks for is needed all the same."""
    (role,) = [
        one for one in documents("rbac") if one["metadata"]["name"] == "simplejob" and one["kind"] == "ClusterRole"
    ]
    less = {**role, "rules": [one for one in role["rules"] if one["resources"] != ["simplejobs/finalizers"]]}
    await world.client.apply(DynamicObject(less), field_manager="test", force=True)
    try:
        async with world.operator():
            await world.create()
            await world.until(lambda status: status.is_false("Progressing"))
            assert await world.condition("Progressing") == ("False", "Forbidden")
            await world.client.apply(role, field_manager="test", force=True)
            await eventually(lambda: _made_after_a_touch(world), timeout=PATIENCE)
    finally:
        await world.client.apply(role, field_manager="test", force=True)


async def _made_after_a_touch(world: World) -> bool:
    await world.touch()
    return bool(await world.jobs())
