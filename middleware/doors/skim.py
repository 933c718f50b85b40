"""Finds the pieces of a body that were seen, and reads what is new between them.

Where an object ends is only guessed: by what stood there before, or by what mostly follows one.
Whether it was guessed right is shown by the parser, which takes no object that ends elsewhere, and
by each byte between two of them. What is not shown is left to those who read the body whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import orjson

from adapters.shared.marks import are_deeper, marks
from middleware.doors.body import MAX_DEPTH
from middleware.doors.seen import Piece, Seen, join

Check = Callable[[Piece], bool]
"""Brings what a piece says into its one form; False: it is nothing to keep."""
_OBJECT_END = re.compile(rb'\}(?=, ?\{"|\])')
_LOOKED_AHEAD = 256
_EACH_TRY, _EACH_BRACKET = 100, 10
"""Bytes that take as long."""
_MOST_NEW = 2000
"""Objects of a body; each costs more than where it is read whole."""
_REST = b"="
"""Begins the key of what is no array and no object of one: no JSON begins so."""


class ArrayMember:
    """One that has an array, as bodies name it."""

    __slots__ = ("mark", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.mark = b'"%b":' % name.encode()

    def begins(self, body: bytes, start: int) -> int:
        """Where its array of objects does; else -1."""
        at = body.find(self.mark, start)
        if at < 0:
            return -1
        at += len(self.mark)
        if body.startswith(b"[{", at):
            return at
        return at + 1 if body.startswith(b" [{", at) else -1


class Skim:
    """One body, array by array."""

    __slots__ = ("_left", "_links", "_used", "body", "end", "owner", "seen")

    def __init__(self, body: bytes, owner: str, seen: Seen) -> None:
        self.body = body
        self.owner = owner
        self.seen = seen
        self.end = 0
        """Where the array that was read last ended."""
        self._used: list[Piece] = []
        self._links: list[tuple[Piece, Piece]] = []
        self._left = 6 * len(body)
        """Bytes that may still be looked at: for what is odd, each is a few times."""

    def objects(self, at: int, name: str, check: Check) -> list[Piece]:
        """Those of an array, each a piece or several joined; none: nobody knows."""
        found: list[Piece] = []
        body, before, place = self.body, self._root(name), at
        while True:
            place += 1  # what opened the array, or a comma
            piece = before.behind(body, place) or self._behind(before, place, check)
            if piece is None:
                return []
            found.append(piece)
            before = piece
            place += len(piece.raw)
            if not body.startswith(b",", place):
                break
        if not body.startswith(b"]", place):
            return []
        self.end = place + 1
        self._used += found
        return found

    def array(self, at: int, name: str, check: Check) -> Piece | None:
        """All of an array of objects as one piece; None: nobody knows."""
        before = self._root(name)
        piece = before.behind(self.body, at)
        if piece is not None:
            self.end = at + len(piece.raw)
        else:
            piece = self._array(at, check)
            if piece is None:
                return None
            self._links.append((before, piece))
        self._used.append(piece)
        return piece

    def known(self, text: bytes) -> Piece | None:
        """What stands in a text that was put together of the rest, if it was seen."""
        piece = self.seen.find((self.owner, _REST + text))
        if piece is not None:
            self._used.append(piece)
        return piece

    def text(self, text: bytes, check: Check) -> Piece | None:
        """The same, or what stands there now."""
        if (piece := self.known(text)) is not None:
            return piece
        piece = Piece((self.owner, _REST + text), text, self._parsed(text, MAX_DEPTH))
        if piece.value is None or not check(piece):
            return None
        self._used.append(piece)
        return piece

    def keep(self) -> None:
        """Remember what was read, and what stood behind what."""
        self.seen.keep(self._used)
        for before, piece in self._links:
            before.lead_to(piece)

    def join(self, found: Sequence[Piece], first: int, settled: bool) -> None:
        """Remember the objects from one on as one piece, in place of the fewer that were."""
        if len(found) < first + 2:
            return
        longer = join(found[first:], settled)
        if found[first].joined:
            self.seen.forget(found[first])
        self.seen.keep([longer])
        found[first - 1].lead_to(longer)

    def _root(self, name: str) -> Piece:
        """What stands before the first piece."""
        key = self.owner, name
        root = self.seen.find(key) or Piece(key, b"", None)
        self._used.append(root)
        return root

    def _behind(self, before: Piece, at: int, check: Check) -> Piece | None:
        """An object that never stood behind this one."""
        piece = self._object(at, check)
        if piece is None or len(self._links) >= _MOST_NEW:
            return None
        self._links.append((before, piece))
        return piece

    def _next(self, at: int) -> int:
        """Where the next object begins, with white space before it; 0: nowhere."""
        if self.body.startswith(b",", at):
            return at + 1
        if self.body.startswith(b"]", at):
            self.end = at + 1
        return 0

    def _object(self, at: int, check: Check) -> Piece | None:
        for end in self._ends(at):
            raw = self.body[at:end]
            key = self.owner, raw
            piece = self.seen.find(key)
            if piece is not None:
                return piece
            value = self._parsed(raw)
            if value is not None:
                piece = Piece(key, raw, value)
                return piece if check(piece) else None
        return None

    def _array(self, at: int, check: Check) -> Piece | None:
        values: list[Any] = []
        place = at + 1
        while place and len(values) < _MOST_NEW:
            for end in self._ends(place):
                value = self._parsed(self.body[place:end])
                if value is not None:
                    values.append(value)
                    place = self._next(end)
                    break
            else:
                return None
        if place or self.end <= at:
            return None
        raw = self.body[at : self.end]
        key = self.owner, raw
        piece = self.seen.find(key)
        if piece is None:
            piece = Piece(key, raw, values)
            return piece if check(piece) else None
        return piece

    def _parsed(self, raw: bytes, most_levels: int = MAX_DEPTH - 2) -> Any:
        """None: it is no JSON, or too deep; an object stands in an array, and that in the body."""
        if self._left < 0:
            return None
        try:
            value = orjson.loads(raw)
        except orjson.JSONDecodeError:
            self._left -= len(raw) + _EACH_TRY
            return None
        openers = raw.count(b"{") + raw.count(b"[")
        if openers > most_levels and are_deeper(marks(raw), most_levels):
            self._left = -1
            return None
        return value

    def _ends(self, at: int) -> Iterator[int]:
        """Where an object may end, the likeliest first."""
        body, places = self.body, self._places(at)
        if first := next(places, 0):
            yield first
        # Most begin alike.
        name = body[at : body.find(b'"', at + 3) + 1]
        found = body.find(b"}," + name, at)
        self._left -= (len(body) if found < 0 else found) - at
        if found > 0:
            yield found + 1
        yield from filter(None, islice(places, _LOOKED_AHEAD))
        if self._left < 0:
            return
        for match in _OBJECT_END.finditer(body, at):
            if self._left < 0:
                return
            yield match.end()

    def _places(self, at: int) -> Iterator[int]:
        """Where as many brackets closed as had opened, those in texts too; 0: more had opened."""
        opened, last = 0, at
        for match in _OBJECT_END.finditer(self.body, at):
            end = match.end()
            opened += self.body.count(b"{", last, end) - self._passed(last, end)
            yield 0 if opened else end
            last = end
        self._passed(last, len(self.body))

    def _passed(self, start: int, end: int) -> int:
        """Count what was looked through for an end; return how many brackets closed there."""
        closed = self.body.count(b"}", start, end)
        self._left -= end - start + _EACH_TRY + _EACH_BRACKET * closed
        return closed
