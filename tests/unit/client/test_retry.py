"""Asking again: only where it can do no harm, when the server says so, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from email.utils import format_datetime

import pytest

from flyball.client.retry import Retry, RetryPolicy
from flyball.client.transport import HttpRequest, HttpResponse
from flyball.clock import ManualClock
from flyball.errors import ConnectError, ConnectionLost, MalformedAnswer, RequestTimeout, TlsError, TransportError

GET = HttpRequest("GET", "/api/v1/pods")
WRITES = [HttpRequest(method, "/api/v1/pods") for method in ("POST", "PUT", "PATCH", "DELETE")]


class Answer:
    """An answer made up for a test."""

    def __init__(self, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.status = status
        self.headers = headers or {}
        self.closed = False

    async def read(self) -> bytes:
        return b""

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b""

    async def close(self) -> None:
        self.closed = True


class Server:
    """Gives its answers in turn, the last one for ever; notes when it was asked."""

    def __init__(self, clock: ManualClock, *answers: Answer | TransportError) -> None:
        self.clock = clock
        self.answers = answers
        self.asked: list[float] = []

    async def send(self, _: HttpRequest) -> HttpResponse:
        self.asked.append(self.clock.monotonic())
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, TransportError):
            raise answer
        return answer


async def run(
    *answers: Answer | TransportError,
    request: HttpRequest = GET,
    policy: RetryPolicy | None = None,
    jitter: float = 0.0,
) -> tuple[HttpResponse | TransportError, list[float]]:
    """The outcome, and the moments at which the server was asked."""
    clock = ManualClock()
    server = Server(clock, *answers)
    retry = Retry(policy, clock=clock, jitter=lambda: jitter)
    task = asyncio.ensure_future(retry(request, server.send))
    await clock.settle()
    while not task.done():
        await clock.advance_to_next()
    error = task.exception()
    return (error if isinstance(error, TransportError) else task.result()), server.asked


OK = Answer()


@pytest.mark.capability("C9")
async def test_pauses_double_from_time_to_time() -> None:
    outcome, asked = await run(*[Answer(503)] * 3, OK)

    assert outcome is OK
    assert asked == pytest.approx([0, 0.1, 0.3, 0.7])


async def test_jitter_shortens_a_pause_by_up_to_its_half() -> None:
    _, asked = await run(*[Answer(503)] * 3, OK, jitter=1.0)

    assert asked == pytest.approx([0, 0.05, 0.15, 0.35])


async def test_pauses_have_an_upper_end() -> None:
    policy = RetryPolicy(attempts=5, first_pause=2, longest_pause=3)

    _, asked = await run(Answer(503), policy=policy)

    assert asked == pytest.approx([0, 2, 5, 8, 11])


async def test_attempts_are_limited() -> None:
    outcome, asked = await run(*(Answer(503) for _ in range(10)))

    assert isinstance(outcome, Answer)
    assert outcome.status == 503
    assert not outcome.closed, "the last answer is handed on, unread"
    assert len(asked) == RetryPolicy().attempts


@pytest.mark.capability("C9")
@pytest.mark.parametrize("request_", [GET, *WRITES], ids=lambda request: request.method)
async def test_after_429_everything_is_asked_again_when_the_server_says(request_: HttpRequest) -> None:
    outcome, asked = await run(Answer(429, {"Retry-After": "3"}), OK, request=request_)

    assert outcome is OK
    assert asked == [0, 3]


async def test_retry_after_may_be_a_date() -> None:
    date = format_datetime(ManualClock().now() + timedelta(seconds=4), usegmt=True)

    _, asked = await run(Answer(503, {"Retry-After": date}), OK)

    assert asked == [0, 4]


async def test_clients_that_were_told_the_same_do_not_come_back_as_one() -> None:
    _, asked = await run(Answer(429, {"Retry-After": "3"}), OK, jitter=0.5)

    assert asked == pytest.approx([0, 3.05])


async def test_at_once_is_not_a_hot_loop() -> None:
    _, asked = await run(*[Answer(429, {"Retry-After": "0"})] * 3, OK)

    assert asked == pytest.approx([0, 0.1, 0.3, 0.7])


async def test_nobody_waits_longer_than_the_patience() -> None:
    outcome, asked = await run(Answer(429, {"Retry-After": "31"}), OK)

    assert isinstance(outcome, Answer)
    assert outcome.status == 429
    assert asked == [0]


async def test_a_disruption_budget_is_an_answer() -> None:
    evict = HttpRequest("POST", "/api/v1/namespaces/a/pods/b/eviction")

    outcome, asked = await run(Answer(429, {"Retry-After": "1"}), OK, request=evict)

    assert isinstance(outcome, Answer)
    assert outcome.status == 429
    assert asked == [0]


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_trouble_is_for_reads_only(status: int) -> None:
    assert (await run(Answer(status), OK))[0] is OK
    for write in WRITES:
        _, asked = await run(Answer(status, {"Retry-After": "1"}), OK, request=write)
        assert asked == [0], write.method


async def test_an_internal_error_only_when_the_server_says() -> None:
    assert len((await run(Answer(500), OK))[1]) == 1
    assert len((await run(Answer(500, {"Retry-After": "1"}), OK))[1]) == 2


@pytest.mark.parametrize("status", [200, 201, 301, 400, 401, 403, 404, 409, 410, 422, 501])
async def test_other_answers_are_handed_on(status: int) -> None:
    assert len((await run(Answer(status, {"Retry-After": "1"}), OK))[1]) == 1


@pytest.mark.capability("C9")
@pytest.mark.parametrize("request_", [GET, *WRITES], ids=lambda request: request.method)
async def test_what_was_never_sent_may_be_sent(request_: HttpRequest) -> None:
    outcome, asked = await run(ConnectError("refused"), OK, request=request_)

    assert outcome is OK
    assert len(asked) == 2


@pytest.mark.capability("C9")
async def test_a_lost_answer_is_asked_for_again_only_by_reads() -> None:
    lost = ConnectionLost("reset")

    assert (await run(lost, OK))[0] is OK
    for write in WRITES:
        outcome, asked = await run(lost, OK, request=write)
        assert outcome is lost
        assert asked == [0], write.method


@pytest.mark.parametrize("kind", [TlsError, RequestTimeout, MalformedAnswer])
async def test_what_a_repeat_does_not_heal_is_raised(kind: type[TransportError]) -> None:
    error = kind("no")

    assert await run(error, OK) == (error, [0])


async def test_the_last_failure_is_raised() -> None:
    error = ConnectError("refused")

    outcome, asked = await run(error)

    assert outcome is error
    assert asked == pytest.approx([0, 0.1, 0.3, 0.7, 1.5, 3.1])


async def test_answers_that_are_dropped_are_closed() -> None:
    first = Answer(503)

    await run(first, OK)

    assert first.closed
