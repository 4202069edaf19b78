"""Children: whose they are, what is refused, what is pruned; and finalizers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.controller.harness import (
    DEFAULT,
    Shop,
    ShopStatus,
    config,
    events_of,
    gone,
    install,
    running,
    shop,
)

from flyball.api import DynamicObject, Resource
from flyball.client import Client, MergePatch, dynamic, ref
from flyball.client.refusals import RefusedRequest
from flyball.clock import ManualClock
from flyball.controller import Context, Declared, Pruner, Request, Result, controller, set_controller
from flyball.errors import NotFound
from flyball.k8s.core.v1 import ConfigMap, Namespace, Secret
from flyball.k8s.meta.v1 import ObjectMeta
from flyball.strict import StrictWarning
from flyball.testing import consistently, eventually
from flyball.testing.cluster import Cluster

KEY = Request(DEFAULT, "demo")


async def configs(client: Client) -> list[str]:
    found = await client.list(ConfigMap, namespace=DEFAULT)
    return sorted(one.metadata.name for one in found if not one.metadata.name.startswith("kube-"))


async def degraded(client: Client, reason: str) -> str:
    def told(one: Shop) -> bool:
        condition = one.status.condition("Degraded")
        return condition is not None and condition.reason == reason

    found = await eventually(lambda: client.get(Shop, "demo", namespace=DEFAULT), told)
    condition = found.status.condition("Degraded")
    assert condition is not None
    return condition.message


async def test_a_foreign_object_of_the_childs_name_is_left_alone(cluster: Cluster) -> None:
    client, clock = cluster.client, ManualClock()
    await install(client, Shop)
    theirs = config("demo", whose="theirs")
    theirs.metadata.namespace = DEFAULT
    await client.create(theirs)

    @controller(Shop, owns=[ConfigMap])
    async def greedy(obj: Shop, ctx: Context) -> None:
        await ctx.apply(config("demo", whose="ours"))

    async with running(cluster.transport, greedy, clock=clock) as (run,):
        await client.create(shop())
        message = await degraded(client, "NameConflict")
        assert "ConfigMap default/demo" in message
        await eventually(lambda: run.queue.delayed == 1)
        present = await client.get(ConfigMap, "demo", namespace=DEFAULT)
        assert present.data == {"whose": "theirs"}
        assert present.metadata.owner_references == []
        await client.delete(present)
        assert await clock.advance_to_next() == 60
        await eventually(
            lambda: client.get(ConfigMap, "demo", namespace=DEFAULT), lambda one: one.data == {"whose": "ours"}
        )


async def test_a_child_that_is_being_deleted_is_waited_for(cluster: Cluster) -> None:
    client, clock = cluster.client, ManualClock()
    await install(client, Shop)

    @controller(Shop, owns=[ConfigMap])
    async def follow(obj: Shop, ctx: Context) -> None:
        await ctx.apply(config("demo", size=str(obj.spec.size)))
        obj.status.ready = obj.spec.size

    async with running(cluster.transport, follow, clock=clock) as (run,):
        await client.create(shop())
        child = await eventually(lambda: client.get(ConfigMap, "demo", namespace=DEFAULT))
        await client.patch(child, MergePatch({"metadata": {"finalizers": ["example.org/hold"]}}))
        await client.delete(child)
        await eventually(lambda: run.queue.delayed == 1)
        held = await client.get(ConfigMap, "demo", namespace=DEFAULT)
        assert held.metadata.deletion_timestamp is not None
        await client.patch(ref(ConfigMap, "demo", namespace=DEFAULT), MergePatch({"metadata": {"finalizers": None}}))
        await eventually(
            lambda: client.get(ConfigMap, "demo", namespace=DEFAULT), lambda one: one.metadata.uid != child.metadata.uid
        )
    assert await events_of(client, "demo") == []


async def test_creating_what_is_there_and_ours_gives_it(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    seen: list[Any] = []

    @controller(Shop)
    async def make(obj: Shop, ctx: Context) -> Result | None:
        seen.append(await ctx.create(config("demo", try_=str(len(seen)))))
        return Result.now() if len(seen) < 2 else None

    async with running(cluster.transport, make):
        await client.create(shop())
        await eventually(lambda: len(seen) == 2)
    assert seen[0].metadata.uid == seen[1].metadata.uid
    assert seen[1].data == {"try_": "0"}


async def test_what_is_owned_where(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    await client.create(Namespace.new("elsewhere"))

    @controller(Shop)
    async def scatter(obj: Shop, ctx: Context) -> None:
        await ctx.apply(config("here"))
        far = config("far")
        far.metadata.namespace = "elsewhere"
        await ctx.apply(far)
        await ctx.apply(config("nobodys"), owner=False)
        plain = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}, "data": {"a": "b"}}
        await ctx.apply(DynamicObject(plain))
        obj.status.note = "done"

    async with running(cluster.transport, scatter):
        await client.create(shop())
        await eventually(lambda: client.get(Shop, "demo", namespace=DEFAULT), lambda one: one.status.note == "done")
    assert len((await client.get(ConfigMap, "here", namespace=DEFAULT)).metadata.owner_references) == 1
    assert len((await client.get(ConfigMap, "plain", namespace=DEFAULT)).metadata.owner_references) == 1
    assert (await client.get(ConfigMap, "far", namespace="elsewhere")).metadata.owner_references == []
    found = await client.get(ConfigMap, "nobodys", namespace=DEFAULT)
    assert found.metadata.owner_references == []
    assert [one.manager for one in found.metadata.managers()] == ["shop"]


async def refusal(cluster: Cluster, act: Any) -> str:
    """What a reconciler is told that does something forbidden."""
    client = cluster.client
    await install(client, Shop)
    told: list[str] = []

    @controller(Shop)
    async def wrong(obj: Shop, ctx: Context) -> None:
        try:
            await act(obj, ctx)
        except (RefusedRequest, ValueError, StrictWarning) as error:
            told.append(str(error))
        else:
            told.append("")
        obj.spec.size = 1

    async with running(cluster.transport, wrong):
        await client.create(shop())
        await eventually(lambda: told)
    assert (await client.get(Shop, "demo", namespace=DEFAULT)).spec.size == 1
    return told[0]


async def test_the_spec_of_the_primary_is_not_written(cluster: Cluster) -> None:
    async def act(obj: Shop, ctx: Context) -> None:
        obj.spec.size = 5
        await ctx.patch(obj)

    assert "nothing but the metadata" in await refusal(cluster, act)


async def test_nor_by_a_patch(cluster: Cluster) -> None:
    async def act(obj: Shop, ctx: Context) -> None:
        await ctx.patch(obj, MergePatch({"spec": {"size": 5}}))

    assert "spec would be changed" in await refusal(cluster, act)


async def test_nor_is_its_status_written_twice(cluster: Cluster) -> None:
    async def act(obj: Shop, ctx: Context) -> None:
        await ctx.patch(obj, subresource="status")

    assert "written for you" in await refusal(cluster, act)


async def test_its_metadata_may_be_changed_and_the_status_follows(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    passes: list[str] = []

    @controller(Shop)
    async def label(obj: Shop, ctx: Context) -> None:
        passes.append(ctx.reason)
        if not obj.metadata.labels.get("seen"):
            obj.metadata.labels["seen"] = "yes"
            obj.metadata.annotations["seen"] = "yes"
            await ctx.patch(obj)
        obj.status.ready = 7

    async with running(cluster.transport, label):
        await client.create(shop())
        found = await eventually(lambda: client.get(Shop, "demo", namespace=DEFAULT), lambda one: one.status.ready == 7)
        assert found.metadata.labels == {"seen": "yes"}
        await consistently(lambda: len(passes) == 1, during=0.05)


async def test_deleting_what_was_not_read_is_refused(cluster: Cluster) -> None:
    async def act(obj: Shop, ctx: Context) -> None:
        child = config("demo")
        child.metadata.namespace = DEFAULT
        await ctx.delete(child)

    assert "was not read from the server" in await refusal(cluster, act)


async def test_deleting_what_is_not_ours_is_reported(cluster: Cluster) -> None:
    async def act(obj: Shop, ctx: Context) -> None:
        theirs = config("theirs")
        theirs.metadata.namespace = DEFAULT
        made = await ctx.create(theirs, owner=False)
        with pytest.warns(StrictWarning, match="NEVER-4") as told:
            await ctx.delete(made)
        assert told[0].filename == __file__
        raise ValueError("reported")

    assert await refusal(cluster, act) == "reported"


@pytest.mark.capability("S16")
async def test_writes_beyond_the_budget_are_reported_where_they_are_made(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    places: list[tuple[str, int]] = []

    @controller(Shop, write_budget=1)
    async def many(obj: Shop, ctx: Context) -> None:
        await ctx.apply(config("one"))
        with pytest.warns(StrictWarning, match="M-06: apply ConfigMap default/two is write 2") as told:
            await ctx.apply(config("two"))
        places.append((told[0].filename, told[0].lineno))
        obj.status.note = "done"

    async with running(cluster.transport, many):
        await client.create(shop())
        await eventually(lambda: client.get(Shop, "demo", namespace=DEFAULT), lambda one: one.status.note == "done")
    line = many.step.code.__code__.co_firstlineno  # type: ignore[attr-defined]
    assert places == [(__file__, line + 4)]


async def test_a_kind_that_nobody_declared_is_reported(cluster: Cluster) -> None:
    async def act(obj: Shop, ctx: Context) -> None:
        assert await ctx.get(Secret, "there-is-none") is None  # live, so nothing to report
        await ctx.list(Namespace, namespace="*")

    assert "F-10: Namespace is read in a pass" in await refusal(cluster, act)


def children_of(obj: Shop) -> list[Resource]:
    names = obj.spec.color.split(",")
    return [config(f"demo-{name}") for name in names if name]


@pytest.mark.capability("C47")
@pytest.mark.parametrize("form", ["pruner", "declared"])
async def test_declared_children_are_made_and_leftovers_deleted_one_at_a_time(cluster: Cluster, form: str) -> None:
    client = cluster.client
    await install(client, Shop)
    pruner = Pruner([ConfigMap])

    async def by_hand(obj: Shop, ctx: Context) -> None:
        await pruner.converge(ctx, children_of(obj))
        assert ctx.writes <= 3

    reconciler: Any = by_hand if form == "pruner" else Declared(children_of, [ConfigMap])
    async with running(cluster.transport, controller(Shop, owns=[ConfigMap])(reconciler)):
        owner = await client.create(shop(color="a,b,c"))
        await eventually(lambda: configs(client), lambda names: names == ["demo-a", "demo-b", "demo-c"])
        by_hand_made = config("not-pruned")
        by_hand_made.metadata.namespace = DEFAULT
        set_controller(owner, by_hand_made)
        await client.create(by_hand_made)
        await client.patch(ref(Shop, "demo", namespace=DEFAULT), MergePatch({"spec": {"color": "b"}}))
        await eventually(lambda: configs(client), lambda names: names == ["demo-b", "not-pruned"])


@pytest.mark.capability("C45")
async def test_a_finalizer_comes_first_runs_at_the_end_and_goes(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    story: list[str] = []

    @controller(Shop)
    async def guarded(obj: Shop, ctx: Context) -> None:
        live = await ctx.live.get(Shop, obj.metadata.name)
        assert live is not None
        assert live.metadata.finalizers == ["example.org/shop", "example.org/second"]
        story.append("reconcile")
        obj.status.note = "made"

    @guarded.finalize
    async def clean(obj: Shop, ctx: Context) -> Result | None:
        story.append("clean")
        return Result.now() if story.count("clean") < 2 else None

    @guarded.finalize("example.org/second")
    async def second(obj: Shop, ctx: Context) -> None:
        story.append("second")

    async with running(cluster.transport, guarded):
        await client.create(shop())
        await eventually(lambda: client.get(Shop, "demo", namespace=DEFAULT), lambda one: one.status.note == "made")
        await client.delete(Shop, "demo", namespace=DEFAULT)
        await eventually(lambda: gone(client, Shop, "demo"))
    assert story == ["reconcile", "clean", "clean", "second"]


async def test_what_is_being_deleted_is_told_about_only_where_that_is_wanted(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    seen: dict[str, list[bool]] = {"going-on": [], "usual": []}

    @controller(Shop, name="going-on", while_deleting=True)
    async def going_on(obj: Shop, ctx: Context) -> None:
        seen["going-on"].append(ctx.deleting)
        obj.status.ready = len(obj.metadata.finalizers)

    @controller(Shop, name="usual")
    async def usual(obj: Shop, ctx: Context) -> None:
        seen["usual"].append(ctx.deleting)

    place = ref(Shop, "demo", namespace=DEFAULT)
    async with running(cluster.transport, going_on, usual):
        made = shop()
        made.metadata.finalizers = ["foreign.org/first", "foreign.org/last"]
        await client.create(made)
        await eventually(lambda: seen["going-on"] and seen["usual"])
        await client.delete(Shop, "demo", namespace=DEFAULT)
        await eventually(lambda: seen["going-on"][-1])
        await client.patch(place, MergePatch({"metadata": {"finalizers": ["foreign.org/last"]}}))
        told = await eventually(lambda: client.get(Shop, "demo", namespace=DEFAULT), lambda one: one.status.ready == 1)
        assert told.metadata.deletion_timestamp is not None
        assert seen["usual"] == [False] * len(seen["usual"])


@pytest.mark.capability("C45")
async def test_a_failing_finalizer_is_visible_and_foreign_ones_are_kept(cluster: Cluster) -> None:
    client, clock = cluster.client, ManualClock()
    await install(client, Shop)
    fails = [RuntimeError("the bucket is not empty")]

    @controller(Shop)
    async def guarded(obj: Shop, ctx: Context) -> None:
        raise ValueError("reconcile fails too")

    @guarded.finalize
    async def clean(obj: Shop, ctx: Context) -> None:
        if fails:
            raise fails.pop()

    async with running(cluster.transport, guarded, clock=clock) as (run,):
        await client.create(shop())
        await degraded(client, "ReconcileError")
        for _ in range(4):
            await eventually(lambda: run.queue.delayed == 1)
            await clock.advance_to_next()
        patch = MergePatch({"metadata": {"finalizers": ["foreign.org/first", "example.org/shop", "foreign.org/last"]}})
        await client.patch(ref(Shop, "demo", namespace=DEFAULT), patch)
        await client.delete(Shop, "demo", namespace=DEFAULT)
        told = await eventually(
            lambda: client.get(Shop, "demo", namespace=DEFAULT), lambda one: one.status.is_true("Deleting")
        )
        condition = told.status.condition("Deleting")
        assert condition is not None
        assert (condition.reason, condition.message) == (
            "ReconcileError",
            "RuntimeError: the bucket is not empty",
        )
        await eventually(lambda: run.queue.failures(KEY) == 1)  # its own count, not that of the passes before
        await clock.advance_to_next()
        left = await eventually(
            lambda: client.get(Shop, "demo", namespace=DEFAULT),
            lambda one: one.metadata.finalizers == ["foreign.org/first", "foreign.org/last"],
        )
        await client.patch(left, MergePatch({"metadata": {"finalizers": None}}))
        await eventually(lambda: gone(client, Shop, "demo"))


async def test_without_a_finalizer_nothing_is_written_to_what_is_being_deleted(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)

    @controller(Shop)
    async def plain(obj: Shop, ctx: Context) -> None:
        obj.status.note = "seen"

    made = shop()
    made.metadata.finalizers = ["foreign.org/hold"]
    await client.create(made)
    await client.delete(Shop, "demo", namespace=DEFAULT)
    async with running(cluster.transport, plain) as (run,):
        await eventually(lambda: not run.queue.working and len(run.queue) == 0)
        found = await client.get(Shop, "demo", namespace=DEFAULT)
        assert found.status == ShopStatus()


@pytest.mark.capability("C45")
async def test_making_children_while_deleting_is_reported(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    told: list[str] = []

    @controller(Shop)
    async def guarded(obj: Shop, ctx: Context) -> None:
        return

    @guarded.finalize
    async def clean(obj: Shop, ctx: Context) -> None:
        with pytest.warns(StrictWarning, match="M-19: apply ConfigMap default/late") as warned:
            await ctx.apply(config("late"))
        told.append(warned[0].filename)

    async with running(cluster.transport, guarded):
        await client.create(shop())
        await eventually(
            lambda: client.get(Shop, "demo", namespace=DEFAULT), lambda one: len(one.metadata.finalizers) == 1
        )
        await client.delete(Shop, "demo", namespace=DEFAULT)
        await eventually(lambda: gone(client, Shop, "demo"))
    assert told == [__file__]


async def test_a_kind_without_a_class(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    kind = dynamic("example.org/v1", "Shop")

    @controller(kind, owns=[dynamic("v1", "ConfigMap")], conditions=["Ready"])
    async def follow(obj: DynamicObject, ctx: Context) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "demo"}, "data": {"a": "b"}}
        child = await ctx.apply(DynamicObject(body))
        obj["status"] = {**obj.get("status", {}), "note": child["data"]["a"]}

    async with running(cluster.transport, follow):
        await client.create(shop())
        found = await eventually(
            lambda: client.get(Shop, "demo", namespace=DEFAULT), lambda one: one.status.note == "b"
        )
        assert found.status.observed_generation == 1
        assert found.status.is_false("Degraded")
        ready = found.status.condition("Ready")
        assert ready is not None
        assert (ready.status, ready.observed_generation) == ("Unknown", 1)
        uid = (await client.get(ConfigMap, "demo", namespace=DEFAULT)).metadata.uid
        await client.delete(ConfigMap, "demo", namespace=DEFAULT)
        await eventually(lambda: client.get(ConfigMap, "demo", namespace=DEFAULT), lambda one: one.metadata.uid != uid)


async def test_a_built_in_kind(cluster: Cluster) -> None:
    client = cluster.client

    @controller(ConfigMap, labels="mirror=yes")
    async def mirror(obj: ConfigMap, ctx: Context) -> None:
        await ctx.apply(Secret(metadata=ObjectMeta(name=obj.metadata.name), string_data=dict(obj.data or {})))

    async with running(cluster.transport, mirror):
        source = config("source", a="b")
        source.metadata.namespace, source.metadata.labels = DEFAULT, {"mirror": "yes"}
        await client.create(source)
        await eventually(lambda: client.get(Secret, "source", namespace=DEFAULT))
        other = config("other")
        other.metadata.namespace = DEFAULT
        await client.create(other)
        await client.patch(ref(ConfigMap, "source", namespace=DEFAULT), MergePatch({"data": {"a": "c"}}))
        await eventually(
            lambda: client.get(Secret, "source", namespace=DEFAULT), lambda one: (one.data or {})["a"] == b"c"
        )
    with pytest.raises(NotFound):
        await client.get(Secret, "other", namespace=DEFAULT)
