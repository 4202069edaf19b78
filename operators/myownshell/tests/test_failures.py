"""What goes wrong, and what people see of it; and rights (21)."""

from __future__ import annotations

from typing import Any

import pytest
from flyball.api import DynamicObject, crd_of
from flyball.client import Client, MergePatch, ref
from flyball.client.config import load_config
from flyball.errors import Forbidden
from flyball.k8s.apps.v1 import Deployment
from flyball.k8s.core.v1 import ConfigMap, Pod, ResourceQuota, Secret
from flyball.testing.realcluster import RealCluster

from myownshell.api import MyOwnShell
from myownshell.controller import operator

from .world import ACCOUNT, NAME, USER, World

pytestmark = pytest.mark.capability("S10")
scenario = pytest.mark.scenario


async def played(world: World, **status: Any) -> None:
    """Say what a Deployment's controller would say."""
    place = ref(Deployment, NAME, namespace=world.namespace)
    await world.client.patch(place, MergePatch({"status": status}), subresource="status")


def condition(type: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {"type": type, "status": status, "reason": reason, "message": message}


async def test_an_image_that_cannot_be_pulled(bare: World) -> None:
    async with bare.operator() as manager:
        await bare.begun(1, image="nobody/has:this")
        pod = await bare.ready_pod("one")
        waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
        container = {"name": "busybox", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": waiting}
        status = {"containerStatuses": [container], "conditions": [{"type": "Ready", "status": "False"}]}
        await bare.client.patch(pod, MergePatch({"status": status}), subresource="status")
        await bare.condition("Available", "False", "ShellsStarting")
        late = condition("Progressing", "False", "ProgressDeadlineExceeded", "it has timed out progressing.")
        await played(bare, conditions=[late])
        shell = await bare.condition("Degraded", "True", "ProgressDeadlineExceeded")
        found = shell.status.condition("Degraded")
        assert found is not None
        assert found.message == "it has timed out progressing.; ImagePullBackOff: Back-off pulling image"
        await bare.settled(manager)
        (warning,) = await bare.warnings()
        assert warning.reason == "ProgressDeadlineExceeded"


async def test_a_quota_for_pods(bare: World) -> None:
    async with bare.operator():
        await bare.begun(1)
        full = condition("ReplicaFailure", "True", "FailedCreate", 'pods "x" is forbidden: exceeded quota: q')
        await played(bare, conditions=[full])
        shell = await bare.condition("Degraded", "True", "ReplicaFailure")
        found = shell.status.condition("Degraded")
        assert found is not None
        assert found.message == full["message"]
        await played(bare, conditions=None, replicas=1, updatedReplicas=1, readyReplicas=1, availableReplicas=1)
        await bare.condition("Degraded", "False", "AsExpected")


@pytest.mark.real
async def test_a_quota_for_pods_on_a_real_server(real: World) -> None:
    place = ref(ResourceQuota, "q", namespace=real.namespace)
    await real.client.create(ResourceQuota.new("q", namespace=real.namespace))
    await real.client.patch(place, MergePatch({"spec": {"hard": {"pods": "1"}}}))
    await real.until(lambda: real.client.get(ResourceQuota, "q", namespace=real.namespace), lambda one: one.status.hard)
    async with real.operator():
        await real.make()
        shell = await real.condition("Degraded", "True", "ReplicaFailure")
        found = shell.status.condition("Degraded")
        assert found is not None
        assert "exceeded quota: q" in found.message


@scenario("myownshell-21")
@pytest.mark.parametrize(("resource", "verb"), [("deployments", "patch"), ("configmaps", "patch")])
async def test_21_a_right_that_is_missing_is_told_until_it_is_there(bare: World, resource: str, verb: str) -> None:
    assert bare.cluster is not None
    words = f'{resource} "{NAME}" is forbidden: User "{USER}" cannot {verb} resource "{resource}"'
    rule = bare.cluster.faults.status(403, message=words, resource=resource, verb=verb, user=USER)
    async with bare.operator():
        await bare.make()
        shell = await bare.condition("Degraded", "True", "Forbidden")
        found = shell.status.condition("Degraded")
        assert found is not None
        assert words in found.message
        await bare.advance(5)
        (warning,) = await bare.warnings()
        assert warning.reason == "Forbidden"
        rule.remove()
        await bare.until(bare.shell, lambda one: one.status.is_false("Degraded"), step=1)
        await bare.noted(3)


@scenario("myownshell-21")
@pytest.mark.real
async def test_21_the_rights_are_those_and_no_others(real: World, real_cluster_with_nodes: RealCluster) -> None:
    """All scenarios on the real server are played with these rights; here is what they do not allow."""
    namespace = real.namespace
    rights = load_config(real_cluster_with_nodes.kubeconfig_for(ACCOUNT, ["system:serviceaccounts"]))
    async with real.operator(), Client(rights) as mine:
        await real.begun()
        for refused in (
            mine.delete(Deployment, NAME, namespace=namespace),
            mine.delete(MyOwnShell, NAME, namespace=namespace),
            mine.delete(ConfigMap, NAME, namespace=namespace),
            mine.delete_collection(Pod, namespace=namespace),
            mine.list(Secret, namespace=namespace),
        ):
            with pytest.raises(Forbidden):
                await refused


async def test_nonsense_that_an_older_definition_let_pass(bare: World) -> None:
    """The API server did not refuse it: it is told, nothing is touched, and it does not hinder the deletion."""
    loose: Any = crd_of(MyOwnShell)
    loose["spec"]["versions"][0]["schema"] = {
        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    }
    await bare.client.apply(DynamicObject(loose), force=True, field_manager="test")
    async with bare.operator() as manager:
        await bare.begun()
        for wrong, words in (
            ({"size": -1}, "spec.size"),
            ({"size": None}, "spec.size: Required value"),
            ({"size": "many", "image": ""}, "size"),
            ({"size": 1, "image": "", "shell": "sh"}, "spec.image"),
        ):
            await bare.change(MyOwnShell, **wrong)
            shell = await bare.until(bare.shell, lambda one: one.status.observed_generation == one.metadata.generation)
            found = shell.status.condition("Degraded")
            assert found is not None
            assert (found.status, found.reason) == ("True", "InvalidSpec")
            assert words in found.message
            assert (await bare.deployment()).spec.replicas == 3
        await bare.settled(manager)
        assert {one.reason for one in await bare.warnings()} == {"InvalidSpec"}
        await bare.remove()
        await bare.gone(MyOwnShell)


async def test_restricted_pods(bare: World) -> None:
    async with bare.operator(operator(restricted_pods=True)):
        await bare.begun()
        pod = (await bare.deployment()).spec.template.spec
        assert pod is not None
        context = pod.containers[0].security_context
        assert context is not None
        assert (context.run_as_non_root, context.allow_privilege_escalation) == (True, False)
        assert context.run_as_user
    async with bare.operator():
        changed = await bare.until(bare.deployment, lambda one: one.metadata.generation == 2)
        pod = changed.spec.template.spec
        assert pod is not None
        context = pod.containers[0].security_context
        assert context is not None
        assert (context.run_as_non_root, context.run_as_user) == (None, None)


async def test_without_a_finalizer_kubernetes_cleans_up(whole: World) -> None:
    async with whole.operator(operator(finalizer=False)):
        shell = await whole.begun()
        assert shell.metadata.finalizers == []
        await whole.change(MyOwnShell, size=1)
        await whole.replicas(1)
        await whole.remove()
        await whole.gone(MyOwnShell)
        await whole.gone(Deployment)
        await whole.gone(ConfigMap)
        await whole.until(whole.pods, lambda pods: not pods)
        assert await whole.warnings() == []
