from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.scripted import Answer, ScriptedTransport, status, status_answer
from tests.support.widgets import Widget

from flyball.client import Client
from flyball.client.kinds import dynamic, metadata_of, raw_of
from flyball.client.watch import WatchEvent
from flyball.errors import ApiError, ConnectionLost, Expired, Forbidden, InternalError, MalformedAnswer


def event(kind: str, name: str = "w", version: int = 1, **more: Any) -> bytes:
    metadata = {"name": name, "resourceVersion": str(version), **more}
    obj = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": metadata}
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def client(*pieces: bytes | Exception) -> tuple[Client, ScriptedTransport, Answer]:
    answer = Answer(pieces=pieces)
    transport = ScriptedTransport(answer)
    return Client(transport=transport, namespace="home"), transport, answer


async def test_events_come_in_order_and_typed() -> None:
    c, transport, answer = client(
        event("ADDED", "a", 2) + event("MODIFIED", "b", 3)[:20], event("MODIFIED", "b", 3)[20:]
    )
    seen = [change async for change in c.watch(Widget, labels="app=web", resource_version="1")]
    assert [(change.type, change.object.metadata.name, change.resource_version) for change in seen] == [
        ("ADDED", "a", "2"),
        ("MODIFIED", "b", "3"),
    ]
    assert isinstance(seen[0].object, Widget)
    assert answer.closed
    query = dict(transport.last.query)
    assert 300 <= int(query.pop("timeoutSeconds")) <= 600
    assert query == {
        "labelSelector": "app=web",
        "allowWatchBookmarks": "true",
        "resourceVersion": "1",
        "watch": "true",
    }


async def test_servers_are_told_different_times() -> None:
    times = set()
    for _ in range(20):
        c, transport, _ = client()
        assert [change async for change in c.watch(Widget)] == []
        times.add(dict(transport.last.query)["timeoutSeconds"])
    assert len(times) > 5


async def test_the_client_is_more_patient_than_the_server() -> None:
    c, transport, _ = client()
    assert [change async for change in c.watch(Widget, timeout=60)] == []
    assert dict(transport.last.query)["timeoutSeconds"] == "60"
    assert transport.last.timeout == 90.0
    c, transport, _ = client()
    assert [change async for change in c.watch(Widget, inactivity=5)] == []
    assert transport.last.timeout == 5


async def test_bookmarks_keep_the_version_and_are_shown_on_request() -> None:
    pieces = [event("ADDED", "a", 2), event("BOOKMARK", "", 9)]
    c, _, _ = client(*pieces)
    watch = c.watch(Widget)
    assert [change.type async for change in watch] == ["ADDED"]
    assert watch.resource_version == "9"
    c, _, _ = client(*pieces)
    assert [change.type async for change in c.watch(Widget, bookmarks=True)] == ["ADDED", "BOOKMARK"]


async def test_the_version_before_any_event_is_the_one_asked_for() -> None:
    c, _, _ = client()
    watch = c.watch(Widget, resource_version="5")
    assert [change async for change in watch] == []
    assert watch.resource_version == "5"


async def test_initial_events_end_with_a_bookmark() -> None:
    end = event("BOOKMARK", "", 9, annotations={"k8s.io/initial-events-end": "true"})
    c, transport, _ = client(event("ADDED"), end, event("BOOKMARK", "", 10))
    seen = [change async for change in c.watch(Widget, send_initial_events=True)]
    assert [change.initial_events_end for change in seen] == [False, True, False]
    query = dict(transport.last.query)
    assert (query["sendInitialEvents"], query["resourceVersionMatch"], query["resourceVersion"]) == (
        "true",
        "NotOlderThan",
        "",
    )


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [(410, "Expired", Expired), (410, "Gone", ApiError), (500, "InternalError", InternalError), (403, "", Forbidden)],
)
async def test_an_error_within_the_stream_is_raised_before_it_is_read_as_an_object(
    code: int, reason: str, expected: type[ApiError]
) -> None:
    line = json.dumps({"type": "ERROR", "object": status(code, reason, "too old resource version: 1 (9)")}).encode()
    c, _, answer = client(event("ADDED"), line + b"\n")
    seen: list[WatchEvent[Widget]] = []

    async def follow() -> None:
        async for change in c.watch(Widget):
            seen.append(change)

    with pytest.raises(expected, match=r"^watch Widget in home: .*too old resource version") as caught:
        await follow()
    assert caught.value.code == code
    assert len(seen) == 1
    assert answer.closed


async def test_a_bare_status_in_the_stream_is_an_error_too() -> None:
    c, _, _ = client(json.dumps(status(403, "Forbidden", "no")).encode() + b"\n")
    with pytest.raises(Forbidden):
        assert [change async for change in c.watch(Widget)]


async def test_a_refused_watch_is_an_error() -> None:
    c = Client(transport=ScriptedTransport(status_answer(403, "Forbidden", "no")))
    with pytest.raises(Forbidden, match=r"watch Widget in default"):
        assert [change async for change in c.watch(Widget)]


@pytest.mark.parametrize(
    "line",
    [b"<html>", b'{"type":"ADDED","object":[]}', b'{"type":"NEWS","object":{}}', b'{"type":"ERROR","object":{}}'],
)
async def test_nonsense_is_said_to_be_so(line: bytes) -> None:
    c, _, _ = client(line + b"\n")
    with pytest.raises(MalformedAnswer, match=r"^watch Widget in home: script:6443: "):
        assert [change async for change in c.watch(Widget)]


async def test_an_event_that_breaks_off_is_no_event() -> None:
    c, _, _ = client(event("ADDED")[:30])
    with pytest.raises(MalformedAnswer, match=r"an event of 30 bytes cannot be read"):
        assert [change async for change in c.watch(Widget)]


async def test_a_whole_event_without_its_newline_counts() -> None:
    c, _, _ = client(event("ADDED").strip(), b"")
    assert [change.type async for change in c.watch(Widget)] == ["ADDED"]


async def test_a_lost_connection_is_raised_and_the_version_kept() -> None:
    c, _, answer = client(event("ADDED", "a", 7), ConnectionLost("gone"))
    watch = c.watch(Widget)
    with pytest.raises(ConnectionLost):
        assert [change async for change in watch]
    assert watch.resource_version == "7"
    assert answer.closed


async def test_leaving_the_block_closes_the_connection() -> None:
    c, _, answer = client(event("ADDED"), event("ADDED"))
    async with c.watch(Widget) as changes:
        async for _ in changes:
            break
    assert answer.closed
    await changes.close()


@pytest.mark.capability("C1")
async def test_the_other_forms() -> None:
    raw = event("ADDED", "a", 2)
    c, transport, _ = client(raw)
    c.discovery.learn(Widget.resource_type)
    (found,) = [change async for change in c.watch(dynamic("example.org/v1", "Widget"))]
    assert found.object["metadata"]["name"] == "a"
    c, transport, _ = client(raw)
    (partial,) = [change async for change in c.watch(metadata_of(Widget))]
    assert (partial.object.metadata.name, partial.object.kind) == ("a", "Widget")
    assert "as=PartialObjectMetadata;" in transport.last.headers["Accept"]
    c, transport, _ = client(raw)
    (bare,) = [change async for change in c.watch(raw_of(Widget))]
    assert json.loads(bare.object) == json.loads(raw)["object"]
    assert "ADDED" in repr(bare)


async def test_an_event_of_20_megabytes() -> None:
    line = event("ADDED", "a", 2, annotations={"big": "x" * (20 << 20)})
    c, _, _ = client(*[line[start : start + 65536] for start in range(0, len(line), 65536)])
    (found,) = [change async for change in c.watch(Widget)]
    assert len(found.object.metadata.annotations["big"]) == 20 << 20
