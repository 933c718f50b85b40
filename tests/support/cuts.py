"""Bytes as networks deliver them: cut anywhere, joined anyhow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from hypothesis import strategies as st


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    """Cut at these places; two equal places make an empty piece."""
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def cuts(most: int = 8) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, 1 << 16), max_size=most)


def each_byte(data: bytes) -> list[bytes]:
    return [data[place : place + 1] for place in range(len(data))]


def halves(data: bytes) -> Iterator[list[bytes]]:
    """Every way to cut it into two."""
    for place in range(len(data) + 1):
        yield [data[:place], data[place:]]
