"""Asking again, where that can do no harm.

What is repeated:

| what came | which requests |
|---|---|
| no connection (`ConnectError`) | all: nothing was sent |
| 429 | all: the server did not carry it out; but not evictions, where 429 is the answer of a disruption budget |
| 502, 503, 504, and 500 with `Retry-After` | GET and HEAD |
| connection lost before the answer | GET and HEAD |

A GET that asks for a WebSocket (`exec`) counts as a write. Everything else is the caller's to judge: after a lost
answer to a write nobody knows whether it happened. The server's `Retry-After` is honoured; without one the pause
doubles, with jitter, so that many clients do not come back as one.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from flyball.client.transport import HttpRequest, HttpResponse, Send
from flyball.clock import Clock, RealClock
from flyball.errors import ConnectError, ConnectionLost, TransportError, retry_after_of

__all__ = ["Retry", "RetryPolicy"]

log = logging.getLogger(__name__)

_READS = {"GET", "HEAD"}
_TROUBLE = {502, 503, 504}


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long."""

    attempts: int = 6
    """The most times a request is sent, the first time included."""
    first_pause: float = 0.1
    """Seconds before the second time; doubled each time after."""
    longest_pause: float = 5.0
    """What doubling ends at."""
    patience: float = 30.0
    """No pause ends later than this many seconds after the request began; what came last is then the answer."""


class Retry:
    """The interceptor that asks again."""

    def __init__(
        self,
        policy: RetryPolicy | None = None,
        *,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`jitter` gives numbers from 0 to 1: our own pause is shortened by up to its half, the server's made longer by
        up to the first pause.
        """
        self._policy = policy or RetryPolicy()
        self._clock = clock or RealClock()
        self._jitter = jitter

    async def __call__(self, request: HttpRequest, send: Send) -> HttpResponse:
        """Send the request, again and again where that is safe, until an answer is worth handing on."""
        begun = self._clock.monotonic()
        attempt = 1
        while True:
            try:
                answer = await send(request)
            except (ConnectError, ConnectionLost) as error:
                pause = self._pause_after_failure(request, error, attempt, begun)
                if pause is None:
                    raise
                cause = str(error)
            else:
                pause = self._pause_after_answer(request, answer, attempt, begun)
                if pause is None:
                    return answer
                cause = f"{request.action or request.path}: HTTP {answer.status}"
                await _drop(answer)
            log.debug("%s: again in %.3g s (attempt %d failed)", cause, pause, attempt)
            await self._clock.sleep(pause)
            attempt += 1

    def _pause_after_failure(
        self, request: HttpRequest, error: TransportError, attempt: int, begun: float
    ) -> float | None:
        if isinstance(error, ConnectionLost) and not _only_reads(request):
            return None
        return self._pause(None, attempt, begun)

    def _pause_after_answer(
        self, request: HttpRequest, answer: HttpResponse, attempt: int, begun: float
    ) -> float | None:
        status = answer.status
        if status < 429:
            return None
        asked = retry_after_of(answer.headers, now=self._clock.now())
        if status == 429:
            again = not (request.method == "POST" and request.path.endswith("/eviction"))
        else:
            again = _only_reads(request) and (status in _TROUBLE or (status == 500 and asked is not None))
        return self._pause(asked, attempt, begun) if again else None

    def _pause(self, asked: float | None, attempt: int, begun: float) -> float | None:
        policy = self._policy
        if attempt >= policy.attempts:
            return None
        jitter = self._jitter()
        pause = min(policy.first_pause * 2.0 ** (attempt - 1), policy.longest_pause) * (1 - jitter / 2)
        if asked is not None:
            pause = max(pause, asked + policy.first_pause * jitter)
        left = begun + policy.patience - self._clock.monotonic()
        return pause if pause <= left else None


def _only_reads(request: HttpRequest) -> bool:
    return request.method in _READS and not request.upgrade


async def _drop(answer: HttpResponse) -> None:
    """Read what is left, so that the connection can be used again."""
    with suppress(TransportError):
        await answer.read()
    await answer.close()
