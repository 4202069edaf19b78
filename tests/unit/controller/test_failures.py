"""Each class of error has its answer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from flyball.controller.failures import ChildTerminating, InvalidSpec, Streak, judge
from flyball.controller.ownership import NameConflict
from flyball.errors import ConnectError, RetryAfter, TerminalError, error_from


def api(code: int, reason: str = "", message: str = "no", **details: Any) -> Exception:
    body = {"kind": "Status", "reason": reason, "message": message, "code": code, "details": details}
    return error_from(code, {}, msgspec.json.encode(body), action="x", host="test")


class OutOfStock(TerminalError):
    """A terminal error of the author's."""

    reason = "OutOfStock"


@pytest.mark.parametrize(
    ("error", "answer", "reason", "delay", "limit"),
    [
        (api(409, "Conflict"), "silent", "", None, None),
        (api(409, "AlreadyExists"), "backoff", "NameConflict", 60.0, None),
        (NameConflict("a", "b"), "backoff", "NameConflict", 60.0, None),
        (api(403, "Forbidden"), "backoff", "Forbidden", None, None),
        (api(403, "Forbidden", "exceeded quota: x"), "backoff", "QuotaExceeded", None, 300.0),
        (
            api(400, "BadRequest", 'admission webhook "a" denied the request: b'),
            "backoff",
            "AdmissionDenied",
            None,
            300.0,
        ),
        (
            api(422, "Invalid", "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: c"),
            "backoff",
            "AdmissionDenied",
            None,
            300.0,
        ),
        (api(403, "Forbidden", causes=[{"reason": "NamespaceTerminating"}]), "ended", "", None, None),
        (api(422, "Invalid"), "terminal", "ChildInvalid", None, None),
        (api(500, "InternalError"), "backoff", "APIError", None, None),
        (api(503), "backoff", "APIError", None, None),
        (api(429, "TooManyRequests"), "backoff", "APIError", None, None),
        (api(429, "TooManyRequests", retryAfterSeconds=7), "after", "APIError", 7.0, None),
        (api(404, "NotFound"), "backoff", "ReconcileError", None, None),
        (ConnectError("no"), "backoff", "APIError", None, None),
        (RetryAfter(5, "wait"), "after", "", 5.0, None),
        (ChildTerminating(5, "wait"), "after", "", 5.0, None),
        (InvalidSpec("x"), "terminal", "InvalidSpec", None, None),
        (TerminalError("x"), "terminal", "TerminalError", None, None),
        (OutOfStock("x"), "terminal", "OutOfStock", None, None),
        (KeyError("x"), "backoff", "ReconcileError", None, None),
        (TimeoutError("x"), "backoff", "ReconcileError", None, None),
        (
            ExceptionGroup("g", [api(409, "Conflict"), ExceptionGroup("h", [TerminalError("x")])]),
            "terminal",
            "TerminalError",
            None,
            None,
        ),
        (ExceptionGroup("g", [api(409, "Conflict")]), "silent", "", None, None),
    ],
)
def test_the_table(error: Exception, answer: str, reason: str, delay: float | None, limit: float | None) -> None:
    verdict = judge(error)
    assert (verdict.answer, verdict.reason, verdict.delay, verdict.limit) == (answer, reason, delay, limit)


def test_a_long_row_of_conflicts_is_an_error_and_a_short_one_is_not() -> None:
    streak, conflict = Streak(), api(409, "Conflict")
    answers = [streak.weigh(conflict, judge(conflict)).answer for _ in range(7)]
    assert answers == ["silent"] * 5 + ["backoff"] * 2
    streak.went_well()
    assert streak.weigh(conflict, judge(conflict)).answer == "silent"
    other = ValueError()
    streak.weigh(other, judge(other))
    assert streak.conflicts == 0


def test_trouble_of_the_server_is_said_from_the_third_time_on() -> None:
    streak, trouble = Streak(), api(503)
    assert [streak.weigh(trouble, judge(trouble)).reason for _ in range(4)] == ["", "", "APIError", "APIError"]
