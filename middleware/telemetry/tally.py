"""Counts each request once, at its end; whoever asks gets a copy, which can be added to others'."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from adapters.protocol import UpstreamCall, Usage
from middleware.config import Config
from middleware.server.visits import TOGETHER, Visit
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
Row = list[float]
"""The number of one series; of a histogram its buckets, then their sum."""
_Asked = tuple[str, str, int, bool, str, str]
"""Client, model, status, whether it was streamed, place and upstream that answered."""
_Made = tuple[str, str, str, str, str, str | None]
"""Operation, outcome, upstream, place, and the upstream's names: asked, and answered if it did."""
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
_LONGEST = 200
"""Letters of an upstream's name."""
_PATIENCE = 1.0
"""Seconds for each gauge: what it asks may be away."""
_KINDS = ("input", "cached", "cache_write", "output", "reasoning")
_Figures = tuple[float | None, ...]
"""Tokens of each kind, and what they cost."""
_AT_ONCE = 1000
"""Requests whose values wait to be added up: their buckets are looked for together."""


class Series:
    """The numbers of one metric by its labels."""

    __slots__ = ("family", "rows")

    def __init__(self, family: Family) -> None:
        self.family = family
        self.rows: dict[Labels, Row] = {}

    def add(self, labels: Labels, amount: float = 1.0) -> None:
        self.row(labels)[0] += amount

    def row(self, labels: Labels) -> Row:
        if found := self.rows.get(labels):
            return found
        if len(self.rows) >= _MOST:
            labels = (OTHER,) * len(labels)
        width = len(self.family.bounds) + 2 if self.family.bounds else 1
        return self.rows.setdefault(labels, [0.0] * width)


class Histogram(Series):
    """Takes values as they come, and looks for their buckets later, for many at once."""

    __slots__ = ("_waiting",)

    def __init__(self, family: Family) -> None:
        super().__init__(family)
        self._waiting: dict[Labels, list[float]] = {}

    def values(self, labels: Labels) -> list[float]:
        """Where values of these labels are put."""
        if labels not in self._waiting and len(self._waiting) >= _MOST:
            labels = (OTHER,) * len(labels)
        return self._waiting.setdefault(labels, [])

    def count(self) -> None:
        for labels, values in self._waiting.items():
            if values:
                _observe(self.row(labels), self.family.bounds, values)
                values.clear()


def _observe(row: Row, bounds: Sequence[float], values: Sequence[float]) -> None:
    ordered, counted = sorted(values), 0
    for bucket, bound in enumerate(bounds):
        within = bisect_right(ordered, bound, counted)
        row[bucket] += within - counted
        counted = within
    row[-2] += len(ordered) - counted
    row[-1] += sum(values)


@dataclass(frozen=True, slots=True)
class _RequestRows:
    """Where requests of the same labels are counted."""

    requests: Row
    seconds: list[float]
    first: list[float]
    used: list[_Figures]


@dataclass(frozen=True, slots=True)
class _CallRows:
    """Where calls of the same labels are counted."""

    calls: Row
    seconds: list[float]
    asked: list[float]
    """Tokens of the prompt."""
    said: list[float]


class Tally:
    """An `Observer`: all metrics of this process."""

    def __init__(self, names: Vocabulary) -> None:
        self.gauges: dict[str, Gauge] = {}
        """By the name of their metric."""
        self._names = names
        self._rows_of = lru_cache(_MOST)(self._find_rows)
        self._rows_of_call = lru_cache(_MOST)(self._find_rows_of_call)
        self._requests = Series(REQUESTS)
        self._seconds = Histogram(REQUEST_SECONDS)
        self._first = Histogram(FIRST_EVENT_SECONDS)
        self._calls = Series(CALLS)
        self._passed = Series(PASSED)
        self._tokens = Series(TOKENS)
        self._cost = Series(COST)
        self._limited = Series(LIMITED)
        self._call_seconds = Histogram(CALL_SECONDS)
        self._call_tokens = Histogram(CALL_TOKENS)
        self._all = (
            *(self._requests, self._seconds, self._first, self._calls, self._passed),
            *(self._tokens, self._cost, self._limited, self._call_seconds, self._call_tokens),
        )
        self._used: dict[tuple[str, str], list[_Figures]] = {}
        """Client and model, both of the config → what is not added up yet."""
        self._ended: list[tuple[Visit, float]] = []
        self._waiting = 0

    def ended(self, visit: Visit, now: float) -> None:
        self._ended.append((visit, now))
        # A receipt may be as long as its request, which must not be held any more: also that of a
        # call whose answer the client did not get.
        unheard = visit.gone or visit.error is not None or len(visit.journey.steps) > 1
        if visit.receipt or unheard or len(self._ended) >= TOGETHER:
            self._catch_up()

    def _catch_up(self) -> None:
        ended, self._ended = self._ended, []
        for visit, now in ended:
            self._take_in(visit, now)
        self._waiting += len(ended)
        if self._waiting >= _AT_ONCE:
            self._count()

    def _take_in(self, visit: Visit, now: float) -> None:
        client, status = visit.client, LEFT if visit.gone else visit.status
        place, upstream = _answered(visit)
        rows = self._rows_of((client, visit.model, status, visit.streamed, place, upstream))
        rows.requests[0] += 1
        rows.seconds.append(now - visit.began)
        if visit.first_event is not None:
            rows.first.append(visit.first_event - visit.began)
        if usage := visit.spent or (visit.finish.usage if visit.finish else visit.usage):
            rows.used.append(_figures(usage, visit.cost))
        if visit.limit:
            self._limited.add((client, visit.limit))
        for step in visit.journey.steps:
            if type(step) is UpstreamCall:
                self._called(step, visit.operation, now)
            else:
                self._passed.add((self._names.model(step.place), step.reason))

    def _count(self) -> None:
        """Add up what waits."""
        self._waiting = 0
        for series in self._all:
            if isinstance(series, Histogram):
                series.count()
        for labels, used in self._used.items():
            if not used:
                continue
            *columns, costs = zip(*used, strict=True)
            for kind, column in zip(_KINDS, columns, strict=True):
                if tokens := sum(filter(None, column)):
                    self._tokens.add((*labels, kind), tokens)
            if cost := sum(filter(None, costs)):
                self._cost.add(labels, cost)
            used.clear()

    def follow(self, config: Config) -> None:
        """The config has changed, and with it which names are told."""
        self._catch_up()
        self._names.follow(config)
        self._rows_of.cache_clear()
        self._rows_of_call.cache_clear()

    def _find_rows(self, asked: _Asked) -> _RequestRows:
        client, name, status, streamed, place, upstream = asked
        model = self._names.model(name)
        answered = self._names.model(place) if place else ""
        stream = "true" if streamed else "false"
        return _RequestRows(
            self._requests.row((client, model, answered, upstream, str(status), stream)),
            self._seconds.values((model,)),
            self._first.values((model,)),
            self._used.setdefault((client, model), []),
        )

    def _find_rows_of_call(self, made: _Made) -> _CallRows:
        operation, outcome, upstream, place, asked, answered = made
        models = self._names.asked_and_answered(place, asked, answered)
        labels = operation, self._names.provider(upstream).name, *models
        return _CallRows(
            self._calls.row((upstream, self._names.model(place), outcome)),
            self._call_seconds.values(labels),
            self._call_tokens.values((*labels, "input")),
            self._call_tokens.values((*labels, "output")),
        )

    def _called(self, call: UpstreamCall, operation: str, now: float) -> None:
        asked, outcome = call.model[:_LONGEST], call.outcome or call.code
        answered = call.opened.upstream.model[:_LONGEST] if call.opened is not None else None
        key = operation, outcome, call.upstream, call.place, asked, answered
        rows = self._rows_of_call(key)
        rows.calls[0] += 1
        rows.seconds.append((call.ended or now) - call.began)
        if call.finish is not None and (usage := call.finish.usage):
            rows.asked.append(usage.prompt)
            rows.said.append(usage.completion)

    async def snapshot(self) -> Snapshot:
        self._catch_up()
        self._count()
        taken: Snapshot = {
            series.family.name: [
                (labels, [*row]) for labels, row in series.rows.items() if any(row)
            ]
            for series in self._all
        }
        looks = [_looked(gauge) for gauge in self.gauges.values()]
        for name, seen in zip(self.gauges, await asyncio.gather(*looks), strict=True):
            taken[name] = [(labels, [number]) for labels, number in seen.items()]
        return taken


def _figures(used: Usage, cost: float | None) -> _Figures:
    """In the order of the kinds."""
    return used.prompt, used.cached, used.cache_write, used.completion, used.reasoning, cost


def _answered(visit: Visit) -> tuple[str, str]:
    """Whose answer it was: the place, its upstream."""
    if visit.replay:
        return visit.model, "replay"
    call = visit.journey.answered()
    return (call.place, call.upstream) if call else ("", "")


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
