"""Periods of the calendar, UTC, for which clients have budgets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from middleware.config import SpendingLimit
from middleware.config.shape import Period
from middleware.state.store import CounterLimit

_EVER = 10 * 365 * 86400.0
_HOUR = 3600.0
"""Requests settle as late as so long after the end of their period."""


class Term(NamedTuple):
    """The period a budget is in."""

    counter: str
    """Under which what is spent in it is counted."""
    ends: datetime | None
    """None: never."""
    limit: CounterLimit
    """How much may be spent in it, and how long that has to be remembered."""

    def wait(self, now: float) -> float | None:
        """Seconds to its end."""
        return None if self.ends is None else self.ends.timestamp() - now


class Terms:
    """Of one client's budget: as every period begins and ends with an hour, one is made an hour."""

    __slots__ = ("_budget", "_client", "_hour", "_term")

    def __init__(self, client: str, budget: SpendingLimit) -> None:
        self._client, self._budget = client, budget
        self._hour = -1.0
        self._term: Term

    def at(self, now: float) -> Term:
        hour = now // _HOUR
        if hour != self._hour:
            self._term, self._hour = term_of(self._client, self._budget, now), hour
        return self._term


def term_of(client: str, budget: SpendingLimit, now: float) -> Term:
    amount, period = budget
    if period == "total":
        name = f"money:{client}:total"
        return Term(name, None, CounterLimit(name, amount, _EVER, sliding=False))
    begins, ends = _bounds(period, datetime.fromtimestamp(now, UTC))
    name = f"money:{client}:{period}:{begins:%Y-%m-%dT%H}"
    left = ends.timestamp() - now // _HOUR * _HOUR + _HOUR
    return Term(name, ends, CounterLimit(name, amount, left, sliding=False))


def _bounds(period: Period, now: datetime) -> tuple[datetime, datetime]:
    hour = now.replace(minute=0, second=0, microsecond=0)
    if period == "hour":
        return hour, hour + timedelta(hours=1)
    day = hour.replace(hour=0)
    if period == "day":
        return day, day + timedelta(days=1)
    if period == "week":
        monday = day - timedelta(days=day.weekday())
        return monday, monday + timedelta(weeks=1)
    first = day.replace(day=1)
    return first, (first + timedelta(days=31)).replace(day=1)
