"""Which item of a list is which."""

from __future__ import annotations

from typing import Any

import pytest

from flyball.api.pairing import pairs


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([], [{"name": "a"}], {}),
        ([1, 2], [2, 1], {}),
        ([{"name": "a"}, {"name": "b"}], [{"name": "b", "x": 1}, {"name": "c"}, {"name": "a"}], {0: 1, 2: 0}),
        ([{"name": "a", "x": 1}], [{"name": "b", "x": 1}], {}),
        (
            [{"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP"}],
            [{"port": 80, "protocol": "UDP", "x": 1}],
            {0: 1},
        ),
        ([{"x": 1}, {"x": 2}, {"x": 3}], [{"x": 3}, {"x": 1}], {0: 2, 1: 0}),
        ([{"x": 1}, {"x": 2}, {"x": 3}], [{"x": 1}, {"x": 9}, {"x": 3}], {0: 0, 1: 1, 2: 2}),
        ([{"x": 1, "y": 1}, {"x": 2, "y": 2}], [{"x": 0}, {"x": 1, "y": 9}, {"x": 2, "y": 2}], {1: 0, 2: 1}),
        ([[1], [2]], [[2], [1]], {0: 1, 1: 0}),
        ([{"name": "a"}, {"name": "a"}], [{"name": "a"}, {"name": "a"}], {0: 0, 1: 1}),
        ([{"x": 1}], [{"x": 1}, "text"], {}),
    ],
)
def test_pairs(old: list[Any], new: list[Any], expected: dict[int, int]) -> None:
    assert pairs(old, new) == expected


def test_names_of_ones_own() -> None:
    old, new = [{"slot": 1, "x": 1}, {"slot": 2, "x": 1}], [{"slot": 2, "x": 2}, {"slot": 1, "x": 2}]
    assert pairs(old, new, [("slot",)]) == {0: 1, 1: 0}
