from __future__ import annotations

import json

import pytest

from flyball.framing.channels import exit_status, outcome, read_size, size_message


@pytest.mark.parametrize("code", [0, 1, 137, 255])
def test_an_exit_code_there_and_back(code: int) -> None:
    assert outcome(json.dumps(exit_status(code)).encode()) == code


def test_a_failure_that_is_no_exit_code() -> None:
    status = {"status": "Failure", "reason": "NotFound", "message": "no such container", "code": 404}
    assert outcome(json.dumps(status).encode()) == status
    without_code = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": []}}
    assert outcome(json.dumps(without_code).encode()) == without_code


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b"\xff"])
def test_what_is_no_outcome(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        outcome(raw)


def test_the_size_of_a_terminal() -> None:
    message = size_message(120, 40)
    assert message[0] == 4
    assert read_size(message[1:]) == (120, 40)


@pytest.mark.parametrize(
    "raw",
    [b"", b"{}", b"[]", b"{", b'{"Width":0,"Height":1}', b'{"Width":1,"Height":65536}', b'{"Width":"x","Height":1}'],
)
def test_what_is_no_size(raw: bytes) -> None:
    assert read_size(raw) is None
