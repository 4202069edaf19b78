"""What may stand between the verbs and the transport, and how it is strung together."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from flyball.client.transport import HttpRequest, HttpResponse, Interceptor, Send
from flyball.clock import Clock, RealClock

__all__ = ["RateLimit", "chain"]


def chain(send: Send, interceptors: Sequence[Interceptor]) -> Send:
    """One `Send` out of many: the first interceptor sees a request first and its answer last."""
    for interceptor in reversed(interceptors):
        send = _link(interceptor, send)
    return send


def _link(interceptor: Interceptor, send: Send) -> Send:
    def through(request: HttpRequest) -> Awaitable[HttpResponse]:
        return interceptor(request, send)

    return through


class RateLimit:
    """An interceptor that lets no more than so many requests a second through, in the order in which they come.

    Nobody gets one who does not ask for it: the server's own priority and fairness is the better judge. `burst`
    requests may go at once after a quiet time.
    """

    def __init__(self, per_second: float, *, burst: int = 10, clock: Clock | None = None) -> None:
        """Allow `per_second` requests on average."""
        if per_second <= 0 or burst < 1:
            raise ValueError(f"a rate limit needs a positive rate and burst, not {per_second:g} and {burst}")
        self._interval = 1.0 / per_second
        self._credit = (burst - 1) * self._interval
        self._clock = clock or RealClock()
        self._due = float("-inf")

    async def __call__(self, request: HttpRequest, send: Send) -> HttpResponse:
        """Wait for the request's turn, then send it."""
        now = self._clock.monotonic()
        due = max(self._due + self._interval, now - self._credit)
        self._due = due
        if due > now:
            await self._clock.sleep(due - now)
        return await send(request)
