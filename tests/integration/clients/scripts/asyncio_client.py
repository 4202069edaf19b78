# pyright: basic, reportMissingImports=false
# ruff: noqa: PT017 -- no pytest where this runs
"""kubernetes_asyncio: the official client's sibling, over aiohttp, by way of $KUBECONFIG."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from _cases import arun, case, deployment, established, gadget, gadgets, left
from kubernetes_asyncio import client, config, watch
from kubernetes_asyncio.client import ApiClient, ApiException
from kubernetes_asyncio.dynamic import DynamicClient

MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"


async def space(api: ApiClient, name: str) -> client.CoreV1Api:
    core = client.CoreV1Api(api)
    await core.create_namespace({"metadata": {"name": name}})
    return core


@contextlib.asynccontextmanager
async def refused(code: int, reason: str) -> AsyncIterator[dict[str, Any]]:
    status: dict[str, Any] = {}
    try:
        yield status
    except ApiException as error:
        status.update(json.loads(error.body))
        assert (error.status, status["code"], status["reason"]) == (code, code, reason), status
        return
    raise AssertionError(f"{reason} was expected; nothing was refused")


async def definition(api: ApiClient, group: str) -> None:
    extensions = client.ApiextensionsV1Api(api)
    await extensions.create_custom_resource_definition(gadgets(group))
    while True:
        found = await extensions.read_custom_resource_definition(f"gadgets.{group}")
        if established(api.sanitize_for_serialization(found)):
            break
        await asyncio.sleep(0.02)
    while True:
        try:
            await client.CustomObjectsApi(api).list_cluster_custom_object(group, "v1", "gadgets")
        except ApiException as error:
            assert error.status in (404, 429, 503), error
            await asyncio.sleep(0.05)
        else:
            return


@case
async def objects_and_conflicts(api: ApiClient, name: str) -> None:
    assert (await client.VersionApi(api).get_code()).minor.startswith("36")
    core = await space(api, name)
    made = await core.create_namespaced_config_map(name, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    read = await core.read_namespaced_config_map("a", name)
    read.data["more"] = "w"
    replaced = await core.replace_namespaced_config_map("a", name, read)
    assert int(replaced.metadata.resource_version) > int(made.metadata.resource_version)
    async with refused(409, "Conflict"):
        await core.replace_namespaced_config_map("a", name, made)
    async with refused(409, "AlreadyExists"):
        await core.create_namespaced_config_map(name, {"metadata": {"name": "a"}})
    await core.delete_namespaced_config_map("a", name)
    async with refused(404, "NotFound"):
        await core.read_namespaced_config_map("a", name)


@case
async def patches_apply_status_and_scale(api: ApiClient, name: str) -> None:
    await space(api, name)
    apps = client.AppsV1Api(api)

    async def patch(body: Any, kind: str, **more: Any) -> Any:
        return await apps.patch_namespaced_deployment("web", name, body, _content_type=kind, **more)

    made = await patch(deployment("web", 2), APPLY, field_manager="asyncio")
    assert made.metadata.managed_fields[0].operation == "Apply"
    async with refused(409, "Conflict") as status:
        await patch(deployment("web", 3), APPLY, field_manager="other")
    assert status["details"]["causes"][0]["field"] == ".spec.replicas"
    side = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "registry.test/side:1"}]}}}}
    containers = (await patch(side, STRATEGIC)).spec.template.spec.containers
    assert sorted(each.name for each in containers) == ["main", "side"]
    containers = (await patch(side, MERGE)).spec.template.spec.containers
    assert [each.name for each in containers] == ["side"]
    assert (await patch([{"op": "add", "path": "/metadata/labels/x", "value": "1"}], JSON_PATCH)).metadata.labels["x"]
    await apps.patch_namespaced_deployment_status(
        "web", name, {"status": {"observedGeneration": 1, "replicas": 2}}, _content_type=MERGE
    )
    while True:
        scale = await apps.read_namespaced_deployment_scale("web", name)
        assert scale.spec.replicas == 2
        scale.spec.replicas = 4
        try:
            await apps.replace_namespaced_deployment_scale("web", name, scale)
        except ApiException as error:  # a controller was quicker
            assert error.status == 409, error
        else:
            break
    left["deployment"] = {"namespace": name, "name": "web", "replicas": 4}


@case
async def pages(api: ApiClient, name: str) -> None:
    core = await space(api, name)
    for index in range(5):
        await core.create_namespaced_secret(name, {"metadata": {"name": f"s{index}", "labels": {"p": ""}}})
    page = await core.list_namespaced_secret(name, limit=2, label_selector="p")
    seen = [each.metadata.name for each in page.items]
    while page.metadata._continue:
        page = await core.list_namespaced_secret(name, limit=2, label_selector="p", _continue=page.metadata._continue)
        seen += [each.metadata.name for each in page.items]
    assert seen == [f"s{index}" for index in range(5)]


@case
async def a_watch_resumes_and_carries_long_lines(api: ApiClient, name: str) -> None:
    core = await space(api, name)
    start = (await core.list_namespaced_config_map(name)).metadata.resource_version
    labels = {"labels": {"w": ""}}
    seen: list[tuple[str, str]] = []
    options = {"label_selector": "w", "timeout_seconds": 20}
    await core.create_namespaced_config_map(name, {"metadata": {"name": "a", **labels}, "data": {"k": "x" * 50_000}})
    async with watch.Watch().stream(core.list_namespaced_config_map, name, resource_version=start, **options) as stream:
        async for event in stream:
            seen.append((event["type"], event["object"].metadata.name))
            assert len(event["object"].data["k"]) == 50_000
            resume = event["object"].metadata.resource_version
            break
    await core.patch_namespaced_config_map("a", name, {"data": {"k": None}}, _content_type=MERGE)
    await core.delete_namespaced_config_map("a", name)
    async with watch.Watch().stream(
        core.list_namespaced_config_map, name, resource_version=resume, **options
    ) as stream:
        async for event in stream:
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "DELETED":
                break
    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


@case
async def fifty_watches_at_once(api: ApiClient, name: str) -> None:
    core = await space(api, name)
    start = (await core.list_namespaced_config_map(name)).metadata.resource_version
    wide = ApiClient()
    wide.configuration.connection_pool_maxsize = 100
    async with ApiClient(wide.configuration) as own:
        api_of_its_own = client.CoreV1Api(own)

        async def follow() -> list[str]:
            names: list[str] = []
            async with watch.Watch().stream(
                api_of_its_own.list_namespaced_config_map, name, resource_version=start, label_selector="w"
            ) as stream:
                async for event in stream:
                    names.append(event["object"].metadata.name)
                    if len(names) == 10:
                        return names
            return names

        followers = [asyncio.create_task(follow()) for _ in range(50)]
        for index in range(10):
            await core.create_namespaced_config_map(name, {"metadata": {"name": f"c{index}", "labels": {"w": ""}}})
        for seen in await asyncio.gather(*followers):
            assert seen == [f"c{index}" for index in range(10)]
    await wide.close()


@case
async def custom_objects(api: ApiClient, name: str) -> None:
    await space(api, name)
    group = f"{name}.example.org"
    await definition(api, group)
    objects = client.CustomObjectsApi(api)
    place = (group, "v1", name, "gadgets")
    made = await objects.create_namespaced_custom_object(*place, gadget(group, "g", 2))
    assert made["spec"]["color"] == "green"
    async with refused(422, "Invalid"):
        await objects.create_namespaced_custom_object(*place, gadget(group, "h", 7))
    await objects.patch_namespaced_custom_object(*place, "g", {"spec": {"size": 3}}, _content_type=MERGE)
    await objects.patch_namespaced_custom_object_status(*place, "g", {"status": {"ready": 3}}, _content_type=MERGE)
    scale = await objects.get_namespaced_custom_object_scale(*place, "g")
    assert scale["status"]["replicas"] == 3
    left["gadget"] = {"group": group, "namespace": name, "name": "g", "size": 3}


@case
async def the_dynamic_client(api: ApiClient, name: str) -> None:
    await space(api, name)
    untyped = await DynamicClient(api)
    kind = await untyped.resources.get(api_version="apps/v1", kind="Deployment")
    made = await kind.server_side_apply(body=deployment("web"), namespace=name, field_manager="dynamic")
    assert made.spec.strategy.type == "RollingUpdate"
    assert [each.metadata.name for each in (await kind.get(namespace=name)).items] == ["web"]
    await kind.delete(name="web", namespace=name)


async def main() -> dict[str, Any]:
    await config.load_kube_config()
    async with ApiClient() as api:
        return await arun(api)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main())))
