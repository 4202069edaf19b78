"""What is told of kinds: OpenAPI documents and discovery, while kinds come and go."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from flyball.client.transport import HttpRequest
from flyball.clock import ManualClock
from flyball.controlplane.cluster import EmbeddedCluster

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": {"type": "string"}}}}}


def definition(plural: str, schema: dict[str, Any] = SCHEMA) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "kind": plural[:-1].capitalize()}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": spec}


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(clock=ManualClock(datetime(2026, 1, 1, tzinfo=UTC))) as running:
        yield running


async def get(cluster: EmbeddedCluster, path: str, **headers: str) -> tuple[int, dict[str, str], Any]:
    path, _, query = path.partition("?")
    pairs = tuple((name, value) for name, _, value in (part.partition("=") for part in query.split("&") if part))
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = await cluster.transport.send(HttpRequest("GET", path, pairs, named))
    text = await answer.read()
    return answer.status, dict(answer.headers), json.loads(text) if text.startswith(b"{") else text


async def create(cluster: EmbeddedCluster, body: dict[str, Any]) -> str:
    answer = await cluster.transport.send(HttpRequest("POST", CRDS, (), {}, json.dumps(body).encode()))
    assert answer.status == 201, await answer.read()
    return answer.headers.get("Warning", "")


async def test_a_client_that_knows_the_index_is_told_of_each_change(cluster: EmbeddedCluster) -> None:
    _, headers, _ = await get(cluster, "/openapi/v3")
    seen = [headers["Last-Modified"]]
    for plural in ("apples", "pears"):
        assert (await get(cluster, "/openapi/v3", if_modified_since=seen[-1]))[0] == 304
        await create(cluster, definition(plural))
        status, headers, index = await get(cluster, "/openapi/v3", if_modified_since=seen[-1])
        assert status == 200
        assert "apis/example.com/v1" in index["paths"]
        seen.append(headers["Last-Modified"])
    assert len(set(seen)) == 3  # the clock stood still


async def test_a_document_is_found_by_its_digest(cluster: EmbeddedCluster) -> None:
    await create(cluster, definition("apples"))
    _, _, index = await get(cluster, "/openapi/v3")
    url = index["paths"]["apis/example.com/v1"]["serverRelativeURL"]
    status, headers, document = await get(cluster, url)
    assert (status, headers["Cache-Control"]) == (200, "public, immutable")
    shown = document["components"]["schemas"]["com.example.v1.Apple"]["properties"]
    assert shown["spec"] == SCHEMA["properties"]["spec"]  # type: ignore[index]
    patch = document["paths"]["/apis/example.com/v1/namespaces/{namespace}/apples/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    status, headers, _ = await get(cluster, "/openapi/v3/apis/example.com/v1?hash=OLD")
    assert (status, headers["Location"]) == (301, url)


async def test_discovery_follows_the_definitions(cluster: EmbeddedCluster) -> None:
    _, before, _ = await get(cluster, "/apis", accept=AGGREGATED)
    assert (await get(cluster, "/apis", accept=AGGREGATED, if_none_match=before["Etag"]))[0] == 304
    await create(cluster, definition("apples"))
    status, headers, found = await get(cluster, "/apis", accept=AGGREGATED, if_none_match=before["Etag"])
    assert (status, headers["Content-Type"]) == (200, AGGREGATED)
    [group] = [item for item in found["items"] if item["metadata"]["name"] == "example.com"]
    [resource] = group["versions"][0]["resources"]
    assert resource["responseKind"] == {"group": "example.com", "version": "v1", "kind": "Apple"}
    assert resource["scope"] == "Namespaced"


async def test_formats_that_nothing_is_held_to_are_named(cluster: EmbeddedCluster) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "format": "soup"}, "b": {"type": "string"}}}
    assert await create(cluster, definition("apples", schema)) == '299 - "unrecognized format \\"soup\\""'
    assert await create(cluster, definition("pears")) == ""
