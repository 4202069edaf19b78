"""What wakes a controller, and what does not."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.integration.controller.harness import (
    DEFAULT,
    Shop,
    config,
    gone,
    install,
    running,
    shop,
)

from flyball.api import Resource
from flyball.client import Client, JsonPatch, MergePatch, ref
from flyball.clock import ManualClock
from flyball.controller import (
    Channel,
    Context,
    ControllerRuntime,
    DuplicateName,
    Owns,
    Request,
    Result,
    Watches,
    Window,
    controller,
    labels_changed,
    resource_version_changed,
    status_changed,
)
from flyball.k8s.core.v1 import ConfigMap, Secret
from flyball.k8s.meta.v1 import ObjectMeta, OwnerReference
from flyball.testing import consistently, eventually
from flyball.testing.cluster import Cluster

KEY = Request(DEFAULT, "demo")


class Counting:
    """Counts its passes and keeps why they ran."""

    def __init__(self) -> None:
        self.passes: list[str] = []
        self.reasons: list[str] = []
        self.running = self.most = 0

    async def reconcile(self, obj: Resource, ctx: Context) -> Result | None:
        self.passes.append(ctx.request.name)
        self.reasons.append(ctx.reason)
        return None

    async def ran(self, count: int) -> None:
        await eventually(lambda: len(self.passes) >= count)
        await consistently(lambda: len(self.passes) == count, during=0.05)


async def annotate(client: Client, kind: type[Resource], name: str, **values: str) -> None:
    patch = MergePatch({"metadata": {"annotations": values}})
    await client.patch(ref(kind, name, namespace=DEFAULT), patch)


@pytest.mark.capability("C21")
@pytest.mark.capability("C34")
async def test_own_status_writes_do_not_wake_and_foreign_changes_do(cluster: Cluster) -> None:
    client, seen = cluster.client, Counting()
    await install(client, Shop)

    @controller(Shop, predicates=[resource_version_changed])
    async def noted(obj: Shop, ctx: Context) -> None:
        await seen.reconcile(obj, ctx)
        obj.status.ready = len(seen.passes)

    async with running(cluster.transport, noted):
        await client.create(shop())
        await seen.ran(1)  # although every pass writes a status, and every write passes the predicate
        found = await client.get(Shop, "demo", namespace=DEFAULT)
        found.status.note = "by somebody else"
        await client.patch(found, subresource="status")
        await seen.ran(2)
        await annotate(client, Shop, "demo", a="1")
        await seen.ran(3)


@pytest.mark.capability("C34")
async def test_by_default_a_foreign_status_does_not_wake_and_the_rest_does(cluster: Cluster) -> None:
    client, seen = cluster.client, Counting()
    await install(client, Shop)
    async with running(cluster.transport, controller(Shop)(seen)):
        await client.create(shop())
        await seen.ran(1)
        found = await client.get(Shop, "demo", namespace=DEFAULT)
        found.status.note = "by somebody else"
        await client.patch(found, subresource="status")
        await client.patch(ref(Shop, "demo", namespace=DEFAULT), MergePatch({"metadata": {"labels": {"a": "b"}}}))
        await seen.ran(1)
        await client.patch(ref(Shop, "demo", namespace=DEFAULT), MergePatch({"spec": {"size": 2}}))
        await seen.ran(2)
        await annotate(client, Shop, "demo", a="1")
        await seen.ran(3)
        await client.patch(ref(Shop, "demo", namespace=DEFAULT), MergePatch({"metadata": {"finalizers": ["a.b/c"]}}))
        await seen.ran(4)


@pytest.mark.capability("C33")
async def test_predicates_are_combined(cluster: Cluster) -> None:
    client, seen = cluster.client, Counting()
    await install(client, Shop)
    async with running(cluster.transport, controller(Shop, predicates=[labels_changed | status_changed])(seen)):
        await client.create(shop())
        await seen.ran(1)
        await client.patch(ref(Shop, "demo", namespace=DEFAULT), MergePatch({"spec": {"size": 2}}))
        await seen.ran(1)
        await client.patch(ref(Shop, "demo", namespace=DEFAULT), MergePatch({"metadata": {"labels": {"a": "b"}}}))
        await seen.ran(2)


@pytest.mark.capability("C21")
@pytest.mark.capability("C22")
async def test_a_child_that_is_as_it_should_be_is_not_written_again(cluster: Cluster) -> None:
    client, other = cluster.client, cluster.client_as("somebody", ["system:masters"])
    await install(client, Shop)
    passes: list[str] = []

    @controller(Shop, owns=[ConfigMap])
    async def follow(obj: Shop, ctx: Context) -> None:
        passes.append(ctx.reason)
        await ctx.apply(config("demo", size=str(obj.spec.size)))

    def writes() -> int:
        return sum(1 for one in cluster.requests.of("patch", "configmaps") if one.user != "somebody")

    async with running(cluster.transport, follow) as (run,):
        await client.create(shop())
        await eventually(lambda: len(passes) == 2)  # the object, and the child that was made
        assert writes() == 1
        run.enqueue(KEY, "for no reason")
        await eventually(lambda: len(passes) == 3)
        await annotate(other, ConfigMap, "demo", foreign="1")  # not a field of ours
        await eventually(lambda: len(passes) == 4)
        await consistently(lambda: writes() == 1, during=0.05)
        await other.patch(ref(ConfigMap, "demo", namespace=DEFAULT), MergePatch({"data": {"size": "9"}}))
        await eventually(lambda: writes() == 2)
        child = await client.get(ConfigMap, "demo", namespace=DEFAULT)
        assert child.data == {"size": "1"}
        assert child.metadata.annotations == {"foreign": "1"}


@pytest.mark.capability("C35")
async def test_an_owner_that_was_dropped_is_looked_at(cluster: Cluster) -> None:
    client, seen = cluster.client, Counting()
    await install(client, Shop)
    async with running(cluster.transport, controller(Shop, owns=[ConfigMap])(seen)):
        owner = await client.create(shop())
        await seen.ran(1)
        child = config("child")
        child.metadata.namespace = DEFAULT
        child.metadata.owner_references = [
            OwnerReference(
                api_version="example.org/v1", kind="Shop", name="demo", uid=owner.metadata.uid, controller=True
            )
        ]
        await client.create(child)
        await seen.ran(2)
        drop = JsonPatch([{"op": "remove", "path": "/metadata/ownerReferences"}])
        await client.patch(ref(ConfigMap, "child", namespace=DEFAULT), drop)
        await seen.ran(3)
        assert "ConfigMap child updated" in seen.reasons[2]
        await annotate(client, ConfigMap, "child", a="1")
        await seen.ran(3)


async def test_owners_are_told_apart_by_group_and_by_being_the_controller(cluster: Cluster) -> None:
    client, seen, any_seen = cluster.client, Counting(), Counting()
    await install(client, Shop)
    strict = controller(Shop, owns=[ConfigMap])(seen)
    loose = controller(Shop, owns=[Owns(ConfigMap, any_owner=True)], name="loose")(any_seen)
    async with running(cluster.transport, strict, loose):
        owner = await client.create(shop())
        await seen.ran(1)
        child = config("child")
        child.metadata.namespace = DEFAULT
        uid = owner.metadata.uid
        child.metadata.owner_references = [
            OwnerReference(api_version="other.org/v1", kind="Shop", name="demo", uid=uid + "x", controller=True),
            OwnerReference(api_version="example.org/v2", kind="Shop", name="demo", uid=uid),
        ]
        await client.create(child)
        await any_seen.ran(2)
        await seen.ran(1)


@pytest.mark.capability("C35")
async def test_a_mapper_is_asked_about_before_and_after(cluster: Cluster) -> None:
    client, seen = cluster.client, Counting()
    await install(client, Shop)

    def shop_of(secret: Secret) -> list[str]:
        name = secret.metadata.annotations.get("shop")
        return [name] if name else []

    def same_color(found: ConfigMap, shops: object) -> list[tuple[str | None, str]]:
        listed: list[Shop] = shops.list()  # type: ignore[attr-defined]
        color = (found.data or {}).get("color")
        return [(one.metadata.namespace, one.metadata.name) for one in listed if one.spec.color == color]

    watches = [Watches(Secret, shop_of), Watches(ConfigMap, same_color)]
    async with running(cluster.transport, controller(Shop, watches=watches)(seen)):
        await client.create(shop("a", color="blue"))
        await client.create(shop("b"))
        await seen.ran(2)
        secret = Secret(metadata=ObjectMeta(name="s", namespace=DEFAULT, annotations={"shop": "a"}))
        await client.create(secret)
        await seen.ran(3)
        await annotate(client, Secret, "s", shop="b")
        await seen.ran(5)
        assert sorted(seen.passes[3:]) == ["a", "b"]
        paint = config("paint", color="blue")
        paint.metadata.namespace = DEFAULT
        await client.create(paint)
        await seen.ran(6)
        assert seen.passes[5] == "a"


@pytest.mark.capability("C36")
@pytest.mark.capability("C41")
async def test_a_channel_wakes_from_outside_of_the_cluster_and_the_reason_can_be_read(cluster: Cluster) -> None:
    client, seen = cluster.client, Counting()
    await install(client, Shop)
    channel: Channel[str] = Channel(name="webhook")
    mapped: Channel[int] = Channel(lambda number: [Request(DEFAULT, "demo")] * number)
    async with running(cluster.transport, controller(Shop, channels=[channel, mapped])(seen)):
        await client.create(shop())
        await seen.ran(1)
        assert seen.reasons == ["Shop added"]
        await asyncio.to_thread(channel.send, "default/demo", reason="the cloud called")
        await seen.ran(2)
        assert seen.reasons[1] == "the cloud called"
        mapped.send(3)
        await seen.ran(3)
    channel.send("default/demo")  # nobody listens any more


async def test_a_resync_looks_at_every_object_again(cluster: Cluster) -> None:
    client, seen, clock = cluster.client, Counting(), ManualClock()
    await install(client, Shop)
    async with running(cluster.transport, controller(Shop, resync=timedelta(hours=10))(seen), clock=clock):
        await client.create(shop())
        await client.create(shop("other"))
        await seen.ran(2)
        await clock.advance(10 * 3600)
        await seen.ran(4)
        assert seen.reasons[2:] == ["resync", "resync"]


@pytest.mark.capability("C31")
async def test_a_window_limits_the_passes_over_one_object(cluster: Cluster) -> None:
    client, seen, clock = cluster.client, Counting(), ManualClock()
    await install(client, Shop)
    async with running(cluster.transport, controller(Shop, rate_limiter=Window(2, 60))(seen), clock=clock) as (run,):
        await client.create(shop())
        await seen.ran(1)
        await annotate(client, Shop, "demo", n="first")
        await seen.ran(2)
        for number in range(5):
            await annotate(client, Shop, "demo", n=str(number))
        await eventually(lambda: run.queue.delayed == 1)
        await seen.ran(2)
        await clock.advance(60)
        await seen.ran(3)


@pytest.mark.capability("C32")
async def test_debounce_collects_what_comes_within_a_time(cluster: Cluster) -> None:
    client, seen, clock = cluster.client, Counting(), ManualClock()
    await install(client, Shop)
    async with running(cluster.transport, controller(Shop, debounce=0.5)(seen), clock=clock) as (run,):
        await client.create(shop())
        await eventually(lambda: run.queue.delayed == 1)
        for number in range(5):
            await annotate(client, Shop, "demo", n=str(number))
        assert seen.passes == []
        await clock.advance(0.5)
        await seen.ran(1)


@pytest.mark.capability("C37")
@pytest.mark.capability("C27")
async def test_so_many_keys_at_once_and_never_one_twice(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    at_work: list[str] = []
    most: list[int] = []
    go = asyncio.Event()

    @controller(Shop, max_concurrent=3)
    async def busy(obj: Shop, ctx: Context) -> None:
        assert obj.metadata.name not in at_work
        at_work.append(obj.metadata.name)
        most.append(len(at_work))
        await go.wait()
        at_work.remove(obj.metadata.name)

    async with running(cluster.transport, busy) as (run,):
        for number in range(5):
            await client.create(shop(f"s{number}"))
        await eventually(lambda: len(at_work) == 3)
        for number in range(5):
            await annotate(client, Shop, f"s{number}", a="1")
        await consistently(lambda: len(at_work) == 3, during=0.05)
        go.set()
        await eventually(lambda: len(most) == 8 and not at_work)
        assert len(run.queue) == 0
    assert max(most) == 3


@pytest.mark.capability("C28")
async def test_what_people_change_overtakes_the_first_list(cluster: Cluster) -> None:
    client, seen = cluster.client, Counting()
    await install(client, Shop)
    for number in range(20):
        await client.create(shop(f"old{number}"))
    first = asyncio.Event()

    @controller(Shop)
    async def slow(obj: Shop, ctx: Context) -> None:
        await first.wait()
        await seen.reconcile(obj, ctx)

    async with running(cluster.transport, slow) as (run,):
        await client.create(shop("live"))
        await eventually(lambda: len(run.queue) == 20 and run.queue.working)
        first.set()
        await seen.ran(21)
    assert seen.passes[1] == "live"


@pytest.mark.capability("C43")
async def test_two_controllers_of_one_name_are_refused(cluster: Cluster) -> None:
    runtime = ControllerRuntime.of(Client(transport=cluster.transport))
    one, other = controller(Shop)(Counting()), controller(ConfigMap, name="shop")(Counting())
    bound = one.bind(runtime)
    with pytest.raises(DuplicateName, match="'shop'"):
        other.bind(runtime)
    await bound.stop()
    await other.bind(runtime).stop()


@pytest.mark.capability("C56")
async def test_stopping_waits_for_the_pass_that_runs_and_starts_no_other(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    began, go, ended = asyncio.Event(), asyncio.Event(), list[str]()

    @controller(Shop)
    async def slow(obj: Shop, ctx: Context) -> None:
        began.set()
        await go.wait()
        await ctx.apply(config(obj.metadata.name))
        ended.append(obj.metadata.name)

    async with running(cluster.transport, slow) as (run,):
        await client.create(shop("a"))
        await client.create(shop("b"))
        await began.wait()
        stopping = asyncio.ensure_future(run.stop(10))
        await asyncio.sleep(0)
        go.set()
        await stopping
    assert ended == ["a"]
    assert await gone(client, ConfigMap, "b")


async def test_a_pass_that_does_not_end_is_cancelled_after_the_grace(cluster: Cluster) -> None:
    client, clock, seen = cluster.client, ManualClock(), list[str]()
    await install(client, Shop)

    @controller(Shop)
    async def hangs(obj: Shop, ctx: Context) -> None:
        seen.append("began")
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("cancelled")

    async with running(cluster.transport, hangs, clock=clock) as (run,):
        await client.create(shop())
        await eventually(lambda: seen == ["began"])
        stopping = asyncio.ensure_future(run.stop(30))
        await clock.advance(29)
        assert seen == ["began"]
        await clock.advance(1)
        await stopping
        assert seen == ["began", "cancelled"]


async def test_timers_are_stated_anew_by_each_pass(cluster: Cluster) -> None:
    client, clock = cluster.client, ManualClock()
    await install(client, Shop)
    answers: list[Result | Exception | None] = [
        Result.after(100),
        None,
        Result.after(50),
        ValueError("x"),
        Result.now(),
        None,
    ]
    passes: list[float] = []

    @controller(Shop)
    async def timed(obj: Shop, ctx: Context) -> Result | None:
        passes.append(clock.monotonic())
        answer = answers.pop(0) if answers else None
        if isinstance(answer, Exception):
            ctx.requeue(after=1)
            raise answer
        if answer == Result.after(50):
            ctx.requeue(after=200)
            ctx.requeue(at=ctx.now() + timedelta(seconds=30))
        return answer

    async with running(cluster.transport, timed, clock=clock) as (run,):
        await client.create(shop())
        await eventually(lambda: run.queue.delayed == 1)
        run.enqueue(KEY, "event")  # answers nothing: the timer of the first pass is gone
        await eventually(lambda: len(passes) == 2)
        await clock.advance(500)
        assert len(passes) == 2
        run.enqueue(KEY, "event")
        await eventually(lambda: run.queue.delayed == 1)
        assert await clock.advance_to_next() == 30  # the earliest of three
        await eventually(lambda: run.queue.delayed == 1)
        assert await clock.advance_to_next() == pytest.approx(0.005)  # the error's back-off, not its timer
        await eventually(lambda: len(passes) == 6)
        await clock.advance(5000)
        assert len(passes) == 6
