"""A raw reconciler that loads its object is about it from then on; errors that are told, and numbers."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from tests.integration.controller.harness import DEFAULT, Numbers, Shop, config, events_of, install, running, shop

from flyball import Ge, Resource, Rule, Spec, Status
from flyball.api import DynamicObject, crd_of
from flyball.client import MergePatch, ref
from flyball.clock import ManualClock
from flyball.controller import (
    Context,
    InvalidSpec,
    Request,
    Result,
    SyncContext,
    Watches,
    controller,
    expect_valid,
    instance_of,
    is_controlled_by,
)
from flyball.errors import FlyballError
from flyball.k8s.core.v1 import ConfigMap
from flyball.testing import Cluster, eventually

NAME = "app.kubernetes.io/name"


async def get(cluster: Cluster, name: str = "demo") -> Shop:
    return await cluster.client.get(Shop, name, namespace=DEFAULT)


@pytest.mark.capability("S7")
async def test_what_a_raw_reconciler_loads_is_its_object(cluster: Cluster) -> None:
    await install(cluster.client, Shop)

    @controller(Shop, raw=True, owns=[ConfigMap], error_condition="Ready", conditions=["Ready", "Open"])
    async def reconcile(request: Request, ctx: Context) -> None:
        found = await ctx.load(Shop)
        assert found is not None
        assert ctx.primary is found
        await ctx.create(config("child"))
        found.status.ready = len(await ctx.owned(ConfigMap))
        ctx.record("Normal", "Seen", "it is there")

    async with running(cluster.transport, reconcile):
        await cluster.client.create(shop())
        found = await eventually(lambda: get(cluster), lambda one: one.status.ready == 1)
        assert found.status.observed_generation == 1
        assert [(one.type, one.status) for one in found.status.conditions] == [("Ready", "True"), ("Open", "Unknown")]
        child = await cluster.client.get(ConfigMap, "child", namespace=DEFAULT)
        assert is_controlled_by(child, found)
        await eventually(lambda: events_of(cluster.client, "demo"))


async def test_an_object_that_is_being_deleted_is_not_written(cluster: Cluster) -> None:
    await install(cluster.client, Shop)
    seen: list[bool] = []

    @controller(Shop, raw=True)
    async def reconcile(request: Request, ctx: Context) -> None:
        found = await ctx.load(Shop)
        if found is None:
            return
        seen.append(ctx.deleting)
        found.status.note = "deleting" if ctx.deleting else "there"

    async with running(cluster.transport, reconcile):
        made = shop()
        made.metadata.finalizers = ["example.org/held"]
        await cluster.client.create(made)
        await eventually(lambda: get(cluster), lambda one: one.status.note == "there")
        await cluster.client.delete(Shop, "demo", namespace=DEFAULT)
        await eventually(lambda: seen[-1])
        await cluster.client.create(shop("other"))
        await eventually(lambda: get(cluster, "other"), lambda one: one.status.note == "there")
        assert (await get(cluster)).status.note == "there"


async def test_the_status_is_written_at_once_when_asked_and_only_if_it_differs(cluster: Cluster) -> None:
    await install(cluster.client, Shop)
    answers: list[bool] = []

    @controller(Shop, raw=True)
    async def reconcile(request: Request, ctx: Context) -> None:
        found = await ctx.load(Shop)
        assert found is not None
        found.status.note = "first"
        answers.append(await ctx.write_status())
        answers.append(await ctx.write_status())
        found.status.ready = 7

    async with running(cluster.transport, reconcile):
        await cluster.client.create(shop())
        found = await eventually(lambda: get(cluster), lambda one: one.status.ready == 7)
        assert found.status.note == "first"
        assert answers == [True, False]


async def test_a_plain_function_has_the_same_verbs(cluster: Cluster) -> None:
    await install(cluster.client, Shop)
    numbers = Numbers()

    @controller(Shop, raw=True, owns=[ConfigMap], error_condition="Ready")
    def reconcile(request: Request, ctx: SyncContext) -> None:
        found = ctx.load(Shop)
        assert found is not None
        ctx.create(config("child"))
        found.status.ready = len(ctx.owned(ConfigMap))
        assert ctx.write_status()
        ctx.report(InvalidSpec("spec.color: it is no color"))
        ctx.count("visits_total")
        ctx.observe("visit_seconds", 0.5)
        ctx.measure("shop_shelves", 3)

    async with running(cluster.transport, reconcile, metrics=numbers):
        await cluster.client.create(shop())
        found = await eventually(lambda: get(cluster), lambda one: one.status.is_false("Ready"))
        assert found.status.ready == 1
        await eventually(lambda: {"visits_total", "visit_seconds", "shop_shelves"} <= numbers.counts.keys())


async def test_what_is_reported_is_told_and_does_not_fail_the_pass(cluster: Cluster) -> None:
    await install(cluster.client, Shop)
    numbers = Numbers()
    clock = ManualClock()

    @controller(Shop, error_condition="Ready")
    async def reconcile(obj: Shop, ctx: Context) -> Result | None:
        if obj.spec.color == "grey":
            ctx.report(InvalidSpec("spec.color: grey is no color"))
            return Result.after(60)
        return None

    async with running(cluster.transport, reconcile, metrics=numbers, clock=clock) as (run,):
        await cluster.client.create(shop(color="grey"))
        found = await eventually(lambda: get(cluster), lambda one: one.status.is_false("Ready"))
        condition = found.status.condition("Ready")
        assert condition is not None
        assert (condition.reason, condition.message) == ("InvalidSpec", "spec.color: grey is no color")
        await eventually(lambda: run.queue.delayed == 1)
        await clock.advance(60)
        await eventually(lambda: run.queue.delayed == 1)
        (event,) = await events_of(cluster.client, "demo")
        assert (event.type, event.reason) == ("Warning", "InvalidSpec")
        assert "controller_runtime_reconcile_errors_total" not in numbers.counts
        await cluster.client.patch(ref(Shop, "demo", namespace=DEFAULT), MergePatch({"spec": {"color": "red"}}))
        await eventually(lambda: get(cluster), lambda one: one.status.is_true("Ready"))


async def test_what_is_watched_by_labels_is_read_from_that_watch(cluster: Cluster) -> None:
    await install(cluster.client, Shop)

    @controller(Shop, watches=[Watches(ConfigMap, instance_of, labels={NAME: "shop"})])
    async def reconcile(obj: Shop, ctx: Context) -> None:
        mine = await ctx.list(ConfigMap, labels={NAME: "shop", "app.kubernetes.io/instance": obj.metadata.name})
        obj.status.ready = len(mine)

    async with running(cluster.transport, reconcile):
        await cluster.client.create(shop())
        made: Any = config("child")
        made.metadata.namespace = DEFAULT
        made.metadata.labels = {NAME: "shop", "app.kubernetes.io/instance": "demo"}
        await cluster.client.create(made)
        await eventually(lambda: get(cluster), lambda one: one.status.ready == 1)
    listed = [one for one in cluster.requests if one.resource == "configmaps" and one.verb == "list"]
    assert len(listed) == 1  # that of the watch; ConfigMaps that nobody watches are read live


class BoxSpec(Spec):
    size: Annotated[int, Ge(1)]
    kind_of: str = "wood"


class Box(Resource, group="example.org", version="v1", rules=[Rule("self.spec.size < 10", message="is too big")]):
    """Something with limits."""

    spec: BoxSpec
    status: Status


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"size": 0}, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        ({}, "spec.size: Required value"),
        ({"size": 11}, "is too big"),
        ({"size": 5, "kindOf": 7}, "spec.kindOf"),
    ],
)
async def test_the_third_layer_refuses_what_a_looser_definition_let_pass(
    cluster: Cluster, spec: dict[str, Any], words: str
) -> None:
    loose = crd_of(Box)
    loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    await cluster.client.apply(DynamicObject(loose), field_manager="test")
    stored = DynamicObject(
        apiVersion="example.org/v1", kind="Box", metadata={"name": "demo", "namespace": DEFAULT}, spec=spec
    )
    await eventually(lambda: cluster.client.create(stored))
    found = await cluster.client.get(Box, "demo", namespace=DEFAULT)
    with pytest.raises(InvalidSpec) as caught:
        expect_valid(found)
    assert words in str(caught.value)
    assert isinstance(caught.value, FlyballError)


def test_what_is_valid_passes() -> None:
    expect_valid(Box.new("demo", namespace=DEFAULT, spec=BoxSpec(size=3)))
