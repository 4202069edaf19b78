"""A blocked event loop and a growing process, and who is to blame."""

from __future__ import annotations

import sys
import time

import pytest

from flyball.clock import ManualClock
from flyball.manager.metrics import Registry
from flyball.manager.watchdog import GrowthWatch, LoopWatch, culprit, resident_memory
from flyball.testing import eventually

HOARD: list[int] = []


class Keeper:
    things: dict[int, int] = {}  # noqa: RUF012 - the mistake that is looked for


def blocks_the_loop(watch: LoopWatch) -> None:
    ended = time.monotonic() + 10
    while not watch.blocked and time.monotonic() < ended:
        time.sleep(0.01)


async def test_who_blocks_the_loop_is_named_while_it_does(caplog: pytest.LogCaptureFixture) -> None:
    numbers = Registry()
    watch = LoopWatch(0.05, metrics=numbers)
    watch.start()
    try:
        await eventually(lambda: numbers.families() and True)
        blocks_the_loop(watch)
        assert "in blocks_the_loop" in watch.last
        assert __file__ in watch.last
        await eventually(lambda: "the event loop turns again after" in caplog.text)
    finally:
        await watch.stop()
    assert numbers.value("flyball_loop_blocked_total") >= 1


async def test_a_loop_that_turns_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    numbers = Registry()
    watch = LoopWatch(5.0, metrics=numbers)
    watch.start()
    await eventually(lambda: [one.name for one in numbers.families()] == ["flyball_loop_lag_seconds"])
    await watch.stop()
    assert (watch.blocked, caplog.text) == (0, "")


def test_the_culprit_is_the_programs_own_line_and_says_what_it_called() -> None:
    found: list[str] = []
    sorted([1], key=lambda _: found.append(culprit(sys._getframe())))  # type: ignore[arg-type, func-returns-value]
    assert found[0].startswith(f"{__file__}:")
    assert culprit(None) == "unknown code"


async def test_what_grew_is_named(caplog: pytest.LogCaptureFixture) -> None:
    size = [100_000_000]
    clock = ManualClock()
    numbers = Registry()
    watch = GrowthWatch(2.0, clock=clock, metrics=numbers, memory=lambda: size[0])
    watch.look()
    HOARD.extend(range(20_000))
    Keeper.things.update(dict.fromkeys(range(15_000), 0))
    try:
        size[0] = 190_000_000
        watch.look()
        assert watch.last == ""
        size[0] = 250_000_000
        watch.look()
    finally:
        HOARD.clear()
        Keeper.things.clear()
    assert watch.last.startswith("the process has grown from 100 to 250 MB: ")
    assert f"{__name__}.HOARD has 20,000 items; {__name__}.Keeper.things has 15,000 items" in watch.last
    assert watch.last in caplog.text
    assert numbers.value("flyball_memory_growth_total") == 1
    assert numbers.value("flyball_resident_memory_bytes") == 250_000_000


def test_without_a_name_the_way_to_one_is_told() -> None:
    size = [200_000_000]
    watch = GrowthWatch(1.5, memory=lambda: size[0])
    watch.look()
    size[0] = 400_000_000
    watch.look()
    assert "PYTHONTRACEMALLOC=1 tells the line" in watch.last


def test_the_line_is_told_where_memory_is_traced() -> None:
    import tracemalloc

    size = [200_000_000]
    watch = GrowthWatch(1.5, memory=lambda: size[0])
    tracemalloc.start()
    try:
        watch.look()
        keep = [bytes(1000) for _ in range(10_000)]
        size[0] = 400_000_000
        watch.look()
        assert len(keep) == 10_000
    finally:
        tracemalloc.stop()
    assert f"MB were allocated at {__file__}:" in watch.last


def test_memory_is_known_on_linux() -> None:
    assert resident_memory() > 10_000_000
