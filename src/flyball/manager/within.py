"""Waiting with a limit, by the clock that everything else goes by."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from flyball.clock import Clock

__all__ = ["within"]

T = TypeVar("T")


async def within(clock: Clock, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Do `work`; when it is not done after so many seconds it is cancelled, and `TimeoutError` raised."""
    task: asyncio.Task[T] = asyncio.ensure_future(work)
    timer: asyncio.Task[None] = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise TimeoutError(f"not done after {seconds:g} s")
    finally:
        both: list[asyncio.Task[Any]] = [task, timer]
        late = [one for one in both if not one.done()]
        for one in late:
            one.cancel()
        await asyncio.gather(*late, return_exceptions=True)
