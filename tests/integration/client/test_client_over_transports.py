"""The client and a whole (small) server: in the same process, and over HTTP. Both must be told apart by nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from tests.support.fakeapi import FakeAnswer, FakeApi, application
from tests.support.widgets import Widget, WidgetSpec

from flyball.client import (
    Client,
    ClusterConfig,
    JsonPatch,
    MergePatch,
    ServerWarning,
    dynamic,
    metadata_of,
    raw_of,
    ref,
)
from flyball.client.transport import HttpRequest, HttpResponse, Send
from flyball.errors import (
    AlreadyExists,
    Conflict,
    ConnectionLost,
    Expired,
    Invalid,
    NotFound,
    RequestTimeout,
    ServiceUnavailable,
    TransportError,
)
from flyball.k8s.core.v1 import ConfigMap, Pod


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@asynccontextmanager
async def served(api: FakeApi) -> AsyncGenerator[ClusterConfig]:
    runner = web.AppRunner(application(api), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield ClusterConfig(f"http://127.0.0.1:{runner.addresses[0][1]}", namespace="home", proxy_url="")
    finally:
        await runner.cleanup()


@pytest.fixture(params=["in-process", "http"])
async def client(request: pytest.FixtureRequest, api: FakeApi) -> AsyncIterator[Client]:
    if request.param == "in-process":
        async with Client(transport=api, namespace="home", field_manager="me") as client:
            yield client
        return
    async with served(api) as config, Client(config, field_manager="me") as client:
        yield client


@pytest.mark.capability("S6")
async def test_an_object_from_birth_to_death(client: Client) -> None:
    made = await client.create(Widget.new("w", spec=WidgetSpec(size=2)))
    with pytest.raises(AlreadyExists):
        await client.create(Widget.new("w"))
    made.spec.size = 3
    patched = await client.patch(made)
    assert patched.spec.size == 3
    with pytest.raises(Conflict):
        await client.patch(made)
    patched.spec.size = 4
    updated = await client.update(patched)
    updated.status.ready = 1
    assert (await client.patch(updated, subresource="status")).status.ready == 1
    assert await client.delete(Widget, "w") is None
    with pytest.raises(NotFound, match=r"^get Widget home/w: "):
        await client.get(Widget, "w")


@pytest.mark.capability("C2")
async def test_apply_and_its_conflicts(client: Client) -> None:
    await client.apply(Widget.new("w", spec=WidgetSpec(size=2)))
    with pytest.raises(Conflict, match=r'conflict with "me"') as caught:
        await client.apply(Widget.new("w", spec=WidgetSpec(size=3)), field_manager="you")
    assert caught.value.causes[0]["field"] == ".spec"
    taken = await client.apply(Widget.new("w", spec=WidgetSpec(size=3)), field_manager="you", force=True)
    assert taken.spec.size == 3


async def test_patches(client: Client) -> None:
    await client.create(ConfigMap.new("a", data={"x": "1"}))
    target = ref(ConfigMap, "a")
    assert (await client.patch(target, MergePatch({"data": {"x": None, "y": "2"}}))).data == {"y": "2"}
    assert (await client.patch(target, JsonPatch([{"op": "add", "path": "/data/z", "value": "3"}]))).data == {
        "y": "2",
        "z": "3",
    }
    with pytest.raises(Invalid):
        await client.patch(target, JsonPatch([{"op": "test", "path": "/data/z", "value": "4"}]))


@pytest.mark.capability("C1")
async def test_lists_in_every_form(client: Client) -> None:
    for name in "abc":
        await client.create(ConfigMap.new(name, labels={"odd": str(name != "b")}))
    assert [cm.metadata.name for cm in await client.list(ConfigMap, page_size=2)] == ["a", "b", "c"]
    assert [cm.metadata.name async for cm in client.list(metadata_of(ConfigMap), page_size=1)] == ["a", "b", "c"]
    assert [cm["metadata"]["name"] for cm in await client.list(dynamic("v1", "ConfigMap"), labels="odd=True")] == [
        "a",
        "c",
    ]
    assert all(raw.startswith(b"{") for raw in await client.list(raw_of(ConfigMap)))
    assert [cm.metadata.name for cm in await client.delete_collection(ConfigMap, labels={"odd": "True"})] == ["a", "c"]


async def test_a_list_whose_state_is_gone(client: Client, api: FakeApi) -> None:
    for name in "abc":
        await client.create(ConfigMap.new(name))
    pages = client.list(ConfigMap, page_size=2).pages()
    await anext(pages)
    api.compact()
    with pytest.raises(Expired, match=r"after 2 objects had come"):
        await anext(pages)


async def test_watches(client: Client, api: FakeApi) -> None:
    await client.create(ConfigMap.new("a"))
    async with client.watch(ConfigMap, send_initial_events=True) as changes:
        stream = aiter(changes)
        assert (await anext(stream)).object.metadata.name == "a"
        assert (await anext(stream)).initial_events_end
        await client.create(ConfigMap.new("b"))
        change = await anext(stream)
        assert (change.type, change.object.metadata.name) == ("ADDED", "b")
        await client.delete(ConfigMap, "b")
        assert (await anext(stream)).type == "DELETED"
        await api.end_watches()
        assert [change.type async for change in stream] == ["BOOKMARK"]
    assert changes.resource_version == str(api.version)


async def test_a_watch_from_a_version_that_is_gone(client: Client, api: FakeApi) -> None:
    await client.create(ConfigMap.new("a"))
    api.compact()
    with pytest.raises(Expired, match=r"^watch ConfigMap in home: .*too old resource version"):
        await anext(aiter(client.watch(ConfigMap, resource_version="1")))


async def test_an_event_of_20_megabytes(client: Client) -> None:
    async with client.watch(ConfigMap, resource_version="100") as changes:
        stream = aiter(changes)
        coming = asyncio.ensure_future(anext(stream))
        await client.create(ConfigMap.new("big", data={"x": "x" * (20 << 20)}))
        assert len(((await coming).object.data or {})["x"]) == 20 << 20
    (found,) = await client.list(ConfigMap)
    assert len((found.data or {})["x"]) == 20 << 20


async def test_subresources(client: Client, api: FakeApi) -> None:
    await client.create(Pod.new("p"))
    api.log_lines = [b"one\ntw", b"o\n", b"three"]
    assert await client.logs("p") == "one\ntwo\nthree"
    assert [line async for line in client.logs("p", follow=True)] == ["one", "two", "three"]
    await client.create(Widget.new("w"))
    assert (await client.scale(Widget, "w", replicas=3)).replicas == 3
    await client.evict("p")
    with pytest.raises(NotFound):
        await client.logs("p")


@pytest.mark.capability("C7")
async def test_warnings(api: FakeApi) -> None:
    seen: list[ServerWarning] = []
    api.warnings = ['say \\"hi\\"', "grüße"]
    async with served(api) as config, Client(config, on_warning=seen.append) as client:
        await client.list(ConfigMap)
    assert [warning.text for warning in seen] == ['say "hi"', "grüße"]


@pytest.mark.capability("C4")
async def test_nothing_of_a_dry_run_reaches_storage(api: FakeApi) -> None:
    async with Client(transport=api, namespace="home", field_manager="me") as real:
        await real.create(Widget.new("w"))
        await real.create(Pod.new("p"))
        before = api.version
        async with Client(transport=api, namespace="home", field_manager="me", dry_run=True) as dry:
            await dry.create(ConfigMap.new("a"))
            widget = await dry.get(Widget, "w")
            widget.spec.size = 7
            await dry.update(widget)
            await dry.patch(widget)
            await dry.apply(Widget.new("w"), force=True)
            await dry.scale(Widget, "w", replicas=3)
            await dry.evict("p")
            await dry.bind("p", "n")
            await dry.delete(Widget, "w")
            await dry.delete_collection(Widget)
    assert api.version == before


@pytest.mark.capability("C9")
async def test_a_busy_server_is_asked_again(api: FakeApi) -> None:
    answers = [503, 429]

    def busy(request: HttpRequest) -> FakeAnswer | None:
        return FakeAnswer(answers.pop()) if answers else None

    api.before = busy
    async with served(api) as config, Client(config) as client:
        assert await client.list(ConfigMap) == []
    assert len(api.requests) == 3


async def test_faults_can_be_injected_into_every_verb(api: FakeApi) -> None:
    async def broken(request: HttpRequest, send: Send) -> HttpResponse:
        if request.method == "GET" and "watch" not in dict(request.query):
            return await send(request)
        return FakeAnswer(503, b"")

    async with Client(transport=api, retry=None, field_manager="me", interceptors=[broken]) as client:
        assert await client.list(ConfigMap) == []
        for write in (
            client.create(ConfigMap.new("a")),
            client.apply(ConfigMap.new("a")),
            client.patch(ref(ConfigMap, "a"), MergePatch({})),
            client.delete(ConfigMap, "a"),
            client.delete_collection(ConfigMap),
            anext(aiter(client.watch(ConfigMap))),
        ):
            with pytest.raises(ServiceUnavailable):
                await write


async def test_a_connection_that_dies_silently_is_noticed(api: FakeApi) -> None:
    async with served(api) as config, Client(config) as client:
        await client.create(ConfigMap.new("a"))
        async with client.watch(ConfigMap, inactivity=0.2) as changes:
            stream = aiter(changes)
            await anext(stream)
            with pytest.raises(RequestTimeout, match=r"^watch ConfigMap in home: 127.0.0.1"):
                await anext(stream)


async def test_a_stream_that_breaks_off_is_an_error(api: FakeApi) -> None:
    async def breaking() -> AsyncIterator[bytes]:
        yield b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n{"type":"ADD'
        raise ConnectionResetError

    def broken(request: HttpRequest) -> FakeAnswer:
        return FakeAnswer(stream=breaking())

    api.before = broken
    async with served(api) as config, Client(config) as client:
        stream = aiter(client.watch(ConfigMap))
        assert (await anext(stream)).object.metadata.name == "a"
        with pytest.raises(TransportError) as caught:
            await anext(stream)
        assert isinstance(caught.value, ConnectionLost)
