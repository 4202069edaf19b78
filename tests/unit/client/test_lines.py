from __future__ import annotations

import time
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from flyball.client.lines import LineSplitter


@given(text=st.binary(max_size=200), cuts=st.lists(st.integers(0, 200), max_size=20))
def test_lines_are_the_same_however_the_stream_is_cut(text: bytes, cuts: list[int]) -> None:
    splitter = LineSplitter()
    places = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    lines = [line for a, b in pairwise(places) for line in splitter.feed(text[a:b])]
    assert [*lines, splitter.rest()] == text.split(b"\n")


def _seconds(megabytes: int) -> float:
    chunk, splitter = b"x" * 1024, LineSplitter()
    started = time.process_time()
    for _ in range(megabytes * 1024):
        splitter.feed(chunk)
    (line,) = splitter.feed(b"\n")
    assert len(line) == megabytes * 1024 * 1024
    return time.process_time() - started


def test_a_line_of_20_megabytes_takes_linear_time() -> None:
    _seconds(1)
    assert _seconds(20) < 40 * max(_seconds(1), 0.001) + 0.2
