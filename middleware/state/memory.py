"""`MemoryState`: counted by this process, and lost with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import NamedTuple

from middleware.state.claims import OwnClaims
from middleware.state.counter import LONGEST_REQUEST, Counter, Counters
from middleware.state.store import CounterLimit, Hold, Home, Mark, Taken
from middleware.state.table import ExpiringTable

_MOST = 1 << 16
"""Counters, marks, requests: of more than so many those that end first go."""


class Held(NamedTuple):
    """What a request has of one counter."""

    limit: CounterLimit
    amount: float
    bucket: int
    counter: Counter
    shared: bool
    """Others have been told of it."""


class MemoryState:
    """No method suspends; what a request costs does not grow with what is kept."""

    home: Home = "memory"

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        most: int = _MOST,
        changed: Callable[[Counter], None] | None = None,
    ) -> None:
        self.clock = clock
        self.counters = Counters(most, clock, changed)
        self.marks: ExpiringTable[Mark] = ExpiringTable(most, lambda mark: mark.until)
        self._requests: ExpiringTable[OwnClaims] = ExpiringTable(most, lambda claims: claims.ends)
        self._marked_until = 0.0

    @property
    def well(self) -> bool:
        return True

    @property
    def marked(self) -> bool:
        return self._marked_until > self.clock()

    def claims(self, request: str) -> OwnClaims:
        """They end by themselves where nobody settles them."""
        return OwnClaims(self.counters)

    async def take(self, request: str, holds: Sequence[Hold]) -> Taken:
        now, claims = self.clock(), self._named(request)
        refusal = claims.take([hold.wanted() for hold in holds], now)
        if refusal is not None:
            return refusal
        claims.shared -= {hold.counter for hold in holds}
        self._keep(request, claims, now)
        return Taken({hold.counter: claims.sums[hold.counter] for hold in holds})

    async def share(self, request: str, holds: Sequence[Hold], now: float) -> None:
        """Take whatever the limits say, as others have counted it too."""
        claims = self._named(request)
        claims.take([hold._replace(limit=inf).wanted() for hold in holds], now)
        claims.shared |= {hold.counter for hold in holds}
        self._keep(request, claims, now)

    def _named(self, request: str) -> OwnClaims:
        return self._requests.kept.get(request) or self.claims(request)

    def _keep(self, request: str, claims: OwnClaims, now: float) -> None:
        claims.ends = now + LONGEST_REQUEST
        self._requests.put(request, claims, now)

    def held(self, request: str, counters: Iterable[str]) -> Mapping[str, Held]:
        """What a request has of those counters."""
        claims = self._named(request)
        found = [(name, claims.parts[name]) for name in counters if name in claims.parts]
        return {name: Held(*part, name in claims.shared) for name, part in found}

    async def settle(self, request: str, amounts: Mapping[str, float]) -> None:
        claims = self._requests.kept.get(request)
        if claims is None:
            return
        claims.settle(amounts)
        left = claims.parts.values()
        if not left:
            del self._requests.kept[request]
        else:  # what nobody settles ends by itself
            claims.ends = max([bucket * counter.step for _, _, bucket, counter in left])

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
