"""The log of a container: which part, in which form, refused with which words, and that nobody is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support.testkubelet import Kubelet, Line, start_pod

from flyball.client import Client
from flyball.controlplane.apiserver.kubelets import KubeletRefusal
from flyball.errors import ApiError, BadRequest, ConnectionLost, Forbidden, NotFound, TransportError
from flyball.testing import Cluster, eventually

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def collected(lines: AsyncIterable[str]) -> list[str]:
    return [line async for line in lines]


@pytest.mark.capability("C8")
async def test_what_there_is(client: Client, kubelet: Kubelet) -> None:
    journal = kubelet.journal("web")
    assert await client.logs("web") == ""
    journal.write(Line("one", at=NOON), Line("two", at=NOON + timedelta(hours=1)), Line("three", at=datetime.now(UTC)))
    assert await client.logs("web") == "one\ntwo\nthree\n"
    assert await client.logs("web", tail=1) == "three\n"
    assert await client.logs("web", tail=0) == ""
    assert await client.logs("web", limit_bytes=6) == "one\ntw"
    assert await client.logs("web", since=NOON + timedelta(minutes=1)) == "two\nthree\n"
    assert await client.logs("web", since=timedelta(hours=1)) == "three\n"
    assert (await client.logs("web", timestamps=True)).startswith("2026-03-01T12:00:00.000000000Z one\n")
    assert [line async for line in client.logs("web", container="main")] == ["one", "two", "three"]


async def test_a_followed_log_begins_before_anything_is_written_and_ends_with_the_container(
    client: Client, kubelet: Kubelet
) -> None:
    journal = kubelet.journal("web")
    lines: list[str] = []

    async def read() -> None:
        async for line in client.logs("web", follow=True):
            lines.append(line)

    reading = asyncio.create_task(read())
    await eventually(lambda: kubelet.readers == 1)
    journal.write("one", "two")
    await eventually(lambda: lines == ["one", "two"])
    journal.write("three")
    journal.end()
    await reading
    assert lines == ["one", "two", "three"]
    assert kubelet.readers == 0


async def test_the_kubelet_is_let_go_when_the_reader_goes(client: Client, kubelet: Kubelet) -> None:
    kubelet.journal("web").write("one")
    following = aiter(client.logs("web", follow=True))
    assert await anext(following) == "one"
    assert kubelet.readers == 1
    await following.aclose()  # type: ignore[attr-defined]
    await eventually(lambda: kubelet.readers == 0)


async def test_a_reader_that_is_cancelled_lets_the_kubelet_go(client: Client, kubelet: Kubelet) -> None:
    reading = asyncio.create_task(collected(client.logs("web", follow=True)))
    await eventually(lambda: kubelet.readers == 1)
    reading.cancel()
    await asyncio.wait({reading})
    await eventually(lambda: kubelet.readers == 0)


async def test_it_ends_cleanly_with_the_server(client: Client, cluster: Cluster, kubelet: Kubelet) -> None:
    kubelet.journal("web").write("one")
    following = aiter(client.logs("web", follow=True))
    assert await anext(following) == "one"
    await cluster.embedded.stop()
    assert [line async for line in following] == []
    assert kubelet.readers == 0


async def test_a_slow_reader_makes_the_kubelet_wait(cluster: Cluster) -> None:
    given = 0

    class Endless(Kubelet):
        async def logs(self, pod: Any, options: Any) -> AsyncIterator[bytes]:
            nonlocal given
            while True:
                given += 1
                yield b"x" * 65_535 + b"\n"

    await start_pod(cluster.embedded.server, cluster.client, Endless(), "web")
    async with Client(cluster.config) as client:
        following = aiter(client.logs("web", follow=True))
        await anext(following)
        before = -1
        while given != before:  # until the kubelet has come to rest, however large the buffers between are
            before = given
            for _ in range(200):
                await asyncio.sleep(0)
        assert given < 1000
        for _ in range(given + 10):
            await anext(following)
        await following.aclose()  # type: ignore[attr-defined]


WAITING = [
    (
        {"waiting": {"reason": "ContainerCreating"}},
        'container "main" in pod "p" is waiting to start: ContainerCreating',
    ),
    ({"waiting": {"reason": "PodInitializing"}}, 'container "main" in pod "p" is waiting to start: PodInitializing'),
    ({"waiting": {"reason": "ErrImagePull"}}, "is waiting to start: image can't be pulled"),
    ({"waiting": {"reason": "ImagePullBackOff"}}, "is waiting to start: trying and failing to pull image"),
    ({"waiting": {}}, 'container "main" in pod "p" is waiting to start - no logs yet'),
]


@pytest.mark.parametrize(("state", "told"), WAITING)
async def test_a_container_that_has_not_started(cluster: Cluster, state: dict[str, Any], told: str) -> None:
    await start_pod(cluster.embedded.server, cluster.client, Kubelet(), "p", state=state)
    with pytest.raises(BadRequest, match=told):
        await cluster.client.logs("p")


async def test_a_container_of_which_nothing_is_known_yet(cluster: Cluster) -> None:
    await start_pod(cluster.embedded.server, cluster.client, Kubelet(), "p", "a", "b", known=("a",))
    assert await cluster.client.logs("p", container="a") == ""
    with pytest.raises(BadRequest, match='container "b" in pod "p" is not available'):
        await cluster.client.logs("p", container="b")


async def test_the_run_before(cluster: Cluster) -> None:
    kubelet, server = Kubelet(), cluster.embedded.server
    ended = {"terminated": {"exitCode": 1, "reason": "Error"}}
    await start_pod(server, cluster.client, kubelet, "first")
    await start_pod(server, cluster.client, kubelet, "again", last=ended)
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    await start_pod(server, cluster.client, kubelet, "crashing", state=waiting, last=ended)
    kubelet.journal("again", previous=True).write("before")
    kubelet.journal("again").write("now")
    kubelet.journal("crashing").write("the last words")
    with pytest.raises(BadRequest, match='previous terminated container "main" in pod "first" not found'):
        await cluster.client.logs("first", previous=True)
    assert await cluster.client.logs("again", previous=True) == "before\n"
    assert await cluster.client.logs("again") == "now\n"
    assert await cluster.client.logs("crashing") == "the last words\n"


async def test_a_node_without_a_kubelet(client: Client, cluster: Cluster) -> None:
    await start_pod(cluster.embedded.server, cluster.client, None, "p", node="dead")
    with pytest.raises(ApiError, match='no kubelet answers for node "dead"') as caught:
        await client.logs("p")
    assert caught.value.code == 500


async def test_a_kubelet_that_refuses(client: Client, kubelet: Kubelet) -> None:
    kubelet.refusal = KubeletRefusal("the disk with the logs is gone", 500, "InternalError")
    for follow in (False, True):
        with pytest.raises(ApiError, match="the disk with the logs is gone"):
            await collected(client.logs("web", follow=follow))


async def test_a_kubelet_that_fails_on_the_way_breaks_the_log_off(client: Client, cluster: Cluster) -> None:
    class Failing(Kubelet):
        async def logs(self, pod: Any, options: Any) -> AsyncIterator[bytes]:
            yield b"one\n"
            raise RuntimeError("the disk is gone")

    await start_pod(cluster.embedded.server, cluster.client, Failing(), "p")
    following = aiter(client.logs("p", follow=True))
    with pytest.raises(ConnectionLost):
        await collected(following)


async def test_faults(client: Client, cluster: Cluster, kubelet: Kubelet) -> None:
    kubelet.journal("web").write("one", "two")
    cluster.faults.status(403, subresource="log", first=1)
    with pytest.raises(Forbidden):
        await client.logs("web")
    cluster.faults.clear()
    cluster.faults.truncate(5, subresource="log", first=1)
    with pytest.raises(TransportError):
        await client.logs("web")
    cluster.faults.clear()
    assert await client.logs("web") == "one\ntwo\n"
    asked = [one for one in cluster.requests if one.subresource == "log"]
    assert [(one.verb, one.status, one.fault) for one in asked] == [
        ("get", 403, "status 403"),
        ("get", 200, "truncate"),
        ("get", 200, ""),
    ]


async def test_an_answer_that_is_lost_lets_the_kubelet_go(client: Client, cluster: Cluster, kubelet: Kubelet) -> None:
    cluster.faults.cut_after_commit(subresource="log")
    with pytest.raises(ConnectionLost):
        await collected(client.logs("web", follow=True))
    await eventually(lambda: kubelet.readers == 0)


async def test_a_pod_that_is_not_there(client: Client) -> None:
    with pytest.raises(NotFound, match='pods "nobody" not found'):
        await client.logs("nobody")
