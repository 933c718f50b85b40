"""What was used, as the ledger knows it: by model, client, day or upstream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

from adapters.protocol import Json
from middleware.accounts.ledger.book import Book, By

_ALWAYS = 1e12
_DIGITS = 12
_SUMS = (
    "prompt_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "cost",
)
_NAMES: Mapping[str, str] = {
    # What nobody answered stands under the model that was asked.
    "model": "COALESCE(NULLIF(answered, ''), model)",
    "client": "client",
    "upstream": "upstream",
}


class UsageQuestion(NamedTuple):
    by: By = "model"
    since: date | None = None
    until: date | None = None
    """The last day."""
    client: str | None = None
    """None: all of them."""


def usage_of(book: Book, asked: UsageQuestion) -> Json:
    """Ask the ledger; may take a while, or raise `LedgerAway`."""
    name = book.days if asked.by == "day" else _NAMES[asked.by]
    sums = ", ".join(f"SUM({column})" for column in _SUMS)
    question = (
        f"SELECT {name} AS name, COUNT(*), {sums} FROM usage "
        "WHERE time >= :since AND time < :until AND (:everybody = 1 OR client = :client) "
        "GROUP BY 1 ORDER BY 1"
    )
    rows = [_row(row) for row in book.read(question, _values(asked))]
    data = [{asked.by: name, **figures} for name, figures in rows]
    return {"object": "list", "data": data, "total": _total([figures for _, figures in rows])}


def _values(asked: UsageQuestion) -> Mapping[str, Any]:
    return {
        "since": _midnight(asked.since) if asked.since else 0.0,
        "until": _midnight(asked.until + timedelta(days=1)) if asked.until else _ALWAYS,
        "everybody": int(asked.client is None),
        "client": asked.client or "",
    }


def _row(row: Sequence[Any]) -> tuple[str, Json]:
    name, requests, *sums, cost = row
    tokens = dict(zip(_SUMS, map(int, sums), strict=False))
    return name, {"requests": int(requests), **tokens, "cost": round(float(cost), _DIGITS)}


def _total(rows: Sequence[Json]) -> Json:
    total = {name: sum(row[name] for row in rows) for name in ("requests", *_SUMS)}
    return {**total, "cost": round(total["cost"], _DIGITS)}


def _midnight(day: date) -> float:
    return datetime.combine(day, time(), UTC).timestamp()
