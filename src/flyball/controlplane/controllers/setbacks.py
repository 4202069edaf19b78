"""Back-off for what is expected to fail for a while: a Pod that a quota forbids, a name that is taken.

Such a failure is told by the object's own conditions and Events; it is no error of the controller, so it is not raised.
"""

from __future__ import annotations

from typing import Final

from flyball.controller import Context

__all__ = ["Setbacks"]

_FIRST: Final = 0.005
_LONGEST: Final = 1000.0
_REMEMBERED: Final = 10_000


class Setbacks:
    """Counts how often in a row something failed for an object; each time it waits twice as long, from 5 ms on."""

    def __init__(self) -> None:
        """Nothing has failed yet."""
        self._counts: dict[str, int] = {}

    def again(self, uid: str, ctx: Context) -> None:
        """It failed: look at the object again, later than last time."""
        count = self._counts.pop(uid, 0)
        self._counts[uid] = count + 1
        if len(self._counts) > _REMEMBERED:
            del self._counts[next(iter(self._counts))]
        ctx.requeue(after=min(_FIRST * 2.0 ** min(count, 30), _LONGEST))

    def over(self, uid: str) -> None:
        """It went well."""
        self._counts.pop(uid, None)
