"""A request as the ledger tells it: no word of what was asked or answered."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from adapters.protocol import UpstreamCall, Usage
from middleware.server.visits import Visit

COLUMNS: Mapping[str, str] = {
    "id": "TEXT PRIMARY KEY",
    "time": "DOUBLE PRECISION NOT NULL",  # seconds since 1970, of its beginning
    "client": "TEXT NOT NULL",
    "door": "TEXT NOT NULL",
    "operation": "TEXT NOT NULL",
    "model": "TEXT NOT NULL",  # that was asked
    "answered": "TEXT NOT NULL",
    "upstream": "TEXT NOT NULL",
    "upstream_model": "TEXT NOT NULL",
    "stream": "SMALLINT NOT NULL",
    "status": "SMALLINT NOT NULL",
    "outcome": "TEXT NOT NULL",  # ok, client_gone, or the error's code
    "prompt_tokens": "BIGINT NOT NULL",
    "cached_tokens": "BIGINT NOT NULL",
    "cache_write_tokens": "BIGINT NOT NULL",
    "completion_tokens": "BIGINT NOT NULL",
    "reasoning_tokens": "BIGINT NOT NULL",
    "cost": "DOUBLE PRECISION NOT NULL",  # USD
    "calls": "SMALLINT NOT NULL",
    "seconds": "DOUBLE PRECISION NOT NULL",
    "first_event": "DOUBLE PRECISION",
}
Row = tuple[Any, ...]
_MOST = 1 << 53
_NOTHING = Usage(0, 0)


def row_of(visit: Visit, now: float) -> Row:
    calls = visit.journey.calls()
    last = calls[-1] if calls else None
    spent, seconds, first = visit.spent or _NOTHING, now - visit.began, visit.first_event
    return (
        visit.id,
        time.time() - seconds,
        visit.client,
        visit.door,
        visit.operation,
        visit.model.replace("\0", ""),  # which PostgreSQL does not take
        _answered(visit, last),
        last.upstream if last else visit.upstream,
        last.model if last else visit.upstream_model,
        int(visit.streamed),
        visit.status,
        "client_gone" if visit.gone else _outcome(visit),
        *_counts(spent),
        visit.cost or 0.0,
        len(calls),
        seconds,
        None if first is None else first - visit.began,
    )


def _answered(visit: Visit, last: UpstreamCall | None) -> str:
    if visit.spent is None:
        return ""
    return last.place if last else visit.model


def _outcome(visit: Visit) -> str:
    return "ok" if visit.error is None else visit.error.code or visit.error.type


def _counts(used: Usage) -> Sequence[int]:
    """In the order of the columns; what upstreams say may be any number."""
    cached, written, thought = used.cached or 0, used.cache_write or 0, used.reasoning or 0
    figures = used.prompt, cached, written, used.completion, thought
    for figure in figures:
        if not 0 <= figure <= _MOST:
            return [min(max(0, figure), _MOST) for figure in figures]
    return figures
