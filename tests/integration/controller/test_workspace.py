"""The notebook beside an object."""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.controller.harness import DEFAULT, Shop, ShopSpec, install, running, shop

from flyball import crd_of
from flyball.api import DynamicObject, Model
from flyball.client import Client, Ref, ref
from flyball.client.kinds import kind_from
from flyball.client.refusals import RefusedRequest
from flyball.clock import ManualClock
from flyball.controller import (
    Context,
    Intent,
    Request,
    SyncContext,
    controller,
    set_controller,
    workspace_kind,
)
from flyball.k8s.core.v1 import ConfigMap
from flyball.testing import consistently, eventually
from flyball.testing.cluster import Cluster

KEY = Request(DEFAULT, "demo")
ShopWorkspace: Any = workspace_kind(Shop)


class Notes(Model):
    seen: int = 0
    server: str = ""


async def stored(client: Client, name: str = "demo") -> DynamicObject:
    found: DynamicObject = await client.get(ShopWorkspace.resource_type, name, namespace=DEFAULT)
    return found


def test_its_kind_comes_from_the_kind_of_its_object() -> None:
    definition = crd_of(ShopWorkspace)
    assert definition["metadata"]["name"] == "shopworkspaces.example.org"
    version = definition["spec"]["versions"][0]
    assert version["name"] == "v1"
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    assert properties["data"]["x-kubernetes-preserve-unknown-fields"]
    assert "status" not in properties
    assert workspace_kind(Shop) is ShopWorkspace
    with pytest.raises(RefusedRequest, match="built-in"):
        workspace_kind(ConfigMap)


@pytest.mark.capability("S17")
async def test_notes_survive_and_a_pass_that_wrote_is_run_again_at_once(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop, ShopWorkspace)
    passes: list[int] = []

    @controller(Shop)
    async def count(obj: Shop, ctx: Context) -> None:
        notes = await ctx.workspace(Notes)
        assert await ctx.workspace(Notes) is notes
        passes.append(notes.data.seen)
        assert notes.exists == bool(notes.data.seen)
        notes.data.seen = min(notes.data.seen + 1, 3)
        before = ctx.writes
        await notes.save()
        assert ctx.writes - before == (0 if passes[-1] == 3 else 1)

    async with running(cluster.transport, count):
        owner = await client.create(shop())
        await eventually(lambda: passes == [0, 1, 2, 3])
        await consistently(lambda: len(passes) == 4, during=0.05)
    found = await stored(client)
    assert found["data"] == {"seen": 3, "server": ""}
    (reference,) = found.metadata.owner_references
    assert reference["uid"] == owner.metadata.uid
    assert reference["controller"]


@pytest.mark.capability("S17")
async def test_an_intent_is_written_down_before_and_keeps_its_nonce(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop, ShopWorkspace)
    calls: list[str] = []

    async def act(nonce: str, word: str) -> str:
        assert (await stored(client))["intents"] == {"launch": nonce}
        calls.append(nonce)
        if len(calls) < 3:
            raise OSError(f"{word} got lost")
        return f"server-{word}"

    @controller(Shop)
    async def launch(obj: Shop, ctx: Context) -> None:
        notes = await ctx.workspace(Notes)
        if not notes.data.server:
            intent = await notes.intent("launch")
            assert await notes.intent("launch") is intent
            notes.data.server = await intent.call(act, "a")
            await notes.done("launch")
            with pytest.raises(RefusedRequest, match="is done"):
                await intent.call(act, "b")
        obj.status.note = notes.data.server

    async with running(cluster.transport, launch):
        await client.create(shop())
        await eventually(lambda: client.get(Shop, "demo", namespace=DEFAULT), lambda one: one.status.note == "server-a")
    assert len(set(calls)) == 1
    assert len(calls) == 3
    assert (await stored(client))["intents"] == {}


def test_an_intent_cannot_be_made_by_hand() -> None:
    with pytest.raises(TypeError, match=r"workspace\.intent"):
        Intent(object(), "launch", "nonce")


@pytest.mark.capability("S17")
async def test_a_workspace_of_a_former_object_is_not_used(cluster: Cluster) -> None:
    client, clock = cluster.client, ManualClock()
    await install(client, Shop, ShopWorkspace)
    former = Shop.new("demo", namespace=DEFAULT, spec=ShopSpec())
    former.metadata.uid = "00000000-0000-0000-0000-000000000001"
    stale = DynamicObject(
        {
            "apiVersion": "example.org/v1",
            "kind": "ShopWorkspace",
            "metadata": {"name": "demo", "namespace": DEFAULT},
            "data": {"server": "of the former"},
        }
    )
    set_controller(former, stale)
    # The garbage collector would remove it at once; here it stays until the test says so.
    stale["metadata"]["finalizers"] = ["example.org/hold"]
    await client.create(stale)
    servers: list[str] = []

    @controller(Shop)
    async def look(obj: Shop, ctx: Context) -> None:
        notes = await ctx.workspace(Notes)
        await notes.ensure()
        servers.append(notes.data.server)

    async with running(cluster.transport, look, clock=clock) as (run,):
        await client.create(shop())
        await eventually(lambda: run.queue.delayed == 1)
        assert servers == []
        target: Ref[DynamicObject] = ref(kind_from(ShopWorkspace.resource_type), "demo", namespace=DEFAULT)
        from flyball.client import MergePatch

        await client.patch(target, MergePatch({"metadata": {"finalizers": None}}))
        await client.delete(ShopWorkspace.resource_type, "demo", namespace=DEFAULT, missing_ok=True)
        await clock.advance(5)
        await eventually(lambda: servers[-1:] == [""])


async def test_a_conflict_ends_the_pass_and_says_nothing(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop, ShopWorkspace)
    passes: list[int] = []

    @controller(Shop)
    async def count(obj: Shop, ctx: Context) -> None:
        notes = await ctx.workspace(Notes)
        passes.append(notes.data.seen)
        if len(passes) == 2:  # somebody else is quicker
            other = await stored(client)
            other["data"]["seen"] = 10
            await client.update(other)
        if notes.data.seen < 12:
            notes.data.seen += 1
            await notes.save()

    async with running(cluster.transport, count):
        await client.create(shop())
        await eventually(lambda: passes == [0, 1, 10, 11, 12])
        found = await client.get(Shop, "demo", namespace=DEFAULT)
        assert not found.status.is_true("Degraded")


@pytest.mark.capability("S17")
async def test_losing_it_is_seen(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop, ShopWorkspace)
    seen: list[bool] = []

    @controller(Shop)
    async def look(obj: Shop, ctx: Context) -> None:
        notes = await ctx.workspace(Notes)
        seen.append(notes.exists)
        await notes.ensure()

    async with running(cluster.transport, look) as (run,):
        await client.create(shop())
        await eventually(lambda: seen == [False, True])
        await client.delete(ShopWorkspace.resource_type, "demo", namespace=DEFAULT)
        run.enqueue(KEY, "test")
        await eventually(lambda: seen == [False, True, False, True])


async def test_for_plain_functions(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop, ShopWorkspace)

    def act(nonce: str) -> str:
        return f"server of {nonce}"

    @controller(Shop)
    def launch(obj: Shop, ctx: SyncContext) -> None:
        notes = ctx.workspace(Notes)
        if not notes.data.server:
            intent = notes.intent("launch", "a-nonce")
            assert notes.intents == {"launch": "a-nonce"}
            notes.data.server = intent.call(act)
            notes.done("launch")
        assert notes.exists
        notes.ensure()
        notes.save()
        obj.status.note = notes.data.server

    async with running(cluster.transport, launch):
        await client.create(shop())
        await eventually(
            lambda: client.get(Shop, "demo", namespace=DEFAULT), lambda one: one.status.note == "server of a-nonce"
        )


async def test_a_definition_that_is_missing_is_named(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)

    @controller(Shop)
    async def look(obj: Shop, ctx: Context) -> None:
        await (await ctx.workspace(Notes)).ensure()

    async with running(cluster.transport, look):
        await client.create(shop())
        found = await eventually(
            lambda: client.get(Shop, "demo", namespace=DEFAULT), lambda one: one.status.is_true("Degraded")
        )
    condition = found.status.condition("Degraded")
    assert condition is not None
    assert "crd_of(workspace_kind(Shop))" in condition.message
