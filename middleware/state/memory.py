"""`MemoryState`: counted by this process, and lost with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from middleware.state.counter import LONGEST_REQUEST, Counter, life_of
from middleware.state.store import Hold, Home, Mark, Taken
from middleware.state.table import ExpiringTable

_MOST = 1 << 16
"""Counters, marks, requests: of more than so many those that end first go."""


class Held(NamedTuple):
    """What a request has of one counter."""

    hold: Hold
    amount: float
    bucket: int
    counter: Counter
    shared: bool = False
    """Others have been told of it."""


class _Request:
    __slots__ = ("ends", "parts")

    def __init__(self) -> None:
        self.ends = 0.0
        self.parts: dict[str, Held] = {}


class MemoryState:
    """No method suspends; what a request costs does not grow with what is kept."""

    home: Home = "memory"

    def __init__(self, clock: Callable[[], float] = time.time, most: int = _MOST) -> None:
        self.clock = clock
        self.counters: ExpiringTable[Counter] = ExpiringTable(most, lambda counter: counter.ends)
        self.marks: ExpiringTable[Mark] = ExpiringTable(most, lambda mark: mark.until)
        self._requests: ExpiringTable[_Request] = ExpiringTable(most, lambda request: request.ends)
        self._marked_until = 0.0

    @property
    def well(self) -> bool:
        return True

    @property
    def marked(self) -> bool:
        return self._marked_until > self.clock()

    async def take(self, request: str, holds: Sequence[Hold]) -> Taken:
        return self.taken(request, holds)

    def taken(self, request: str, holds: Sequence[Hold]) -> Taken:
        """The same, for homes that keep this one inside."""
        now, counters = self.clock(), self.counters.kept
        sums: dict[str, float] = {}
        full: Hold | None = None
        for hold in holds:
            name, amount, limit, _, _ = hold
            counter = counters.get(name)
            if counter is None or counter.ends <= now:
                counter = self.counter(hold, now)
            found = counter.sum(now)
            sums[name] = found + amount
            if found >= limit and full is None:
                full = hold
        if full is None:
            self.hold(request, holds, now)
            return Taken(sums)
        sums = {hold.counter: self.counter(hold, now).sum(now) for hold in holds}
        return Taken(sums, full.counter, self.counter(full, now).wait(full.limit, now))

    def held(self, request: str, counter: str) -> Held | None:
        kept = self._requests.kept.get(request)
        return None if kept is None else kept.parts.get(counter)

    def hold(self, request: str, holds: Sequence[Hold], now: float, shared: bool = False) -> None:
        """Take whatever the limits say; what a request takes twice of a counter is one."""
        kept = self._requests.kept.get(request)
        if kept is None:
            kept = _Request()
            self._requests.put(request, kept, now)
        kept.ends = now + LONGEST_REQUEST
        parts, counters = kept.parts, self.counters.kept
        for hold in holds:
            name, amount, _, seconds, _ = hold
            counter = counters.get(name) or self.counter(hold, now)
            if name in parts:
                before = parts[name]
                counter.give(before.bucket, before.amount)
                amount += before.amount
            part = hold, amount, counter.take(amount, now, seconds), counter, shared
            parts[name] = tuple.__new__(Held, part)  # `Held(…)` costs four times as much

    async def settle(self, request: str, amounts: Mapping[str, float]) -> None:
        self.settled(request, amounts)

    def settled(self, request: str, amounts: Mapping[str, float]) -> Sequence[Held]:
        """Settle; return what was held. What was never taken is not counted."""
        now, kept = self.clock(), self._requests.kept.get(request)
        if kept is None:
            return ()
        held, parts = [], kept.parts
        for name, used in amounts.items():
            if (one := parts.pop(name, None)) is not None:
                held.append(one)
                hold, amount, bucket, counter, _ = one
                counter.give(bucket, amount)
                if used:
                    self._use(hold, used, now)
        if not parts:
            del self._requests.kept[request]
        else:  # what nobody settles ends by itself
            kept.ends = max([one.bucket * one.counter.step for one in parts.values()])
        return held

    def _use(self, hold: Hold, used: float, now: float) -> None:
        """Count what was used in place of what was held."""
        counter = self.counter(hold, now)  # another, where that one has ended or is forgotten
        if hold.sliding:
            counter.take(used, now, hold.seconds)
        else:
            counter.total += used

    def counter(self, hold: Hold, now: float) -> Counter:
        """The counter of a hold, which from now on lives as long as the hold says."""
        name, _, _, seconds, _ = hold
        found = self.counters.kept.get(name)
        if found is None or found.ends <= now:
            found = Counter(life_of(hold))
            self.counters.put(name, found, now)
        if found.ends < (ends := now + seconds + found.step):
            found.ends = ends
        return found

    async def sums(self, counters: Sequence[str]) -> Sequence[float]:
        now = self.clock()
        found = map(self.counters.kept.get, counters)
        return [one.sum(now) if one is not None and one.ends > now else 0.0 for one in found]

    async def read(self, names: Sequence[str]) -> Sequence[Mark | None]:
        return self.known(names)

    def known(self, names: Sequence[str]) -> Sequence[Mark | None]:
        """The same as `read`, for homes that keep this one inside."""
        now = self.clock()
        found = map(self.marks.kept.get, names)
        return [mark if mark is not None and mark.until > now else None for mark in found]

    async def mark(self, name: str, text: str, seconds: float, later: bool = False) -> None:
        self.remember(name, Mark(text, self.clock() + seconds), later)

    def remember(self, name: str, mark: Mark, later: bool = False) -> None:
        before = self.marks.kept.get(name)
        if not (later and before is not None and before.until > mark.until):
            self.marks.put(name, mark, self.clock())
            self._marked_until = max(self._marked_until, mark.until)

    async def close(self) -> None:
        """There is nothing to write."""
