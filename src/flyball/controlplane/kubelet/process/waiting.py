"""Waiting by the cluster's clock, and the kubelet's back-offs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Final

from flyball.clock import Clock

__all__ = ["Pauses", "spoken", "within"]

_FIRST: Final = 10.0
_LONGEST: Final = 300.0
_FORGIVEN: Final = 600.0
"""A container that has run so long begins anew with its pauses."""


async def within(clock: Clock, seconds: float, what: Awaitable[Any]) -> bool:
    """Wait for something for so long; tell whether it happened. a coroutine is cancelled then."""
    wanted: asyncio.Future[Any] = asyncio.ensure_future(what)
    ours = wanted is not what
    patience = asyncio.ensure_future(clock.sleep(max(seconds, 0.0)))
    try:
        await asyncio.wait({wanted, patience}, return_when=asyncio.FIRST_COMPLETED)
        return wanted.done()
    finally:
        patience.cancel()
        if ours and not wanted.done():
            wanted.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await wanted


class Pauses:
    """How long to wait before something is tried again: not at all, then 10 s, doubling to 5 minutes."""

    def __init__(self, *, first_at_once: bool = True) -> None:
        """Nothing was tried yet."""
        self._spare = first_at_once
        self._next = _FIRST

    def after(self, ran: float = 0.0) -> float:
        """Return the pause after an attempt that lasted so many seconds."""
        if ran >= _FORGIVEN:
            self._spare, self._next = True, _FIRST
        if self._spare:
            self._spare = False
            return 0.0
        pause, self._next = self._next, min(self._next * 2, _LONGEST)
        return pause


def spoken(seconds: float) -> str:
    """Return a duration as Go prints it.

    >>> spoken(10), spoken(80), spoken(300)
    ('10s', '1m20s', '5m0s')
    """
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
