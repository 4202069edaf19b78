from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.fakeapi import FakeAnswer, FakeApi, Served
from tests.support.scripted import Answer, ScriptedTransport, json_answer, status

from flyball.api import ResourceType
from flyball.client import Client
from flyball.client.kinds import dynamic
from flyball.client.refusals import UnknownKind
from flyball.client.transport import HttpRequest
from flyball.errors import MalformedAnswer, ServiceUnavailable

GADGET = Served("new.example.org", "v1", "Gadget", "gadgets", namespaced=False)


def paths(api: FakeApi) -> list[str]:
    return [request.path for request in api.requests]


@pytest.mark.parametrize("aggregated", [True, False])
async def test_both_ways_find_the_same(aggregated: bool) -> None:
    api = FakeApi()
    api.aggregated = aggregated
    discovery = Client(transport=api).discovery
    assert await discovery.resource("apps/v1", "Deployment") == ResourceType(
        "apps", "v1", "Deployment", "deployments", True, "deployment"
    )
    namespaces = await discovery.resource("v1", "Namespace")
    assert (namespaces.namespaced, namespaces.plural) == (False, "namespaces")
    served = {found.resource.kind: found for found in await discovery.kinds()}
    assert set(served) == {kind.kind for kind in api.kinds}
    assert served["Deployment"].subresources == {"status", "scale"}
    assert served["Pod"].short_names == ("po",)
    assert "watch" in served["Pod"].verbs
    assert len(paths(api)) == (2 if aggregated else 5)


async def test_names_as_people_use_them() -> None:
    discovery = Client(transport=FakeApi()).discovery
    for name in ("deployments", "deployment", "Deployment", "de", "deployments.apps", "deployments.v1.apps"):
        assert (await discovery.find(name)).resource.kind == "Deployment"
    assert (await discovery.find("pods.v1")).resource.kind == "Pod"
    with pytest.raises(UnknownKind, match=r"fake:6443 serves nothing called 'unicorns'"):
        await discovery.find("unicorns")
    with pytest.raises(UnknownKind):
        await discovery.find("deployments.batch")


async def test_an_unknown_kind_makes_it_ask_again() -> None:
    api = FakeApi()
    discovery = Client(transport=api).discovery
    await discovery.resource("v1", "Pod")
    await discovery.resource("v1", "ConfigMap")
    assert len(paths(api)) == 2
    api.kinds.append(GADGET)
    assert (await discovery.resource("new.example.org/v1", "Gadget")).plural == "gadgets"
    assert len(paths(api)) == 4
    with pytest.raises(
        UnknownKind, match=r"fake:6443 does not serve apps/v9 Deployment; it serves .* as apps/v1; check"
    ):
        await discovery.resource("apps/v9", "Deployment")


async def test_many_who_wait_ask_once() -> None:
    api = FakeApi()
    discovery = Client(transport=api).discovery
    await asyncio.gather(*(discovery.resource("v1", "Pod") for _ in range(20)))
    assert len(paths(api)) == 2
    await discovery.refresh()
    assert len(paths(api)) == 4


async def test_an_address_that_the_program_gave_is_not_asked_for() -> None:
    api = FakeApi()
    client = Client(transport=api)
    gadgets = ResourceType("other", "v1", "Gizmo", "gizmos")
    client.discovery.learn(gadgets)
    assert await client.discovery.resource("other/v1", "Gizmo") is gadgets
    assert paths(api) == []


async def test_a_group_whose_server_is_down_hides_no_other() -> None:
    api = FakeApi()
    api.aggregated = False

    def broken(request: HttpRequest) -> FakeAnswer | None:
        if request.path != "/apis/example.org/v1":
            return None
        refusal = json_answer(status(503, "ServiceUnavailable", "no endpoints"), 503)
        return FakeAnswer(503, refusal.body)

    api.before = broken
    discovery = Client(transport=api, retry=None).discovery
    assert (await discovery.resource("apps/v1", "Deployment")).plural == "deployments"
    assert discovery.failed == {"example.org/v1": "no endpoints"}
    with pytest.raises(UnknownKind, match=r"could not be read: example.org/v1 \(no endpoints\)"):
        await discovery.resource("example.org/v1", "Widget")


async def test_a_stale_group_is_named() -> None:
    stale: dict[str, Any] = {
        "kind": "APIGroupDiscoveryList",
        "items": [{"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1", "freshness": "Stale"}]}],
    }
    empty = {"kind": "APIGroupDiscoveryList", "items": []}
    discovery = Client(transport=ScriptedTransport(json_answer(empty), json_answer(stale))).discovery
    with pytest.raises(UnknownKind, match=r"metrics.k8s.io/v1 \(its server does not answer now\)"):
        await discovery.resource("metrics.k8s.io/v1", "PodMetrics")


async def test_a_server_that_takes_no_list_of_forms_is_asked_plainly() -> None:
    unacceptable = json_answer(status(406, "NotAcceptable", "only json"), 406)
    versions = json_answer({"kind": "APIVersions", "versions": ["v1"]})
    pods = {"name": "pods", "kind": "Pod", "namespaced": True}
    resources = json_answer({"kind": "APIResourceList", "resources": [pods]})
    missing = json_answer(status(404, "NotFound", "no groups"), 404)
    transport = ScriptedTransport(unacceptable, versions, resources, missing)
    assert (await Client(transport=transport).discovery.resource("v1", "Pod")).plural == "pods"
    assert transport.requests[1].headers["Accept"] == "application/json"


async def test_failures_are_raised_and_not_kept() -> None:
    transport = ScriptedTransport(Answer(503), json_answer({"kind": "APIVersions"}), Answer(body=b"<html>"))
    discovery = Client(transport=transport, retry=None).discovery
    with pytest.raises(ServiceUnavailable, match=r"read the server's kinds"):
        await discovery.resource("v1", "Pod")
    with pytest.raises(MalformedAnswer, match=r"read the server's kinds: script:6443: the answer is HTML"):
        await discovery.resource("v1", "Pod")


@pytest.mark.capability("C1")
async def test_dynamic_objects_go_to_the_address_that_was_found() -> None:
    api = FakeApi()
    client = Client(transport=api, namespace="home")
    widget = await client.list(dynamic("example.org/v1", "Widget"))
    assert widget == []
    assert paths(api)[-1] == "/apis/example.org/v1/namespaces/home/widgets"
