"""Counts each request once, at its end; whoever asks gets a copy, which can be added to others'."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

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


def observe(row: Row, bounds: Sequence[float], value: float) -> None:
    """Count a value in a histogram's row."""
    row[bisect_left(bounds, value)] += 1
    row[-1] += value


class _RequestRows(NamedTuple):
    """Where requests of the same labels are counted."""

    model: str
    """As the labels have it."""
    requests: Row
    seconds: Row
    first: Row


class _CallRows(NamedTuple):
    """Where calls of the same labels are counted."""

    calls: Row
    seconds: Row
    asked: Row
    """Tokens of the prompt."""
    said: Row


class Tally:
    """An `Observer`: all metrics of this process."""

    def __init__(self, names: Vocabulary) -> None:
        self.gauges: dict[str, Gauge] = {}
        """By the name of their metric."""
        self._names = names
        self._rows_of = lru_cache(_MOST)(self._find_rows)
        self._rows_of_call = lru_cache(_MOST)(self._find_rows_of_call)
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
        client, status = visit.client, LEFT if visit.gone else visit.status
        rows = self._rows_of((client, visit.model, status, visit.streamed, *_answered(visit)))
        rows.requests[0] += 1
        observe(rows.seconds, REQUEST_SECONDS.bounds, now - visit.began)
        if visit.first_event is not None:
            observe(rows.first, FIRST_EVENT_SECONDS.bounds, visit.first_event - visit.began)
        if usage := visit.spent or (visit.finish.usage if visit.finish else visit.usage):
            self._used(client, rows.model, usage)
        if visit.cost:
            self._cost.add((client, rows.model), visit.cost)
        if visit.limit:
            self._limited.add((client, visit.limit))
        for step in visit.journey.steps:
            if type(step) is UpstreamCall:
                self._called(step, visit.operation, now)
            else:
                self._passed.add((self._names.model(step.place), step.reason))

    def forget_names(self) -> None:
        """The config has changed, and with it which names are told."""
        self._rows_of.cache_clear()
        self._rows_of_call.cache_clear()

    def _find_rows(self, asked: _Asked) -> _RequestRows:
        client, name, status, streamed, place, upstream = asked
        model = self._names.model(name)
        answered = self._names.model(place) if place else ""
        stream = "true" if streamed else "false"
        return _RequestRows(
            model,
            self._requests.row((client, model, answered, upstream, str(status), stream)),
            self._seconds.row((model,)),
            self._first.row((model,)),
        )

    def _find_rows_of_call(self, made: _Made) -> _CallRows:
        operation, outcome, upstream, place, asked, answered = made
        models = self._names.asked_and_answered(place, asked, answered)
        labels = operation, self._names.provider(upstream).name, *models
        return _CallRows(
            self._calls.row((upstream, self._names.model(place), outcome)),
            self._call_seconds.row(labels),
            self._call_tokens.row((*labels, "input")),
            self._call_tokens.row((*labels, "output")),
        )

    def _used(self, client: str, model: str, usage: Usage) -> None:
        amounts = (
            *(usage.prompt, usage.cached, usage.cache_write),
            *(usage.completion, usage.reasoning),
        )
        for kind, amount in zip(_KINDS, amounts, strict=True):
            if amount:
                self._tokens.add((client, model, kind), amount)

    def _called(self, call: UpstreamCall, operation: str, now: float) -> None:
        answered = call.opened.upstream.model[:_LONGEST] if call.opened else None
        models = call.model[:_LONGEST], answered
        rows = self._rows_of_call((operation, call.code, call.upstream, call.place, *models))
        rows.calls[0] += 1
        observe(rows.seconds, CALL_SECONDS.bounds, (call.ended or now) - call.began)
        if call.finish is not None and (usage := call.finish.usage):
            observe(rows.asked, CALL_TOKENS.bounds, usage.prompt)
            observe(rows.said, CALL_TOKENS.bounds, usage.completion)

    async def snapshot(self) -> Snapshot:
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
