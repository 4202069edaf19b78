"""The queue keeps its contract, under any order of calls."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flyball.clock import ManualClock
from flyball.controller.queue import LOW, Backoff, Queue, QueueClosed


def new() -> tuple[Queue[str], ManualClock]:
    clock = ManualClock()
    return Queue(clock=clock), clock


async def take(queue: Queue[str]) -> str:
    return (await asyncio.wait_for(queue.get(), 5)).key


def nothing_waits(queue: Queue[str]) -> bool:
    return len(queue) == 0


@pytest.mark.capability("C27")
async def test_a_key_waits_once() -> None:
    queue, _ = new()
    queue.add("a")
    queue.add("a")
    queue.add("b")
    assert [await take(queue), await take(queue)] == ["a", "b"]
    assert nothing_waits(queue)


@pytest.mark.capability("C27")
async def test_a_key_in_work_is_handed_out_again_only_after_it_is_done() -> None:
    queue, _ = new()
    queue.add("a")
    await take(queue)
    queue.add("a")
    queue.add("a")
    assert nothing_waits(queue)
    queue.done("a")
    assert await take(queue) == "a"
    queue.done("a")
    assert nothing_waits(queue)


async def test_reasons_are_collected_for_people() -> None:
    queue, _ = new()
    queue.add("a", reason="Pod x updated")
    queue.add("a", reason="Pod y deleted")
    queue.add("a", reason="Pod x updated")
    assert (await queue.get()).reasons == ("Pod x updated", "Pod y deleted")


async def test_a_delay_ends_at_its_time_or_with_the_next_event() -> None:
    queue, clock = new()
    queue.add_after("a", 10)
    queue.add_after("b", 10)
    queue.add("b")
    assert await take(queue) == "b"
    queue.done("b")
    await clock.advance(9)
    assert nothing_waits(queue)
    await clock.advance(1)
    assert await take(queue) == "a"
    queue.done("a")
    await clock.advance(100)
    assert nothing_waits(queue)


async def test_of_several_delays_the_earliest_counts() -> None:
    queue, clock = new()
    queue.add_after("a", 10)
    queue.add_after("a", 3)
    queue.add_after("a", 20)
    await clock.advance(3)
    assert await take(queue) == "a"
    queue.done("a")
    await clock.advance(20)
    assert nothing_waits(queue)


async def test_a_delay_can_be_taken_back_and_none_is_one_at_once() -> None:
    queue, clock = new()
    queue.add_after("a", 5)
    queue.cancel_delay("a")
    queue.add_after("b", 0)
    await clock.advance(10)
    assert await take(queue) == "b"
    assert nothing_waits(queue)


@pytest.mark.capability("C30")
async def test_failures_double_the_wait_and_success_resets_it() -> None:
    queue, clock = new()
    waits = [queue.fail("a") for _ in range(20)]
    assert waits[:4] == [0.005, 0.01, 0.02, 0.04]
    assert waits[-1] == 1000
    await clock.advance(0.005)
    assert await take(queue) == "a", "the earliest of the waits counts"
    queue.forget("a")
    assert queue.fail("a") == 0.005


async def test_an_event_runs_a_failing_key_at_once_and_keeps_the_count() -> None:
    queue, _ = new()
    queue.add("a")
    await take(queue)
    queue.fail("a")
    queue.done("a")
    queue.add("a")
    assert await take(queue) == "a"
    assert queue.failures("a") == 1


@pytest.mark.capability("C28")
async def test_what_people_change_overtakes_the_first_list() -> None:
    queue, _ = new()
    for name in ("a", "b", "c"):
        queue.add(name, priority=LOW)
    queue.add("live")
    queue.add("c")
    assert [await take(queue) for _ in range(4)] == ["live", "c", "a", "b"]


@pytest.mark.capability("C29")
async def test_the_first_list_is_never_overtaken_for_ever() -> None:
    queue, clock = new()
    queue.add("old", priority=LOW)
    served: list[str] = []
    for number in range(10):
        queue.add(f"live-{number}")
        served.append(await take(queue))
        await clock.advance(1)
    assert "old" in served


async def test_shutting_down_hands_out_what_waits_and_then_ends() -> None:
    queue, _ = new()
    idle = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    queue.add("b")
    queue.add_after("late", 1)
    assert (await idle).key == "a"
    queue.shut_down()
    queue.add("c")
    assert await take(queue) == "b"
    with pytest.raises(QueueClosed):
        await queue.get()


async def test_a_worker_that_gives_up_waiting_loses_no_key() -> None:
    queue, _ = new()
    first = asyncio.create_task(queue.get())
    second = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert (await asyncio.wait_for(second, 5)).key == "a"


async def test_times_are_told() -> None:
    queue, clock = new()
    queue.add("a")
    await clock.advance(2)
    assert (await queue.get()).waited == 2
    await clock.advance(3)
    assert (queue.longest_running(), queue.unfinished()) == (3, 3)


def test_backoff_has_the_numbers_of_the_contract() -> None:
    backoff = Backoff()
    assert (backoff.delay(1), backoff.delay(2), backoff.delay(18), backoff.delay(10_000)) == (
        0.005,
        0.01,
        655.36,
        1000.0,
    )


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "low", "after", "take", "take", "done", "fail", "turn", "cancel"]),
        st.sampled_from("abcd"),
    ),
    max_size=80,
)


@given(STEPS)
@settings(deadline=None)
def test_any_schedule_keeps_the_contract(steps: list[tuple[str, str]]) -> None:
    asyncio.run(_play(steps))


async def _play(steps: list[tuple[str, str]]) -> None:
    queue, clock = new()
    working: list[str] = []
    wanted: set[str] = set()
    for step, key in steps:
        if step in ("add", "low"):
            queue.add(key, priority=LOW if step == "low" else 0)
            wanted.add(key)
        elif step == "after":
            queue.add_after(key, 2)
        elif step == "cancel":
            queue.cancel_delay(key)
        elif step == "turn":
            await clock.advance(2)
        elif step == "take" and len(queue):
            taken = (await queue.get()).key
            assert taken not in working, "never two passes of one key"
            working.append(taken)
            wanted.discard(taken)
        elif step in ("done", "fail") and working:
            finished = working.pop(0)
            if step == "fail":
                queue.fail(finished)
            queue.done(finished)
    while working:
        queue.done(working.pop())
    left: Counter[str] = Counter()
    while len(queue):
        key = (await queue.get()).key
        left[key] += 1
        queue.done(key)
    assert wanted <= set(left), "what was added comes"
    assert set(left.values()) <= {1}, "and comes once"
