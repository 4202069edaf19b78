"""The forms of a reconciler: function, method, thread, raw, machine."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from tests.integration.controller.harness import DEFAULT, Shop, config, events_of, install, running, shop

from flyball.client import MergePatch, ref
from flyball.clock import ManualClock
from flyball.controller import (
    Context,
    NotAReconciler,
    PassOver,
    Reconciler,
    Request,
    Result,
    SyncContext,
    controller,
    pass_fields,
)
from flyball.fsm import fsm_controller
from flyball.fsm.operator import OperatorContext, OperatorState
from flyball.fsm.run import FINAL, Machine, Permanent, Requeue, Table, call, state, to
from flyball.k8s.core.v1 import ConfigMap, Secret
from flyball.k8s.meta.v1 import ObjectMeta
from flyball.testing import eventually
from flyball.testing.cluster import Cluster

KEY = Request(DEFAULT, "demo")


async def noted(cluster: Cluster, note: str) -> Shop:
    return await eventually(
        lambda: cluster.client.get(Shop, "demo", namespace=DEFAULT), lambda one: one.status.note == note
    )


async def test_a_class_with_its_own_parts_and_a_finalizer(cluster: Cluster) -> None:
    await install(cluster.client, Shop)

    class Follower(Reconciler[Shop]):
        def __init__(self, word: str = "made without arguments") -> None:
            self.word = word
            self.finalized: list[str] = []

        async def reconcile(self, obj: Shop, ctx: Context, /) -> Result | None:
            obj.status.note = self.word
            return None

        async def finalize(self, obj: Shop, ctx: Context) -> None:
            self.finalized.append(obj.metadata.name)

    follower = Follower("by an object")
    async with running(cluster.transport, controller(Shop)(follower)):
        await cluster.client.create(shop())
        await noted(cluster, "by an object")
        await cluster.client.delete(Shop, "demo", namespace=DEFAULT)
        await eventually(lambda: follower.finalized == ["demo"])
    async with running(cluster.transport, controller(Shop)(Follower)):
        await cluster.client.create(shop("other"))
        await eventually(
            lambda: cluster.client.get(Shop, "other", namespace=DEFAULT),
            lambda one: one.status.note == "made without arguments",
        )


def test_what_cannot_be_called_is_refused_at_once() -> None:
    class Needs:
        def __init__(self, thing: str) -> None:
            """A class that needs something."""

        async def reconcile(self, obj: Shop, ctx: Context) -> None:
            """Never called."""

    with pytest.raises(NotAReconciler, match="cannot be made without arguments"):
        controller(Shop)(Needs)
    wrong: Any = lambda only: None  # noqa: E731
    with pytest.raises(NotAReconciler, match=r"cannot be called with \(obj, ctx\)"):
        controller(Shop)(wrong)
    neither: Any = 5
    with pytest.raises(NotAReconciler, match="neither a function"):
        controller(Shop)(neither)


async def test_what_was_decorated_can_still_be_called() -> None:
    @controller(Shop)
    async def simple(obj: Shop, ctx: Context) -> None:
        obj.status.note = "called"

    obj = shop()
    nothing: Any = None
    await simple(obj, nothing)
    assert obj.status.note == "called"


async def test_a_plain_function_runs_in_a_thread_with_the_same_verbs(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    seen: dict[str, Any] = {}

    @controller(Shop, owns=[ConfigMap])
    def follow(obj: Shop, ctx: SyncContext) -> Result | None:
        seen["thread"] = threading.current_thread() is not threading.main_thread()
        seen["fields"] = dict(pass_fields())
        child = ctx.apply(config("demo", size=str(obj.spec.size)))
        got = ctx.get(ConfigMap, "demo")
        assert got is not None
        assert got.metadata.uid == child.metadata.uid
        assert [one.metadata.name for one in ctx.owned(ConfigMap)] == ["demo"]
        live = ctx.live.get(ConfigMap, "demo")
        assert live is not None
        extra = ctx.create(Secret(metadata=ObjectMeta(name="extra")))
        extra.metadata.labels["a"] = "b"
        patched = ctx.patch(extra)
        assert patched.metadata.labels == {"a": "b"}
        ctx.delete(patched)
        ctx.record("Normal", "Followed", "in a thread")
        ctx.requeue(after=30)
        obj.status.note = "in a thread"
        return None

    clock = ManualClock()
    async with running(cluster.transport, follow, clock=clock) as (run,):
        await client.create(shop(size=4))
        await noted(cluster, "in a thread")
        await eventually(lambda: run.queue.delayed == 1)
    assert seen["thread"]
    assert (seen["fields"]["controller"], seen["fields"]["name"]) == ("shop", "demo")
    assert [one.reason for one in await events_of(client, "demo")] == ["Followed"]


@pytest.mark.capability("C39")
async def test_the_deadline_of_a_thread_closes_its_context_and_keeps_its_key(cluster: Cluster) -> None:
    client, clock = cluster.client, ManualClock()
    await install(client, Shop)
    began, go, told = threading.Event(), threading.Event(), list[str]()

    @controller(Shop, reconcile_timeout=20)
    def slow(obj: Shop, ctx: SyncContext) -> None:
        if told:
            obj.status.note = "second"
            return
        began.set()
        go.wait(10)
        try:
            ctx.apply(config("too-late"))
        except PassOver as error:
            told.append(str(error))
            raise

    async with running(cluster.transport, slow, clock=clock) as (run,):
        await client.create(shop())
        await eventually(began.is_set)
        await clock.advance(20)
        assert run.queue.is_working(KEY)  # the thread still runs, so the key is not free
        go.set()
        await eventually(lambda: told)
        assert "its time was up" in told[0]
        await eventually(lambda: run.queue.delayed == 1)
        await clock.advance_to_next()
        await noted(cluster, "second")


async def test_a_thread_that_blocks_delays_nobody_else(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    go = threading.Event()

    @controller(Shop, max_concurrent=2)
    def blocking(obj: Shop, ctx: SyncContext) -> None:
        if obj.spec.color == "blue":
            go.wait(10)
        obj.status.note = "done"

    async with running(cluster.transport, blocking):
        await client.create(shop("blocked", color="blue"))
        await client.create(shop())
        await noted(cluster, "done")
        go.set()


async def test_stopping_leaves_a_thread_alone_that_does_not_end(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    began, go = threading.Event(), threading.Event()

    @controller(Shop)
    def stuck(obj: Shop, ctx: SyncContext) -> None:
        began.set()
        go.wait(10)

    async with running(cluster.transport, stuck, grace=0):
        await client.create(shop())
        await eventually(began.is_set)
        started = time.monotonic()
    assert time.monotonic() - started < 5
    go.set()


async def test_a_raw_reconciler_gets_the_key_also_of_what_is_gone(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    seen: list[tuple[Request, bool]] = []

    @controller(Shop, raw=True)
    async def raw(request: Request, ctx: Context) -> None:
        obj = await ctx.get(Shop, request.name)
        seen.append((request, obj is None))
        if obj is not None and not obj.status.note:
            obj.status.note = "by hand"
            await ctx.patch(obj, subresource="status")

    async with running(cluster.transport, raw):
        await client.create(shop())
        await noted(cluster, "by hand")
        await client.delete(Shop, "demo", namespace=DEFAULT)
        await eventually(lambda: seen[-1] == (KEY, True))
    assert seen[0] == (KEY, False)


async def test_errors_of_a_raw_reconciler_are_told_as_it_wishes(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    fails = [RuntimeError("once"), RuntimeError("twice")]

    @controller(Shop, raw=True, error_condition="Ready")
    async def raw(request: Request, ctx: Context) -> None:
        if fails:
            raise fails.pop(0)

    async with running(cluster.transport, raw):
        await client.create(shop())
        found = await eventually(
            lambda: client.get(Shop, "demo", namespace=DEFAULT), lambda one: one.status.is_true("Ready")
        )
    condition = found.status.condition("Ready")
    assert condition is not None
    assert condition.reason == "Reconciled"
    (event,) = await events_of(client, "demo")
    assert event.note == "RuntimeError: once"


class Making(Machine[OperatorContext, OperatorState[Shop]]):
    """Loads its object, makes a child, ends; or ends otherwise, as the color says."""


async def load(m: Making) -> None:
    assert m.context.ctx is not None
    m.state.instance = await m.context.ctx.get(Shop, m.state.resource_name, m.state.namespace)


async def make(m: Making) -> None:
    assert m.state.instance is not None
    if m.state.instance.spec.color == "wait":
        raise Requeue(after=30)
    if m.state.instance.spec.color == "never":
        raise Permanent("never")
    m.context.recorder.record("Normal", "Made", f"made for {m.state.resource_name}")
    child = config(m.state.resource_name)
    child.metadata.namespace = m.state.namespace
    await m.context.client.apply(child, field_manager="making")


def is_gone(m: Making) -> bool:
    return m.state.instance is None


Making.table = Table(
    "Making",
    initial=[to("Loading")],
    states=[
        state("Loading", do=[call("Load")], transitions=[to(FINAL, guard=call("IsGone")), to("Working")]),
        state("Working", do=[call("Make")], transitions=[to(FINAL)]),
    ],
    actions={"Load": load, "Make": make},
    guards={"IsGone": is_gone},
)


@pytest.mark.capability("S7")
async def test_a_machine_is_a_reconciler(cluster: Cluster) -> None:
    client, clock = cluster.client, ManualClock()
    await install(client, Shop)
    async with running(cluster.transport, fsm_controller(Making, Shop, owns=[ConfigMap]), clock=clock) as (run,):
        await client.create(shop())
        await eventually(lambda: client.get(ConfigMap, "demo", namespace=DEFAULT))
        await eventually(lambda: events_of(client, "demo"))
        await client.create(shop("waiting", color="wait"))
        await eventually(lambda: run.queue.delayed == 1)
        await client.patch(ref(Shop, "waiting", namespace=DEFAULT), MergePatch({"spec": {"color": "red"}}))
        await eventually(lambda: client.get(ConfigMap, "waiting", namespace=DEFAULT))
        await client.create(shop("never", color="never"))
        await eventually(lambda: events_of(client, "never"))
        await eventually(lambda: not run.queue.working)
        assert (len(run.queue), run.queue.delayed) == (0, 0)
    (event,) = await events_of(client, "never")
    assert (event.type, event.reason, event.note) == ("Warning", "Permanent", "never")


async def test_every_line_of_a_pass_can_be_found(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    import logging

    client = cluster.client
    await install(client, Shop)

    @controller(Shop)
    async def talks(obj: Shop, ctx: Context) -> None:
        ctx.log.info("size is %d", obj.spec.size)
        await asyncio.sleep(0)
        assert pass_fields()["reconcile_id"] == ctx.pass_id
        obj.status.note = "done"

    with caplog.at_level(logging.INFO, logger="flyball.controller"):
        async with running(cluster.transport, talks):
            await client.create(shop())
            await noted(cluster, "done")
    record: Any = next(one for one in caplog.records if one.getMessage() == "size is 1")
    fields = record.flyball
    assert (fields["controller"], fields["kind"]) == ("shop", "Shop.example.org")
    assert (fields["namespace"], fields["name"], fields["generation"]) == (DEFAULT, "demo", 1)
    assert fields["reconcile_id"]
    assert pass_fields() == {}
