"""How long a strange regular expression may search: a matcher that goes back may do so for ever.

Counted are the ways to match it. Choices in a row multiply, alternatives add up, and what is
repeated must leave no choice within: `(a+)+` has more ways than anybody can wait for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

LONGEST = 500
_TOKEN = re.compile(
    r"""(?P<atom> \\. | \[\^?\]?(?:\\.|[^\]\\])*\] )
    | (?P<open> \( (?: \?(?: [:=!] | <[=!] | P?<\w+> ) )? )
    | (?P<close> \) )
    | (?P<bar> \| )
    | (?P<repeat> (?: [*+?] | \{\d{0,9},?\d{0,9}\} ) [?+]? )
    | (?P<other> . )""",
    re.VERBOSE | re.DOTALL,
)
# Python reads these in a set as it does not now, and says so in a warning.
_WARNED = ("[[", "--", "&&", "~~", "||")
_MOST_REPEATED = 64


class _Uncounted(Exception):
    """Nobody can say how many ways there are."""


def ways(pattern: str, length: int) -> int | None:
    """Return how often a text of this length may be tried; None if that cannot be said."""
    if len(pattern) > LONGEST or any(mark in pattern for mark in _WARNED):
        return None
    try:
        counted = _Counter(length).count(pattern)
    except _Uncounted:
        return None
    return counted * (1 if pattern.startswith("^") else length + 1)


class _Counter:
    def __init__(self, length: int) -> None:
        self._length = length
        self._groups = [(0, 1)]
        """Of each open group: ways of its alternatives so far, and of the one being read."""
        self._last = 0
        """Ways of the group that a repetition would repeat; 0: it would repeat a character."""

    def count(self, pattern: str) -> int:
        for token in _TOKEN.finditer(pattern):
            kind, text = token.lastgroup, token[0]
            if kind == "open":
                self._groups.append((0, 1))
            elif kind == "close":
                self._close()
            elif kind == "bar":
                before, current = self._groups.pop()
                self._groups.append((before + current, 1))
            elif kind == "repeat":
                self._repeat(text)
            self._last = self._last if kind == "close" else 0
        if len(self._groups) != 1:
            raise _Uncounted
        return sum(self._groups[0])

    def _close(self) -> None:
        if len(self._groups) < 2:
            raise _Uncounted
        self._last = sum(self._groups.pop())
        self._multiply(self._last)

    def _repeat(self, text: str) -> None:
        least, most = _bounds(text)
        if self._last:
            if self._last > 1 and (most is None or most > _MOST_REPEATED):
                raise _Uncounted
            # What must be repeated is, though it be empty.
            self._multiply(max(1, least) * self._last ** max(0, (most or 1) - 1))
        longest = self._length if most is None else min(most, self._length)
        self._multiply(max(1, longest - least + 1))

    def _multiply(self, factor: int) -> None:
        before, current = self._groups[-1]
        self._groups[-1] = (before, current * factor)


def _bounds(text: str) -> tuple[int, int | None]:
    """How often at least and at most."""
    if text[0] in _BOUNDS:
        return _BOUNDS[text[0]]
    least, comma, most = text.strip("?+")[1:-1].partition(",")
    low = int(least or 0)
    return low, (int(most) if most else None) if comma else low


_BOUNDS: Mapping[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
