"""State of this process alone, until there is a real one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from middleware.state.store import Hold, Home, Mark, State, Taken


@dataclass(slots=True)
class StandIn(State):
    home: Home = "memory"
    _open: dict[str, dict[str, float]] = field(default_factory=dict)
    _marks: dict[str, Mark] = field(default_factory=dict)

    @property
    def well(self) -> bool:
        return True

    async def take(self, request: str, holds: Sequence[Hold]) -> Taken:
        for hold in holds:
            self._open.setdefault(hold.counter, {})[request] = hold.amount
        return Taken({})

    async def settle(self, request: str, amounts: Mapping[str, float]) -> None:
        for counter in amounts:
            self._open.get(counter, {}).pop(request, None)

    async def sums(self, counters: Sequence[str]) -> Sequence[float]:
        return [sum(self._open.get(counter, {}).values()) for counter in counters]

    async def read(self, names: Sequence[str]) -> Sequence[Mark | None]:
        now, found = time.time(), [self._marks.get(name) for name in names]
        return [mark if mark and mark.until > now else None for mark in found]

    async def mark(self, name: str, text: str, seconds: float, later: bool = False) -> None:
        mark, known = Mark(text, time.time() + seconds), self._marks.get(name)
        if not (later and known and known.until > mark.until):
            self._marks[name] = mark

    async def close(self) -> None:
        pass
