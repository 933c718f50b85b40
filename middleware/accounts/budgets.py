"""Periods of the calendar, UTC, for which clients have budgets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from middleware.config import SpendingLimit
from middleware.config.shape import Period

_EVER = 10 * 365 * 86400.0
_HOUR = 3600.0
"""Requests settle as late as so long after the end of their period."""


class Term(NamedTuple):
    """The period a budget is in."""

    counter: str
    """Under which what is spent in it is counted."""
    ends: datetime | None
    """None: never."""
    left: float
    """Seconds for which it has to be remembered."""

    def wait(self, now: float) -> float | None:
        """Seconds to its end."""
        return None if self.ends is None else self.ends.timestamp() - now


def term_of(client: str, budget: SpendingLimit, now: float) -> Term:
    return _term(client, budget.period, int(now // _HOUR))


# Asked twice a request; every period begins and ends with an hour.
@lru_cache(maxsize=256)
def _term(client: str, period: Period, hour: int) -> Term:
    if period == "total":
        return Term(f"money:{client}:total", None, _EVER)
    now = hour * _HOUR
    begins, ends = _bounds(period, datetime.fromtimestamp(now, UTC))
    name = f"money:{client}:{period}:{begins:%Y-%m-%dT%H}"
    return Term(name, ends, ends.timestamp() - now + _HOUR)


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
