"""What clients said before, found by its bytes: a conversation comes again with each of its turns.

A piece is what was made of some bytes of a body, for good: nobody may change its value. Each owner
has pieces apart, as the time of an answer would tell that somebody else had said the same.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import ReferenceType, ref

from adapters.shared.marks import marks, room_of_values

_MOST_BYTES, _LEAST_BODY = 64 << 20, 1 << 10
_EACH_MEMBER, _EACH_VALUE, _EACH_PIECE = 110, 400, 500
_WIDE = re.compile(rb"[\xf0-\xf4]|\\u[dD]")
_NEXT = 8
"""So many of those that stood behind a piece are tried before any is looked up."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class Piece:
    key: Hashable
    raw: bytes
    value: Any
    arguments: int = 0
    """Characters of the arguments of its calls, as they were sent."""
    weight: int = 0
    """How long it is, as its door counts."""
    joined: bool = False
    """Several objects that stood behind each other: the value has those of all."""
    settled: bool = False
    """The messages of those are in the one form of a conversation."""
    size: int = 0
    _values: int = -1
    _exact: bool = False
    next: tuple[ReferenceType[Piece], ...] = ()

    def values(self, exactly: bool = False) -> int:
        """How many are in it, at most; exactly: commas and brackets of texts count no more."""
        raw = self.raw
        if exactly and not self._exact:
            found = marks(raw)
            self._values, self._exact = len(found) - found.count(b"]"), True
        elif self._values < 0:
            self._values = raw.count(b",") + raw.count(b"{") + raw.count(b"[")
        return self._values

    def take_values(self, pieces: Sequence[Piece]) -> None:
        """Of those it was joined from, if they are known."""
        if all(piece._values >= 0 for piece in pieces):
            self._values = sum(piece._values for piece in pieces) + len(pieces) - 1
            self._exact = all(piece._exact for piece in pieces)

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
    """About what a piece takes, at most: its bytes, its text, and what Python needs for a value."""
    text = 1
    if not raw.isascii() or b"\\u" in raw:
        # A single emoji has Python keep a text with four bytes a character; the fifth is for the
        # UTF-8 that is kept beside it once it was written.
        text = 5 if _WIDE.search(raw) else 3
    values = _EACH_MEMBER * raw.count(b'":') + room_of_values(raw) + _EACH_VALUE
    return len(raw) * (1 + text) + values + _EACH_PIECE


class Seen:
    """Pieces within a bound in bytes; the longest unused goes first. For one thread."""

    def __init__(self, most_bytes: int = _MOST_BYTES, least_body: int = _LEAST_BODY) -> None:
        self._most = most_bytes
        self.least_body = least_body
        """Bytes of a body that is looked for; a shorter one is read as quickly."""
        self._kept: OrderedDict[Hashable, Piece] = OrderedDict()
        self.size = 0
        """About how many bytes all of them take."""
        self.find: Callable[[Hashable], Piece | None] = self._kept.get

    def keep(self, pieces: Iterable[Piece]) -> None:
        """Remember them, or that they are in use."""
        kept = self._kept
        for piece in pieces:
            try:
                kept.move_to_end(piece.key)
            except KeyError:
                self._take(piece)
        while self.size > self._most:
            self.size -= kept.popitem(last=False)[1].size

    def _take(self, piece: Piece) -> None:
        piece.size = piece.size or size_of(piece.raw)
        if piece.size <= self._most // 4:
            self._kept[piece.key] = piece
            self.size += piece.size

    def forget(self, piece: Piece) -> None:
        if self._kept.pop(piece.key, None) is not None:
            self.size -= piece.size


def join(pieces: Sequence[Piece], settled: bool) -> Piece:
    """Pieces that stand behind each other as one, found by what stands before it alone."""
    values: list[Any] = []
    for piece in pieces:
        values += piece.value
    one = Piece(
        None, b",".join([piece.raw for piece in pieces]), values, joined=True, settled=settled
    )
    one.key = id(one)
    one.take_values(pieces)
    one.arguments = sum(piece.arguments for piece in pieces)
    one.weight = sum(piece.weight for piece in pieces)
    sizes = [piece.size or size_of(piece.raw) for piece in pieces]
    one.size = sum(sizes) - _EACH_PIECE * (len(pieces) - 1)
    return one
