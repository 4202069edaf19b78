"""What errors do to the queue, the status and the events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.integration.controller.harness import DEFAULT, Numbers, Shop, events_of, install, running, shop

from flyball import Condition, find_condition
from flyball.client import Client, HttpRequest, HttpResponse
from flyball.clock import ManualClock
from flyball.controller import Context, Controller, InvalidSpec, Request, Result, RunningController, controller
from flyball.errors import RetryAfter, TerminalError, error_from
from flyball.testing import consistently, eventually
from flyball.testing.cluster import Cluster

KEY = Request(DEFAULT, "demo")


class Script:
    """A reconciler that does, pass by pass, what a test says; then it succeeds."""

    def __init__(self, *steps: BaseException | Result | None) -> None:
        self.steps = list(steps)
        self.passes = 0

    async def reconcile(self, obj: Shop, ctx: Context) -> Result | None:
        self.passes += 1
        obj.status.ready = self.passes
        step = self.steps.pop(0) if self.steps else None
        if isinstance(step, BaseException):
            raise step
        return step


async def passes(script: Script, count: int) -> None:
    await eventually(lambda: script.passes >= count)


async def degraded(client: Client, holds: Callable[[Condition], object], name: str = "demo") -> Condition:
    async def look() -> Condition | None:
        found = await client.get(Shop, name, namespace=DEFAULT)
        return find_condition(found.status.conditions, "Degraded")

    found = await eventually(look, lambda one: one is not None and holds(one))
    assert found is not None
    return found


def made(script: Any, **options: Any) -> Controller[Shop]:
    return controller(Shop, **options)(script)


def api_error(code: int, reason: str, message: str = "no", **details: Any) -> Exception:
    import msgspec

    body = {"kind": "Status", "reason": reason, "message": message, "code": code, "details": details}
    return error_from(code, {}, msgspec.json.encode(body), action="apply ConfigMap default/demo", host="test")


def conflict() -> Exception:
    return api_error(409, "Conflict")


async def delay_of(run: RunningController[Any], clock: ManualClock) -> float:
    """How long the key waits for its next pass."""
    await eventually(lambda: run.queue.delayed == 1)
    return await clock.advance_to_next()


@pytest.mark.capability("C38")
@pytest.mark.capability("C46")
@pytest.mark.capability("C30")
async def test_a_bug_is_told_counted_and_retried_and_the_condition_is_lowered_again(cluster: Cluster) -> None:
    client, clock, numbers = cluster.client, ManualClock(), Numbers()
    await install(client, Shop)
    script = Script(ValueError("seven"), ValueError("seven"))
    async with running(cluster.transport, made(script), clock=clock, metrics=numbers) as (run,):
        await client.create(shop())
        told = await degraded(client, lambda one: one.status == "True")
        assert (told.reason, told.message) == ("ReconcileError", "ValueError: seven")
        assert told.observed_generation == 1
        assert (await client.get(Shop, "demo", namespace=DEFAULT)).status.ready == 1  # also after an exception
        assert await delay_of(run, clock) == pytest.approx(0.005)
        await passes(script, 2)
        assert await delay_of(run, clock) == pytest.approx(0.010)
        lowered = await degraded(client, lambda one: one.status == "False")
        assert lowered.reason == "Reconciled"
        await eventually(lambda: run.queue.failures(KEY) == 0)
        assert run.queue.delayed == 0
    assert numbers.counts["controller_runtime_reconcile_errors_total"] == 2
    (event,) = await events_of(client, "demo")
    assert (event.type, event.reason) == ("Warning", "ReconcileError")


@pytest.mark.capability("C38")
async def test_one_bad_object_stops_no_other(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)

    @controller(Shop)
    async def picky(obj: Shop, ctx: Context) -> None:
        if obj.spec.color == "blue":
            raise RuntimeError("not blue")
        obj.status.note = "fine"

    async with running(cluster.transport, picky):
        for name, color in (("a", "blue"), ("b", "red"), ("c", "blue"), ("d", "red")):
            await client.create(shop(name, color=color))
        for name in ("b", "d"):
            await eventually(
                lambda name=name: client.get(Shop, name, namespace=DEFAULT),  # type: ignore[misc]
                lambda one: one.status.note == "fine",
            )
        await degraded(client, lambda one: one.message == "RuntimeError: not blue", "a")


@pytest.mark.capability("C40")
async def test_a_terminal_error_is_told_and_not_retried_until_the_object_changes(cluster: Cluster) -> None:
    client, clock, numbers = cluster.client, ManualClock(), Numbers()
    await install(client, Shop)
    script = Script(TerminalError("never"))
    async with running(cluster.transport, made(script), clock=clock, metrics=numbers) as (run,):
        await client.create(shop())
        await degraded(client, lambda one: one.reason == "TerminalError")
        await clock.advance(5000)
        assert script.passes == 1
        found = await client.get(Shop, "demo", namespace=DEFAULT)
        found.spec.size = 7
        await client.patch(found)
        await passes(script, 2)
        await degraded(client, lambda one: one.status == "False")
        assert run.queue.failures(KEY) == 0
    assert numbers.counts["controller_runtime_terminal_reconcile_errors_total"] == 1


async def test_an_invalid_spec_is_told_once_per_generation(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    script = Script(InvalidSpec("size and color"), InvalidSpec("size and color"), InvalidSpec("size and color"))
    async with running(cluster.transport, made(script)) as (run,):
        await client.create(shop())
        await degraded(client, lambda one: one.reason == "InvalidSpec" and one.observed_generation == 1)
        run.enqueue(KEY, "a child changed")
        await passes(script, 2)
        found = await client.get(Shop, "demo", namespace=DEFAULT)
        found.spec.size = 7
        await client.patch(found)
        await degraded(client, lambda one: one.observed_generation == 2)
        await run.runtime.recorder.flush()
    events = await events_of(client, "demo")
    total = sum(one.series.count if one.series is not None else 1 for one in events)
    assert total == 2


async def test_conflicts_are_silent_and_converge(cluster: Cluster) -> None:
    client, numbers = cluster.client, Numbers()
    await install(client, Shop)
    script = Script(*[conflict() for _ in range(5)])
    async with running(cluster.transport, made(script), metrics=numbers) as (run,):
        await client.create(shop())
        await degraded(client, lambda one: one.status == "False")
        assert script.passes == 6
        await run.runtime.recorder.flush()
    assert await events_of(client, "demo") == []
    assert numbers.counts["flyball_reconcile_conflicts_total"] == 5
    assert "controller_runtime_reconcile_errors_total" not in numbers.counts


async def test_a_sixth_conflict_in_a_row_is_an_error(cluster: Cluster) -> None:
    client, numbers = cluster.client, Numbers()
    await install(client, Shop)
    script = Script(*[conflict() for _ in range(6)])
    async with running(cluster.transport, made(script), metrics=numbers):
        await client.create(shop())
        await eventually(lambda: script.passes == 7)
    assert numbers.counts["controller_runtime_reconcile_errors_total"] == 1
    assert [one.reason for one in await events_of(client, "demo")] == ["Conflict"]


async def test_trouble_of_the_server_is_told_when_it_goes_on(cluster: Cluster) -> None:
    client, clock = cluster.client, ManualClock()
    await install(client, Shop)
    script = Script(*[api_error(503, "ServiceUnavailable") for _ in range(3)])
    async with running(cluster.transport, made(script), clock=clock) as (run,):
        await client.create(shop())
        await passes(script, 1)
        await delay_of(run, clock)
        await passes(script, 2)
        found = await client.get(Shop, "demo", namespace=DEFAULT)
        assert find_condition(found.status.conditions, "Degraded") is None
        await delay_of(run, clock)
        await degraded(client, lambda one: one.reason == "APIError")
        await delay_of(run, clock)
        await degraded(client, lambda one: one.status == "False")


async def test_retry_after_is_no_error_and_keeps_the_count(cluster: Cluster) -> None:
    client, clock, numbers = cluster.client, ManualClock(), Numbers()
    await install(client, Shop)
    script = Script(ValueError("once"), RetryAfter(30, "the cloud is busy"), ValueError("again"))
    async with running(cluster.transport, made(script), clock=clock, metrics=numbers) as (run,):
        await client.create(shop())
        await passes(script, 1)
        await delay_of(run, clock)
        await passes(script, 2)
        assert await delay_of(run, clock) == pytest.approx(30)
        await passes(script, 3)
        assert await delay_of(run, clock) == pytest.approx(0.010)  # the second failure, not the first
        await passes(script, 4)
    assert numbers.counts["controller_runtime_reconcile_errors_total"] == 2


@pytest.mark.parametrize(
    ("error", "reason", "longest"),
    [
        (api_error(403, "Forbidden", "cannot"), "Forbidden", None),
        (api_error(403, "Forbidden", "exceeded quota: compute"), "QuotaExceeded", 300),
        (api_error(403, "Forbidden", 'admission webhook "w.x" denied the request: no'), "AdmissionDenied", 300),
        (api_error(422, "Invalid", "spec.x: bad"), "ChildInvalid", 0),
        (ExceptionGroup("two", [conflict(), ValueError("x")]), "ReconcileError", None),
    ],
)
async def test_each_class_has_its_reason(
    cluster: Cluster, error: Exception, reason: str, longest: float | None
) -> None:
    client, clock = cluster.client, ManualClock()
    await install(client, Shop)
    script = Script(error)
    async with running(cluster.transport, made(script), clock=clock) as (run,):
        await client.create(shop())
        told = await degraded(client, lambda one: one.status == "True")
        assert told.reason == reason
        if longest == 0:
            assert run.queue.delayed == 0
        else:
            assert await delay_of(run, clock) == pytest.approx(0.005)


async def test_a_namespace_on_its_way_out_says_nothing(cluster: Cluster) -> None:
    client, clock = cluster.client, ManualClock()
    await install(client, Shop)
    script = Script(api_error(403, "Forbidden", "bye", causes=[{"reason": "NamespaceTerminating"}]))
    async with running(cluster.transport, made(script), clock=clock) as (run,):
        await client.create(shop())
        await passes(script, 1)
        await eventually(lambda: not run.queue.is_working(KEY))
        assert run.queue.delayed == 0
        await run.runtime.recorder.flush()
    assert await events_of(client, "demo") == []


@pytest.mark.parametrize("nonsense", [5, "soon", object()])
async def test_a_nonsense_answer_is_a_bug(cluster: Cluster, nonsense: Any) -> None:
    client = cluster.client
    await install(client, Shop)
    answers = [nonsense, None]

    async def reconcile(obj: Shop, ctx: Context) -> Any:
        return answers.pop(0) if answers else None

    async with running(cluster.transport, made(reconcile)):
        await client.create(shop())
        await eventually(lambda: events_of(client, "demo"))
        await degraded(client, lambda one: one.status == "False")
    assert "reconciler answered" in str((await events_of(client, "demo"))[0].note)


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), RecursionError(), MemoryError()])
async def test_nothing_that_is_raised_ends_the_worker(cluster: Cluster, error: BaseException) -> None:
    client = cluster.client
    await install(client, Shop)
    script = Script(error)
    async with running(cluster.transport, made(script)):
        await client.create(shop())
        await degraded(client, lambda one: one.status == "False")
    assert [one.reason for one in await events_of(client, "demo")] == ["ReconcileError"]


@pytest.mark.capability("C39")
async def test_a_pass_over_its_deadline_is_cancelled_and_retried(cluster: Cluster) -> None:
    client, clock, numbers = cluster.client, ManualClock(), Numbers()
    await install(client, Shop)
    seen: list[str] = []

    @controller(Shop, reconcile_timeout=20)
    async def slow(obj: Shop, ctx: Context) -> None:
        if not seen:
            seen.append("hangs")
            await asyncio.Event().wait()
        seen.append("went on")

    async with running(cluster.transport, slow, clock=clock, metrics=numbers) as (run,):
        await client.create(shop())
        await eventually(lambda: seen == ["hangs"])
        await clock.advance(20)
        told = await degraded(client, lambda one: one.status == "True")
        assert "TimeoutError" in told.message
        await delay_of(run, clock)
        await eventually(lambda: seen == ["hangs", "went on"])
    assert numbers.counts["controller_runtime_reconcile_timeouts_total"] == 1


async def test_an_object_that_does_not_fit_its_class_is_told_and_others_go_on(cluster: Cluster) -> None:
    """Another version of the definition let a text through where our class has a number."""
    from flyball import crd_of
    from flyball.api import DynamicObject, from_dict

    client = cluster.client
    definition = crd_of(Shop)
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    schema["properties"]["size"] = {"x-kubernetes-preserve-unknown-fields": True}
    await client.create(from_dict(DynamicObject, definition))
    script = Script()
    async with running(cluster.transport, made(script)) as (run,):
        odd = {"apiVersion": "example.org/v1", "kind": "Shop", "spec": {"size": {"a": 1}}}
        await client.create(DynamicObject({**odd, "metadata": {"name": "demo", "namespace": DEFAULT}}))
        await client.create(shop("other"))
        await degraded(client, lambda one: one.status == "False", "other")
        await eventually(lambda: events_of(client, "demo"))
        assert (await events_of(client, "demo"))[0].reason == "InvalidSpec"
        await eventually(lambda: not run.queue.is_working(KEY))
        assert run.queue.delayed == 0
    raw = await client.get(run.definition.kind.source, "demo", namespace=DEFAULT)  # type: ignore[call-overload]
    assert raw["status"]["conditions"][0]["reason"] == "InvalidSpec"


async def test_a_status_that_the_server_refuses_is_told(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)

    @controller(Shop, conditions=["Ready"])
    async def wrong(obj: Shop, ctx: Context) -> None:
        obj.status.conditions.append(Condition(type="Odd", status="True", reason="not a reason!", message=""))

    async with running(cluster.transport, wrong):
        await client.create(shop())
        told = await degraded(client, lambda one: one.status == "True")
    assert told.reason == "ReconcileError"
    assert "its status was refused" in told.message


@pytest.mark.capability("S7")
async def test_a_lost_answer_to_a_status_write_converges(cluster: Cluster) -> None:
    client = cluster.client
    await install(client, Shop)
    lost: list[str] = []

    class Losing:
        host = "lossy"

        async def send(self, request: HttpRequest) -> HttpResponse:
            answer = await cluster.transport.send(request)
            if request.path.endswith("/status") and not lost:
                lost.append(request.path)
                from flyball.errors import ConnectionLost

                await answer.close()
                raise ConnectionLost("cut")
            return answer

        async def close(self) -> None:
            return

    script = Script()
    async with running(Losing(), made(script)):
        await client.create(shop())
        await eventually(lambda: script.passes == 2)
        found = await eventually(lambda: client.get(Shop, "demo", namespace=DEFAULT), lambda one: one.status.ready == 2)
        await consistently(lambda: script.passes == 2, during=0.05)
    assert found.status.is_false("Degraded")
