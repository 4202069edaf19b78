"""What the server refuses becomes the error of its reason, whatever it sends."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import errors
from flyball.errors import ApiError, error_from, error_from_status, malformed, retry_after_of

REASONS = {
    "Unauthorized": 401,
    "Forbidden": 403,
    "NotFound": 404,
    "AlreadyExists": 409,
    "Conflict": 409,
    "Gone": 410,
    "Expired": 410,
    "Invalid": 422,
    "BadRequest": 400,
    "MethodNotAllowed": 405,
    "NotAcceptable": 406,
    "UnsupportedMediaType": 415,
    "RequestEntityTooLarge": 413,
    "TooManyRequests": 429,
    "InternalError": 500,
    "ServiceUnavailable": 503,
    "ServerTimeout": 500,
    "Timeout": 504,
}


def status(reason: str, code: int, message: str = "no", **more: Any) -> dict[str, Any]:
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    return {**body, "reason": reason, "code": code, **more}


def refused(body: dict[str, Any], code: int = 0, headers: dict[str, str] | None = None) -> ApiError:
    answer = json.dumps(body).encode()
    return error_from(code or body["code"], headers or {}, answer, action="get Pod default/a", host="h:1")


@pytest.mark.parametrize(("reason", "code"), REASONS.items())
def test_every_reason_has_its_class(reason: str, code: int) -> None:
    error = refused(status(reason, code))

    assert type(error).__name__ == reason
    assert (error.code, error.reason, error.message) == (code, reason, "no")


@pytest.mark.parametrize("code", sorted(set(REASONS.values()) - {409, 410}))
def test_an_unknown_reason_is_told_by_its_code(code: int) -> None:
    error = refused(status("SomethingNew", code))

    assert type(error) is not ApiError
    assert error.code == code
    assert error.reason == "SomethingNew"


def test_an_unknown_reason_with_an_unknown_code_is_an_api_error() -> None:
    error = refused(status("Teapot", 418, "short and stout"))

    assert type(error) is ApiError
    assert str(error) == "get Pod default/a: Teapot: short and stout"


def test_the_whole_status_is_kept() -> None:
    causes = [{"reason": "FieldValueInvalid", "message": "must be positive", "field": "spec.size"}]
    body = status("Invalid", 422, 'Foo.x.io "a" is invalid', details={"name": "a", "causes": causes, "new": 1})

    error = refused(body)

    assert error.status == body
    assert error.details["new"] == 1
    assert error.causes == causes
    assert isinstance(copy.copy(error), errors.Invalid)
    assert str(copy.copy(error)) == str(error)


def test_forbidden_names_the_rule_that_is_missing() -> None:
    message = (
        'deployments.apps "x" is forbidden: User "system:serviceaccount:ops:bot" cannot patch resource "deployments" '
        'in API group "apps" in the namespace "default"'
    )

    line = str(refused(status("Forbidden", 403, message)))

    assert line.startswith('get Pod default/a: deployments.apps "x" is forbidden')
    assert line.endswith('; add @rbac("apps", "deployments", "patch") or grant it to serviceaccount ops/bot')


def test_unauthorized_says_what_to_do() -> None:
    assert str(refused(status("Unauthorized", 401, "Unauthorized"))) == (
        "get Pod default/a: Unauthorized; h:1 refuses these credentials: "
        "renew the token or certificate, or log in again"
    )


def test_an_expired_version_is_gone_too() -> None:
    assert isinstance(refused(status("Expired", 410)), errors.Gone)


def test_the_wait_is_that_of_the_header_or_of_the_status() -> None:
    body = status("TooManyRequests", 429, details={"retryAfterSeconds": 7})

    assert refused(body).retry_after == 7
    assert refused(body, headers={"Retry-After": "3"}).retry_after == 3
    assert refused(status("TooManyRequests", 429)).retry_after is None


def test_a_page_of_a_proxy_is_named_as_such() -> None:
    page = b"<html><head><title>502 Bad\n Gateway</title></head></html>"

    error = error_from(502, {"Content-Type": "text/html"}, page, action="list Pods", host="h:1")

    assert str(error) == (
        'list Pods: HTTP 502 from h:1: the answer is HTML titled "502 Bad Gateway"; check that the server address is a '
        "Kubernetes API server and that no proxy or login page stands before it"
    )
    assert error.code == 502


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the answer is empty"),
        (b'{"kind":"Sta', "the answer is malformed JSON"),
        (b'{"error":"x"}', "the answer is JSON, but not of Kubernetes"),
        (b"404 page\nnot found\n", 'the answer is not JSON: "404 page not found"'),
        (b"\xff\xfe\x00", "the answer is not JSON"),
    ],
)
def test_a_refusal_without_status_says_what_came(body: bytes, said: str) -> None:
    error = error_from(404, {}, body, action="get Foo a", host="h:1")

    assert isinstance(error, errors.NotFound)
    assert said in str(error)
    assert "\n" not in str(error)


def test_a_redirection_is_named_with_its_target() -> None:
    error = error_from(302, {"Location": "https://login.example/"}, b"", action="get Foo a", host="h:1")

    assert "a redirection to https://login.example/, which is not followed" in str(error)


@given(st.integers(100, 599), st.binary(max_size=300), st.dictionaries(st.just("Retry-After"), st.text(max_size=40)))
def test_no_answer_whatever_makes_it_fail(code: int, body: bytes, headers: dict[str, str]) -> None:
    error = error_from(code, headers, body, action="get Foo a", host="h:1")

    assert error.code == code
    assert "\n" not in str(error)


@given(
    st.dictionaries(
        st.sampled_from(["code", "reason", "message", "details", "status"]),
        st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
        | st.dictionaries(st.sampled_from(["causes", "retryAfterSeconds"]), st.lists(st.none(), max_size=2)),
    )
)  # fmt: skip
def test_no_status_whatever_makes_it_fail(body: dict[str, Any]) -> None:
    error = error_from_status(body)

    assert isinstance(str(error), str)
    assert list(error.causes) == []


def test_a_successful_answer_that_is_no_json_is_malformed() -> None:
    error = malformed({"Content-Type": "text/html; charset=utf-8"}, b"<html>", action="get Foo a", host="h:1")

    assert isinstance(error, errors.TransportError)
    assert str(error).startswith("get Foo a: h:1: the answer is HTML; check that")


NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5.0),
        (" 0 ", 0.0),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 12:00:30 -0000", 30.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
        ("-3", None),
        ("soon", None),
        ("", None),
        ("9" * 400, 999_999_999.0),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(value: str, seconds: float | None) -> None:
    assert retry_after_of({"Retry-After": value}, now=NOW) == seconds


def test_what_a_reconciler_raises_reads_well() -> None:
    assert str(errors.RetryAfter(30, "waiting for the volume")) == "again in 30 s: waiting for the volume"
    assert str(errors.RetryAfter(0.5)) == "again in 0.5 s"
    assert errors.RetryAfter(30).seconds == 30
    assert issubclass(errors.TerminalError, errors.FlyballError)


def test_a_failure_on_the_way_names_action_and_host() -> None:
    error = errors.ConnectError("connection refused;\n check it", host="h:1", action="get Pod a/b")

    assert str(error) == "get Pod a/b: h:1: connection refused; check it"
    assert isinstance(errors.CredentialError("x"), errors.ConfigError)
    assert isinstance(errors.CredentialError("x"), errors.TransportError)
