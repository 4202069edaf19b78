from __future__ import annotations

import gc
from typing import Any

import pytest
from tests.support.scripted import Answer, ScriptedTransport, json_answer, status_answer
from tests.support.widgets import Widget

from flyball.api import ResourceType
from flyball.client import Client
from flyball.client.kinds import Kind, dynamic, metadata_of, raw_of
from flyball.errors import Expired, MalformedAnswer
from flyball.k8s.core.v1 import ConfigMap


def page(names: str, token: str = "", version: str = "10", **metadata: Any) -> Answer:
    metadata |= {"resourceVersion": version} | ({"continue": token} if token else {})
    return json_answer({"metadata": metadata, "items": [{"metadata": {"name": name}} for name in names]})


def expired() -> Answer:
    return status_answer(410, "Expired", "The provided continue parameter is too old")


def client(*answers: Answer) -> tuple[Client, ScriptedTransport]:
    transport = ScriptedTransport(*answers)
    return Client(transport=transport, namespace="home"), transport


def names(objects: list[Widget]) -> str:
    return "".join(obj.metadata.name for obj in objects)


async def test_a_list_is_read_in_pages_of_one_state() -> None:
    c, transport = client(page("ab", "T1", remainingItemCount=3), page("cd", "T2"), page("e"))
    found = await c.list(Widget, labels={"app": "web"}, page_size=2, resource_version="5")
    assert names(found) == "abcde"
    assert (found.resource_version, found.token, found.remaining) == ("10", "", None)
    selector = ("labelSelector", "app=web")
    assert [request.query for request in transport.requests] == [
        (selector, ("resourceVersion", "5"), ("limit", "2")),
        (selector, ("limit", "2"), ("continue", "T1")),
        (selector, ("limit", "2"), ("continue", "T2")),
    ]
    assert {request.path for request in transport.requests} == {"/apis/example.org/v1/namespaces/home/widgets"}


async def test_async_for_asks_for_a_page_only_when_it_is_needed() -> None:
    c, transport = client(page("ab", "T1"), page("c"))
    seen: list[tuple[str, int]] = []
    async for obj in c.list(Widget, page_size=2):
        seen.append((obj.metadata.name, len(transport.requests)))
    assert seen == [("a", 1), ("b", 1), ("c", 2)]


async def test_pages_know_what_follows() -> None:
    c, _ = client(page("ab", "T1", remainingItemCount=7), page(""))
    found = [page async for page in c.list(Widget).pages()]
    assert [(names(page), page.token, page.remaining) for page in found] == [("ab", "T1", 7), ("", "", None)]


async def test_default_and_no_paging() -> None:
    c, transport = client(page("a"), page("a"))
    await c.list(Widget)
    await c.list(Widget, page_size=None, namespace="*", resource_version="3", resource_version_match=r"Exact")
    assert transport.requests[0].query == (("limit", "500"),)
    assert transport.requests[1].query == (("resourceVersion", "3"), ("resourceVersionMatch", "Exact"))
    assert transport.requests[1].path == "/apis/example.org/v1/widgets"


async def test_a_state_that_is_gone_midway_is_read_again_when_nothing_was_handed_out() -> None:
    c, transport = client(page("ab", "T1"), expired(), page("abcde", version="20"))
    found = await c.list(Widget, page_size=2)
    assert (names(found), found.resource_version) == ("abcde", "20")
    assert transport.last.query == ()


async def test_a_state_that_is_gone_midway_is_an_error_when_objects_were_handed_out() -> None:
    c, _ = client(page("ab", "T1"), expired())
    seen: list[str] = []

    async def read() -> None:
        async for obj in c.list(Widget, page_size=2):
            seen.append(obj.metadata.name)

    with pytest.raises(Expired, match=r"list Widget in home: .* after 2 objects had come; list again"):
        await read()
    assert seen == ["a", "b"]


async def test_a_version_that_is_too_old_is_an_error_at_once() -> None:
    c, transport = client(expired())
    with pytest.raises(Expired, match=r"^list Widget in home: expired: The provided"):
        await c.list(Widget, resource_version="1", resource_version_match=r"Exact")
    assert len(transport.requests) == 1


@pytest.mark.capability("C1")
async def test_items_get_the_names_that_servers_leave_out() -> None:
    whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}
    body = {"metadata": {}, "items": [{"metadata": {"name": "a"}}, whole, {}, {"data": {}, "metadata": {"name": "c"}}]}
    c, _ = client(*[json_answer(body) for _ in range(4)])
    for kind in (ConfigMap, dynamic("v1", "ConfigMap"), metadata_of(ConfigMap)):
        c.discovery.learn(ConfigMap.resource_type)
        found: list[Any] = await c.list(kind)
        assert [(obj.api_version, obj.kind) for obj in found] == [("v1", "ConfigMap")] * 4
        assert [obj.metadata.name for obj in found] == ["a", "b", "", "c"]
    raws = await c.list(raw_of(ConfigMap))
    assert raws[0] == b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}'


async def test_null_items_are_no_items() -> None:
    c, _ = client(json_answer({"metadata": {"resourceVersion": "1"}, "items": None}))
    assert await c.list(Widget) == []


async def test_what_is_no_list_is_said_to_be_so() -> None:
    c, _ = client(Answer(body=b"<html>welcome</html>"))
    with pytest.raises(MalformedAnswer, match=r"list Widget in home: script:6443: the answer is HTML"):
        await c.list(Widget)


async def test_the_collector_rests_while_a_list_is_decoded() -> None:
    enabled: list[bool] = []

    def read(raw: bytes, resource: ResourceType) -> bytes:
        enabled.append(gc.isenabled())
        return raw

    c, _ = client(page("ab"))
    await c.list(Kind(Widget.resource_type, read))
    assert enabled == [False, False]
    assert gc.isenabled()
