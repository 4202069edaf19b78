"""Interceptors: strung together in order, and the rate limit that one may ask for."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import cast

import pytest

from flyball.client.interceptors import RateLimit, chain
from flyball.client.transport import HttpRequest, HttpResponse, Interceptor, Send
from flyball.clock import ManualClock

GET = HttpRequest("GET", "/")
ANSWER = cast("HttpResponse", object())


async def test_the_first_sees_the_request_first_and_the_answer_last() -> None:
    seen: list[str] = []

    def named(name: str) -> Interceptor:
        async def through(request: HttpRequest, send: Send) -> HttpResponse:
            seen.append(f"{name} in {request.path}")
            answer = await send(replace(request, path=request.path + name))
            seen.append(f"{name} out")
            return answer

        return through

    async def send(request: HttpRequest) -> HttpResponse:
        seen.append(f"sent {request.path}")
        return ANSWER

    assert await chain(send, [named("a"), named("b")])(GET) is ANSWER
    assert seen == ["a in /", "b in /a", "sent /ab", "b out", "a out"]


async def test_without_interceptors_nothing_is_between() -> None:
    async def send(_: HttpRequest) -> HttpResponse:
        return ANSWER

    assert chain(send, []) is send


async def test_a_rate_limit_lets_a_burst_through_and_then_so_many_a_second() -> None:
    clock = ManualClock()
    limit = RateLimit(2, burst=3, clock=clock)
    sent: list[tuple[str, float]] = []

    async def send(request: HttpRequest) -> HttpResponse:
        sent.append((request.path, clock.monotonic()))
        return ANSWER

    tasks = [asyncio.create_task(limit(HttpRequest("GET", str(number)), send)) for number in range(6)]
    await clock.advance(10)
    await asyncio.gather(*tasks)

    assert sent == [("0", 0), ("1", 0), ("2", 0), ("3", 0.5), ("4", 1.0), ("5", 1.5)]
    await limit(HttpRequest("GET", "late"), send)
    assert sent[-1] == ("late", 10)


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_rate_limit_without_rate(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="needs a positive rate and burst"):
        RateLimit(rate, burst=burst)
