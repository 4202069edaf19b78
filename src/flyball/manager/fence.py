"""The fence between a process and the API server: who does not lead any more sends nothing more.

A process that was paused, or whose machine was, does not know that its lease has run out; whichever task wakes first
would go on where it stopped. So the time is compared where requests leave, each time one leaves (repeats too), and not
where somebody remembers to look.
"""

from __future__ import annotations

import math

from flyball.client.transport import HttpRequest, HttpResponse, Send
from flyball.clock import Clock
from flyball.errors import FlyballError

__all__ = ["Fence", "NotLeading"]


class NotLeading(FlyballError):
    """The request was not sent, because this process does not hold the lease (any more)."""


class Fence:
    """Knows until when requests may leave.

    Guarantees: `controllers` lets a request pass only while the lease holds; `caches` lets reads pass as well before
    the lease was won for the first time. Both refuse everything once it has run out. Times are of the monotonic clock.
    Without an election the fence is open.
    """

    def __init__(self, clock: Clock, *, election: bool) -> None:
        """With an election nothing passes for controllers before `extend` was called."""
        self._clock = clock
        self._until = -math.inf if election else math.inf
        self._won = not election

    @property
    def until(self) -> float:
        """The moment from which on nothing passes."""
        return self._until

    @property
    def is_open(self) -> bool:
        """Whether requests of controllers pass now."""
        return self._clock.monotonic() < self._until

    @property
    def was_won(self) -> bool:
        """Whether it has ever been open."""
        return self._won

    def extend(self, until: float) -> None:
        """The lease holds until then."""
        self._until = until
        self._won = True

    def shut(self) -> None:
        """Let nothing pass from now on."""
        self._until = -math.inf

    async def controllers(self, request: HttpRequest, send: Send) -> HttpResponse:
        """The interceptor for what only a leader may do; the innermost one, so that repeats are looked at too."""
        if not self.is_open:
            raise NotLeading(f"{_words(request)}: not sent, because this process does not hold the lease")
        return await send(request)

    async def caches(self, request: HttpRequest, send: Send) -> HttpResponse:
        """The interceptor for what every replica does until it has led and lost."""
        if self._won and not self.is_open:
            raise NotLeading(
                f"{_words(request)}: not sent, because this process has lost the lease; it is about to end"
            )
        return await send(request)


def _words(request: HttpRequest) -> str:
    return request.action or f"{request.method} {request.path}"
