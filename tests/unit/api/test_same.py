"""Two JSON values are the same, or not: quickly where most of them are, and rightly where Python is too kind."""

from __future__ import annotations

from typing import Any

import pytest

from flyball.api.structural import same


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ({"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1}, True),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, False),
        ({"a": 1, "b": 2}, {"a": True, "b": 2}, False),
        ({"a": {"b": [0, 1]}, "c": 1}, {"a": {"b": [False, 1]}, "c": 1}, False),
        ({"a": 1, "b": 2}, {"a": 1.0, "b": 2}, True),
        ([1, True], [1, True], True),
        ([1, True], [True, 1], False),
        ([1], [1.0], True),
        ([1], [True], False),
        ([], {}, False),
        ({}, {}, True),
        (None, {}, False),
        ("1", 1, False),
        ({"a": None, "b": 1}, {"b": 1}, False),
    ],
)
def test_same(left: Any, right: Any, expected: bool) -> None:
    assert same(left, right) is expected
    assert same(right, left) is expected
