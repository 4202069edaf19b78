from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.scripted import Answer, ScriptedTransport

from flyball.client import Client
from flyball.client.refusals import RefusedRequest
from flyball.k8s.core.v1 import Pod


def client(*answers: Answer) -> tuple[Client, ScriptedTransport]:
    transport = ScriptedTransport(*answers)
    return Client(transport=transport, namespace="home"), transport


async def test_the_text() -> None:
    c, transport = client(Answer(body=b"one\ntwo \xff\n"))
    assert await c.logs("demo") == "one\ntwo \ufffd\n"
    request = transport.last
    assert (request.path, request.query) == ("/api/v1/namespaces/home/pods/demo/log", ())
    assert request.action == "read the log of Pod home/demo"
    assert request.timeout is None


async def test_everything_that_can_be_asked_for() -> None:
    c, transport = client(Answer(), Answer())
    pod = Pod.new("demo", namespace="shop")
    await c.logs(
        pod, container="app", previous=True, since=timedelta(seconds=1.5), tail=3, limit_bytes=9, timestamps=True
    )
    assert transport.last.path == "/api/v1/namespaces/shop/pods/demo/log"
    assert dict(transport.last.query) == {
        "container": "app",
        "limitBytes": "9",
        "previous": "true",
        "sinceSeconds": "2",
        "tailLines": "3",
        "timestamps": "true",
    }
    await c.logs("demo", since=datetime(2026, 2, 11, 8, 15, 42, tzinfo=UTC), tail=0)
    assert dict(transport.last.query) == {"sinceTime": "2026-02-11T08:15:42Z", "tailLines": "0"}
    with pytest.raises(RefusedRequest, match=r"has no time zone"):
        c.logs("demo", since=datetime(2026, 2, 11))


async def test_lines_as_they_come() -> None:
    answer = Answer(pieces=[b"one\ntw", b"o\n", b"thr", b"ee"])
    c, transport = client(answer)
    assert [line async for line in c.logs("demo", follow=True)] == ["one", "two", "three"]
    assert transport.last.query == (("follow", "true"),)
    assert transport.last.timeout == math.inf
    assert answer.closed


async def test_lines_of_what_there_is() -> None:
    c, transport = client(Answer(body=b"one\n"))
    assert [line async for line in c.logs("demo", timeout=4)] == ["one"]
    assert transport.last.timeout == 4


async def test_a_followed_log_cannot_be_awaited() -> None:
    c, transport = client()
    with pytest.raises(RefusedRequest, match=r"no end to wait for"):
        await c.logs("demo", follow=True)
    assert transport.requests == []
