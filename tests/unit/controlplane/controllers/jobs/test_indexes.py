"""Sets of completion indexes behave as sets of numbers, however they are written."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.controlplane.controllers.jobs.indexes import Indexes

numbers = st.sets(st.integers(0, 60), max_size=40)


@pytest.mark.parametrize("text", ["", "0", "0,1", "0-2", "0-2,5", "1,3,5-7", "0,1,3-5"])
def test_indexes_are_written_as_they_are_read(text: str) -> None:
    assert str(Indexes.read(text)) == text


@given(numbers, numbers)
def test_they_are_sets(one: set[int], other: set[int]) -> None:
    first, second = Indexes.of(one), Indexes.of(other)
    assert members(first | second) == one | other
    assert members(first & second) == one & other
    assert first.count == len(one)
    assert [number in first for number in range(65)] == [number in one for number in range(65)]
    assert set(first.missing(50)) == set(range(50)) - one


@given(numbers, st.integers(0, 70))
def test_what_is_read_is_what_was_written(one: set[int], below: int) -> None:
    assert members(Indexes.read(str(Indexes.of(one)), below)) == {number for number in one if number < below}


@given(st.text(alphabet="0123456789,-x ", max_size=20))
def test_any_text_is_read(text: str) -> None:
    found = Indexes.read(text, below=1000)
    assert all(0 <= first <= last < 1000 for first, last in found.ranges)


def test_many_are_held_as_few_ranges() -> None:
    found = Indexes.read("0-99999999")
    assert found.count == 100_000_000
    assert list(islice(found.missing(100_000_010), 3)) == [100_000_000, 100_000_001, 100_000_002]


def members(found: Indexes) -> set[int]:
    return {number for first, last in found.ranges for number in range(first, last + 1)}
