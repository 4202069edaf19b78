"""Waiting: what counts as not yet, and what the message shows."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count

import pytest

from flyball.errors import FlyballError
from flyball.testing import NeverHappened, consistently, eventually


class JumpingClock:
    """Sleeping takes no time, but the clock shows it."""

    def __init__(self) -> None:
        self.time = 0.0

    def monotonic(self) -> float:
        return self.time

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.time, UTC)

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.mark.capability("C75")
async def test_asks_until_the_answer_is_right(clock: JumpingClock) -> None:
    numbers = count()
    assert await eventually(lambda: next(numbers), lambda number: number == 7, clock=clock) == 7


async def test_an_asynchronous_probe_is_awaited(clock: JumpingClock) -> None:
    numbers = count()

    async def probe() -> int:
        return next(numbers)

    assert await eventually(probe, lambda number: number > 3, clock=clock) == 4


async def test_without_a_predicate_the_answer_must_be_true(clock: JumpingClock) -> None:
    answers = iter([None, False, 0, "here"])
    assert await eventually(lambda: next(answers), clock=clock) == "here"


async def test_errors_of_the_cluster_and_assertions_mean_not_yet(clock: JumpingClock) -> None:
    numbers = count()

    def probe() -> int:
        number = next(numbers)
        if number == 0:
            raise FlyballError("not there")
        assert number != 1
        return number

    def predicate(number: int) -> bool:
        assert number > 3, "too small"
        return True

    assert await eventually(probe, predicate, clock=clock) == 4


async def test_a_mistake_is_raised_at_once(clock: JumpingClock) -> None:
    with pytest.raises(ZeroDivisionError):
        await eventually(lambda: 1 / 0, clock=clock)


@pytest.mark.capability("C75")
async def test_the_message_shows_what_was_seen(clock: JumpingClock) -> None:
    states = iter([{"ready": 0}, {"ready": 0}, {"ready": 1}])
    last = {"ready": 2}
    with pytest.raises(NeverHappened) as caught:
        await eventually(lambda: next(states, last), lambda state: state["ready"] == 3, timeout=2, clock=clock)
    message = str(caught.value)
    assert message.startswith("not so after 2.0 s and ")
    assert "test_eventually.py" in message
    assert 'last seen: {"ready": 2}\nbefore that:\n  {"ready": 0}\n  {"ready": 1}' in message


async def test_a_long_answer_is_cut_in_the_middle(clock: JumpingClock) -> None:
    with pytest.raises(NeverHappened) as caught:
        await eventually(lambda: "a" + "b" * 9000 + "c", lambda _: False, timeout=1, clock=clock)
    assert len(str(caught.value)) < 2500
    assert "characters" in str(caught.value)


async def test_consistently_asks_for_the_whole_time(clock: JumpingClock) -> None:
    assert await consistently(lambda: 3, lambda number: number == 3, during=5, clock=clock) == 3
    assert clock.time >= 5


async def test_consistently_fails_at_the_first_change(clock: JumpingClock) -> None:
    numbers = count()
    with pytest.raises(NeverHappened, match=r"(?s)no longer so.*last seen: 4"):
        await consistently(lambda: next(numbers), lambda number: number < 4, clock=clock)
