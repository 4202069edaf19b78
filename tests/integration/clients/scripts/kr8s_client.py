# pyright: basic, reportMissingImports=false
# ruff: noqa: PT017, ASYNC110 -- there is no pytest where this runs
"""kr8s: kubectl's habits in Python, by way of $KUBECONFIG."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import kr8s
import kr8s.asyncio
import kr8s.asyncio.objects as kinds
from _cases import arun, case, deployment, gadget, gadgets, left
from kr8s.asyncio.objects import ConfigMap, CustomResourceDefinition, Deployment, Namespace


async def space(name: str) -> Any:
    api = await kr8s.asyncio.api()
    await (await Namespace({"metadata": {"name": name}})).create()
    return api


async def configured(space: str, name: str, **data: str) -> ConfigMap:
    made = await ConfigMap({"metadata": {"name": name, "namespace": space, "labels": {"w": ""}}, "data": data})
    await made.create()
    return made


async def soon(look: Any, seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not await look():
            await asyncio.sleep(0.02)


@case
async def version_and_discovery(name: str) -> None:
    api = await kr8s.asyncio.api()
    assert (await api.version())["minor"].startswith("36")
    resources = await api.api_resources()
    assert {"Deployment", "ConfigMap", "CustomResourceDefinition"} <= {each["kind"] for each in resources}
    assert await api.whoami()


@case
async def objects_and_errors(name: str) -> None:
    await space(name)
    made = await configured(name, "a", k="v")
    assert made.metadata.uid
    assert await made.exists()
    await made.patch({"data": {"more": "w"}})
    assert made.raw["data"] == {"k": "v", "more": "w"}
    await made.patch([{"op": "remove", "path": "/data/k"}], type="json")
    await made.label(x="1")
    await made.annotate(note="yes")
    await made.refresh()
    assert (made.raw["data"], made.labels["x"], made.annotations["note"]) == ({"more": "w"}, "1", "yes")
    try:
        await configured(name, "a")
    except kr8s.ServerError as error:
        assert error.status["reason"] == "AlreadyExists", error.status
        assert error.response.status_code == 409
    else:
        raise AssertionError("the second object was accepted")
    await made.delete()
    assert not await made.exists()
    try:
        await ConfigMap.get("a", namespace=name)
    except kr8s.NotFoundError:
        return
    raise AssertionError("the object is still there")


@case
async def scale_wait_and_owners(name: str) -> None:
    await space(name)
    body = deployment("web")
    body["metadata"]["namespace"] = name
    web = await Deployment(body)
    await web.create()
    await web.patch(
        {"status": {"conditions": [{"type": "Tried", "status": "True", "reason": "Test", "message": ""}]}},
        subresource="status",
    )
    await web.wait("condition=Tried", timeout=10)
    await web.scale(0)
    assert web.raw["spec"]["replicas"] == 0
    child = await configured(name, "child")
    await web.adopt(child)
    await child.refresh()
    assert child.metadata.ownerReferences[0]["uid"] == web.metadata.uid
    left["deployment"] = {"namespace": name, "name": "web", "replicas": 0}


@case
async def selectors_and_tables(name: str) -> None:
    api = await space(name)
    for index in range(3):
        await configured(name, f"c{index}")
    found = [each.name async for each in kr8s.asyncio.get("configmaps", namespace=name, label_selector={"w": ""})]
    assert sorted(found) == ["c0", "c1", "c2"]
    one = [each.name async for each in kr8s.asyncio.get("cm", "c1", namespace=name)]
    assert one == ["c1"]
    for_all = kr8s.asyncio.get("cm", namespace=kr8s.ALL, field_selector={"metadata.name": "c2"})
    assert name in [each.namespace async for each in for_all]
    async with api.call_api(
        "GET",
        url="configmaps",
        namespace=name,
        headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"},
    ) as response:
        table = response.json()
    assert table["kind"] == "Table"
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]


@case
async def watches(name: str) -> None:
    await space(name)
    seen: list[tuple[str, str]] = []

    async def follow() -> None:
        async for action, found in kr8s.asyncio.watch("configmaps", namespace=name, label_selector={"w": ""}):
            seen.append((action, found.name))
            if action == "DELETED":
                return

    first = await configured(name, "a")
    version = first.metadata.resourceVersion
    await first.patch({"data": {"x": "1"}})
    follower = asyncio.create_task(follow())
    await soon(lambda: asyncio.sleep(0, bool(seen)))
    await first.delete()
    await asyncio.wait_for(follower, 10)
    assert (seen[0], seen[-1]) == (("ADDED", "a"), ("DELETED", "a"))
    resumed: list[str] = []
    async for action, _ in kr8s.asyncio.watch("configmaps", namespace=name, since=version):
        resumed.append(action)
        if action == "DELETED":
            break
    assert resumed == ["MODIFIED", "DELETED"]


@case
async def custom_objects(name: str) -> None:
    await space(name)
    group = f"{name}.example.org"
    definition = await CustomResourceDefinition(gadgets(group))
    await definition.create()

    async def told() -> bool:  # `wait` cannot bear a status without conditions
        await definition.refresh()
        return bool(definition.raw.get("status", {}).get("conditions"))

    await soon(told)
    await definition.wait("condition=Established", timeout=10)
    kind = kinds.new_class(
        "Gadget", version=f"{group}/v1", asyncio=True, namespaced=True, scalable=True, scalable_spec="size"
    )
    body = gadget(group, "g", 2)
    body["metadata"]["namespace"] = name
    made = await kind(body)

    async def created() -> bool:
        try:
            await made.create()
        except kr8s.ServerError as error:
            assert error.response.status_code in (404, 429), error
            return False
        return True

    await soon(created)
    assert made.raw["spec"]["color"] == "green"
    await made.patch({"status": {"ready": 2}}, subresource="status")
    await made.scale(5)
    await made.refresh()
    assert (made.raw["spec"]["size"], made.raw["status"]) == (5, {"ready": 2})
    assert [each.name async for each in kind.list(namespace=name)] == ["g"]
    left["gadget"] = {"group": group, "namespace": name, "name": "g", "size": 5}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(arun())))
