"""Sets of completion indexes, kept and written as ranges: `0-2,5`.

A Job may have a hundred thousand indexes, and its status names those that are done. So they are held as ranges, never
one by one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["Indexes"]

_END: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Indexes:
    """A set of numbers from 0, as ranges (both ends included) in order, with a gap between any two."""

    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Indexes:
        """Make the set of these numbers."""
        return cls().with_ranges((number, number) for number in numbers)

    @classmethod
    def read(cls, text: str, below: int = _END) -> Indexes:
        """Read what a status or a success policy says, without what is not below a number.

        What is no number is passed over, as nobody can have meant it.

        >>> str(Indexes.read("0-2,5,x,7-9", below=8))
        '0-2,5,7'
        """
        found: list[tuple[int, int]] = []
        for part in filter(None, text.split(",")):
            first, _, last = part.partition("-")
            last = last or first
            if first.isdecimal() and last.isdecimal() and int(first) < below:
                found.append((int(first), min(int(last), below - 1)))
        return cls().with_ranges(one for one in found if one[0] <= one[1])

    def with_ranges(self, more: Iterable[tuple[int, int]]) -> Indexes:
        """Return this set together with these ranges."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted([*self.ranges, *more]):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
            else:
                merged.append((first, last))
        return Indexes(tuple(merged))

    def __or__(self, other: Indexes) -> Indexes:
        return self.with_ranges(other.ranges)

    def __and__(self, other: Indexes) -> Indexes:
        mine, theirs, found = list(self.ranges), list(other.ranges), list[tuple[int, int]]()
        while mine and theirs:
            first, last = max(mine[0][0], theirs[0][0]), min(mine[0][1], theirs[0][1])
            if first <= last:
                found.append((first, last))
            (mine if mine[0][1] < theirs[0][1] else theirs).pop(0)
        return Indexes(tuple(found))

    def __contains__(self, number: int) -> bool:
        place = bisect_left(self.ranges, number, key=lambda one: one[1])
        return place < len(self.ranges) and self.ranges[place][0] <= number

    @property
    def count(self) -> int:
        """How many numbers are in the set."""
        return sum(last - first + 1 for first, last in self.ranges)

    def missing(self, below: int) -> Iterator[int]:
        """Give the numbers below a number that are not in the set, in order."""
        candidate = 0
        for first, last in self.ranges:
            yield from range(candidate, min(first, below))
            candidate = last + 1
        yield from range(candidate, below)

    def __str__(self) -> str:
        return ",".join(_written(first, last) for first, last in self.ranges)


def _written(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
