"""A snapshot as Prometheus reads it. Loaded at the first scrape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from middleware.telemetry.families import FAMILIES, Family
from middleware.telemetry.tally import Snapshot

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


def exposed(snapshot: Snapshot) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Snapshots(snapshot))
    return generate_latest(registry)


class _Snapshots(Collector):
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        for family in FAMILIES:
            yield _metric(family, self._snapshot.get(family.name, ()))


def _metric(family: Family, rows: Sequence[tuple[Sequence[str], list[float]]]) -> Metric:
    if family.type == "histogram":
        return _histogram(family, rows)
    made = CounterMetricFamily if family.type == "counter" else GaugeMetricFamily
    metric = made(family.name, family.about, labels=family.labels)
    for labels, (number,) in rows:
        metric.add_metric(labels, number)
    return metric


def _histogram(family: Family, rows: Sequence[tuple[Sequence[str], list[float]]]) -> Metric:
    metric = HistogramMetricFamily(family.name, family.about, labels=family.labels)
    bounds = [*map(str, family.bounds), "+Inf"]
    for labels, (*counts, total) in rows:
        metric.add_metric(labels, [*zip(bounds, accumulate(counts), strict=True)], total)
    return metric
