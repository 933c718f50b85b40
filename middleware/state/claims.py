"""What requests have of counters, by where those are."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence

from middleware.state.counter import Counter, Counters
from middleware.state.store import CounterLimit, Hold, State, Taken, Wanted

Part = tuple[CounterLimit, float, int, Counter]
"""What a request has of one counter: how much, in which bucket; plain, as each costs time."""

_NONE: frozenset[str] = frozenset()


class OwnClaims:
    """Of counters in this process: nothing has to be waited for."""

    __slots__ = ("_counters", "ends", "parts", "shared", "sums")

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self.parts: dict[str, Part] = {}
        self.sums: dict[str, float] = {}
        self.shared = _NONE
        """Counters of which others have been told what it has."""
        self.ends = 0.0
        """From when on nothing of it counts, where it is kept by a name."""

    def take(self, wanted: Sequence[Wanted], now: float | None = None) -> Taken | None:
        """What is taken twice of a counter is one, and begins now."""
        counters, parts = self._counters, self.parts
        kept, sums = counters.kept, self.sums
        now = now or counters.clock()
        before: Sequence[Part] = ()
        for limit, amount in wanted:
            name = limit.counter
            counter = kept.get(name)
            if counter is None or counter.ends <= now:
                counter = counters.of(limit, now)
            found = counter.take(amount, now, limit.seconds, limit.limit)
            if found is None:
                self._give_back(wanted, limit, before)
                return self._refusal(wanted, limit, now)
            if not counter.noted:
                counters.note(counter)
            sums[name] = found
            if name not in parts:
                parts[name] = limit, amount, counter.current, counter
            else:
                before = [*before, parts[name]]
                parts[name] = _joined(parts[name], (limit, amount, counter.current, counter), now)
        return None

    def _give_back(
        self, wanted: Sequence[Wanted], full: CounterLimit, before: Sequence[Part]
    ) -> None:
        """All is as it was before one was full."""
        for limit, _ in wanted:
            if limit is full:
                break
            _, amount, bucket, counter = self.parts.pop(limit.counter)
            counter.give(bucket, amount)
        for part in before:
            limit, amount, bucket, counter = part
            counter.merge({bucket: amount})
            self.parts[limit.counter] = part

    def _refusal(self, wanted: Sequence[Wanted], full: CounterLimit, now: float) -> Taken:
        of = self._counters.of
        sums = {limit.counter: of(limit, now).sum(now) for limit, _ in wanted}
        self.sums.update(sums)
        return Taken(sums, full.counter, of(full, now).wait(full.limit, now))

    def settle(self, amounts: Mapping[str, float], now: float | None = None) -> None:
        """What was never taken is not counted."""
        counters = self._counters
        now = now or counters.clock()
        for name, used in amounts.items():
            part = self.parts.pop(name, None)
            if part is None:
                continue
            limit, amount, bucket, counter = part
            if used and limit.sliding and counters.kept.get(name) is counter and counter.ends > now:
                counter.exchange(bucket, amount, used, now, limit.seconds)
            else:
                counter.give(bucket, amount)
                if used:
                    counter = counters.of(limit, now)  # that one may have ended, or be forgotten
                    if limit.sliding:
                        counter.take(used, now, limit.seconds)
                    else:
                        counter.spend(used, now + limit.seconds + counter.step)
            if not counter.noted:
                counters.note(counter)


class NamedClaims:
    """Of counters elsewhere, where requests are known by their names."""

    __slots__ = ("_request", "_state", "sums")

    def __init__(self, state: State, request: str) -> None:
        self._state = state
        self._request = request
        self.sums: dict[str, float] = {}

    async def take(self, wanted: Sequence[Wanted]) -> Taken | None:
        taken = await self._state.take(self._request, [Hold.of(*one) for one in wanted])
        self.sums.update(taken.sums)
        return taken if taken.refused else None

    def settle(self, amounts: Mapping[str, float]) -> Awaitable[None]:
        return self._state.settle(self._request, amounts)


def _joined(before: Part, new: Part, now: float) -> Part:
    limit, amount, _, counter = new
    _, had, bucket, _ = before
    counter.give(bucket, had)
    counter.take(had, now, limit.seconds)
    return limit, had + amount, counter.current, counter
