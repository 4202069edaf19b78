"""The scenarios in which time goes by: 18, 19 and 20; and the numbers that are served."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from flyball.k8s.apps.v1 import Deployment
from flyball.k8s.core.v1 import ConfigMap
from flyball.manager import Manager

from myownshell.api import GROUP, MyOwnShell
from myownshell.lifetime import RENEW

from .world import USER, World

pytestmark = pytest.mark.capability("S10")
scenario = pytest.mark.scenario


async def renew(world: World, value: str) -> None:
    await world.patch(MyOwnShell, {"metadata": {"annotations": {RENEW: value}}})


@scenario("myownshell-18")
async def test_18_lifetime(box: World) -> None:
    async with box.operator():
        shell = await box.begun(lifetime_seconds=60)
        made = shell.metadata.creation_timestamp
        assert made is not None
        shell = await box.until(box.shell, lambda one: one.status.expires_at is not None)
        assert shell.status.expires_at == made + timedelta(seconds=60)
        await box.advance(50)
        assert (await box.deployment()).spec.replicas == 3
        await box.advance(10)
        await box.replicas(0)
        assert 60 <= (box.clock.now() - made).total_seconds() <= 62
        shell = await box.condition("Available", "False", "Expired")
        assert shell.status.is_false("Degraded")
        assert ((await box.settings()).data or {})["replicas"] == "3"
        (told,) = await box.until(lambda: box.events("Expired"))
        assert told.note == "3 shells were closed after 60 s"
        await renew(box, "once more")
        await box.replicas(3)
        renewed = box.clock.now()
        shell = await box.condition("Available", "True", "ShellsReady")
        await box.advance(50)
        assert (await box.deployment()).spec.replicas == 3
    async with box.operator():
        await box.advance(5)
        assert (await box.deployment()).spec.replicas == 3
        await box.advance(5)
        await box.replicas(0)
        assert (box.clock.now() - renewed).total_seconds() <= 62
        assert await box.warnings() == []


@scenario("myownshell-18")
async def test_18_it_ends_while_the_operator_is_down(bare: World) -> None:
    async with bare.operator():
        await bare.begun(lifetime_seconds=60)
    await bare.advance(1000)
    async with bare.operator():
        await bare.replicas(0)
    await renew(bare, "again")
    async with bare.operator():
        await bare.replicas(3)
        await bare.advance(61)
        await bare.replicas(0)


@scenario("myownshell-18")
async def test_18_a_spoilt_notebook_is_no_notebook(bare: World) -> None:
    async with bare.operator():
        await bare.begun(lifetime_seconds=600)
        await renew(bare, "x")
        await bare.until(bare.settings, lambda one: one.metadata.annotations.get(RENEW) == "x")
        await bare.patch(ConfigMap, {"metadata": {"annotations": {f"{GROUP}/renewed-at": "yesterday"}}})
        await bare.advance(300)
        assert (await bare.deployment()).spec.replicas == 3
        await bare.advance(300)
        await bare.replicas(0)
        assert await bare.warnings() == []


@scenario("myownshell-19")
async def test_19_contest(box: World) -> None:
    async with box.operator():
        await box.begun()
        for _ in range(4):
            await box.change(Deployment, replicas=9)
            await box.replicas(3)
            await box.advance(10)
        assert (await box.shell()).status.is_false("Degraded")
        for _ in range(3):
            await box.change(Deployment, replicas=9)
            await box.replicas(3)
            await box.advance(10)
        shell = await box.condition("Degraded", "True", "ReplicasContested")
        condition = shell.status.condition("Degraded")
        assert condition is not None
        assert "scale the MyOwnShell" in condition.message
        (warning,) = await box.until(box.warnings)
        assert warning.reason == "ReplicasContested"
        await box.advance(200)
        assert (await box.shell()).status.is_true("Degraded")
        await box.advance(100)
        await box.condition("Degraded", "False", "AsExpected")
        assert len(await box.warnings()) == 1


@scenario("myownshell-20")
@pytest.mark.parametrize("lifetime", [None, 3600])
async def test_20_idle_cost(box: World, lifetime: int | None) -> None:
    assert box.cluster is not None
    async with box.operator() as manager:
        await box.begun(lifetime_seconds=lifetime)
        await box.settled(manager)
        passes = passes_of(manager)
        box.cluster.requests.clear()
        await box.advance(600)
        verbs = {one.verb for one in box.cluster.requests.of(user=USER)}
        assert verbs <= {"get", "list", "watch"}
        assert passes_of(manager) == passes


def passes_of(manager: Manager) -> list[Any]:
    name = "controller_runtime_reconcile_total"
    return [family.samples for family in manager.metrics.families() if family.name == name]


async def test_the_numbers(box: World) -> None:
    async with box.operator() as manager:
        await box.begun(lifetime_seconds=60)
        await box.make("another", size=2)

        async def open_shells() -> float:
            return manager.metrics.value("myownshell_shells_ready")

        await box.until(open_shells, lambda found: found == 5)
        await box.change(Deployment, replicas=9)
        await box.replicas(3)
        await box.patch(ConfigMap, {"data": {"image": "x", "message": "y"}})
        repairs = "myownshell_drift_repairs_total"
        await box.until(lambda: _value(manager.metrics.value(repairs, object="ConfigMap", field_group="data")))
        assert manager.metrics.value(repairs, object="Deployment", field_group="replicas") == 1
        assert manager.metrics.value(repairs, object="ConfigMap", field_group="data") == 1
        await box.advance(60)
        await box.until(open_shells, lambda found: found == 2)
        assert manager.metrics.value("myownshell_expired_total") == 1
        await box.client.delete(MyOwnShell, "another", namespace=box.namespace)
        await box.until(open_shells, lambda found: found == 0)


async def _value(found: float) -> float:
    return found
