from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.scripted import Answer, ScriptedTransport, json_answer, status_answer

from flyball.api import decode
from flyball.client import Client
from flyball.client.kinds import dynamic, ref
from flyball.errors import MalformedAnswer, TooManyRequests
from flyball.k8s.apps.v1 import Deployment
from flyball.k8s.core.v1 import Pod, ServiceAccount

SCALE = {
    "metadata": {"resourceVersion": "9"},
    "spec": {"replicas": 3},
    "status": {"replicas": 2, "selector": "app=web"},
}


def client(*answers: Answer) -> tuple[Client, ScriptedTransport]:
    transport = ScriptedTransport(*answers)
    return Client(transport=transport, namespace="home", field_manager="me"), transport


async def test_scale_is_read() -> None:
    c, transport = client(json_answer(SCALE), json_answer({"spec": {}}))
    found = await c.scale(Deployment, "web")
    assert (found.replicas, found.ready, found.selector, found.resource_version) == (3, 2, "app=web", "9")
    assert (transport.last.method, transport.last.path) == (
        "GET",
        "/apis/apps/v1/namespaces/home/deployments/web/scale",
    )
    assert (await c.scale(Deployment.new("web", namespace="shop"))).replicas == 0
    assert transport.last.path == "/apis/apps/v1/namespaces/shop/deployments/web/scale"


async def test_scale_is_set() -> None:
    c, transport = client(json_answer(SCALE))
    await c.scale(ref(Deployment, "web"), replicas=3)
    assert (transport.last.method, transport.last_body) == ("PATCH", {"spec": {"replicas": 3}})
    assert transport.last.headers["Content-Type"] == "application/merge-patch+json"
    assert transport.last.query == (("fieldManager", "me"),)
    assert transport.last.action == "scale Deployment home/web to 3"


async def test_scale_to_zero_is_no_read() -> None:
    c, transport = client(json_answer(SCALE))
    await c.scale(Deployment, "web", replicas=0)
    assert transport.last_body == {"spec": {"replicas": 0}}


async def test_evict() -> None:
    c, transport = client(json_answer({}), json_answer({}))
    await c.evict("demo")
    assert transport.last.path == "/api/v1/namespaces/home/pods/demo/eviction"
    assert transport.last_body == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "demo", "namespace": "home"},
    }
    read = decode(Pod, json.dumps({"metadata": {"name": "demo", "namespace": "shop", "uid": "u"}}).encode())
    await c.evict(read, grace_period=5)
    assert transport.last_body["deleteOptions"] == {"gracePeriodSeconds": 5, "preconditions": {"uid": "u"}}


async def test_a_disruption_budget_is_an_answer_and_not_a_reason_to_ask_again() -> None:
    causes = [{"reason": "DisruptionBudget", "message": "needs 1 healthy pods"}]
    c, transport = client(status_answer(429, "TooManyRequests", "Cannot evict pod", causes=causes))
    with pytest.raises(TooManyRequests, match=r"^evict Pod home/demo: .*Cannot evict pod"):
        await c.evict("demo")
    assert len(transport.requests) == 1


async def test_bind() -> None:
    c, transport = client(json_answer({}))
    await c.bind("demo", "node-1")
    assert transport.last.path == "/api/v1/namespaces/home/pods/demo/binding"
    assert transport.last_body["target"] == {"apiVersion": "v1", "kind": "Node", "name": "node-1"}


async def test_token() -> None:
    answer = {"status": {"token": "t0p", "expirationTimestamp": "2026-02-11T08:15:42Z"}}
    c, transport = client(json_answer(answer), json_answer(answer))
    token = await c.token("robot", audiences=["vault"], expires_in=timedelta(minutes=10))
    assert (token.token, token.expires) == ("t0p", datetime(2026, 2, 11, 8, 15, 42, tzinfo=UTC))
    assert "t0p" not in repr(token)
    assert transport.last.path == "/api/v1/namespaces/home/serviceaccounts/robot/token"
    assert transport.last_body["spec"] == {"audiences": ["vault"], "expirationSeconds": 600}
    await c.token(ServiceAccount.new("robot", namespace="shop"))
    assert transport.last.path == "/api/v1/namespaces/shop/serviceaccounts/robot/token"


async def test_a_dynamic_object_can_be_scaled() -> None:
    c, transport = client(json_answer(SCALE))
    c.discovery.learn(Deployment.resource_type)
    await c.scale(dynamic("apps/v1", "Deployment"), "web", namespace="shop")
    assert transport.last.path == "/apis/apps/v1/namespaces/shop/deployments/web/scale"


async def test_what_is_no_answer_is_said_to_be_so() -> None:
    c, _ = client(Answer(body=b"oops"))
    with pytest.raises(MalformedAnswer, match=r"read the scale of Deployment home/web"):
        await c.scale(Deployment, "web")
