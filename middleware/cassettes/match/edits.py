"""Changes of parts of a text that is cut into pieces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Edit(NamedTuple):
    start: int
    end: int
    text: str


def edited(text: str, edits: Iterable[Edit], ends: Iterable[int]) -> list[str]:
    """The pieces that end there; a change stands in the one where it begins, wherever it ends."""
    left = [*edits][::-1]
    pieces, done = [], 0
    for end in ends:
        parts = []
        while left and left[-1].start < end:
            edit = left.pop()
            parts += [text[done : edit.start], edit.text]
            done = edit.end
        pieces.append("".join([*parts, text[done:end]]))
        done = max(done, end)
    return pieces
