"""Compressed answers that nobody asked for."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.wire.failures import Undecodable
from adapters.wire.transport.encodings import MOST_DECODED, decoder_of

brotli = pytest.importorskip("brotli")  # it ships no types


def raw_deflate(text: bytes) -> bytes:
    return zlib.compress(text)[2:-4]


CODED: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("gzip", gzip.compress),
    ("GZIP", lambda text: gzip.compress(text[:9]) + gzip.compress(b"") + gzip.compress(text[9:])),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("br", brotli.compress),
)


def decoded(encoding: str, pieces: list[bytes]) -> bytes:
    decoder = decoder_of(encoding)
    assert decoder is not None
    text = b""
    for piece in pieces:
        found = decoder.decode(piece)
        while found:
            assert len(found) <= 2 * MOST_DECODED
            text += found
            found = decoder.decode(b"")
    return text


@given(
    coding=st.sampled_from(CODED),
    text=st.binary(max_size=99) | st.just(b"ab" * MOST_DECODED),
    cuts=st.lists(st.integers(0, 99)),
)
def test_what_was_coded_is_read_however_it_is_cut(
    coding: tuple[str, Callable[[bytes], bytes]], text: bytes, cuts: list[int]
) -> None:
    encoding, encode = coding
    sent = encode(text)
    places = [0, *sorted(min(cut, len(sent)) for cut in cuts), len(sent)]
    pieces = [sent[start:end] for start, end in pairwise(places)]
    assert decoded(encoding, pieces) == text


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_what_is_not_coded_is_not_read(encoding: str) -> None:
    with pytest.raises(Undecodable):
        decoded(encoding, [b"hello, this is text, not any code"])


@pytest.mark.parametrize("encoding", ["identity", "", "compress", "gzip, br"])
def test_other_encodings_are_passed_on(encoding: str) -> None:
    assert decoder_of(encoding) is None
