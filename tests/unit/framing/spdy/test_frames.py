from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.framing.spdy.frames import (
    Data,
    Frame,
    FrameReader,
    FrameWriter,
    GoAway,
    Ping,
    Reset,
    SpdyError,
    SynReply,
    SynStream,
)

# What kubectl 1.36.4 sent for one connection of a port-forward, put together and without the rest of the data.
KUBECTL = bytes.fromhex(
    "80030001000000400000000100000000000078f9e3c6a7c202253a703a2b294a4dcc851625aca9a0808614cb45a024cc6a6c646161c9"
    "c0c0c0590489c74c50fa663400000000ffff0000000101000000800300010000001800000003000000000000c2aa1b54102512a11900"
    "0000ffff000000030000000b474554202f207465737473"
)
MEANT: list[Frame] = [
    SynStream(1, {"streamtype": "error", "port": "32889", "requestid": "0"}),
    Data(1, b"", last=True),
    SynStream(3, {"streamtype": "data", "port": "32889", "requestid": "0"}),
    Data(3, b"GET / tests"),
]

NUMBERS = st.integers(1, (1 << 31) - 1)
HEADERS = st.dictionaries(st.sampled_from(["port", "streamtype", "requestid"]), st.text("abc 123", max_size=5))
FRAMES: st.SearchStrategy[Frame] = st.one_of(
    st.builds(SynStream, NUMBERS, HEADERS, st.booleans()),
    st.builds(SynReply, NUMBERS, HEADERS, st.booleans()),
    st.builds(Data, NUMBERS, st.binary(max_size=100), st.booleans()),
    st.builds(Reset, NUMBERS, st.integers(0, 100)),
    st.builds(Ping, NUMBERS),
    st.builds(GoAway, NUMBERS),
)


def test_what_kubectl_sends_is_understood() -> None:
    assert list(FrameReader().feed(KUBECTL)) == MEANT
    reader = FrameReader()
    assert [frame for byte in KUBECTL for frame in reader.feed(bytes([byte]))] == MEANT


@given(st.lists(FRAMES, max_size=10), st.lists(st.integers(0, 2000), max_size=10))
def test_frames_there_and_back_however_they_are_cut(frames: list[Frame], cuts: list[int]) -> None:
    writer, reader = FrameWriter(), FrameReader()
    raw = b"".join(writer.write(frame) for frame in frames)
    places = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    assert [frame for start, end in pairwise(places) for frame in reader.feed(raw[start:end])] == frames


def test_kinds_that_nobody_uses_are_left_out() -> None:
    settings = bytes.fromhex("80030004 0000000c 00000001 04000000 00000064")
    window = bytes.fromhex("80030009 00000008 00000001 00010000")
    assert list(FrameReader().feed(settings + window + FrameWriter().write(Ping(1)))) == [Ping(1)]


def test_late_headers_are_read_for_the_sake_of_those_after() -> None:
    writer, reader = FrameWriter(), FrameReader()
    syn = bytearray(writer.write(SynReply(1, {"port": "80"})))
    syn[3] = 8  # SYN_REPLY and HEADERS differ in nothing else
    assert list(reader.feed(bytes(syn))) == []
    assert list(reader.feed(writer.write(SynReply(1, {"port": "80"})))) == [SynReply(1, {"port": "80"})]


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"\x80\x02\x00\x01\x00\x00\x00\x00", "this is not SPDY/3.1"),
        (b"\x80\x03\x00\x06\x00\x20\x00\x00", "a control frame of 2097152 bytes is too long"),
        (b"\x80\x03\x00\x06\x00\x00\x00\x01x", "a control frame of kind 6 cannot be read"),
        (b"\x80\x03\x00\x01\x00\x00\x00\x0c" + b"x" * 12, "a control frame of kind 1 cannot be read"),
    ],
)
def test_what_is_no_spdy(raw: bytes, told: str) -> None:
    with pytest.raises(SpdyError, match=told):
        list(FrameReader().feed(raw))
