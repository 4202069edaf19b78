"""Definitions that come, change and go while the server runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from flyball.client.transport import HttpRequest
from flyball.controlplane.cluster import EmbeddedCluster

Object = dict[str, Any]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.com/v1/namespaces/default/things"
MERGE = "application/merge-patch+json"


class Server:
    """An embedded cluster, asked by method and path."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster

    async def ask(
        self, method: str, path: str, body: Any = None, type_: str = "application/json"
    ) -> tuple[int, Object]:
        path, _, query = path.partition("?")
        pairs = tuple((name, value) for name, _, value in (part.partition("=") for part in query.split("&") if part))
        data = None if body is None else json.dumps(body).encode()
        answer = await self.cluster.transport.send(HttpRequest(method, path, pairs, {"content-type": type_}, data))
        text = await answer.read()
        return answer.status, json.loads(text) if text.startswith(b"{") else {"text": text.decode()}

    async def must(self, method: str, path: str, body: Any = None, type_: str = "application/json") -> Object:
        status, answer = await self.ask(method, path, body, type_)
        assert status < 300, answer
        return answer


def definition(
    plural: str = "things", *, spec: Object | None = None, version: Object | None = None, **names: Any
) -> Object:
    kind = plural[:-1].capitalize()
    schema = {"type": "object", "properties": {"spec": spec or {"type": "object"}}}
    first = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **(version or {})}
    return {
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, **names},
            "versions": [first],
        },
    }


def conditions(crd: Object) -> dict[str, str]:
    return {one["type"]: one["status"] for one in crd["status"]["conditions"]}


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with EmbeddedCluster() as cluster:
        yield Server(cluster)


async def test_a_kind_is_served_when_its_definition_was_answered(server: Server) -> None:
    made = await server.must("POST", CRDS, definition(shortNames=["th"]))
    assert made["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }
    await server.must("POST", THINGS, {"metadata": {"name": "a"}})
    crd = await server.must("GET", f"{CRDS}/things.example.com")
    assert conditions(crd) == {"NamesAccepted": "True", "Established": "True"}
    assert crd["status"]["acceptedNames"]["shortNames"] == ["th"]
    listed = await server.must("GET", "/apis/example.com/v1")
    assert [one["name"] for one in listed["resources"]] == ["things"]


async def test_a_name_that_is_taken_is_not_served_until_it_is_free(server: Server) -> None:
    await server.must("POST", CRDS, definition(shortNames=["th"]))
    await server.must("POST", CRDS, definition("thoughts", shortNames=["th"]))
    second = await server.must("GET", f"{CRDS}/thoughts.example.com")
    assert conditions(second) == {"NamesAccepted": "False", "Established": "False"}
    told = {one["type"]: (one["reason"], one["message"]) for one in second["status"]["conditions"]}
    assert told["NamesAccepted"] == ("ShortNamesConflict", '"th" is already in use')
    assert (await server.ask("GET", "/apis/example.com/v1/thoughts"))[0] == 404
    await server.must("DELETE", f"{CRDS}/things.example.com")
    assert conditions(await server.must("GET", f"{CRDS}/thoughts.example.com"))["Established"] == "True"
    assert (await server.ask("GET", "/apis/example.com/v1/thoughts"))[0] == 200


async def test_a_change_of_the_schema_holds_for_the_next_request(server: Server) -> None:
    await server.must("POST", CRDS, definition(spec={"type": "object", "properties": {"a": {"type": "string"}}}))
    await server.must("POST", THINGS, {"metadata": {"name": "old"}, "spec": {"a": "x", "b": "pruned"}})
    crd = await server.must("GET", f"{CRDS}/things.example.com")
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {
        "type": "object",
        "properties": {"b": {"type": "string", "default": "new"}},
    }
    await server.must("PUT", f"{CRDS}/things.example.com", crd)
    assert (await server.must("GET", f"{THINGS}/old"))["spec"] == {"b": "new"}
    listed = await server.must("GET", THINGS)
    assert [one["spec"] for one in listed["items"]] == [{"b": "new"}]
    made = await server.must("POST", THINGS, {"metadata": {"name": "new"}, "spec": {"a": "pruned"}})
    assert made["spec"] == {"b": "new"}


async def test_deleting_a_definition_takes_its_objects_along(server: Server) -> None:
    await server.must("POST", CRDS, definition())
    for number in range(3):
        await server.must("POST", THINGS, {"metadata": {"name": f"t{number}"}})
    gone = await server.must("DELETE", f"{CRDS}/things.example.com")
    assert gone["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert conditions(gone)["Terminating"] == "True"
    assert (await server.ask("GET", f"{CRDS}/things.example.com"))[0] == 404
    assert await server.ask("GET", THINGS) == (404, {"text": "404 page not found\n"})
    assert server.cluster.store.count("things.example.com") == 0
    assert "example.com" not in server.cluster.core.kinds.groups()


async def test_an_object_with_a_finalizer_keeps_its_definition(server: Server) -> None:
    await server.must("POST", CRDS, definition())
    await server.must("POST", THINGS, {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}})
    await server.must("DELETE", f"{CRDS}/things.example.com")
    crd = await server.must("GET", f"{CRDS}/things.example.com")
    assert conditions(crd)["Terminating"] == "True"
    refused, told = await server.ask("POST", THINGS, {"metadata": {"name": "b"}})
    assert refused == 403
    assert "create not allowed while custom resource definition is terminating" in told["message"]
    await server.must("PATCH", f"{THINGS}/a", {"metadata": {"finalizers": None}}, MERGE)
    assert (await server.ask("GET", f"{CRDS}/things.example.com"))[0] == 404


async def test_watches_end_with_their_kind(server: Server) -> None:
    await server.must("POST", CRDS, definition())
    await server.must("POST", THINGS, {"metadata": {"name": "a"}})
    watch = await server.cluster.transport.send(HttpRequest("GET", THINGS, (("watch", "1"),)))
    lines: list[Object] = []

    async def read() -> None:
        async for chunk in watch.chunks():
            lines.extend(json.loads(line) for line in chunk.splitlines())

    reading = asyncio.ensure_future(read())
    await asyncio.sleep(0)
    await server.must("DELETE", f"{CRDS}/things.example.com")
    await asyncio.wait_for(reading, 5)
    assert [line["type"] for line in lines] == ["ADDED", "DELETED"]


async def test_selectable_fields_select_what_was_there_before_them(server: Server) -> None:
    spec = {"type": "object", "properties": {"color": {"type": "string"}}}
    await server.must("POST", CRDS, definition(spec=spec))
    for name, color in (("a", "red"), ("b", "blue")):
        await server.must("POST", THINGS, {"metadata": {"name": name}, "spec": {"color": color}})
    assert (await server.ask("GET", f"{THINGS}?fieldSelector=spec.color=red"))[0] == 400
    fields = {"selectableFields": [{"jsonPath": ".spec.color"}]}
    crd = await server.must("GET", f"{CRDS}/things.example.com")
    crd["spec"]["versions"][0].update(fields)
    await server.must("PUT", f"{CRDS}/things.example.com", crd)
    found = await server.must("GET", f"{THINGS}?fieldSelector=spec.color=red")
    assert [one["metadata"]["name"] for one in found["items"]] == ["a"]


async def test_a_server_that_starts_again_serves_what_was_defined(tmp_path: Path) -> None:
    data = tmp_path / "data.sqlite"
    async with EmbeddedCluster(data=data) as cluster:
        server = Server(cluster)
        await server.must("POST", CRDS, definition(spec={"type": "object", "properties": {"a": {"type": "integer"}}}))
        await server.must("POST", THINGS, {"metadata": {"name": "a"}, "spec": {"a": 1}})
    async with EmbeddedCluster(data=data) as cluster:
        server = Server(cluster)
        assert (await server.must("GET", f"{THINGS}/a"))["spec"] == {"a": 1}
        assert (await server.ask("POST", THINGS, {"metadata": {"name": "b"}, "spec": {"a": "x"}}))[0] == 422


async def test_a_deletion_that_was_cut_short_is_finished_at_the_next_start(tmp_path: Path) -> None:
    data = tmp_path / "data.sqlite"
    async with EmbeddedCluster(data=data) as cluster:
        server = Server(cluster)
        await server.must("POST", CRDS, definition())
        await server.must("POST", THINGS, {"metadata": {"name": "a"}})
        cluster.core.committed.clear()  # as if the process had ended just after the commit
        await server.must("DELETE", f"{CRDS}/things.example.com")
        assert (await server.ask("GET", f"{CRDS}/things.example.com"))[0] == 200
    async with EmbeddedCluster(data=data) as cluster:
        server = Server(cluster)
        assert (await server.ask("GET", f"{CRDS}/things.example.com"))[0] == 404
        assert cluster.store.count("things.example.com") == 0


async def test_a_snapshot_that_is_restored_brings_its_kinds_back(server: Server) -> None:
    empty = server.cluster.snapshot()
    await server.must("POST", CRDS, definition())
    await server.must("POST", THINGS, {"metadata": {"name": "a"}})
    full = server.cluster.snapshot()
    server.cluster.restore(empty)
    assert (await server.ask("GET", THINGS))[0] == 404
    server.cluster.restore(full)
    assert (await server.must("GET", f"{THINGS}/a"))["metadata"]["name"] == "a"


async def test_versions_share_objects_and_each_has_its_own_defaults(server: Server) -> None:
    crd = definition(spec={"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}})
    second = json.loads(json.dumps(crd["spec"]["versions"][0]))
    second.update(name="v2", storage=False)
    second["schema"]["openAPIV3Schema"]["properties"]["spec"] = {
        "type": "object",
        "properties": {"a": {"type": "string", "default": "two"}},
    }
    crd["spec"]["versions"].append(second)
    await server.must("POST", CRDS, crd)
    await server.must("POST", THINGS, {"metadata": {"name": "x"}, "spec": {"b": 1}})
    newer = THINGS.replace("/v1/", "/v2/")
    assert (await server.must("GET", f"{newer}/x"))["spec"] == {"a": "two"}
    await server.must("PATCH", f"{newer}/x", {"metadata": {"labels": {"l": "v"}}}, MERGE)
    kept = await server.must("GET", f"{THINGS}/x")
    assert kept["apiVersion"] == "example.com/v1"
    assert kept["metadata"]["labels"] == {"l": "v"}
    assert {one["metadata"]["name"] for one in (await server.must("GET", newer))["items"]} == {"x"}


async def test_scale_and_status_are_written_by_themselves(server: Server) -> None:
    version = {
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
        "schema": {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    await server.must("POST", CRDS, definition(version=version))
    made = await server.must("POST", THINGS, {"metadata": {"name": "a"}, "spec": {"replicas": 1}, "status": {"x": 1}})
    assert "status" not in made
    scale = await server.must("PATCH", f"{THINGS}/a/scale", {"spec": {"replicas": 3}}, MERGE)
    assert scale["spec"] == {"replicas": 3}
    changed = await server.must(
        "PATCH", f"{THINGS}/a/status", {"spec": {"replicas": 9}, "status": {"replicas": 2}}, MERGE
    )
    assert (changed["spec"], changed["status"], changed["metadata"]["generation"]) == (
        {"replicas": 3},
        {"replicas": 2},
        2,
    )
    assert (await server.must("GET", f"{THINGS}/a/scale"))["status"] == {"replicas": 2}


async def test_an_update_must_name_the_version_that_it_saw(server: Server) -> None:
    await server.must("POST", CRDS, definition())
    made = await server.must("POST", THINGS, {"metadata": {"name": "a"}})
    status, told = await server.ask("PUT", f"{THINGS}/a", {"metadata": {"name": "a"}})
    assert status == 422
    assert "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update" in told["message"]
    await server.must("PUT", f"{THINGS}/a", made)


async def test_webhook_conversion_is_refused_loudly(server: Server) -> None:
    crd = definition()
    crd["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"url": "https://example.com"}, "conversionReviewVersions": ["v1"]},
    }
    status, told = await server.ask("POST", CRDS, crd)
    assert status == 422
    assert "this server does not call conversion webhooks yet" in told["message"]
