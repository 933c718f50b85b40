"""What requests have of counters, by where those are."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import NamedTuple

from middleware.state.counter import Counter, Counters
from middleware.state.store import CounterLimit, Hold, State, Taken, Wanted


class Held(NamedTuple):
    """What a request has of one counter."""

    limit: CounterLimit
    amount: float
    bucket: int
    counter: Counter
    shared: bool = False
    """Others have been told of it."""


class OwnClaims:
    """Of counters in this process. Nothing suspends."""

    __slots__ = ("_counters", "ends", "held", "sums")

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self.held: dict[str, Held] = {}
        self.sums: dict[str, float] = {}
        self.ends = 0.0
        """From when on nothing of it counts, where it is kept by a name."""

    async def take(self, wanted: Sequence[Wanted]) -> Taken | None:
        return self.taken(wanted, self._counters.clock())

    def taken(self, wanted: Sequence[Wanted], now: float) -> Taken | None:
        """The same, at a time."""
        counters, kept = self._counters, self._counters.kept
        new: dict[str, Held] = {}
        for limit, amount in wanted:
            name = limit.counter
            counter = kept.get(name)
            if counter is None or counter.ends <= now:
                counter = counters.of(limit, now)
            found = counter.take(amount, now, limit.seconds, limit.limit)
            if found is None:
                return self._refusal(wanted, limit, new, now)
            if not counter.noted:
                counters.note(counter)
            self.sums[name] = found
            one = limit, amount, counter.current, counter, False
            new[name] = tuple.__new__(Held, one)  # `Held(…)` costs four times as much
        held = self.held
        for name, one in new.items():
            held[name] = _joined(held[name], one, now) if name in held else one
        return None

    def _refusal(
        self, wanted: Sequence[Wanted], full: CounterLimit, new: Mapping[str, Held], now: float
    ) -> Taken:
        """Nothing is taken."""
        for one in new.values():
            one.counter.give(one.bucket, one.amount)
        of = self._counters.of
        sums = {limit.counter: of(limit, now).sum(now) for limit, _ in wanted}
        self.sums.update(sums)
        return Taken(sums, full.counter, of(full, now).wait(full.limit, now))

    async def settle(self, amounts: Mapping[str, float]) -> None:
        self.settled(amounts, self._counters.clock())

    def settled(self, amounts: Mapping[str, float], now: float) -> Sequence[Held]:
        """The same; return what was held. What was never taken is not counted."""
        counters, held = self._counters, []
        for name, used in amounts.items():
            one = self.held.pop(name, None)
            if one is None:
                continue
            held.append(one)
            limit, amount, bucket, counter, _ = one
            counter.give(bucket, amount)
            if used:
                if counter.ends <= now or counters.kept.get(name) is not counter:
                    counter = counters.of(limit, now)  # that one has ended, or is forgotten
                counter.use(used, now, limit)
            if not counter.noted:
                counters.note(counter)
        return held


class NamedClaims:
    """Of counters elsewhere, where requests are known by their names."""

    __slots__ = ("_request", "_state", "sums")

    def __init__(self, state: State, request: str) -> None:
        self._state = state
        self._request = request
        self.sums: dict[str, float] = {}

    async def take(self, wanted: Sequence[Wanted]) -> Taken | None:
        if not wanted:
            return None
        taken = await self._state.take(self._request, [Hold.of(*one) for one in wanted])
        self.sums.update(taken.sums)
        return taken if taken.refused else None

    def settle(self, amounts: Mapping[str, float]) -> Awaitable[None]:
        return self._state.settle(self._request, amounts)


def _joined(before: Held, new: Held, now: float) -> Held:
    """What is taken twice of a counter is one, and begins now."""
    new.counter.give(before.bucket, before.amount)
    new.counter.take(before.amount, now, new.limit.seconds)
    return new._replace(amount=before.amount + new.amount)
