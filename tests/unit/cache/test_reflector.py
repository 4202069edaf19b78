from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from tests.soak.faulty import FaultyServer, Reply, refusal, status
from tests.support.cached import WIDGETS

from flyball.cache import Backoff, CachedObject, Reflector, Store
from flyball.client import Client, dynamic
from flyball.clock import ManualClock
from flyball.errors import ConnectError, ConnectionLost, RequestTimeout


class World:
    """A server, a clock, and a reflector that feeds a store."""

    def __init__(self, **options: Any) -> None:
        self.clock = ManualClock()
        self.server = FaultyServer(Random(1))
        self.store = Store()
        self.asked: list[dict[str, str]] = []
        self.client = Client(transport=self.server, retry=None)
        backoff = Backoff(jitter=lambda: 0.0)
        kind = options.pop("kind", WIDGETS)
        self.reflector = Reflector(self.client, kind, self.store, clock=self.clock, backoff=backoff, **options)
        for name in ("a", "b", "c"):
            self.server.put(name)

    def refuse_once(self, answer: Reply | Exception, *, watch: bool = False) -> None:
        """The next list, or watch, gets this answer."""

        def before(query: dict[str, str]) -> Reply | Exception | None:
            if (query.get("watch") == "true") is not watch:
                return None
            self.server.before = None
            return answer

        self.server.before = before

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        task = asyncio.create_task(self.reflector.run())
        try:
            await self.clock.settle()
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def equal(self) -> bool:
        held = {obj.name: int(obj.resource_version) for obj in self.store.list()}
        return held == self.server.versions


def queries(server: FaultyServer, *, watch: bool) -> list[dict[str, str]]:
    found = [dict(request.query) for request in server.asked]
    return [query for query in found if (query.get("watch") == "true") is watch]


async def test_the_first_list_is_a_consistent_read_and_the_watch_goes_on_from_it() -> None:
    world = World(page_size=2)
    async with world.running():
        assert world.equal()
        lists, (watch,) = queries(world.server, watch=False), queries(world.server, watch=True)
        assert [query.get("resourceVersion") for query in lists] == [None, None]
        assert [query["limit"] for query in lists] == ["2", "2"]
        assert watch["resourceVersion"] == "103"
        assert watch["allowWatchBookmarks"] == "true"
        assert 300 <= int(watch["timeoutSeconds"]) <= 600
        assert world.reflector.health.ok


async def test_changes_reach_the_sink() -> None:
    world = World()
    async with world.running():
        world.server.put("a")
        world.server.put("d")
        world.server.remove("b")
        await world.clock.settle()
        assert world.equal()
        assert world.reflector.resource_version == "106"


async def test_selectors_and_namespace_are_asked_for() -> None:
    world = World(namespace="ns", labels={"app": "web"}, fields="metadata.name=a")
    async with world.running():
        request = world.server.asked[0]
        assert request.path == "/apis/example.org/v1/namespaces/ns/widgets"
        assert dict(request.query)["labelSelector"] == "app=web"
        assert dict(request.query)["fieldSelector"] == "metadata.name=a"
        words = "widgets.example.org in namespace ns (fieldSelector metadata.name=a, labelSelector app=web)"
        assert world.reflector.target.words() == words


@pytest.mark.parametrize("fault", ["end", "cut", "cut mid-line", "silence", "error", "bare status"])
async def test_a_broken_watch_goes_on_where_it_was(fault: str) -> None:
    world = World()
    async with world.running():
        world.server.put("a")
        await world.clock.settle()
        world.server.break_watches(fault)
        await world.clock.settle()
        world.server.put("b")
        world.server.remove("c")
        await world.clock.advance(0.2)
        assert world.equal()
        assert world.server.lists == 1
        assert queries(world.server, watch=True)[-1]["resourceVersion"] == "104"


async def test_pauses_grow_while_the_server_is_away_and_health_says_why() -> None:
    world = World()
    async with world.running():
        world.server.before = lambda query: ConnectError("connection refused", host="faulty:6443")
        world.server.break_watches("cut")
        asked: list[float] = []
        count = len(world.server.asked)
        since = world.clock.now()
        for _ in range(70):
            await world.clock.advance(1.0)
            if len(world.server.asked) != count:
                count = len(world.server.asked)
                asked.append(world.clock.monotonic())
        gaps = [later - earlier for earlier, later in pairwise(asked)]
        assert max(gaps) <= 30.0
        assert gaps[-1] > 15
        health = world.reflector.health
        assert (health.ok, health.since) == (False, since)
        assert "connection refused" in health.reason
        world.server.before = None
        await world.clock.advance(40)
        assert world.reflector.health.ok
        assert world.equal()


@pytest.mark.parametrize("how", ["http", "error event"])
async def test_an_expired_version_is_listed_anew_without_missing_a_delete(how: str) -> None:
    world = World()
    async with world.running():
        if how == "http":
            world.refuse_once(refusal(410, "Expired", "too old resource version"), watch=True)
            world.server.break_watches("end")
            world.server.remove("a")
            world.server.put("d")
            world.server.compact()
        else:
            world.server.break_watches("gone")
            world.server.remove("a")
        await world.clock.advance(2)
        assert world.equal()
        assert world.server.lists == 2
        assert world.reflector.health.ok


async def test_versions_that_expire_again_and_again_do_not_make_it_spin() -> None:
    world = World()

    def before(query: dict[str, str]) -> Reply | None:
        return refusal(410, "Expired") if query.get("watch") == "true" else None

    world.server.before = before
    async with world.running():
        await world.clock.advance(60)
        assert world.server.lists < 20
        assert not world.reflector.health.ok
        assert "times in a row" in world.reflector.health.reason


async def test_a_list_whose_state_is_dropped_midway_begins_anew_in_one_answer() -> None:
    world = World(page_size=1)

    def before(query: dict[str, str]) -> Reply | None:
        if query.get("continue", "").endswith("-2"):
            world.server.remove("a")
            return refusal(410, "Expired", "The provided continue parameter is too old")
        return None

    world.server.before = before
    async with world.running():
        assert world.equal()
        assert "limit" not in queries(world.server, watch=False)[-1]


async def test_a_version_from_the_future_is_listed_anew() -> None:
    """As after a backup was restored: the server knows older versions than we."""
    world = World()
    body = status(504, "Timeout", "Too large resource version")
    body["details"] = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
    async with world.running():
        world.refuse_once(_json(504, body), watch=True)
        world.server.break_watches("end")
        world.server.version = 50
        world.server.put("a")
        world.server.history.clear()
        await world.clock.advance(1)
        assert world.equal()
        assert world.reflector.resource_version == "51"


async def test_a_watch_that_ends_at_once_does_not_make_it_spin() -> None:
    world = World()

    async def nothing() -> AsyncGenerator[bytes]:
        return
        yield b""

    def before(query: dict[str, str]) -> Reply | None:
        return Reply(stream=nothing()) if query.get("watch") == "true" else None

    world.server.before = before
    async with world.running():
        await world.clock.advance(60)
        assert len(queries(world.server, watch=True)) < 15
        assert "the server ended it at once" in world.reflector.health.reason


@pytest.mark.capability("C25")
@pytest.mark.parametrize("verb", ["list", "watch"])
async def test_a_missing_permission_is_named(verb: str, caplog: pytest.LogCaptureFixture) -> None:
    world = World(namespace="ns")
    message = 'User "u" cannot list resource "widgets" in API group "example.org" in the namespace "ns"'

    def before(query: dict[str, str]) -> Reply | None:
        denied = (query.get("watch") == "true") is (verb == "watch")
        return refusal(403, "Forbidden", message) if denied else None

    world.server.before = before
    with caplog.at_level(logging.WARNING):
        async with world.running():
            missing = world.reflector.health.missing
            assert missing is not None
            assert (missing.verb, missing.group, missing.resource) == (verb, "example.org", "widgets")
            assert str(missing) == (
                f"missing: {verb} widgets.example.org in namespace ns; "
                'add @rbac("example.org", "widgets", "list", "watch")'
            )
            await world.clock.advance(60)
            assert len(caplog.records) == 1, "said once"
            world.server.before = None
            await world.clock.advance(40)
            assert world.reflector.health.ok
            assert world.equal()


@pytest.mark.parametrize("kind", [WIDGETS, dynamic("example.org/v1", "Widget")])
async def test_a_kind_that_is_not_served_yet_is_waited_for(kind: Any) -> None:
    world = World(kind=kind)
    world.server.before = lambda query: refusal(404, "NotFound", "the server could not find the requested resource")
    async with world.running():
        await world.clock.advance(60)
        health = world.reflector.health
        assert health.not_served
        assert "the server does not serve this kind; waiting for it" in health.reason
        assert len(world.server.asked) < 50
        world.server.before = None
        if not isinstance(kind, type(WIDGETS)):
            world.client.discovery.learn(WIDGETS)
        await world.clock.advance(5)
        assert world.reflector.health.ok
        assert world.equal()


async def test_a_kind_that_is_deleted_and_made_again_is_waited_for() -> None:
    world = World()
    async with world.running():
        world.server.before = lambda query: refusal(404, "NotFound")
        world.server.break_watches("end")
        await world.clock.advance(10)
        assert world.reflector.health.not_served
        for name in ("a", "b", "c"):
            world.server.remove(name)
        world.server.put("a")
        world.server.before = None
        await world.clock.advance(5)
        assert world.equal()
        assert world.reflector.health.ok


@pytest.mark.capability("C19")
async def test_a_watch_list_gives_the_first_state() -> None:
    world = World(streaming=True)
    async with world.running():
        assert world.equal()
        assert world.server.lists == 0
        world.server.put("d")
        await world.clock.settle()
        assert world.equal()
        assert world.server.watches == 1
        world.server.break_watches("gone")
        world.server.remove("a")
        await world.clock.advance(1)
        assert world.equal()
        assert world.server.lists == 0


@pytest.mark.capability("C19")
async def test_a_server_without_watch_list_is_listed() -> None:
    world = World(streaming=True)
    world.server.streaming = False
    async with world.running():
        assert world.equal()
        assert world.server.lists == 1
        assert world.reflector.health.ok
        assert world.clock.monotonic() == 0.0, "without a pause"


async def test_a_watch_list_that_breaks_off_is_not_believed() -> None:
    world = World(streaming=True)

    async def half() -> AsyncGenerator[bytes]:
        yield b'{"type":"ADDED","object":{"metadata":{"name":"ghost","namespace":"ns","resourceVersion":"7"}}}\n'
        raise ConnectionLost("broken")

    world.refuse_once(Reply(stream=half()), watch=True)
    async with world.running():
        assert world.store.list() == []
        await world.clock.advance(1)
        assert world.equal()


async def test_nonsense_is_trouble_not_the_end() -> None:
    world = World()
    world.refuse_once(Reply(200, b"<html>login</html>"))
    async with world.running():
        assert "cannot be read" in world.reflector.health.reason
        await world.clock.advance(1)
        for _ in range(5):
            world.server.break_watches("nonsense")
            await world.clock.advance(10)
        world.server.put("z")
        await world.clock.advance(10)
        assert world.equal()


async def test_a_sink_that_fails_is_logged_and_filled_again(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    async with world.running():
        broken = [True]

        def update(obj: CachedObject) -> None:
            if broken.pop():
                raise RuntimeError("disk full")

        world.store.update = update  # type: ignore[method-assign]
        world.server.put("a")
        await world.clock.advance(1)
        assert world.equal()
        assert world.server.lists == 2
        assert "disk full" in caplog.text


async def test_a_silent_watch_shows_in_health() -> None:
    world = World()
    async with world.running():
        await world.clock.advance(1000)
        assert world.reflector.health.ok, "this server does not send bookmarks: nothing is known"
        world.server.break_watches("bookmark")
        await world.clock.settle()
        await world.clock.advance(100)
        assert world.reflector.health.ok
        await world.clock.advance(100)
        assert not world.reflector.health.ok
        assert "the server has been silent for 200 s" in world.reflector.health.reason
        world.server.put("a")
        await world.clock.settle()
        assert world.reflector.health.ok


async def test_time_outs_of_the_connection_lead_to_another_watch() -> None:
    world = World()
    world.refuse_once(RequestTimeout("the server was silent for 630 s"), watch=True)
    async with world.running():
        assert not world.reflector.health.ok
        await world.clock.advance(2)
        assert world.reflector.health.ok
        assert world.server.open_watches == 1


async def test_the_servers_wish_to_wait_is_honoured() -> None:
    world = World()
    answer = refusal(429, "TooManyRequests")
    answer.headers["Retry-After"] = "7"
    world.refuse_once(answer)
    async with world.running():
        await world.clock.advance(6.9)
        assert len(world.server.asked) == 1
        await world.clock.advance(0.2)
        assert world.equal()


async def test_stopping_gives_the_connection_back() -> None:
    world = World()
    async with world.running():
        assert world.server.open_watches == 1
    assert world.server.open_watches == 0


async def test_a_namespace_for_a_kind_without_namespaces() -> None:
    from flyball.k8s.core.v1 import Namespace

    world = World(kind=Namespace, namespace="ns")
    async with world.running():
        assert "Namespace does not live in namespaces" in world.reflector.health.reason


def test_back_off_doubles_with_jitter_to_its_end() -> None:
    backoff = Backoff(1.0, 5.0, jitter=lambda: 1.0)
    assert [backoff.next() for _ in range(5)] == [0.5, 1.0, 2.0, 2.5, 2.5]
    assert backoff.next(longest=1.0) == 0.5
    backoff.reset()
    assert backoff.next() == 0.5


def _json(code: int, body: Any) -> Reply:
    return Reply(code, json.dumps(body).encode())
