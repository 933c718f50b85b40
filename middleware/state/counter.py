"""`Counter`: a sum whose parts end by themselves, in at most a few hundred buckets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, inf

from middleware.state.store import CounterLimit
from middleware.state.table import ExpiringTable

BUCKETS = 240
"""Into how many steps the life of a part is cut: of a minute a quarter of a second."""
LONGEST_REQUEST = 3600.0
"""Seconds after which a request that was never settled is none any more."""


def life_of(limit: CounterLimit) -> float:
    """Of what is counted for good only what is held ends by itself."""
    return limit.seconds if limit.sliding else LONGEST_REQUEST


class Counter:
    """Cheap however much is counted: a part only changes the number of its bucket."""

    __slots__ = (
        *("_due", "_parts", "_sum", "_until"),
        *("current", "ends", "life", "name", "noted", "step", "total", "written"),
    )

    def __init__(self, name: str, life: float, noted: bool = True) -> None:
        self.name = name
        self.life = life
        """Seconds for which a part counts."""
        self.step = life / BUCKETS
        self.ends = 0.0
        """From when on nothing of it counts."""
        self.total = 0.0
        """What does not end by itself."""
        self.written = 0.0
        """How much of the total is kept elsewhere too."""
        self._parts: dict[int, float] = {}
        """Bucket → amount; those that end first stand first."""
        self._sum = 0.0
        self._due = inf
        """When the first part ends."""
        self.current, self._until = 0, -inf
        """The bucket of what began last, and how long what begins comes into it."""
        self.noted = noted
        """Who writes it down knows that it has changed, or nobody does."""

    @property
    def parts(self) -> dict[int, float]:
        return dict(self._parts)

    def bucket(self, now: float) -> int:
        """The step in which what begins now ends; rounded up, so that no limit is passed."""
        return ceil((now + self.life) / self.step)

    def sum(self, now: float) -> float:
        """What counts now."""
        if now >= self._due:
            self._drop_ended(now)
        return self._sum + self.total

    def _drop_ended(self, now: float) -> None:
        parts, last = self._parts, int(now / self.step)
        while parts:
            bucket = next(iter(parts))
            if bucket > last:
                self._due = bucket * self.step
                return
            self._sum -= parts.pop(bucket)
        self._sum, self._due = 0.0, inf  # of what was rounded nothing stays
        self._until = -inf

    def take(self, amount: float, now: float, seconds: float, limit: float = inf) -> float | None:
        """Add a part that begins now, in the bucket that is then `current`, and return the sum;
        all of it counts so long at least. None: the limit was reached, and nothing is added.
        """
        if now >= self._due:
            self._drop_ended(now)
        before = self._sum + self.total
        if before >= limit:
            return None
        if now > self._until:
            self._begin_bucket(now, seconds)
        self._parts[self.current] += amount
        self._sum += amount
        return before + amount

    def spend(self, amount: float, until: float) -> None:
        """Add what ends with all of the counter, and not before then."""
        self.total += amount
        self.ends = max(self.ends, until)

    def _begin_bucket(self, now: float, seconds: float) -> None:
        bucket = self.current = self.bucket(now)
        ends = bucket * self.step
        self._until = ends - self.life
        self._parts.setdefault(bucket, 0.0)
        self._due = min(self._due, ends)
        # What comes into the same bucket later does so within a step.
        self.ends = max(self.ends, now + seconds + 2 * self.step)

    def merge(self, parts: Mapping[int, float]) -> None:
        for bucket, amount in parts.items():
            self._parts[bucket] = self._parts.get(bucket, 0.0) + amount
            self._sum += amount
        self._parts = dict(sorted(self._parts.items()))
        self._due = next(iter(self._parts), inf) * self.step

    def give(self, bucket: int, amount: float) -> None:
        """Take back what was added, unless it has ended."""
        if bucket in self._parts:
            self._parts[bucket] -= amount
            self._sum -= amount

    def exchange(self, bucket: int, amount: float, used: float, now: float, seconds: float) -> None:
        """Put what was used in place of what was added; it begins now."""
        if bucket == self.current and now <= self._until and now < self._due:
            more = used - amount
            self._parts[bucket] += more
            self._sum += more
        else:
            self.give(bucket, amount)
            self.take(used, now, seconds)

    def wait(self, limit: float, now: float) -> float:
        """Seconds until it is below a limit by itself; 0: it never is, or is now."""
        left = self.sum(now)
        for bucket, amount in self._parts.items():
            left -= amount
            if left < limit:
                return max(0.0, bucket * self.step - now)
        return 0.0


class Counters(ExpiringTable[Counter]):
    """All of a process; `changed` is told, once, of those that are to be written down."""

    def __init__(
        self,
        most: int,
        clock: Callable[[], float],
        changed: Callable[[Counter], None] | None = None,
    ) -> None:
        super().__init__(most, lambda counter: counter.ends)
        self.clock = clock
        self._changed = changed

    def of(self, limit: CounterLimit, now: float) -> Counter:
        """The counter of a limit, which from now on lives as long as that says."""
        found = self.kept.get(limit.counter)
        if found is None or found.ends <= now:
            found = Counter(limit.counter, life_of(limit), noted=self._changed is None)
            self.put(limit.counter, found, now)
        found.ends = max(found.ends, now + limit.seconds + found.step)
        return found

    def note(self, counter: Counter) -> None:
        if self._changed is not None:
            counter.noted = True
            self._changed(counter)
