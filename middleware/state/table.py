"""`ExpiringTable`: things by name that end, and no more of them than a limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
_FEW = 1024


class ExpiringTable(Generic[T]):
    """Looked through only when it has doubled, so that a thing costs the same however many."""

    def __init__(self, most: int, ends: Callable[[T], float]) -> None:
        self.kept: dict[str, T] = {}
        self._most = most
        self._ends = ends
        self._due = min(most, _FEW)

    def put(self, name: str, thing: T, now: float) -> None:
        if len(self.kept) >= self._due and name not in self.kept:
            self._clear(now)
        self.kept[name] = thing

    def _clear(self, now: float) -> None:
        """Drop what has ended; of too many also those that end first."""
        ends = self._ends
        live = [(name, thing) for name, thing in self.kept.items() if ends(thing) > now]
        if len(live) > self._most * 3 // 4:
            live.sort(key=lambda one: ends(one[1]))
            live = live[-(self._most // 2) :]
        self.kept = dict(live)
        self._due = min(self._most, max(_FEW, 2 * len(live)))
