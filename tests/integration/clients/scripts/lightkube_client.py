# pyright: basic, reportMissingImports=false
# ruff: noqa: PT017 -- no pytest where this runs
"""lightkube: typed by dataclasses, with server-side apply and generic resources, by way of $KUBECONFIG."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

from _cases import case, deployment, established, gadget, gadgets, left, run, until
from lightkube import ApiError, AsyncClient, Client
from lightkube.codecs import from_dict
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.authentication_v1 import TokenRequestSpec
from lightkube.models.autoscaling_v1 import ScaleSpec
from lightkube.models.core_v1 import PodTemplateSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Namespace, ServiceAccount, ServiceAccountToken
from lightkube.types import CascadeType, PatchType


def space(name: str, **options: Any) -> Client:
    api = Client(namespace=name, **options)
    api.create(Namespace(metadata=ObjectMeta(name=name)))
    return api


@contextlib.contextmanager
def refused(code: int, reason: str) -> Iterator[list[Any]]:
    found: list[Any] = []
    try:
        yield found
    except ApiError as error:
        assert (error.status.code, error.status.reason) == (code, reason), error.status
        found.append(error.status)
        return
    raise AssertionError(f"{reason} was expected; nothing was refused")


def configured(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, labels={"w": ""}), data=data)


@case
def objects_and_conflicts(name: str) -> None:
    api = space(name)
    made = api.create(configured("a", k="v"))
    read = api.get(ConfigMap, "a")
    assert read.data == {"k": "v"}
    read.data["more"] = "w"
    api.replace(read)
    with refused(409, "Conflict"):
        made.data = {}
        api.replace(made)
    with refused(409, "AlreadyExists"):
        api.create(configured("a"))
    assert api.set(ConfigMap, "a", labels={"w": None, "x": "1"}).metadata.labels == {"x": "1"}
    api.delete(ConfigMap, "a", cascade=CascadeType.FOREGROUND)

    def gone() -> bool:
        with contextlib.suppress(ApiError):
            api.get(ConfigMap, "a")
            return False
        return True

    until(gone)
    with refused(404, "NotFound") as status:
        api.get(ConfigMap, "a")
    assert status[0].details.kind == "configmaps"


@case
def server_side_apply(name: str) -> None:
    api = space(name, field_manager="lightkube")
    web = from_dict(deployment("web", 2))
    assert isinstance(web, Deployment)
    made = api.apply(web)
    assert made.metadata.managedFields[0].manager == "lightkube"
    web.spec.replicas = 3
    with refused(409, "Conflict") as status:
        api.apply(web, field_manager="other")
    assert status[0].details.causes[0].field == ".spec.replicas"
    assert api.apply(web, field_manager="other", force=True).spec.replicas == 3
    partial = Deployment.Status(metadata=ObjectMeta(name="web"), status={"replicas": 3})
    assert api.apply(partial, field_manager="status").status.replicas == 3
    assert api.get(Deployment, "web").spec.replicas == 3


@case
def patches_status_and_scale(name: str) -> None:
    api = space(name)
    api.create(from_dict(deployment("web")))
    side = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "registry.test/side:1"}]}}}}
    template: PodTemplateSpec = api.patch(Deployment, "web", side).spec.template
    assert sorted(each.name for each in template.spec.containers) == ["main", "side"]
    template = api.patch(Deployment, "web", side, patch_type=PatchType.MERGE).spec.template
    assert [each.name for each in template.spec.containers] == ["side"]
    steps = [{"op": "replace", "path": "/spec/replicas", "value": 4}]
    assert api.patch(Deployment, "web", steps, patch_type=PatchType.JSON).spec.replicas == 4
    api.patch(Deployment.Status, "web", {"status": {"observedGeneration": 3}})
    assert api.get(Deployment.Status, "web").status.observedGeneration == 3

    def scaled() -> bool:
        scale = api.get(Deployment.Scale, "web")
        scale.spec = ScaleSpec(replicas=5)
        try:
            return api.replace(scale, "web").spec.replicas == 5
        except ApiError as error:  # a controller was quicker
            assert error.status.reason == "Conflict", error
            return False

    until(scaled)
    assert api.get(Deployment, "web").spec.replicas == 5
    left["deployment"] = {"namespace": name, "name": "web", "replicas": 5}


@case
def pages_and_selectors(name: str) -> None:
    api = space(name)
    for index in range(7):
        api.create(configured(f"c{index}"))
    found = api.list(ConfigMap, chunk_size=3, labels={"w": ""})
    assert [each.metadata.name for each in found] == [f"c{index}" for index in range(7)]
    some = api.list(ConfigMap, namespace="*", fields={"metadata.name": "c3", "metadata.namespace": name})
    assert [each.metadata.name for each in some] == ["c3"]
    api.deletecollection(ConfigMap)
    until(lambda: not list(api.list(ConfigMap, labels={"w": ""})))


@case
def a_watch_resumes_where_it_ended(name: str) -> None:
    api = space(name)
    found = api.list(ConfigMap)
    list(found)
    start = found.resourceVersion
    api.create(configured("a"))
    options: dict[str, Any] = {"labels": {"w": ""}, "server_timeout": 20}
    seen = []
    for action, found in api.watch(ConfigMap, resource_version=start, **options):
        seen.append((action, found.metadata.name))
        start = found.metadata.resourceVersion
        break
    api.patch(ConfigMap, "a", {"data": {"x": "1"}})
    api.delete(ConfigMap, "a")
    for action, found in api.watch(ConfigMap, resource_version=start, **options):
        seen.append((action, found.metadata.name))
        if action == "DELETED":
            break
    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


@case
def custom_objects(name: str) -> None:
    api = space(name)
    group = f"{name}.example.org"
    crd = from_dict(gadgets(group))
    api.create(crd)
    until(lambda: established(api.get(CustomResourceDefinition, f"gadgets.{group}").to_dict()))
    kind = create_namespaced_resource(group, "v1", "Gadget", "gadgets")

    def served() -> bool:
        with contextlib.suppress(ApiError):
            list(api.list(kind))
            return True
        return False

    until(served)
    made = api.create(kind(gadget(group, "g", 2)))
    assert made["spec"]["color"] == "green"
    with refused(422, "Invalid"):
        api.create(kind(gadget(group, "h", 7)))
    api.patch(kind, "g", {"spec": {"size": 3}}, patch_type=PatchType.MERGE)
    api.patch(kind.Status, "g", {"status": {"ready": 3}}, patch_type=PatchType.MERGE)
    assert api.get(kind.Scale, "g").status.replicas == 3
    applied = api.apply(kind(gadget(group, "g", 4)), field_manager="lightkube", force=True)
    assert (applied.spec, applied.status) == ({"size": 4, "color": "green"}, {"ready": 3})
    left["gadget"] = {"group": group, "namespace": name, "name": "g", "size": 4}


@case
def tokens(name: str) -> None:
    api = space(name)
    api.create(ServiceAccount(metadata=ObjectMeta(name="robot")))
    token = api.create(ServiceAccountToken(metadata=ObjectMeta(), spec=TokenRequestSpec(audiences=[])), "robot")
    assert token.status.token.count(".") == 2


@case
async def the_asynchronous_client(name: str) -> None:
    api = AsyncClient(namespace=name)
    await api.create(Namespace(metadata=ObjectMeta(name=name)))
    names = []

    async def follow() -> None:
        async for action, found in api.watch(ConfigMap, labels={"w": ""}, server_timeout=20):
            names.append((action, found.metadata.name))
            if len(names) == 3:
                return

    follower = asyncio.create_task(follow())
    for each in ("a", "b", "c"):
        await api.create(configured(each))
    await follower
    assert [each async for each in api.list(ConfigMap, labels={"w": ""}, chunk_size=2)]
    assert sorted(names) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
    await api.close()


if __name__ == "__main__":
    run()
