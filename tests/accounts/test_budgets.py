"""The calendar's periods."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from middleware.accounts.budgets import term_of
from middleware.config import SpendingLimit
from middleware.config.shape import Period

TERMS: tuple[tuple[Period, str, str, str], ...] = (
    ("hour", "2026-11-19T05:59:59", "hour:2026-11-19T05", "2026-11-19T06:00:00"),
    ("day", "2026-11-19T00:00:00", "day:2026-11-19T00", "2026-11-20T00:00:00"),
    ("day", "2026-12-31T23:59:59", "day:2026-12-31T00", "2027-01-01T00:00:00"),
    ("week", "2026-11-19T05:00:00", "week:2026-11-16T00", "2026-11-23T00:00:00"),
    ("week", "2026-11-22T23:59:59", "week:2026-11-16T00", "2026-11-23T00:00:00"),
    ("month", "2026-02-28T12:00:00", "month:2026-02-01T00", "2026-03-01T00:00:00"),
    ("month", "2026-01-31T12:00:00", "month:2026-01-01T00", "2026-02-01T00:00:00"),
    ("month", "2026-12-01T00:00:00", "month:2026-12-01T00", "2027-01-01T00:00:00"),
)


@pytest.mark.parametrize(("period", "now", "counter", "ends"), TERMS)
def test_a_budget_is_of_a_period_of_the_calendar(
    period: Period, now: str, counter: str, ends: str
) -> None:
    at = datetime.fromisoformat(now).replace(tzinfo=UTC)
    term = term_of("alpha", SpendingLimit(1.0, period), at.timestamp())
    assert term.counter == f"money:alpha:{counter}"
    assert term.ends == datetime.fromisoformat(ends).replace(tzinfo=UTC)
    assert term.wait(at.timestamp()) == (term.ends - at).total_seconds()


def test_a_total_never_ends() -> None:
    term = term_of("alpha", SpendingLimit(1.0, "total"), 1e9)
    assert (term.counter, term.ends, term.wait(1e9)) == ("money:alpha:total", None, None)
