"""The status writer and the events that follow from conditions."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.integration.controller.harness import DEFAULT, Shop, events_of, install, running, shop

from flyball import Condition, find_condition
from flyball.api import DynamicObject
from flyball.client import MergePatch, dynamic, ref
from flyball.clock import ManualClock
from flyball.controller import Context, EventRecorder, Request, bounded, controller
from flyball.errors import TerminalError
from flyball.k8s.events.v1 import Event
from flyball.testing import eventually
from flyball.testing.cluster import Cluster

KEY = Request(DEFAULT, "demo")
START = datetime(2026, 1, 1, tzinfo=UTC)


def later(clock: ManualClock) -> datetime:
    return clock.now().replace(microsecond=0)


@pytest.mark.capability("C50")
async def test_conditions_have_their_time_and_generation_and_are_all_there(cluster: Cluster) -> None:
    client, clock = cluster.client, ManualClock(START)
    await install(client, Shop)

    @controller(Shop, conditions=["Ready", "Scaled"])
    async def tell(obj: Shop, ctx: Context) -> None:
        big = obj.spec.size > 5
        # A fresh list with a wrong time: the writer knows better.
        told = Condition(type="Ready", status="True" if big else "False", reason="Size", message=str(obj.spec.size))
        told.last_transition_time = datetime(1999, 1, 1, tzinfo=UTC)
        obj.status.conditions = [told]

    async def conditions(generation: int) -> list[Condition]:
        found = await eventually(
            lambda: client.get(Shop, "demo", namespace=DEFAULT),
            lambda one: one.status.observed_generation == generation,
        )
        return found.status.conditions

    async with running(cluster.transport, tell, clock=clock):
        await client.create(shop(size=1))
        first = await conditions(1)
        assert [(one.type, one.status) for one in first] == [
            ("Ready", "False"),
            ("Degraded", "False"),
            ("Scaled", "Unknown"),
        ]
        assert {one.last_transition_time for one in first} == {START}
        await clock.advance(100)
        await client.patch(ref(Shop, "demo", namespace=DEFAULT), MergePatch({"spec": {"size": 2}}))
        second = await conditions(2)
        assert [one.type for one in second] == ["Ready", "Degraded", "Scaled"]  # in the order of the first time
        assert second[0].message == "2"
        assert second[0].observed_generation == 2
        assert {one.last_transition_time for one in second} == {START}
        await clock.advance(100)
        await client.patch(ref(Shop, "demo", namespace=DEFAULT), MergePatch({"spec": {"size": 9}}))
        third = await conditions(3)
        assert third[0].last_transition_time == later(clock)
        assert third[1].last_transition_time == START


async def test_what_the_class_and_other_writers_know_is_kept(cluster: Cluster) -> None:
    """An operator with older types leaves the fields of a newer definition alone."""
    from flyball import crd_of
    from flyball.api import from_dict

    client = cluster.client
    definition = crd_of(Shop)
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    schema["status"]["x-kubernetes-preserve-unknown-fields"] = True
    schema["spec"]["x-kubernetes-preserve-unknown-fields"] = True
    await client.create(from_dict(DynamicObject, definition))
    kind = dynamic("example.org/v1", "Shop")
    newer = {"apiVersion": "example.org/v1", "kind": "Shop", "metadata": {"name": "demo", "namespace": DEFAULT}}
    wanted = DynamicObject({**newer, "spec": {"size": 1, "newer": {"a": [1]}}})
    made = await eventually(lambda: client.create(wanted))  # as soon as the kind is served
    made["status"] = {"future": {"b": 2}, "conditions": [_condition("Foreign")]}
    await client.patch(made, subresource="status")

    @controller(Shop)
    async def tell(obj: Shop, ctx: Context) -> None:
        obj.status.ready = obj.spec.size

    async with running(cluster.transport, tell):
        found = await eventually(
            lambda: client.get(kind, "demo", namespace=DEFAULT), lambda one: one.get("status", {}).get("ready") == 1
        )
    assert found["spec"]["newer"] == {"a": [1]}
    assert found["status"]["future"] == {"b": 2}
    assert found["status"]["conditions"][0] == _condition("Foreign")


def _condition(type: str) -> dict[str, object]:
    return {
        "type": type,
        "status": "True",
        "reason": "Theirs",
        "message": "",
        "lastTransitionTime": "2020-01-01T00:00:00Z",
        "observedGeneration": 1,
    }


async def test_a_pass_without_news_writes_nothing(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    passes: list[str] = []

    @controller(Shop, conditions=["Ready"])
    async def same(obj: Shop, ctx: Context) -> None:
        obj.status.set_condition("Ready", True, reason="Fine", message="as ever")
        passes.append(ctx.reason)

    async with running(cluster.transport, same) as (run,):
        await client.create(shop())
        await eventually(lambda: len(passes) == 1 and not run.queue.working)
        version = (await client.get(Shop, "demo", namespace=DEFAULT)).metadata.resource_version
        for count in range(2, 5):
            run.enqueue(KEY, "again")
            await eventually(lambda count=count: len(passes) == count and not run.queue.working)  # type: ignore[misc]
        assert (await client.get(Shop, "demo", namespace=DEFAULT)).metadata.resource_version == version


async def test_what_the_author_says_about_the_error_condition_stays(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    passes: list[str] = []

    @controller(Shop)
    async def worried(obj: Shop, ctx: Context) -> None:
        passes.append(ctx.reason)
        if obj.spec.size > 5:
            obj.status.set_condition("Degraded", True, reason="InvalidSpec", message="too large for us")

    async with running(cluster.transport, worried) as (run,):
        await client.create(shop(size=9))
        for count in (1, 2):
            await eventually(lambda count=count: len(passes) == count and not run.queue.working)  # type: ignore[misc]
            found = await client.get(Shop, "demo", namespace=DEFAULT)
            told = find_condition(found.status.conditions, "Degraded")
            assert told is not None
            assert (told.status, told.message) == ("True", "too large for us")
            run.enqueue(KEY, "again")
        await client.patch(ref(Shop, "demo", namespace=DEFAULT), MergePatch({"spec": {"size": 1}}))
        await eventually(
            lambda: client.get(Shop, "demo", namespace=DEFAULT), lambda one: one.status.is_false("Degraded")
        )


@pytest.mark.capability("S16")
async def test_events_tell_of_changes_of_conditions_only(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    passes: list[str] = []

    @controller(Shop, conditions=["Ready"], events_on=["Ready"])
    async def tell(obj: Shop, ctx: Context) -> None:
        passes.append(ctx.reason)
        if obj.spec.size:
            obj.status.set_condition("Ready", True, reason="Open", message=f"{obj.spec.size} in")
        else:
            obj.status.set_condition("Ready", False, reason="Closed", message="nobody in")

    async with running(cluster.transport, tell) as (run,):
        await client.create(shop(size=1))
        await eventually(lambda: client.get(Shop, "demo", namespace=DEFAULT), lambda one: one.status.is_true("Ready"))
        for size in (2, 3, 0, 0):
            await eventually(lambda: not run.queue.working and len(run.queue) == 0)
            await client.patch(ref(Shop, "demo", namespace=DEFAULT), MergePatch({"spec": {"size": size}}))
            await eventually(
                lambda size=size: client.get(Shop, "demo", namespace=DEFAULT),  # type: ignore[misc]
                lambda one: one.status.observed_generation == one.metadata.generation,
            )
        await run.runtime.recorder.flush()
    found = sorted(await events_of(client, "demo"), key=lambda one: str(one.reason))
    assert [(one.type, one.reason, one.note) for one in found] == [
        ("Warning", "Closed", "nobody in"),
        ("Normal", "Open", "1 in"),
    ]
    assert {one.reporting_controller for one in found} == {"example.org/shop"}


async def test_the_error_condition_is_told_once_and_never_that_nothing_is_wrong_yet(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)

    @controller(Shop, events_on=["Degraded"])
    async def judge(obj: Shop, ctx: Context) -> None:
        if obj.spec.size > 5:
            raise TerminalError("too large")
        late = obj.spec.size > 1
        obj.status.set_condition("Degraded", late, reason="Late" if late else "AsExpected", message=f"{obj.spec.size}")

    async with running(cluster.transport, judge) as (run,):
        await client.create(shop(size=1))
        for size in (1, 2, 6, 7, 1):
            await client.patch(ref(Shop, "demo", namespace=DEFAULT), MergePatch({"spec": {"size": size}}))
            await eventually(
                lambda: client.get(Shop, "demo", namespace=DEFAULT),
                lambda one: (
                    bool(one.status.conditions)
                    and one.status.observed_generation == one.metadata.generation
                    and not run.queue.working
                ),
            )
        await run.runtime.recorder.flush()
    told = sorted((str(one.type), str(one.reason), str(one.note)) for one in await events_of(client, "demo"))
    assert told == [
        ("Normal", "AsExpected", "1"),
        ("Warning", "Late", "2"),
        ("Warning", "TerminalError", "too large"),
    ]
    assert all(one.series is None for one in await events_of(client, "demo"))


async def test_events_are_named_in_their_order(cluster: Cluster) -> None:
    client, clock = cluster.client, ManualClock()
    await install(client, Shop)
    about = await client.create(shop())
    recorder = EventRecorder(client, clock=clock)
    said = [f"number {number}" for number in range(12)]
    for words in said:
        recorder.record(about, "Normal", "Said", words)
        if words == "number 5":
            await clock.advance(1)
    await recorder.flush()
    found = sorted(await events_of(client, "demo"), key=lambda one: one.metadata.name)
    assert [one.note for one in found] == said


async def test_repeated_events_become_a_series(cluster: Cluster) -> None:
    client, clock = cluster.client, ManualClock()
    await install(client, Shop)
    about = await client.create(shop())
    recorder = EventRecorder(client, clock=clock, reporter="example.org/test")

    async def counts() -> list[int]:
        await recorder.flush()
        found = await events_of(client, "demo")
        return sorted(one.series.count if one.series is not None else 1 for one in found)

    recorder.record(about, "Normal", "Made", "a thing")
    assert await counts() == [1]
    recorder.record(about, "Normal", "Made", "a thing")
    assert await counts() == [2]
    recorder.record(about, "Normal", "Made", "a thing")
    assert await counts() == [2]  # written at 2, 4, 8
    recorder.record(about, "Normal", "Made", "another thing")
    recorder.record(about, "Normal", "Made", "a thing")
    assert await counts() == [1, 4]
    recorder.record(about, "Normal", "Made", "a thing")
    await recorder.stop()
    assert await counts() == [1, 5]
    await clock.advance(400)
    recorder.record(about, "Normal", "Made", "a thing")
    assert await counts() == [1, 1, 5]


async def test_events_of_one_object_are_limited_and_others_are_not(cluster: Cluster) -> None:
    client, clock = cluster.client, ManualClock()
    await install(client, Shop)
    noisy, quiet = await client.create(shop()), await client.create(shop("quiet"))
    recorder = EventRecorder(client, clock=clock)
    for number in range(40):
        recorder.record(noisy, "Normal", "Tick", str(number))
    recorder.record(quiet, "Normal", "Tick", "one")
    await recorder.flush()
    assert len(await events_of(client, "demo")) == 25
    assert len(await events_of(client, "quiet")) == 1
    await clock.advance(301)
    recorder.record(noisy, "Normal", "Tick", "later")
    recorder.record(noisy, "Normal", "Tick", "too much")
    await recorder.flush()
    assert len(await events_of(client, "demo")) == 26


async def test_an_event_that_cannot_be_sent_fails_nobody(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    about = await client.create(shop())
    recorder = EventRecorder(cluster.client)
    about.metadata.namespace = "there-is-no-such-namespace"
    recorder.record(about, "Normal", "Made", "x" * 5000)
    await recorder.flush()
    about.metadata.namespace = DEFAULT
    recorder.record(about, "Normal", "Made", "x" * 5000)
    await recorder.flush()
    (event,) = await client.list(Event, namespace=DEFAULT)
    assert event.note is not None
    assert len(event.note) == 1024


def test_lists_in_a_status_are_bounded() -> None:
    assert bounded(["b", "a", "c"], 2) == (["a", "b"], 1)
    assert bounded([], 2) == ([], 0)
    assert bounded([Condition(type="B", status="True"), Condition(type="A", status="True")], 5)[0][0].type == "A"
