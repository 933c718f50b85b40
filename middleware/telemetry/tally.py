"""Counts each request once, at its end; whoever asks gets a copy, which can be added to others'."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from adapters.protocol import UpstreamCall, Usage
from middleware.server.visits import Visit
from middleware.telemetry.families import (
    CALL_SECONDS,
    CALL_TOKENS,
    CALLS,
    COST,
    FAMILIES,
    FIRST_EVENT_SECONDS,
    LIMITED,
    PASSED,
    REQUEST_SECONDS,
    REQUESTS,
    TOKENS,
    Family,
)
from middleware.telemetry.vocabulary import OTHER, Vocabulary

Labels = tuple[str, ...]
Snapshot = dict[str, list[tuple[Sequence[str], list[float]]]]
"""Metric → its series: labels, and the number; of a histogram its buckets, then its sum.

Plain values, which may have been JSON on the way.
"""
Gauge = Callable[[], Awaitable[Mapping[Labels, float]]]
"""Looks when it is asked."""
LEFT = 499
"""Status of a request whose client left."""
_MOST = 2000
"""Series of one metric."""
_PATIENCE = 1.0
"""Seconds for each gauge: what it asks may be away."""
_KINDS = ("input", "cached", "cache_write", "output", "reasoning")


class Series:
    """The numbers of one metric by its labels."""

    __slots__ = ("family", "rows")

    def __init__(self, family: Family) -> None:
        self.family = family
        self.rows: dict[Labels, list[float]] = {}

    def add(self, labels: Labels, amount: float = 1.0) -> None:
        row = self.rows.get(labels) or self._begin(labels)
        row[0] += amount

    def observe(self, labels: Labels, value: float) -> None:
        row = self.rows.get(labels) or self._begin(labels)
        row[bisect_left(self.family.bounds, value)] += 1
        row[-1] += value

    def _begin(self, labels: Labels) -> list[float]:
        if len(self.rows) >= _MOST:
            labels = (OTHER,) * len(labels)
        width = len(self.family.bounds) + 2 if self.family.bounds else 1
        return self.rows.setdefault(labels, [0.0] * width)


class Tally:
    """An `Observer`: all metrics of this process."""

    def __init__(self, names: Vocabulary) -> None:
        self.gauges: dict[str, Gauge] = {}
        """By the name of their metric."""
        self._names = names
        self._requests = Series(REQUESTS)
        self._seconds = Series(REQUEST_SECONDS)
        self._first = Series(FIRST_EVENT_SECONDS)
        self._calls = Series(CALLS)
        self._passed = Series(PASSED)
        self._tokens = Series(TOKENS)
        self._cost = Series(COST)
        self._limited = Series(LIMITED)
        self._call_seconds = Series(CALL_SECONDS)
        self._call_tokens = Series(CALL_TOKENS)
        self._all = (
            *(self._requests, self._seconds, self._first, self._calls, self._passed),
            *(self._tokens, self._cost, self._limited, self._call_seconds, self._call_tokens),
        )

    def ended(self, visit: Visit, now: float) -> None:
        model, client = self._names.model(visit.model), visit.client
        status = str(LEFT if visit.gone else visit.status)
        stream = "true" if visit.streamed else "false"
        self._requests.add((client, model, *self._answered(visit, model), status, stream))
        self._seconds.observe((model,), now - visit.began)
        if visit.first_event is not None:
            self._first.observe((model,), visit.first_event - visit.began)
        if usage := visit.spent or (visit.finish.usage if visit.finish else visit.usage):
            self._used(client, model, usage)
        if visit.cost:
            self._cost.add((client, model), visit.cost)
        if visit.limit:
            self._limited.add((client, visit.limit))
        for step in visit.journey.steps:
            if type(step) is UpstreamCall:
                self._called(step, visit.operation, now)
            else:
                self._passed.add((self._names.model(step.place), step.reason))

    def _answered(self, visit: Visit, model: str) -> tuple[str, str]:
        """Whose answer it was: the place, its upstream."""
        if visit.replay:
            return model, "replay"
        if call := visit.journey.answered():
            return self._names.model(call.place), call.upstream
        return "", ""

    def _used(self, client: str, model: str, usage: Usage) -> None:
        amounts = (
            *(usage.prompt, usage.cached, usage.cache_write),
            *(usage.completion, usage.reasoning),
        )
        for kind, amount in zip(_KINDS, amounts, strict=True):
            if amount:
                self._tokens.add((client, model, kind), amount)

    def _called(self, call: UpstreamCall, operation: str, now: float) -> None:
        names = self._names
        self._calls.add((call.upstream, names.model(call.place), call.code))
        provider = names.provider(call.upstream).name
        labels = (operation, provider, *names.asked_and_answered(call))
        self._call_seconds.observe(labels, (call.ended or now) - call.began)
        if call.finish is not None and (usage := call.finish.usage):
            self._call_tokens.observe((*labels, "input"), usage.prompt)
            self._call_tokens.observe((*labels, "output"), usage.completion)

    async def snapshot(self) -> Snapshot:
        taken: Snapshot = {
            series.family.name: [(labels, [*row]) for labels, row in series.rows.items()]
            for series in self._all
        }
        looks = [_looked(gauge) for gauge in self.gauges.values()]
        for name, seen in zip(self.gauges, await asyncio.gather(*looks), strict=True):
            taken[name] = [(labels, [number]) for labels, number in seen.items()]
        return taken


async def _looked(gauge: Gauge) -> Mapping[Labels, float]:
    try:
        async with asyncio.timeout(_PATIENCE):
            return await gauge()
    except TimeoutError:
        return {}


def together(snapshots: Iterable[Snapshot]) -> Snapshot:
    """What several workers counted, as if there were one."""
    rules = {family.name: _RULES[family.together] for family in FAMILIES}
    found: dict[str, dict[Labels, list[float]]] = {}
    for snapshot in snapshots:
        for name, rows in snapshot.items():
            sums = found.setdefault(name, {})
            for labels, row in rows:
                key = tuple(labels)
                before = sums.get(key)
                sums[key] = [*map(rules[name], zip(before, row, strict=True))] if before else row
    return {name: [*sums.items()] for name, sums in found.items()}


def lasting_of(snapshot: Snapshot) -> Snapshot:
    """What still counts of a worker that has ended."""
    gauges = {family.name for family in FAMILIES if family.type == "gauge"}
    return {name: rows for name, rows in snapshot.items() if name not in gauges}


_RULES: Mapping[str, Callable[[Iterable[float]], float]] = {"sum": sum, "max": max, "min": min}
