"""Numbers as they were written: a parser keeps only so many digits."""

from __future__ import annotations

import re

import orjson

from adapters.protocol import Json
from adapters.wire.json_text import exact

# What a float may not hold to the last digit, or what was made one.
_LONG = re.compile(rb"\d[\d.]{15}|\d[eE][+-]?\d")


class Exact:
    """The turns of one body, with all their digits where any of a call's would be lost."""

    def __init__(self, body: bytes, turns: list[Json]) -> None:
        self._body = body
        self._turns = turns
        self._precise: dict[int, Json] | None = None
        """Turns and calls as they were written, by the identity of what was read."""
        self._is_long = False
        """A call of the turn that is read has such numbers."""

    def arguments(self, block: Json) -> str:
        """The input of a call as JSON."""
        written = orjson.dumps(block.get("input") or {})
        if _LONG.search(written):
            self._is_long = True
            precise = self._read().get(id(block), block)
            written = orjson.dumps(precise.get("input") or {})
        return written.decode()

    def turn(self, turn: Json) -> Json:
        """The whole of it, when its calls were read."""
        if not self._is_long:
            return turn
        self._is_long = False
        return self._read().get(id(turn), turn)

    def _read(self) -> dict[int, Json]:
        if self._precise is None:
            found = exact(self._body)
            turns = [] if found is None else found["messages"]
            self._precise = {}
            for one, precise in zip(self._turns, turns, strict=False):
                self._precise[id(one)] = precise
                if isinstance(one["content"], list):
                    pairs = zip(one["content"], precise["content"], strict=True)
                    self._precise |= {id(block): meant for block, meant in pairs}
        return self._precise
