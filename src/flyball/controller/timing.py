"""Deadlines by any clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from flyball.clock import Clock, RealClock

__all__ = ["within"]


@asynccontextmanager
async def within(clock: Clock, seconds: float, words: str) -> AsyncGenerator[None, None]:
    """Cancel what runs inside after so many seconds of this clock and raise TimeoutError with these words."""
    real = isinstance(clock, RealClock)
    scope = asyncio.timeout(seconds if real else None)
    alarm = None if real else asyncio.create_task(_ring(scope, clock, seconds))
    try:
        async with scope:
            yield
    except TimeoutError:
        if not scope.expired():
            raise
        raise TimeoutError(f"{words} did not end within {seconds:g} s; it was cancelled") from None
    finally:
        if alarm is not None:
            alarm.cancel()


async def _ring(scope: asyncio.Timeout, clock: Clock, seconds: float) -> None:
    """Let a deadline strike by another clock than the event loop's."""
    await clock.sleep(seconds)
    scope.reschedule(asyncio.get_running_loop().time())
