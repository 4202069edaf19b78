"""The acceptance scenarios, by their numbers; those of time, crashes and rights have files of their own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from flyball.api import DynamicObject
from flyball.errors import Invalid
from flyball.k8s.apps.v1 import Deployment, DeploymentSpec
from flyball.k8s.core.v1 import ConfigMap, Container, PodSpec, PodTemplateSpec
from flyball.k8s.meta.v1 import LabelSelector, ObjectMeta

from myownshell.api import MyOwnShell
from myownshell.controller import FINALIZER

from .world import NAME, SELECTOR, USER, World

pytestmark = pytest.mark.capability("S10")
scenario = pytest.mark.scenario


@scenario("myownshell-1")
async def test_1_create(world: World) -> None:
    async with world.operator():
        await world.make()
        deployment = await world.replicas(3)
        settings = await world.noted(3)
        shell = await world.shell()
        assert shell.metadata.finalizers == [FINALIZER]
        assert deployment.spec.selector.match_labels == SELECTOR
        for child in (deployment, settings):
            (owner,) = child.metadata.owner_references
            assert (owner.kind, owner.uid, owner.controller) == ("MyOwnShell", shell.metadata.uid, True)
            assert owner.block_owner_deletion
        assert settings.data == {"replicas": "3", "image": shell.spec.image, "message": shell.spec.message}
        told = await world.until(world.told, lambda told: len(told) >= 2)
        assert sorted(told) == ["ConfigMapCreated", "DeploymentCreated"]
        assert shell.status.selector == f"app=myownshell,myownshell_cr={NAME}"


@scenario("myownshell-1")
async def test_1_the_finalizer_is_there_before_the_deployment(bare: World) -> None:
    assert bare.cluster is not None
    rule = bare.cluster.faults.status(503, verb="patch", resource="deployments")
    async with bare.operator():
        await bare.make()
        await bare.until(bare.shell, lambda shell: shell.metadata.finalizers == [FINALIZER] and rule.hits)
        rule.remove()
        await bare.replicas(3)


@scenario("myownshell-1")
async def test_1_three_shells_are_ready(whole: World) -> None:
    async with whole.operator():
        shell = await whole.begun()
        pods = sorted(pod.metadata.name for pod in await whole.pods())
        shell = await whole.until(whole.shell, lambda shell: len(shell.status.shells) == 3)
        assert shell.status.shells == pods
        assert (shell.status.replicas, shell.status.ready_replicas) == (3, 3)
        assert shell.status.connect == f"kubectl exec -it -n {whole.namespace} {pods[0]} -- /bin/sh"
        assert shell.status.observed_generation == shell.metadata.generation
        assert [one.type for one in shell.status.conditions] == ["Available", "Progressing", "Degraded"]
        assert shell.status.is_false("Degraded")
        assert await whole.warnings() == []
        table = (await whole.kubectl("get", "mos")).split()
        assert table[:9] == ["NAME", "SIZE", "READY", "AVAILABLE", "AGE", NAME, "3", "3", "True"]


@scenario("myownshell-2")
async def test_2_scale_by_spec(world: World) -> None:
    async with world.operator():
        await world.begun()
        await world.change(MyOwnShell, size=5)
        await world.replicas(5)
        await world.noted(5)
        (told,) = await world.until(lambda: world.events("Scaled"))
        assert told.note == "from 3 to 5"
        assert told.series is None


@scenario("myownshell-3")
async def test_3_scale_subresource(world: World) -> None:
    async with world.operator():
        await world.begun()
        await world.kubectl("scale", f"myownshell/{NAME}", "--replicas=2")
        await world.replicas(2)
        await world.noted(2)
        (told,) = await world.until(lambda: world.events("Scaled"))
        assert told.note == "from 3 to 2"


@scenario("myownshell-4")
async def test_4_manual_scaling_is_reverted(world: World) -> None:
    async with world.operator():
        await world.begun()
        await world.change(Deployment, replicas=10)
        (told,) = await world.until(lambda: world.events("DriftRepaired"))
        assert told.note == f"Deployment {world.namespace}/{NAME}: spec.replicas"
        await world.replicas(3)
        assert await world.events("Scaled") == []


@scenario("myownshell-5")
async def test_5_image_drift(world: World) -> None:
    async with world.operator():
        await world.begun()
        foreign = {"labels": {"theirs": "yes"}, "annotations": {"theirs": "too"}}
        await world.patch(Deployment, {"metadata": foreign})
        container = {"name": "busybox", "image": "somebody/else:1"}
        pod = {"template": {"spec": {"containers": [container]}}}
        await world.client.apply(
            DynamicObject(
                apiVersion="apps/v1",
                kind="Deployment",
                metadata={"name": NAME, "namespace": world.namespace},
                spec=pod,
            ),
            field_manager="somebody",
            force=True,
        )
        (told,) = await world.until(lambda: world.events("DriftRepaired"))
        assert told.note == f"Deployment {world.namespace}/{NAME}: spec.template.spec.containers[busybox].image"
        deployment = await world.until(world.deployment, lambda one: image_of(one) == "busybox:1.36")
        assert deployment.metadata.labels["theirs"] == "yes"
        assert deployment.metadata.annotations["theirs"] == "too"


def image_of(deployment: Deployment) -> str | None:
    pod = deployment.spec.template.spec
    return pod.containers[0].image if pod is not None else None


@scenario("myownshell-6")
async def test_6_configmap_drift(world: World) -> None:
    async with world.operator():
        await world.begun()
        before = await world.deployment()
        await world.patch(ConfigMap, {"data": {"replicas": "7", "extra": "kept"}})
        settings = await world.noted(3)
        assert (settings.data or {})["extra"] == "kept"
        (told,) = await world.until(lambda: world.events("DriftRepaired"))
        assert told.note == f"ConfigMap {world.namespace}/{NAME}: data.replicas"
        await world.patch(ConfigMap, {"data": None})
        settings = await world.noted(3)
        assert sorted(settings.data or {}) == ["image", "message", "replicas"]
        await world.remove(ConfigMap)
        again = await world.until(world.settings, lambda one: one.metadata.uid != settings.metadata.uid)
        assert again.data == settings.data
        assert (await world.deployment()).metadata.generation == before.metadata.generation


@scenario("myownshell-8")
async def test_8_a_deleted_deployment_is_made_again(world: World) -> None:
    async with world.operator():
        await world.begun()
        before = await world.deployment()
        await world.remove(Deployment)
        await world.until(world.deployment, lambda one: one.metadata.uid != before.metadata.uid)
        await world.condition("Degraded", "False", "AsExpected")


@scenario("myownshell-8")
async def test_8_a_terminating_deployment_is_waited_for(world: World) -> None:
    async with world.operator():
        await world.begun()
        before = await world.deployment()
        await world.patch(Deployment, {"metadata": {"finalizers": ["example.org/held"]}})
        await world.remove(Deployment, propagation="Foreground")
        await world.until(world.deployment, lambda one: one.metadata.deletion_timestamp is not None)
        await world.change(MyOwnShell, size=4)
        await world.noted(4)
        held = await world.deployment()
        assert (held.metadata.uid, held.spec.replicas) == (before.metadata.uid, 3)
        await world.until(world.deployment, lambda one: one.metadata.finalizers == ["example.org/held"])
        await world.patch(Deployment, {"metadata": {"finalizers": None}})
        found = await world.until(world.deployment, lambda one: one.metadata.uid != before.metadata.uid)
        assert found.spec.replicas == 4
        assert await world.warnings() == []


def foreign(namespace: str) -> Deployment:
    """A Deployment of somebody else's that has our name."""
    labels = {"app": "theirs"}
    return Deployment(
        metadata=ObjectMeta(name=NAME, namespace=namespace),
        spec=DeploymentSpec(
            replicas=7,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="c", image="theirs:1")])
            ),
        ),
    )


@scenario("myownshell-9")
async def test_9_a_foreign_deployment_is_left_alone(world: World, caplog: pytest.LogCaptureFixture) -> None:
    made = await world.client.create(foreign(world.namespace))
    async with world.operator():
        await world.make()
        shell = await world.condition("Degraded", "True", "NameConflict")
        told = shell.status.condition("Available")
        assert told is not None
        assert (told.status, told.reason) == ("False", "NameConflict")
        await world.noted(3)
        found = await world.deployment()
        assert found.spec == made.spec
        assert found.metadata.owner_references == []
        (warning,) = await world.until(world.warnings)
        assert warning.reason == "NameConflict"
    assert "NameConflict" in caplog.text
    assert "Traceback" not in caplog.text


@scenario("myownshell-9")
async def test_9_when_the_foreign_deployment_is_gone_ours_is_made(box: World) -> None:
    made = await box.client.create(foreign(box.namespace))
    async with box.operator():
        await box.make()
        await box.condition("Degraded", "True", "NameConflict")
        await box.advance(150)
        (warning,) = await box.warnings()
        assert warning.reason == "NameConflict"
        await box.remove(Deployment)
        await box.gone(Deployment)
        await box.advance(60)
        found = await box.replicas(3)
        assert found.metadata.uid != made.metadata.uid
        await box.condition("Degraded", "False", "AsExpected")


@scenario("myownshell-9")
async def test_9_a_foreign_configmap_is_left_alone(world: World) -> None:
    theirs = ConfigMap(metadata=ObjectMeta(name=NAME, namespace=world.namespace), data={"replicas": "theirs"})
    await world.client.create(theirs)
    async with world.operator():
        await world.make()
        await world.replicas(3)
        shell = await world.condition("Degraded", "True", "NameConflict")
        found = await world.settings()
        assert (found.data, found.metadata.owner_references) == ({"replicas": "theirs"}, [])
        if world.plays:
            await world.condition("Available", "True", "ShellsReady")
        assert shell.metadata.finalizers == [FINALIZER]


@scenario("myownshell-10")
async def test_10_delete(whole: World) -> None:
    async with whole.operator():
        await whole.begun()
        assert len(await whole.pods()) == 3
        await whole.remove()
        await whole.gone(MyOwnShell)
        told = await whole.until(whole.told, lambda told: "Drained" in told)
        assert "DrainTimedOut" not in told
        await whole.gone(Deployment)
        await whole.gone(ConfigMap)
        await whole.until(whole.pods, lambda pods: not pods)
        assert await whole.warnings() == []


@scenario("myownshell-10")
async def test_10_replicas_go_to_0_and_nothing_is_made_during_deletion(bare: World) -> None:
    async with bare.operator() as manager:
        await bare.begun()
        await bare.ready_pod("one")
        await bare.remove()
        deployment = await bare.replicas(0)
        await bare.condition("Progressing", "True", "Deleting")
        await bare.remove(ConfigMap)
        await bare.remove(Deployment)
        await bare.change(MyOwnShell, size=5)
        await bare.settled(manager)
        await bare.gone(Deployment)
        await bare.gone(ConfigMap)
        assert (await bare.shell()).metadata.uid == deployment.metadata.owner_references[0].uid
        await bare.advance(31)
        await bare.gone(MyOwnShell)
        await bare.gone(Deployment)
        await bare.gone(ConfigMap)


@scenario("myownshell-11")
async def test_11_delete_while_the_operator_is_down(whole: World) -> None:
    async with whole.operator():
        await whole.begun()
    await whole.remove()
    if whole.cluster is not None:
        await whole.advance(100)
    assert (await whole.shell()).metadata.finalizers == [FINALIZER]
    async with whole.operator():
        await whole.gone(MyOwnShell)
        await whole.until(whole.told, lambda told: "Drained" in told)
        await whole.gone(Deployment)
        await whole.gone(ConfigMap)
        assert await whole.warnings() == []


@scenario("myownshell-11")
async def test_11_delete_before_the_first_pass(world: World) -> None:
    await world.make()
    await world.remove()
    await world.gone(MyOwnShell)
    async with world.operator():
        await world.make("another")
        await world.until(lambda: world.client.get(ConfigMap, "another", namespace=world.namespace))
        await world.gone(Deployment)


@scenario("myownshell-12")
async def test_12_forced_finalizer_removal(whole: World) -> None:
    async with whole.operator():
        await whole.begun()
    await whole.remove()
    await whole.patch(MyOwnShell, {"metadata": {"finalizers": None}})
    await whole.gone(MyOwnShell)
    await whole.gone(Deployment)
    await whole.gone(ConfigMap)
    await whole.until(whole.pods, lambda pods: not pods)


@scenario("myownshell-13")
async def test_13_drain_timeout(bare: World) -> None:
    async with bare.operator() as manager:
        await bare.begun()
        await bare.ready_pod("stubborn")
        await bare.remove()
        await bare.replicas(0)
        await bare.settled(manager)
        await bare.advance(25)
        assert (await bare.shell()).metadata.finalizers == [FINALIZER]
        await bare.advance(6)
        await bare.gone(MyOwnShell)
        (warning,) = await bare.warnings()
        assert (warning.reason, warning.note) == (
            "DrainTimedOut",
            "after 30 s these shells are still open: stubborn",
        )
        assert "Drained" not in await bare.told()


@scenario("myownshell-13")
async def test_13_a_restart_does_not_extend_it(bare: World) -> None:
    async with bare.operator():
        await bare.begun()
        await bare.ready_pod("stubborn")
        await bare.remove()
        await bare.replicas(0)
        await bare.advance(20)
    async with bare.operator():
        await bare.advance(11)
        await bare.gone(MyOwnShell)


WRONG: list[dict[str, Any]] = [
    {"size": -1},
    {},
    {"size": 101},
    {"size": 1, "image": ""},
    {"size": 1, "shell": "sh"},
    {"size": 1, "message": "x" * 1025},
    {"size": 1, "lifetimeSeconds": 59},
]


@scenario("myownshell-14")
@pytest.mark.parametrize("spec", WRONG, ids=[str(one)[:30] for one in WRONG])
async def test_14_invalid(world: World, spec: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="spec"):
        await world.client.create(wished(world, NAME, spec))


@scenario("myownshell-14")
async def test_14_a_name_that_is_no_label_is_refused(world: World) -> None:
    await world.make("x" * 63)
    with pytest.raises(Invalid, match=r"metadata\.name"):
        await world.client.create(wished(world, "x" * 64, {"size": 1}))


def wished(world: World, name: str, spec: dict[str, Any]) -> DynamicObject:
    metadata = {"name": name, "namespace": world.namespace}
    api_version = MyOwnShell.resource_type.api_version
    return DynamicObject(apiVersion=api_version, kind="MyOwnShell", metadata=metadata, spec=spec)


async def test_what_is_asked_for_is_passed_through_and_taken_back(world: World) -> None:
    async def pod() -> PodSpec:
        found = (await world.deployment()).spec.template.spec
        assert found is not None
        return found

    asked = {
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "slow", "operator": "Exists"}],
        "serviceAccountName": "somebody",
        "resources": {"limits": {"memory": "1Gi"}},
        "message": "costs $5, $(HOME) 'x'",
        "shell": "/bin/ash",
    }
    async with world.operator():
        await world.begun(0)
        before = await pod()
        await world.change(MyOwnShell, **asked)
        changed = await world.until(pod, lambda one: one.node_selector == {"disk": "fast"})
        container = changed.containers[0]
        assert (changed.service_account_name, changed.automount_service_account_token) == ("somebody", True)
        assert [one.key for one in changed.tolerations or []] == ["slow"]
        assert container.resources is not None
        assert (container.resources.limits or {})["memory"] == "1Gi"
        assert [one.value for one in container.env or []] == ["costs $$5, $$(HOME) 'x'"]
        assert (container.command or [])[0] == "/bin/ash"
    await world.change(MyOwnShell, **dict.fromkeys(asked))
    async with world.operator():
        await world.until(pod, lambda one: one.node_selector is None)
        after = await pod()
        assert after == before
        assert await world.warnings() == []


@scenario("myownshell-15")
async def test_15_size_0(world: World) -> None:
    async with world.operator():
        await world.begun(0)
        shell = await world.condition("Available", "False", "ScaledToZero")
        assert shell.status.is_false("Degraded")
        assert shell.status.connect is None


@scenario("myownshell-16")
@pytest.mark.parametrize("subresource", ["", "status"])
async def test_16_conflict(bare: World, subresource: str) -> None:
    assert bare.cluster is not None
    rule = bare.cluster.faults.status(
        409, verb="patch", resource="myownshells", subresource=subresource, user=USER, first=2
    )
    async with bare.operator():
        await bare.make()
        await bare.noted(3)
        await bare.condition("Progressing", "True", "RollingOut")
        assert rule.hits == 2
        assert await bare.warnings() == []


@scenario("myownshell-17")
async def test_17_stale_cache(bare: World) -> None:
    assert bare.cluster is not None
    bare.cluster.faults.stall_watch(resource="deployments", user=USER)
    async with bare.operator() as manager:
        made = await bare.make()
        deployment = await bare.replicas(3)
        for turn in ("one", "two"):
            await bare.patch(MyOwnShell, {"metadata": {"annotations": {"example.org/turn": turn}}})
            await bare.settled(manager)
        await bare.noted(3)
        assert (await bare.deployment()).metadata.uid == deployment.metadata.uid
        assert (await bare.shell()).metadata.uid == made.metadata.uid
        assert len(await bare.client.list(Deployment, namespace=bare.namespace)) == 1
        assert manager.metrics.value("controller_runtime_reconcile_errors_total", controller="myownshell") == 0
        assert await bare.warnings() == []


def test_every_scenario_is_played() -> None:
    text = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert {int(number) for number in re.findall(r'"myownshell-(\d+)"', text)} == set(range(1, 22))
