from __future__ import annotations

import logging

import pytest
from multidict import CIMultiDict

from flyball.client.server_warnings import LogWarnings, ServerWarning, parse_warnings, warning_values


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ('299 - "plain"', ["plain"]),
        ('299 - "unknown field \\"spec.x\\""', ['unknown field "spec.x"']),
        ('299 - "back\\\\slash, and comma"', ["back\\slash, and comma"]),
        ('299 - "one", 299 kube "two"', ["one", "two"]),
        ('299 - "dated" "Wed, 11 Feb 2026 08:15:42 GMT"', ["dated"]),
        ('299 - "dated" "Wed, 11 Feb 2026 08:15:42 GMT", 199 - "next"', ["dated", "next"]),
        ('  299   -   "spaces"  ', ["spaces"]),
        ('299 - ""', [""]),
        ('299 - "grüße"', ["grüße"]),
        ('299 - "=?utf-8?q?gr=C3=BC=C3=9Fe?="', ["grüße"]),
        ('299 - "=?nonsense?x?y?="', ["=?nonsense?x?y?="]),
        ('299 - "not closed', []),
        ("nothing at all", []),
        ("", []),
    ],
)
@pytest.mark.capability("C7")
def test_values_of_the_header_are_read_as_the_rfc_says(value: str, texts: list[str]) -> None:
    assert [warning.text for warning in parse_warnings([value])] == texts


def test_all_header_lines_are_read() -> None:
    headers = CIMultiDict([("Warning", '299 - "one"'), ("warning", '299 - "two"')])
    assert [w.text for w in parse_warnings(warning_values(headers))] == ["one", "two"]
    assert warning_values({}) == []
    assert warning_values({"Warning": '299 - "x"'}) == ['299 - "x"']


def test_a_warning_says_during_what_it_came() -> None:
    (warning,) = parse_warnings(['299 kube "old"'], "create Pod default/demo")
    assert str(warning) == "create Pod default/demo: old"
    assert (warning.code, warning.agent) == (299, "kube")
    assert str(ServerWarning("alone")) == "alone"


@pytest.mark.capability("C7")
def test_the_log_gets_each_text_once(caplog: pytest.LogCaptureFixture) -> None:
    log = LogWarnings()
    with caplog.at_level(logging.WARNING, "flyball.client.warnings"):
        for text in ("a", "b", "a", "a"):
            log(ServerWarning(text, "get X"))
    assert [record.getMessage() for record in caplog.records] == ["get X: a", "get X: b"]


def test_the_memory_of_texts_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    log = LogWarnings()
    with caplog.at_level(logging.WARNING, "flyball.client.warnings"):
        for number in range(1001):
            log(ServerWarning(str(number)))
        caplog.clear()
        log(ServerWarning("1000"))
        log(ServerWarning("0"))
    assert [record.getMessage() for record in caplog.records] == ["0"]
