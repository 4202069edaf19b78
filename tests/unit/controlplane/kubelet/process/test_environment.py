"""References to variables, and the kubelet's pauses."""

from __future__ import annotations

import pytest

from flyball.clock import ManualClock
from flyball.controlplane.kubelet.process.environment import expand
from flyball.controlplane.kubelet.process.waiting import Pauses, spoken, within


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("$(A)$(B)", "12"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("$(C)", "$(C)"),
        ("$A ${A}", "$A ${A}"),
        ("$(A", "$(A"),
        ("$", "$"),
        ("100$$", "100$"),
        ("$()", "$()"),
        ("$(A B)", "$(A B)"),
    ],
)
def test_references_are_read_as_the_kubelet_reads_them(text: str, expected: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == expected


def test_pauses_grow_and_are_forgiven() -> None:
    pauses = Pauses()
    assert [pauses.after() for _ in range(8)] == [0, 10, 20, 40, 80, 160, 300, 300]
    assert [pauses.after(ran=599), pauses.after(ran=600), pauses.after()] == [300, 0, 10]
    assert [Pauses(first_at_once=False).after()] == [10]


def test_durations_are_said_as_go_says_them() -> None:
    assert [spoken(one) for one in (10, 59, 60, 80, 300)] == ["10s", "59s", "1m0s", "1m20s", "5m0s"]


async def test_waiting_is_by_the_clock() -> None:
    import asyncio

    clock, never = ManualClock(), asyncio.get_running_loop().create_future()
    waiting = asyncio.ensure_future(within(clock, 30, never))
    await clock.advance(29)
    assert not waiting.done()
    await clock.advance(1)
    assert await waiting is False
    assert not never.cancelled()
    never.set_result(None)
    assert await within(clock, 30, never) is True
    assert clock.sleepers == 0
