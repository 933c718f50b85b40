"""A request as the ledger tells it: no word of what was asked or answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adapters.protocol import Usage
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
_BITS = 53
_MOST = 1 << _BITS
_NOTHING = (0, 0, 0, 0, 0)


def row_of(visit: Visit, now: float, clock: float) -> Row:
    """Of a request that ended then, by the event loop's time and in seconds since 1970."""
    calls, model = visit.journey.calls(), visit.model
    spent, seconds, first = visit.spent, now - visit.began, visit.first_event
    if calls:
        last = calls[-1]
        place, upstream, upstream_model = last.place, last.upstream, last.model
    else:
        place, upstream, upstream_model = model, visit.upstream, visit.upstream_model
    return (
        visit.id,
        clock - seconds,
        visit.client,
        visit.door,
        visit.operation,
        model.replace("\0", ""),  # which PostgreSQL does not take
        "" if spent is None else place,
        upstream,
        upstream_model,
        int(visit.streamed),
        visit.status,
        _outcome(visit),
        *(_NOTHING if spent is None else _counts(spent)),
        visit.cost or 0.0,
        len(calls),
        seconds,
        None if first is None else first - visit.began,
    )


def _outcome(visit: Visit) -> str:
    if visit.gone:
        return "client_gone"
    return "ok" if visit.error is None else visit.error.code or visit.error.type


def _counts(used: Usage) -> Sequence[int]:
    """In the order of the columns; what upstreams say may be any number."""
    prompt, completion = used.prompt, used.completion
    cached, written, thought = used.cached or 0, used.cache_write or 0, used.reasoning or 0
    figures = prompt, cached, written, completion, thought
    if not (prompt | cached | written | completion | thought) >> _BITS:  # each is small, none < 0
        return figures
    return [min(max(0, figure), _MOST) for figure in figures]
