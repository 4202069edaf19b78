"""Clocks: the machine's, and the one that tests turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta

import pytest

from flyball.clock import Clock, ManualClock, RealClock, TurnableClock, doze

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


async def test_the_real_clock_is_in_utc_and_never_goes_back() -> None:
    clock: Clock = RealClock()
    before = clock.monotonic()

    await clock.sleep(-1)
    await clock.sleep(0.001)

    assert clock.now().tzinfo is UTC
    assert clock.monotonic() >= before + 0.001


async def test_it_stands_still_until_turned() -> None:
    clock = ManualClock(NOON)

    await clock.advance(90)

    assert clock.now() == NOON + timedelta(seconds=90)
    assert clock.monotonic() == 90


async def test_sleepers_wake_in_order_each_at_its_moment() -> None:
    clock = ManualClock(NOON)
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic()))

    tasks = [asyncio.create_task(sleeper(name, seconds)) for name, seconds in (("c", 3), ("a", 1), ("b", 1), ("d", 9))]
    await clock.advance(5)

    assert woken == [("a", 1), ("b", 1), ("c", 3)]
    assert clock.sleepers == 1
    await clock.advance(4)
    await asyncio.gather(*tasks)
    assert woken[-1] == ("d", 9)


async def test_a_loop_that_sleeps_again_and_again_misses_no_beat() -> None:
    clock = ManualClock(NOON)
    beats: list[float] = []

    async def heart() -> None:
        while True:
            await clock.sleep(1)
            beats.append(clock.monotonic())

    task = asyncio.create_task(heart())
    await clock.advance(5)
    task.cancel()

    assert beats == [1, 2, 3, 4, 5]


async def test_ten_hours_pass_quickly() -> None:
    clock = ManualClock(NOON)
    passes = 0

    async def resync() -> None:
        nonlocal passes
        while True:
            await clock.sleep(600)
            passes += 1

    task = asyncio.create_task(resync())
    await clock.advance(36_000)
    task.cancel()

    assert passes == 60


async def test_who_gave_up_is_not_woken() -> None:
    clock = ManualClock()
    task = asyncio.create_task(clock.sleep(5))
    await clock.settle()

    task.cancel()
    await clock.advance(10)

    assert task.cancelled()
    assert clock.sleepers == 0


async def test_a_jump_wakes_everybody_late() -> None:
    clock = ManualClock()
    seen: list[float] = []

    async def sleeper(seconds: float) -> None:
        await clock.sleep(seconds)
        seen.append(clock.monotonic())

    tasks = [asyncio.create_task(sleeper(seconds)) for seconds in (1, 2)]
    await clock.settle()
    clock.jump(100)
    await asyncio.gather(*tasks)

    assert seen == [100, 100]


async def test_the_next_moment_is_found() -> None:
    clock = ManualClock()
    task = asyncio.create_task(clock.sleep(42))

    assert await clock.advance_to_next() == 42
    await task
    assert await clock.advance_to_next() == 0


async def test_no_time_at_all_only_lets_others_run() -> None:
    clock = ManualClock()

    await clock.sleep(0)
    await clock.sleep(-3)

    assert clock.sleepers == 0


async def test_time_does_not_go_back() -> None:
    clock = ManualClock()

    with pytest.raises(ValueError, match="forward"):
        await clock.advance(-1)
    with pytest.raises(ValueError, match="forward"):
        clock.jump(-1)


async def test_nobody_halts_for_who_dozes_and_they_wake_in_the_end() -> None:
    clock = ManualClock(NOON)
    woken: list[tuple[str, float]] = []

    async def wait(name: str, waiting: Awaitable[None]) -> None:
        await waiting
        woken.append((name, clock.monotonic()))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(wait("dozer", doze(clock, 10)))
        tasks.create_task(wait("sleeper", clock.sleep(20)))
        tasks.create_task(wait("late dozer", doze(clock, 40)))
        await clock.advance(30)
        assert woken == [("sleeper", 20), ("dozer", 30)]
        clock.jump(10)
    assert woken[-1] == ("late dozer", 40)


async def test_who_dozes_by_the_machines_clock_just_sleeps() -> None:
    clock = RealClock()
    before = clock.monotonic()
    await doze(clock, 0.001)
    assert clock.monotonic() >= before + 0.001


async def test_the_machines_clock_can_be_turned_forward() -> None:
    clock, real = TurnableClock(), RealClock()

    await clock.advance(3600)

    assert clock.turned == 3600
    ahead = clock.now() - real.now()
    assert timedelta(seconds=3599) < ahead <= timedelta(seconds=3600)


async def test_who_sleeps_by_a_turned_clock_wakes_in_order_and_runs_before_it_goes_on() -> None:
    clock = TurnableClock()
    woken: list[tuple[str, int]] = []
    begun = clock.monotonic()

    async def tick(name: str, seconds: float) -> None:
        while True:
            await clock.sleep(seconds)
            woken.append((name, round(clock.monotonic() - begun)))

    tasks = [asyncio.create_task(tick("often", 1000)), asyncio.create_task(tick("seldom", 2500))]
    dozer = asyncio.create_task(doze(clock, 100))
    await clock.advance(4500)
    assert dozer.done()
    assert woken == [("often", 1000), ("often", 2000), ("seldom", 2500), ("often", 3000), ("often", 4000)]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_turnable_clock_goes_by_itself_too() -> None:
    clock: Clock = TurnableClock()
    before = clock.monotonic()
    await clock.sleep(0.001)
    await clock.sleep(0)
    assert clock.monotonic() >= before + 0.001


async def test_two_who_turn_it_turn_it_twice() -> None:
    clock = TurnableClock()
    await asyncio.gather(clock.advance(10), clock.advance(20))
    assert clock.turned == 30
    with pytest.raises(ValueError, match="only forward"):
        await clock.advance(-1)
