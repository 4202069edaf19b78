"""Clocks: the machine's, and the one that tests turn."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from flyball.clock import Clock, ManualClock, RealClock

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
