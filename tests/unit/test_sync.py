from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.fakeapi import FakeApi
from tests.support.widgets import Widget, WidgetSpec

from flyball.client import Client as Asynchronous
from flyball.client import RefusedRequest, dynamic, metadata_of, ref
from flyball.client.patches import MergePatch
from flyball.client.server_warnings import ServerWarning
from flyball.client.transport import HttpRequest, HttpResponse, Send
from flyball.errors import NotFound
from flyball.k8s.core.v1 import ConfigMap, Pod
from flyball.sync import Client


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def client(api: FakeApi) -> Iterator[Client]:
    with Client(transport=api, namespace="home", field_manager="me") as client:
        yield client


@pytest.mark.capability("S6")
def test_an_object_from_birth_to_death(client: Client) -> None:
    made = client.create(ConfigMap.new("a", data={"x": "1"}))
    made.data = {"x": "2"}
    patched = client.patch(made)
    patched.data = {"y": "3"}
    updated = client.update(patched)
    assert updated.data == {"y": "3"}
    assert client.get(ConfigMap, "a").metadata.uid == made.metadata.uid
    assert client.delete(updated) is None
    with pytest.raises(NotFound, match=r"get ConfigMap home/a"):
        client.get(ConfigMap, "a")


def test_lists_iterators_and_collections(client: Client, api: FakeApi) -> None:
    for name in "abc":
        client.apply(Widget.new(name, spec=WidgetSpec(size=2)))
    assert [w.metadata.name for w in client.list(Widget)] == ["a", "b", "c"]
    assert [w.metadata.name for w in client.iterate(metadata_of(Widget), page_size=2)] == ["a", "b", "c"]
    iterator = client.iterate(Widget, page_size=1)
    before = len(api.requests)
    assert next(iterator).metadata.name == "a"
    assert len(api.requests) == before + 1
    assert len(client.delete_collection(dynamic("example.org/v1", "Widget"))) == 3


def test_a_watch_is_an_iterator_that_can_be_closed(client: Client) -> None:
    client.create(ConfigMap.new("a"))
    changes = client.watch(ConfigMap)
    assert next(changes).object.metadata.name == "a"
    client.create(ConfigMap.new("b"))
    assert next(changes).object.metadata.name == "b"
    changes.close()  # type: ignore[attr-defined]  # pyright: ignore


def test_subresources(client: Client, api: FakeApi) -> None:
    client.create(Pod.new("p"))
    api.log_lines = [b"one\n", b"two\n"]
    assert client.logs("p") == "one\ntwo\n"
    assert list(client.follow_logs("p")) == ["one", "two"]
    client.create(Widget.new("w"))
    assert client.scale(Widget, "w", replicas=4).replicas == 4
    assert client.patch(ref(Widget, "w"), MergePatch({"spec": {"size": 5}})).spec.size == 5
    client.evict("p")
    assert client.list(Pod) == []
    assert client.request("GET", "/api").startswith(b'{"kind":"APIVersions"')
    assert client.find("widgets").resource in [served.resource for served in client.kinds()]


async def test_it_works_where_a_loop_is_running(api: FakeApi) -> None:
    await asyncio.sleep(0)
    with Client(transport=api) as client:
        assert client.create(ConfigMap.new("a")).metadata.name == "a"
        assert [found.metadata.name for found in client.iterate(ConfigMap)] == ["a"]


def test_many_threads_may_use_one_client(client: Client) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: client.create(ConfigMap.new(f"c{number}")), range(40)))
    assert len(client.list(ConfigMap)) == 40


def test_a_closed_client_says_so(api: FakeApi) -> None:
    client = Client(transport=api)
    client.create(ConfigMap.new("a"))
    iterator = client.iterate(ConfigMap)
    assert next(iterator).metadata.name == "a"
    client.close()
    client.close()
    with pytest.raises(RefusedRequest, match=r"closed"):
        client.get(ConfigMap, "a")
    del iterator
    assert "flyball-client" not in {thread.name for thread in threading.enumerate()}


def test_its_own_thread_cannot_wait_for_itself(api: FakeApi) -> None:
    errors: list[Exception] = []

    def nested(warning: ServerWarning) -> None:
        try:
            own.get(ConfigMap, "a")
        except RefusedRequest as error:
            errors.append(error)

    api.warnings = ["old"]
    with Client(transport=api, on_warning=nested) as own:
        own.create(ConfigMap.new("a"))
    assert ["cannot wait for itself" in str(error) for error in errors] == [True]


def test_an_interrupt_cancels_the_request(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = threading.Event()
    sent = threading.Event()

    async def slow(request: HttpRequest, send: Send) -> HttpResponse:
        sent.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        raise AssertionError

    def interrupted(*args: object) -> None:
        sent.wait(10)
        raise KeyboardInterrupt

    with Client(transport=api, interceptors=[slow]) as client:
        monkeypatch.setattr("concurrent.futures.Future.result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.get(ConfigMap, "a")
        monkeypatch.undo()
        assert cancelled.wait(10)


@pytest.mark.parametrize(
    "name", [n for n, _ in inspect.getmembers(Asynchronous, inspect.isfunction) if not n.startswith("_")]
)
def test_both_clients_take_the_same_arguments(name: str) -> None:
    if name == "aclose":
        name, here = "aclose", "close"
    else:
        here = name
    theirs = inspect.signature(getattr(Asynchronous, name)).parameters
    ours = inspect.signature(getattr(Client, here)).parameters
    missing = {key: value for key, value in theirs.items() if ours.get(key) != value}
    assert set(missing) == ({"follow"} if name == "logs" else set())


def test_both_clients_are_made_in_the_same_way() -> None:
    assert inspect.signature(Client).parameters == inspect.signature(Asynchronous).parameters
