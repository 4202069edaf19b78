"""The object: async and sync runs, deadlines, turns for others, cancellation, results, types by inheritance."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

import pytest
from tests.support.machines import Log, make, path_of

from flyball.clock import ManualClock
from flyball.fsm.run import (
    FINAL,
    AppContext,
    AppState,
    BusyError,
    DeadlineError,
    Machine,
    StuckError,
    Table,
    TableError,
    action,
    call,
    state,
    to,
)

M = Machine[AppContext, Log]


async def test_async_and_sync_actions_mix() -> None:
    async def wait(m: M) -> None:
        await asyncio.sleep(0)
        m.state.calls.append("waited")

    machine = make(
        state("A", do=[call("X"), call("Wait"), call("Y")], transitions=[to(FINAL)]), actions={"Wait": wait}
    )()
    assert await machine.run() is machine.state
    assert machine.state.calls == ["X", "waited", "Y"]


async def test_an_async_action_fails_like_a_plain_one() -> None:
    async def fail(m: M) -> None:
        await asyncio.sleep(0)
        raise ValueError("later")

    machine = make(
        state("A", do=[call("Fail"), call("Y")], transitions=[to("H", error=True), to(FINAL)]),
        state("H", transitions=[to(FINAL)]),
        actions={"Fail": fail},
    )()
    with pytest.raises(ValueError, match="later"):
        await machine.run()
    assert path_of(machine) == ["A", "H", FINAL]


async def test_a_plain_function_may_return_something_to_await() -> None:
    async def inner(m: M) -> None:
        m.state.calls.append("inner")

    machine = make(state("A", do=[call("Wrap")], transitions=[to(FINAL)]), actions={"Wrap": lambda m: inner(m)})()
    await machine.run()
    assert machine.state.calls == ["inner"]


async def test_thread_actions_run_in_a_worker_thread() -> None:
    seen: list[int] = []

    @action("Block", thread=True)
    def block(m: M, number: int) -> None:
        seen.append(threading.get_ident())
        seen.append(number)

    tested = make(state("A", do=[call("Block", "7")], transitions=[to(FINAL)]), actions={"Block": block})
    await tested().run()
    assert seen[0] != threading.get_ident()
    assert seen[1] == 7
    seen.clear()
    tested().settle_sync()
    assert seen[0] == threading.get_ident()


async def test_a_failing_thread_action_is_recorded() -> None:
    @action("Block", thread=True)
    def block(m: M) -> None:
        raise ValueError("in the thread")

    machine = make(state("A", do=[call("Block")], transitions=[to(FINAL)]), actions={"Block": block})()
    with pytest.raises(ValueError, match="in the thread"):
        await machine.run()


def test_run_sync_refuses_async_actions() -> None:
    async def wait(m: M) -> None:
        m.state.calls.append("x")

    machine = make(state("A", do=[call("Wait")], transitions=[to(FINAL)]), actions={"Wait": wait})()
    with pytest.raises(TableError, match=r"run_sync: the actions Wait are async"):
        machine.run_sync()


def test_run_sync_refuses_what_suspends() -> None:
    machine = make(
        state("A", do=[call("Wrap")], transitions=[to(FINAL)]), actions={"Wrap": lambda m: asyncio.sleep(0)}
    )()
    with pytest.raises(TypeError, match="suspended"):
        machine.run_sync()
    machine = make(state("A", transitions=[to(FINAL)]))()
    machine.run_sync()


async def test_others_get_a_turn_at_least_every_64_steps() -> None:
    turns: list[int] = []
    machine = make(
        state("A", transitions=[to(FINAL, call("Enough")), to("A")]), guards={"Enough": lambda m: m.trace.steps >= 640}
    )()

    async def other() -> None:
        while machine.trace.steps < 640:
            turns.append(machine.trace.steps)
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    await machine.run()
    await beside
    gaps = [after - before for before, after in pairwise(turns)]
    assert len(turns) >= 9
    assert max(gaps) <= 64


async def test_the_deadline_is_looked_at_between_steps() -> None:
    clock = ManualClock()

    def tick(m: M) -> None:
        clock.jump(1.0)

    machine = make(state("A", do=[call("Tick")], transitions=[to("A")]), actions={"Tick": tick})(
        AppContext(clock=clock)
    )
    with pytest.raises(DeadlineError, match=r"within 5 s; it was in state A"):
        await machine.run(timeout=5)
    assert machine.trace.steps == 5
    assert isinstance(machine.state.error, DeadlineError)
    with pytest.raises(TimeoutError):
        machine.run_sync(timeout=2)
    assert machine.trace.steps == 2


async def test_the_deadline_cancels_an_action_under_way() -> None:
    cancelled: list[bool] = []

    async def hang(m: M) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    machine = make(state("A", do=[call("Hang")], transitions=[to(FINAL)]), actions={"Hang": hang})()
    with pytest.raises(DeadlineError, match="state A"):
        await machine.run(timeout=0.01)
    assert cancelled == [True]
    assert machine.current == "A"


async def test_the_deadline_strikes_by_the_contexts_clock() -> None:
    clock = ManualClock()

    async def hang(m: M) -> None:
        await asyncio.Event().wait()

    machine = make(state("A", do=[call("Hang")], transitions=[to(FINAL)]), actions={"Hang": hang})(
        AppContext(clock=clock), timed=True
    )
    running = asyncio.create_task(machine.settle(timeout=3600))
    await clock.advance(3599)
    assert not running.done()
    await clock.advance(1)
    assert isinstance((await running).error, DeadlineError)
    assert machine.trace.as_dict()["durations"] == [["[*]", 0.0], ["A", 3600.0]]
    assert clock.sleepers == 0


async def test_an_actions_own_timeout_is_an_ordinary_error() -> None:
    async def impatient(m: M) -> None:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    machine = make(
        state("A", do=[call("Impatient")], transitions=[to("H", error=["TimeoutError"]), to(FINAL)]),
        state("H", transitions=[to(FINAL)]),
        actions={"Impatient": impatient},
    )()
    with pytest.raises(TimeoutError) as caught:
        await machine.run(timeout=60)
    assert not isinstance(caught.value, DeadlineError)
    assert path_of(machine) == ["A", "H", FINAL]


async def test_cancellation_passes_and_leaves_the_machine_where_it_was() -> None:
    at_work = asyncio.Event()

    async def hang(m: M) -> None:
        at_work.set()
        await asyncio.Event().wait()

    machine = make(
        state("A", transitions=[to("B")]),
        state("B", do=[call("Hang")], transitions=[to("H", error=True), to(FINAL)]),
        state("H", transitions=[to(FINAL)]),
        actions={"Hang": hang},
    )()
    task = asyncio.create_task(machine.run())
    await at_work.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert machine.current == "B"
    assert machine.state.error is None


async def test_one_run_at_a_time() -> None:
    at_work, go = asyncio.Event(), asyncio.Event()

    async def wait(m: M) -> None:
        at_work.set()
        await go.wait()

    machine = make(state("A", do=[call("Wait")], transitions=[to(FINAL)]), actions={"Wait": wait})()
    first = asyncio.create_task(machine.run())
    await at_work.wait()
    with pytest.raises(BusyError, match="in A"):
        await machine.run()
    go.set()
    assert await first is machine.state
    assert await machine.run() is machine.state


async def test_settle_and_outcome_tell_everything_without_raising() -> None:
    machine = make(state("A", do=[call("X")], transitions=[to(FINAL)]))(state=Log(fail={"X": ValueError("x")}))
    outcome = await machine.settle()
    assert (outcome.result, outcome.error) == (machine.state, machine.state.error)
    assert outcome.trace.as_dict() == {"states": ["A", FINAL], "actions": ["X"], "checks": [], "steps": 1}
    assert machine.outcome() == outcome


async def test_an_early_end_chains_the_stored_error() -> None:
    problem = ValueError("first")
    machine = make(state("A", do=[call("X")], transitions=[to(FINAL, call("P"))]))(state=Log(fail={"X": problem}))
    error = (await machine.settle()).error
    assert isinstance(error, StuckError)
    assert error.__context__ is problem


def test_durations_are_recorded_when_asked_for() -> None:
    clock = ManualClock()
    steps = {"A": 1.0, "B": 2.0}

    def tick(m: M) -> None:
        clock.jump(steps[m.current])

    machine = make(
        state("A", do=[call("Tick")], transitions=[to("B")]),
        state("B", do=[call("Tick")], transitions=[to(FINAL)]),
        actions={"Tick": tick},
    )(AppContext(clock=clock), timed=True)
    machine.run_sync()
    assert machine.trace.as_dict()["durations"] == [["[*]", 0.0], ["A", 1.0], ["B", 2.0]]


@dataclass(slots=True)
class Steps(AppContext):
    steps: int = 0


@dataclass(slots=True)
class Shop(AppContext):
    opened: bool = True


@dataclass(slots=True)
class Order(AppState):
    items: list[str] = field(default_factory=list[str])


def buy(m: Machine[Shop, Order]) -> None:
    m.state.items.append("apple" if m.context.opened else "nothing")


class Buying(Machine[Shop, Order]):
    table = Table(
        "Buying",
        initial=[to("A")],
        states=[state("A", do=[call("Buy")], transitions=[to(FINAL)])],
        actions={"Buy": buy},
        guards={},
    )


class Twice(Buying):
    max_steps = 5


@pytest.mark.parametrize("kind", [Buying, Twice])
async def test_context_and_state_are_made_by_the_class(kind: type[Buying]) -> None:
    order: Order = await kind().run()
    assert order.items == ["apple"]
    assert kind(Shop(opened=False)).run_sync().items == ["nothing"]
    assert kind(state=Order(items=["pear"])).run_sync().items == ["pear", "apple"]


AnyState = TypeVar("AnyState", bound=AppState, covariant=True)


class ShopMachine(Machine[Shop, AnyState]):
    """A base that leaves the extended state open."""


class Selling(ShopMachine[Order]):
    table = Buying.table


def test_a_generic_base_may_leave_a_class_open() -> None:
    machine = Selling()
    assert type(machine.context) is Shop
    assert machine.run_sync().items == ["apple"]


def test_two_machines_share_nothing_but_the_table() -> None:
    one, other = Buying(), Buying()
    one.run_sync()
    assert other.state.items == []
    assert one.table is other.table


# -- logging ----------


def fields(record: logging.LogRecord, *names: str) -> tuple[Any, ...]:
    return (
        record.levelname,
        record.getMessage(),
        *(str(getattr(record, name)) for name in names if hasattr(record, name)),
    )


@pytest.fixture
def logged_at(caplog: pytest.LogCaptureFixture) -> Callable[..., list[tuple[Any, ...]]]:
    def run(machine: M, level: int, *names: str) -> list[tuple[Any, ...]]:
        with caplog.at_level(level, "flyball.fsm"):
            machine.settle_sync()
        return [fields(record, *names) for record in caplog.records]

    return run


def test_debug_messages(logged_at: Callable[..., list[tuple[Any, ...]]]) -> None:
    machine = make(
        state(
            "Box",
            initial=[to("In")],
            states=[state("In", do=[call("X", "1")], transitions=[to(FINAL)])],
            transitions=[to("B", call("P"), do=[call("T")]), to(FINAL)],
        ),
        state("B", transitions=[to(FINAL)]),
    )(state=Log(true={"P"}, fail={"T": ValueError("t")}))
    names = ("action", "state", "initial", "guard", "current", "next", "error")
    assert logged_at(machine, logging.DEBUG, *names) == [
        ("DEBUG", "unguarded transition", "[*]", "Box"),
        ("DEBUG", "entering composite state", "Box", "Box/[*]"),
        ("DEBUG", "unguarded transition", "Box/[*]", "Box/In"),
        ("DEBUG", "executing", "X(1)", "Box/In"),
        ("DEBUG", "unguarded transition", "Box/In", "Box/[*]"),
        ("DEBUG", "exiting composite state", "Box"),
        ("DEBUG", "guarded transition", "P", "Box", "B"),
        ("DEBUG", "guarded action failed", "T", "Box", "P", "t"),
        ("DEBUG", "unguarded transition", "Box", "[*]"),
    ]


def test_error_messages(logged_at: Callable[..., list[tuple[Any, ...]]]) -> None:
    machine = make(
        state(
            "Box",
            initial=[to("In")],
            states=[state("In", do=[call("X")], transitions=[to(FINAL)])],
            transitions=[to(FINAL)],
        )
    )(state=Log(fail={"X": ValueError("x")}))
    assert logged_at(machine, logging.INFO, "state", "error") == [
        ("ERROR", "action failed", "Box/In", "x"),
        ("ERROR", "composite state machine failed", "Box", "x"),
    ]


# -- cost ----------


def seconds(work: Callable[[], object]) -> float:
    """Processor time of the quickest of some runs."""
    times: list[float] = []
    for _ in range(5):
        started = time.thread_time()
        work()
        times.append(time.thread_time() - started)
    return min(times)


def ring(length: int) -> type[M]:
    states = [
        state(f"S{n}", do=[call("Nothing", "5")], transitions=[to(FINAL, call("IsError")), to(f"S{(n + 1) % length}")])
        for n in range(length)
    ]
    return make(*states, actions={"Nothing": lambda m, seconds: None}, max_steps=2000, debug=False)


async def test_a_step_takes_less_than_10_microseconds() -> None:
    tested = ring(4)
    assert seconds(lambda: tested().settle_sync()) / 2000 < 10e-6


@pytest.mark.parametrize("length", [1, 500])
def test_an_object_takes_less_than_20_microseconds_for_any_number_of_states(length: int) -> None:
    tested = ring(length)
    assert seconds(lambda: [tested() for _ in range(500)]) / 500 < 20e-6


def test_a_long_run_takes_no_more_memory_than_a_short_one() -> None:
    machine = make(
        state("A", do=[call("Nothing")], transitions=[to(FINAL, call("Enough")), to("A")]),
        actions={"Nothing": lambda m: None},
        guards={"Enough": lambda m: m.trace.steps >= m.context.steps},
        max_steps=None,
        debug=False,
    )(Steps())

    def peak(steps: int) -> int:
        machine.context.steps = steps  # type: ignore[attr-defined]
        tracemalloc.reset_peak()
        machine.run_sync()
        return tracemalloc.get_traced_memory()[1]

    tracemalloc.start()
    try:
        peak(5_000)
        short, long = peak(5_000), peak(30_000)
    finally:
        tracemalloc.stop()
    assert long < short + 4096
