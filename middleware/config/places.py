"""Finds the line of a key in the text of a config: the parser does not say it."""

from __future__ import annotations

import tomllib
from typing import Any

_MOST_READINGS, _MOST_LETTERS = 300, 4 << 20
"""Of beginnings of one text, all together; what is not found by then has no line."""


class Places:
    """The lines of a valid text.

    A beginning of the text that can be read holds every key that is written in it: the line of a
    key follows the longest one without it. So nothing of TOML's grammar stands here again.
    """

    def __init__(self, text: str) -> None:
        self._lines = text.replace("\r\n", "\n").split("\n")
        self._read: dict[int, Any] = {}
        self._letters = 0

    def line(self, path: tuple[str, ...]) -> int:
        """Where a key is written, or else the table it would stand in; 0: nowhere."""
        whole = self._beginning(len(self._lines))
        for length in range(len(path), 0, -1):
            if _holds(whole, path[:length]):
                return self._first(path[:length])
        return 0

    def _first(self, path: tuple[str, ...]) -> int:
        without, with_it = 0, len(self._lines)
        while middle := self._between(without, with_it):
            if self._has_read_enough:
                return 0
            if _holds(self._beginning(middle), path):
                with_it = middle
            else:
                without = middle
        return without + 1

    @property
    def _has_read_enough(self) -> bool:
        return len(self._read) > _MOST_READINGS or self._letters > _MOST_LETTERS

    def _between(self, low: int, high: int) -> int:
        """A beginning that can be read, near the middle; 0: there is none."""
        near = sorted(range(low + 1, high), key=lambda end: abs(2 * end - low - high))
        return next((end for end in near if self._beginning(end) is not None), 0)

    def _beginning(self, end: int) -> Any:
        """The first lines as values; None where they end in the middle of one."""
        if end not in self._read and not self._has_read_enough:
            beginning = "\n".join(self._lines[:end])
            self._letters += len(beginning)
            try:
                self._read[end] = tomllib.loads(beginning)
            except (ValueError, RecursionError):
                self._read[end] = None
        return self._read.get(end)


def _holds(found: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(found, dict) or name not in found:
            return False
        found = found[name]
    return True
