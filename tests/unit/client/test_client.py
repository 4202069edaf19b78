from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.scripted import ScriptedTransport, json_answer, status_answer
from tests.support.widgets import Plain, Widget, WidgetSpec

from flyball.api import DynamicObject, PartialObjectMetadata, decode
from flyball.client import Client, ClusterConfig, HttpTransport
from flyball.client.kinds import dynamic, metadata_of, ref
from flyball.client.patches import JsonPatch, MergePatch, StrategicPatch
from flyball.client.refusals import RefusedRequest, UnregisteredKind
from flyball.client.retry import Retry
from flyball.errors import Conflict, NotFound, ServiceUnavailable
from flyball.k8s.core.v1 import ConfigMap, Namespace

STORED = {
    "apiVersion": "example.org/v1",
    "kind": "Widget",
    "metadata": {"name": "w", "namespace": "n", "uid": "u", "resourceVersion": "7", "future": {"a": 1}},
    "spec": {"size": 1, "shape": "round", "color": "red"},
    "status": {"ready": 1, "mood": "good"},
}
PATH = "/apis/example.org/v1/namespaces/n/widgets/w"


def client(*answers: Any, **options: Any) -> tuple[Client, ScriptedTransport]:
    transport = ScriptedTransport(*(answers or (json_answer(STORED),)))
    given: dict[str, Any] = {"field_manager": "me"} | options
    return Client(transport=transport, namespace="home", **given), transport


def read() -> Widget:
    return decode(Widget, json.dumps(STORED).encode())


# -- reading


async def test_get() -> None:
    c, transport = client()
    found = await c.get(Widget, "w", namespace="n", resource_version="0", subresource="status", timeout=3)
    assert (found.spec.size, found.status.ready) == (1, 1)
    request = transport.last
    assert (request.method, request.path, request.query) == ("GET", f"{PATH}/status", (("resourceVersion", "0"),))
    assert (request.timeout, request.action) == (3, "get Widget n/w")


async def test_an_error_says_what_was_being_done() -> None:
    c, _ = client(status_answer(404, "NotFound", 'widgets "w" not found'))
    with pytest.raises(NotFound, match=r'^get Widget n/w: widgets "w" not found$'):
        await c.get(Widget, "w", namespace="n")


@pytest.mark.capability("C1")
async def test_get_in_the_other_forms() -> None:
    c, transport = client(json_answer(STORED), json_answer(STORED), json_answer(STORED))
    typed: DynamicObject = await c.get(Widget.resource_type, "w", namespace="n")
    assert typed["spec"]["shape"] == "round"
    assert (await c.get(dynamic("example.org/v1", "Widget"), "w"))["kind"] == "Widget"
    partial: PartialObjectMetadata = await c.get(metadata_of(Widget), "w")
    assert (partial.kind, partial.metadata.uid) == ("Widget", "u")
    assert transport.last.headers["Accept"].startswith("application/json;as=PartialObjectMetadata;")


# -- create


async def test_create_leaves_out_what_only_a_server_may_say() -> None:
    c, transport = client()
    made = await c.create(read())
    assert (transport.last.method, transport.last.path) == ("POST", "/apis/example.org/v1/namespaces/n/widgets")
    assert transport.last_body["metadata"] == {"name": "w", "namespace": "n", "future": {"a": 1}}
    assert transport.last_body["spec"] == STORED["spec"]
    assert transport.last.action == "create Widget n/w"
    assert made.metadata.resource_version == "7"


async def test_create_in_the_clients_namespace_and_with_a_made_up_name() -> None:
    c, transport = client()
    obj = Widget.new("", spec=WidgetSpec(size=3))
    obj.metadata.generate_name = "w-"
    await c.create(obj)
    assert transport.last.path == "/apis/example.org/v1/namespaces/home/widgets"
    assert transport.last_body == {
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"generateName": "w-"},
        "spec": {"size": 3},
    }
    assert transport.last.action == "create Widget home/w-*"
    with pytest.raises(RefusedRequest, match=r"neither a name nor a generateName"):
        await c.create(Widget.new(""))


async def test_create_for_the_cluster() -> None:
    c, transport = client()
    await c.create(Namespace.new("n"))
    assert (transport.last.path, transport.last.action) == ("/api/v1/namespaces", "create Namespace n")
    with pytest.raises(RefusedRequest, match=r"does not live in namespaces"):
        await c.create(Namespace.new("n", namespace="x"))


# -- update


@pytest.mark.capability("S6")
async def test_update_sends_back_what_the_class_does_not_know() -> None:
    c, transport = client()
    obj = read()
    obj.spec.size = 5
    await c.update(obj)
    assert (transport.last.method, transport.last.path) == ("PUT", PATH)
    assert transport.last_body == {**STORED, "spec": {"size": 5, "shape": "round", "color": "red"}}


async def test_update_of_the_status() -> None:
    c, transport = client()
    obj = read()
    obj.status.ready = 2
    await c.update(obj, subresource="status")
    assert (transport.last.path, transport.last.action) == (f"{PATH}/status", "update Widget n/w/status")
    assert transport.last_body["status"] == {"ready": 2, "mood": "good"}


async def test_an_update_that_would_drop_something_is_refused() -> None:
    c, transport = client()
    with pytest.raises(RefusedRequest, match=r"update Widget w: this object was not read .*drop every field"):
        await c.update(Widget.new("w"))
    stale = read()
    stale.metadata.resource_version = ""
    with pytest.raises(RefusedRequest, match=r"without metadata.resourceVersion"):
        await c.update(stale)
    changed = read()
    changed.status.ready = 5
    with pytest.raises(RefusedRequest, match=r'its status was changed.*subresource="status"'):
        await c.update(changed)
    with pytest.raises(RefusedRequest, match=r"only the metadata"):
        await c.update(PartialObjectMetadata(kind="Widget", api_version="example.org/v1"))
    assert transport.requests == []
    await c.update(Widget.new("w", namespace="n"), replace=True)
    assert transport.last_body == {
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "n"},
        "spec": {"size": 1},
    }


# -- apply


@pytest.mark.capability("C3")
@pytest.mark.capability("C2")
async def test_apply_sends_what_the_author_set_and_nothing_else() -> None:
    c, transport = client()
    await c.apply(Widget.new("w", namespace="n", spec=WidgetSpec(size=2)))
    request = transport.last
    assert (request.method, request.path) == ("PATCH", PATH)
    assert request.headers["Content-Type"] == "application/apply-patch+yaml"
    assert request.query == (("fieldManager", "me"),)
    assert transport.last_body == {
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "n"},
        "spec": {"size": 2},
    }


@pytest.mark.capability("C2")
async def test_apply_of_the_status_sends_the_status() -> None:
    c, transport = client()
    obj = Widget.new("w", namespace="n", spec=WidgetSpec(size=2), labels={"a": "b"})
    obj.status.ready = 3
    await c.apply(obj, subresource="status", force=True, field_manager="other")
    assert transport.last.path == f"{PATH}/status"
    assert transport.last.query == (("fieldManager", "other"), ("force", "true"))
    assert transport.last_body == {
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "n"},
        "status": {"ready": 3},
    }


@pytest.mark.capability("C2")
async def test_apply_of_a_subresource_of_another_kind() -> None:
    c, transport = client()
    body = DynamicObject(
        apiVersion="autoscaling/v1", kind="Scale", metadata={"name": "w", "namespace": "n"}, spec={"replicas": 3}
    )
    await c.apply(body, subresource="scale", of=Widget)
    assert transport.last.path == f"{PATH}/scale"
    assert transport.last_body == dict(body)


async def test_apply_refuses_what_it_should_not_own() -> None:
    c, transport = client()
    with pytest.raises(RefusedRequest, match=r"came from the server, so applying it would claim every field"):
        await c.apply(read())
    nameless, _ = client(field_manager=None)
    with pytest.raises(RefusedRequest, match=r"apply Widget w: nobody is named .*field_manager="):
        await nameless.apply(Widget.new("w"))
    assert transport.requests == []


async def test_a_conflict_of_apply_names_the_others() -> None:
    message = 'Apply failed with 1 conflict: conflict with "kubectl": .spec.size'
    causes = [{"reason": "FieldManagerConflict", "message": 'conflict with "kubectl"', "field": ".spec.size"}]
    c, _ = client(status_answer(409, "Conflict", message, causes=causes))
    with pytest.raises(Conflict, match=r'^apply Widget home/w: .*conflict with "kubectl": \.spec\.size$') as caught:
        await c.apply(Widget.new("w"))
    assert [cause["field"] for cause in caught.value.causes] == [".spec.size"]


# -- patch


@pytest.mark.capability("C6")
async def test_the_difference_is_guarded_by_the_version_that_was_read() -> None:
    c, transport = client(json_answer(STORED), json_answer(STORED))
    obj = read()
    obj.spec.size, obj.spec.color = 9, None
    obj.metadata.labels["a"] = "b"
    await c.patch(obj)
    assert transport.last.headers["Content-Type"] == "application/merge-patch+json"
    assert transport.last_body == {
        "metadata": {"labels": {"a": "b"}, "resourceVersion": "7"},
        "spec": {"size": 9, "color": None},
    }
    await c.patch(obj, guard=False)
    assert transport.last_body["metadata"] == {"labels": {"a": "b"}}


async def test_a_difference_of_nothing_sends_nothing() -> None:
    c, transport = client()
    obj = read()
    fresh = await c.patch(obj)
    assert transport.requests == []
    assert fresh is not obj
    assert fresh.spec.size == 1


async def test_the_difference_of_the_status_goes_to_its_own_address() -> None:
    c, transport = client()
    obj = read()
    obj.status.ready, obj.spec.size = 4, 4
    await c.patch(obj, subresource="status")
    assert transport.last.path == f"{PATH}/status"
    assert transport.last_body == {"status": {"ready": 4}, "metadata": {"resourceVersion": "7"}}
    with pytest.raises(RefusedRequest, match=r'its status was changed.*patch\(obj, subresource="status"\)'):
        await c.patch(obj)


async def test_a_difference_of_metadata_only_and_of_dynamic_objects() -> None:
    c, transport = client(*[json_answer(STORED)] * 4)
    c.discovery.learn(Widget.resource_type)
    partial = await c.get(metadata_of(Widget), "w")
    partial.metadata.labels["a"] = "b"
    assert isinstance(await c.patch(partial), PartialObjectMetadata)
    assert transport.last_body == {"metadata": {"labels": {"a": "b"}, "resourceVersion": "7"}}
    free = await c.get(dynamic("example.org/v1", "Widget"), "w")
    free["spec"]["size"] = 2
    del free["spec"]["shape"]
    await c.patch(free)
    assert transport.last_body == {"metadata": {"resourceVersion": "7"}, "spec": {"size": 2, "shape": None}}


@pytest.mark.parametrize("patch", [MergePatch({"spec": {"size": 2}}), StrategicPatch({"spec": {"size": 2}})])
async def test_patches_go_as_they_are_unless_guarded(patch: MergePatch | StrategicPatch) -> None:
    c, transport = client(json_answer(STORED), json_answer(STORED))
    await c.patch(ref(Widget, "w", namespace="n"), patch)
    assert (transport.last.path, transport.last_body) == (PATH, {"spec": {"size": 2}})
    assert transport.last.headers["Content-Type"] == patch.content_type
    await c.patch(read(), patch, guard=True)
    assert transport.last_body == {"spec": {"size": 2}, "metadata": {"resourceVersion": "7"}}


async def test_json_patch_and_models_within_patches() -> None:
    c, transport = client()
    await c.patch(read(), JsonPatch([{"op": "replace", "path": "/spec", "value": WidgetSpec(size=4)}]))
    assert transport.last_body == [{"op": "replace", "path": "/spec", "value": {"size": 4}}]


async def test_patches_that_cannot_be_meant_are_refused() -> None:
    c, transport = client()
    with pytest.raises(RefusedRequest, match=r"give a patch"):
        await c.patch(ref(Widget, "w"))  # type: ignore[call-overload]  # pyright: ignore
    with pytest.raises(RefusedRequest, match=r"no version is known"):
        await c.patch(ref(Widget, "w"), MergePatch({}), guard=True)
    with pytest.raises(RefusedRequest, match=r"was not read"):
        await c.patch(Widget.new("w"))
    assert transport.requests == []


# -- delete


async def test_delete_always_says_the_propagation() -> None:
    gone = json_answer({"kind": "Status", "status": "Success"})
    c, transport = client(gone, gone)
    assert await c.delete(Widget, "w", namespace="n") is None
    assert (transport.last.method, transport.last.path) == ("DELETE", PATH)
    assert transport.last_body == {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
    await c.delete(ref(Widget, "w"), propagation="Foreground", grace_period=0)
    assert (transport.last_body["propagationPolicy"], transport.last_body["gracePeriodSeconds"]) == ("Foreground", 0)


HELD: list[dict[str, Any]] = [
    {"finalizers": ["x"], "deletionGracePeriodSeconds": 0},
    {"deletionGracePeriodSeconds": 30},
]
GONE: list[dict[str, Any]] = [{"deletionGracePeriodSeconds": 0}, {}, {"finalizers": []}]


@pytest.mark.parametrize("metadata", [*HELD, *GONE])
async def test_an_object_that_is_only_marked_is_returned(metadata: dict[str, Any]) -> None:
    marked = {**STORED, "metadata": {"name": "w", "deletionTimestamp": "2026-02-11T08:15:42Z", **metadata}}
    c, _ = client(json_answer(marked))
    left = await c.delete(Widget, "w")
    assert (left is not None) == (metadata in HELD)


async def test_an_answer_with_the_object_can_mean_that_it_is_gone() -> None:
    c, _ = client(json_answer(STORED))
    assert await c.delete(Widget, "w") is None


async def test_a_namespace_is_held_by_its_own_finalizers() -> None:
    for finalizers in (["kubernetes"], []):
        metadata = {"name": "n", "deletionTimestamp": "2026-02-11T08:15:42Z"}
        answer = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "spec": {"finalizers": finalizers}}
        c, _ = client(json_answer(answer))
        assert (await c.delete(Namespace, "n") is not None) == bool(finalizers)


async def test_an_object_that_was_read_is_deleted_by_its_uid() -> None:
    gone = json_answer({"kind": "Status", "status": "Success"})
    c, transport = client(gone, gone)
    await c.delete(read())
    assert transport.last_body["preconditions"] == {"uid": "u"}
    await c.delete(read(), guard=True)
    assert transport.last_body["preconditions"] == {"uid": "u", "resourceVersion": "7"}
    with pytest.raises(RefusedRequest, match=r"no version is known"):
        await c.delete(Widget, "w", guard=True)


async def test_deleting_what_is_not_there() -> None:
    c, _ = client(status_answer(404, "NotFound", "gone"), status_answer(404, "NotFound", "gone"))
    with pytest.raises(NotFound, match=r"^delete Widget home/w: "):
        await c.delete(Widget, "w")
    assert await c.delete(Widget, "w", missing_ok=True) is None


async def test_delete_collection() -> None:
    c, transport = client(
        json_answer({"kind": "WidgetList", "metadata": {}, "items": [STORED]}), json_answer({"kind": "Status"})
    )
    deleted = await c.delete_collection(Widget, namespace="n", labels={"a": "b"}, grace_period=3)
    assert [obj.metadata.name for obj in deleted] == ["w"]
    assert transport.last.path == "/apis/example.org/v1/namespaces/n/widgets"
    assert transport.last.query == (("labelSelector", "a=b"),)
    assert transport.last_body["propagationPolicy"] == "Background"
    assert await c.delete_collection(Widget) == []
    with pytest.raises(RefusedRequest, match=r"no server deletes over all namespaces"):
        await c.delete_collection(Widget, namespace="*")


# -- options of the client

WRITES: list[Callable[[Client], Awaitable[Any]]] = [
    lambda c: c.create(Widget.new("w")),
    lambda c: c.update(read()),
    lambda c: c.apply(Widget.new("w")),
    lambda c: c.patch(ref(Widget, "w"), MergePatch({})),
    lambda c: c.delete(Widget, "w"),
    lambda c: c.delete_collection(Widget),
    lambda c: c.scale(Widget, "w", replicas=2),
    lambda c: c.evict("p"),
    lambda c: c.bind("p", "node"),
    lambda c: c.token("sa"),
    lambda c: c.request("POST", "/apis/example.org/v1/widgets", body=b"{}"),
]


@pytest.mark.capability("C4")
@pytest.mark.parametrize("write", WRITES)
async def test_every_write_of_a_dry_run_client_says_so(write: Callable[[Client], Awaitable[Any]]) -> None:
    c, transport = client(dry_run=True)
    await write(c)
    if transport.last.method == "DELETE":
        assert transport.last_body["dryRun"] == ["All"]
    else:
        assert ("dryRun", "All") in transport.last.query


@pytest.mark.capability("C5")
@pytest.mark.parametrize("write", WRITES[:4])
async def test_every_write_carries_the_clients_field_validation(write: Callable[[Client], Awaitable[Any]]) -> None:
    c, transport = client(field_validation="Strict")
    await write(c)
    assert ("fieldValidation", "Strict") in transport.last.query
    assert ("fieldManager", "me") in transport.last.query


async def test_any_other_request() -> None:
    c, transport = client(json_answer({"major": "1"}), dry_run=True)
    assert await c.request("GET", "/version", query={"a": "b"}) == b'{"major":"1"}'
    assert (transport.last.path, transport.last.query) == ("/version", (("a", "b"),))


@pytest.mark.parametrize("kind", [Plain, int])
async def test_a_class_that_is_no_kind_raises_before_any_request(kind: Any) -> None:
    c, transport = client()
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: c.get(kind, "x"),
        lambda: c.delete(kind, "x"),
        lambda: c.scale(kind, "x"),
        lambda: c.create(Plain()),
    ]
    for call in calls:
        with pytest.raises(UnregisteredKind):
            await call()
    with pytest.raises(UnregisteredKind):
        c.list(kind)
    with pytest.raises(UnregisteredKind):
        c.watch(kind)
    assert transport.requests == []


@pytest.mark.parametrize("name", ["../secrets", "a/b", "..", ""])
async def test_names_that_lead_elsewhere_are_never_sent(name: str) -> None:
    c, transport = client()
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: c.get(ConfigMap, name),
        lambda: c.get(ConfigMap, "x", namespace=name or ".."),
        lambda: c.delete(ConfigMap, name),
        lambda: c.apply(ConfigMap.new(name)),
        lambda: c.patch(ref(ConfigMap, name), MergePatch({})),
        lambda: c.evict(name),
        lambda: c.token(name),
        lambda: c.get(ConfigMap, "x", subresource=".."),
    ]
    for call in calls:
        with pytest.raises(RefusedRequest):
            await call()
    assert transport.requests == []


@pytest.mark.capability("C9")
async def test_a_read_is_repeated_unless_the_client_was_told_not_to() -> None:
    busy = status_answer(503, "ServiceUnavailable", "busy")
    c, transport = client(busy, json_answer(STORED))
    assert (await c.get(Widget, "w")).metadata.name == "w"
    assert len(transport.requests) == 2
    c, transport = client(busy, retry=None)
    with pytest.raises(ServiceUnavailable):
        await c.get(Widget, "w")
    c, transport = client(busy, json_answer(STORED), retry=Retry())
    await c.get(Widget, "w")
    assert len(transport.requests) == 2


async def test_the_client_closes_its_transport() -> None:
    c, transport = client()
    async with c:
        assert (c.host, c.namespace, c.field_manager) == ("script:6443", "home", "me")
    assert transport.closed


async def test_where_a_client_goes_comes_from_its_configuration() -> None:
    async with Client(ClusterConfig("https://example.org:6443", namespace="shop")) as c:
        assert (c.host, c.namespace) == ("example.org:6443", "shop")
    transport = HttpTransport(ClusterConfig("https://example.org:6443"))
    async with Client(transport=transport) as c:
        assert c.namespace == "default"


async def test_the_configuration_is_looked_for_as_kubectl_does(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config"
    file.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: k, cluster: {server: 'https://found:1'}}]\n"
        "contexts: [{name: c, context: {cluster: k, namespace: here}}]\n"
    )
    monkeypatch.setenv("KUBECONFIG", str(file))
    async with Client() as c:
        assert (c.host, c.namespace) == ("found:1", "here")
