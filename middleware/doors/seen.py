"""What clients said before, found by its bytes: a conversation comes again with each of its turns.

A piece is what was made of some bytes of a body, for good: nobody may change its value. Each owner
has pieces apart, as the time of an answer would tell that somebody else had said the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import ReferenceType, ref

_MOST_BYTES = 16 << 20
_NEXT = 8
"""So many of those that stood behind a piece are tried before any is looked up."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class Piece:
    key: Hashable
    raw: bytes
    value: Any
    values: int = 0
    """How many values are in it, at most."""
    arguments: int = 0
    """Characters of the arguments of its calls, as they were sent."""
    joined: bool = False
    """Several objects that stood behind each other: the value has those of all."""
    size: int = 0
    next: tuple[ReferenceType[Piece], ...] = ()

    def behind(self, body: bytes, at: int) -> Piece | None:
        """What stood behind this piece before, where it does again."""
        for reference in self.next:
            piece = reference()
            if piece is not None and body.startswith(piece.raw, at):
                return piece
        return None

    def lead_to(self, piece: Piece) -> None:
        """Try it first from now on."""
        others = [one for one in self.next if one() not in (None, piece)]
        self.next = (ref(piece), *others[: _NEXT - 1])


def size_of(raw: bytes) -> int:
    """About what a piece takes: its bytes, its text, and what Python needs for each value."""
    # A single emoji has Python keep a text with four bytes a character.
    wide = 1 if raw.isascii() and b"\\u" not in raw else 5
    return len(raw) * (1 + wide) + 50 * len(raw) // 20 + 1500


class Seen:
    """Pieces within a bound in bytes; the longest unused goes first. For one thread."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most_bytes
        self._kept: OrderedDict[Hashable, Piece] = OrderedDict()
        self._size = 0

    def find(self, key: Hashable) -> Piece | None:
        return self._kept.get(key)

    def keep(self, pieces: Iterable[Piece]) -> None:
        """Remember them, or that they are in use."""
        kept = self._kept
        for piece in pieces:
            if piece.key in kept:
                kept.move_to_end(piece.key)
                continue
            piece.size = piece.size or size_of(piece.raw)
            if piece.size <= self._most // 4:
                kept[piece.key] = piece
                self._size += piece.size
        while self._size > self._most:
            self._size -= kept.popitem(last=False)[1].size

    def forget(self, piece: Piece) -> None:
        if self._kept.pop(piece.key, None) is not None:
            self._size -= piece.size


def join(pieces: Sequence[Piece]) -> Piece:
    """Pieces that stand behind each other as one, found by what stands before it alone."""
    values = list[Any]()
    for piece in pieces:
        values += piece.value if piece.joined else (piece.value,)
    one = Piece(None, b",".join([piece.raw for piece in pieces]), values, joined=True)
    one.key = id(one)
    one.values = sum(piece.values for piece in pieces) + len(pieces) - 1
    one.arguments = sum(piece.arguments for piece in pieces)
    one.size = sum(piece.size or size_of(piece.raw) for piece in pieces)
    return one
