from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.framing.spdy.headers import DICTIONARY, HeaderError, HeaderReader, HeaderWriter

NAMES = st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=1, max_size=20)
VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=50)


def test_the_dictionary_is_that_of_spdy_3() -> None:
    assert zlib.adler32(DICTIONARY) == 0xE3C6A7C2
    assert len(DICTIONARY) == 1423


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=6), max_size=6))
def test_blocks_there_and_back(blocks: list[dict[str, str]]) -> None:
    writer, reader = HeaderWriter(), HeaderReader()
    assert [reader.unpack(writer.pack(block)) for block in blocks] == blocks


def test_names_are_lower_case_and_of_several_values_the_first_counts() -> None:
    assert HeaderReader().unpack(HeaderWriter().pack({"Port": "80\x0081"})) == {"port": "80"}


def test_what_is_not_packed() -> None:
    with pytest.raises(HeaderError, match="not packed as SPDY/3 packs them"):
        HeaderReader().unpack(b"plain text")


def packed(plain: bytes) -> bytes:
    squeeze = zlib.compressobj(zdict=DICTIONARY)
    return squeeze.compress(plain) + squeeze.flush(zlib.Z_SYNC_FLUSH)


def test_too_much() -> None:
    with pytest.raises(HeaderError, match="more than 1048576 bytes"):
        HeaderReader().unpack(packed(b"\0\0\0\1" + (1 << 24).to_bytes(4, "big") + bytes(1 << 24)))
    with pytest.raises(HeaderError, match="more than 1000 headers"):
        HeaderReader().unpack(packed((1001).to_bytes(4, "big") + bytes(8 * 1001)))


@pytest.mark.parametrize("plain", [b"", b"\0\0", b"\0\0\0\1", b"\0\0\0\1\0\0\0\5abc", b"\0\0\0\1\0\0\0\1a\0\0\0\2b"])
def test_what_ends_in_the_middle(plain: bytes) -> None:
    with pytest.raises(HeaderError, match="end in the middle"):
        HeaderReader().unpack(packed(plain))
